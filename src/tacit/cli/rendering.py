"""Answers and previews of queries as tables, CSV and JSON: noisy numbers with their intervals, and their cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from typing import TYPE_CHECKING, Any, Final

from tacit.cli.app import with_options
from tacit.cli.options import takes_more
from tacit.cli.output import Fact, Screen
from tacit.privacy.figures import at_most, grouped, in_one_cell, left_over

if TYPE_CHECKING:
    from sqlglot import exp

    from tacit import Cost
    from tacit.pipeline import Quote
    from tacit.privacy.tables import Table
    from tacit.query import Preview
    from tacit.query.explain import Line
    from tacit.query.release import ReleasedRows

ROWS_SHOWN: Final = 1000


def cost_text(cost: Cost) -> str:
    """Return a cost in words."""
    if not cost.epsilon:
        return "nothing, because the answer was released before"
    return f"ε {at_most(cost.epsilon)}" + (f", δ {at_most(cost.delta)}" if cost.delta else "")


def cost_object(cost: Cost) -> dict[str, float | None]:
    """Return a cost as a JSON object; an infinite rho is null."""
    return {
        "epsilon": cost.epsilon,
        "delta": cost.delta,
        "rho": cost.rho if cost.rho != float("inf") else None,
    }


def row_object(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row as a JSON object: dates as strings, intervals as pairs."""
    return {name: json_value(value) for name, value in row.items()}


def answer_object(
    release: ReleasedRows, remaining: Mapping[str, Cost], level: float, analyst: str | None = None
) -> dict[str, Any]:
    """Return an answer as a JSON object."""
    return {
        "rows": [row_object(row) for row in release.rows],
        "intervals": [row_object(row) for row in release.intervals(level)],
        "level": level,
        "cost": cost_object(release.cost),
        "remaining": {name: cost_object(cost) for name, cost in remaining.items()},
        "analyst": analyst,
        "permit": release.permit.id if release.permit is not None else None,
        "counted": release.counted,
        "warnings": list(release.warnings),
        "card": release.card,
    }


def json_value(value: Any) -> Any:
    """Return a value that JSON can hold: dates as strings, NaN as null."""
    if isinstance(value, tuple):
        return [json_value(part) for part in value]
    if isinstance(value, float) and value != value:
        return None
    return value.isoformat() if isinstance(value, date) else value


def table_rows(release: ReleasedRows, level: float) -> list[tuple[str, ...]]:
    """Return the rows of an answer as text, each noisy number with the half-width of its interval."""
    spans = release.intervals(level)
    return [
        tuple(cell(row[name], span.get(name)) for name in release.columns)
        for row, span in zip(release.rows[:ROWS_SHOWN], spans, strict=False)
    ]


def csv_table(release: ReleasedRows, level: float) -> tuple[list[str], list[list[str]]]:
    """Return the header and rows of an answer as CSV fields: all digits, with the interval's ends after each number."""
    spans = release.intervals(level)
    noisy = {name for row in spans for name, span in row.items() if span is not None}
    names = [part for name in release.columns for part in _with_ends(name, name in noisy)]
    rows = []
    for row, span in zip(release.rows, spans, strict=True):
        ends = {name: span.get(name) or (None, None) for name in noisy}
        rows.append([field(part) for name in release.columns for part in (row[name], *ends.get(name, ()))])
    return names, rows


def _with_ends(name: str, has_ends: bool) -> list[str]:
    return [name, f"{name}_low", f"{name}_high"] if has_ends else [name]


def field(value: Any) -> str:
    """Return a value as a CSV field with all its digits; unprintable characters are escaped."""
    from tacit.cli.catalog_rendering import printable

    found = json_value(value)
    if isinstance(found, bool):
        return str(found).lower()
    return "" if found is None else repr(found) if isinstance(found, float) else printable(str(found))


def show_answer(screen: Screen, release: ReleasedRows, level: float) -> None:
    """Write the rows of an answer as a table, CSV or Markdown."""
    if screen.format == "csv":
        screen.show_csv(*csv_table(release, level))
    elif screen.format == "markdown":
        screen.show_markdown(release.columns, table_rows(release, level))
    else:
        screen.show_table(release.columns, table_rows(release, level))


def cell(value: Any, span: Any = None) -> str:
    """Return one value as text; unprintable characters are escaped so that they cannot control a terminal."""
    if value is None:
        return "–"
    if span is not None:
        return in_one_cell(value, *span)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return grouped(value)
    return str(value) if str(value).isprintable() else repr(str(value))[1:-1]


def counted_text(release: ReleasedRows, lines: Iterable[Line]) -> str:
    """Return the contribution limits of an answer; its intervals do not cover the rows beyond them."""
    if release.counted.startswith("1 row "):  # nothing lower could be proposed
        return f"at most {release.counted}; intervals cover the noise only"
    of_table = "" if any(line.label == "joins" for line in lines) else ", or --rows-per-unit of the table"
    return (
        f"at most {release.counted}; rows beyond that are left out, and intervals cover the noise only. Lower limits "
        f"give less noise: --rows-per-group and --groups-per-unit{of_table}"
    )


def budget_facts(preview: Quote) -> list[Fact]:
    """Return the remaining budgets of a preview, and why the cost does not fit if it does not."""
    remaining = remaining_facts(preview.remaining, preview.analyst)
    remaining += [
        Fact("leaves", f"ε {left_over(after.epsilon)} on {name}: it uses up the delta of the budget", True)
        for name, after in preview.leaves.items()
        if takes_more(preview.epsilon, preview.remaining[name], after)
    ]
    return remaining if preview.fits else [*remaining, Fact("over budget", with_options(preview.refusal), True)]


def quote_object(quote: Quote) -> dict[str, Any]:
    """Return the cost of a preview, and the budgets before and after it, for JSON."""
    return {
        "cost": cost_object(quote),
        "is_released": quote.is_released,
        "fits": quote.fits,
        "refusal": quote.refusal,
        "remaining": {name: cost_object(cost) for name, cost in quote.remaining.items()},
        "leaves": {name: cost_object(cost) for name, cost in quote.leaves.items()},
        "analyst": quote.analyst,
    }


def remaining_facts(remaining: Mapping[str, Cost], analyst: str | None = None) -> list[Fact]:
    """Return the remaining budget of each data set, or of an analyst on them."""
    whose = f"for {analyst} on" if analyst else "on"
    return [Fact("remaining", f"ε {left_over(cost.epsilon)} {whose} {name}") for name, cost in remaining.items()]


def preview_facts(preview: Preview) -> list[Fact]:
    """Return a preview as facts: cost, remaining budgets, limits, and the half-width of each 95 % interval."""
    facts = [Fact("cost", cost_text(preview), True), *budget_facts(preview), *plan_facts(preview.lines)]
    return [*facts, *(Fact(f"interval of {name}", half_width_text(width)) for name, width in preview.widths.items())]


def half_width_text(width: float | None) -> str:
    """Return the half-width of a 95 % interval in words; None depends on the data."""
    return "width depends on the data" if width is None else f"± {grouped(width, 4)} (95 %)"


def plan_facts(lines: Iterable[Line]) -> list[Fact]:
    """Return the contribution limits of a plan, and which groups it shows."""
    lines = list(lines)
    (first, *cuts) = [line.text for line in lines if line.label == "bounds"]
    counted = "; ".join((f"at most {first}", *(f"{cut}, and the rest is left out" for cut in cuts)))
    return [Fact("counted", counted), *caveats(lines)]


def category_hints(sql: str, tables: Iterable[Table], keys: Mapping[str, Iterable[Any]] | None = None) -> list[str]:
    """Return a hint for each text of a query and each key that is not a category of the column it is compared with."""
    from sqlglot import exp

    from tacit.cli.catalog_rendering import missing_category
    from tacit.privacy.errors import TacitError
    from tacit.query.parse import Text, parse

    try:
        tree = parse(Text(sql))
    except TacitError:
        return []  # the query itself is refused
    defined = {one.alias.lower() for one in tree.find_all(exp.CTE)}
    known = {one.name.lower(): one for one in tables if one.name.lower() not in defined}
    read = {one.name.lower(): known[one.name.lower()] for one in tree.find_all(exp.Table) if one.name.lower() in known}
    compared = [(_tables_of(column, known), column.name, text) for column, text in _comparisons(tree)]
    compared += [([*read.values()], name, value) for name, values in (keys or {}).items() for value in values]
    hints = []
    for sources, name, value in compared:
        columns = [one for table in sources for one in table.columns if one.name.lower() == name.lower()]
        found = [missing_category(column, value) for column in columns]
        hints += found[:1] if all(found) else []
    return list(dict.fromkeys(hints))


def _tables_of(column: exp.Column, known: Mapping[str, Table]) -> list[Table]:
    """Return the tables of the catalog that a column may be of; none if it may be one that the query computes."""
    from sqlglot import exp

    select = column.find_ancestor(exp.Select)
    if select is None or column.name.lower() in {one.alias.lower() for one in select.selects if not column.table}:
        return []
    read = [one.this for one in (select.args.get("from_"), *select.args.get("joins", ())) if one is not None]
    if column.table:
        read = [one for one in read if one.alias_or_name.lower() == column.table.lower()]
    found = [known.get(one.name.lower()) if isinstance(one, exp.Table) else None for one in read]
    return [one for one in found if one is not None] if None not in found else []


def _comparisons(tree: exp.Expr) -> Iterator[tuple[exp.Column, str]]:
    """Yield columns with the texts that they are compared with by =, <>, IN or CASE."""
    from sqlglot import exp

    for node in tree.find_all(exp.EQ, exp.NEQ, exp.In, exp.Case):
        cases = [one.this for one in node.args.get("ifs", ()) if node.this is not None]
        sides = [node.this, node.args.get("expression"), *node.args.get("expressions", ()), *cases]
        columns = [one for one in sides if isinstance(one, exp.Column)]
        texts = [one.name for one in sides if isinstance(one, exp.Literal) and one.is_string]
        yield from ((column, text) for column in columns[:1] for text in texts)


def caveats(lines: Iterable[Line]) -> list[Fact]:
    """Return which groups and rows an answer leaves out, which values are clamped, and what has no interval."""
    labels = {"keys": "groups", "joins": "noise", "clamped": "clamped", "spans": "intervals"}
    found: dict[str, list[str]] = {}
    for line in lines:
        if line.label in labels and not line.text.startswith("public"):
            found.setdefault(labels[line.label], []).append(line.text)
    return [Fact(label, "; ".join(sentences)) for label, sentences in found.items()]


def selections(lines: Iterable[Line]) -> list[str]:
    """Return how many units a group needs to be shown, if the groups of a query are not public."""
    return [line.text for line in lines if line.label == "keys" and line.text.startswith("not public")]


def empty_answer_text(lines: Iterable[Line]) -> str:
    """Return why an answer has no rows, and how to get some."""
    found = selections(lines)
    if not found:
        return "the answer has no rows"
    return (
        f"no group is shown: its keys are {found[0]}; list the groups with --keys COLUMN=A,B or as categories of the "
        "column, or spend more epsilon"
    )


def answer_facts(
    release: ReleasedRows, remaining: Mapping[str, Cost], lines: Iterable[Line], analyst: str | None = None
) -> list[Fact]:
    """Return the facts below an answer: limits, what is left out, warnings, cost and remaining budget."""
    warnings = [Fact("warning", one) for one in release.warnings]
    cost = Fact("cost", cost_text(release.cost), True)
    lines = list(lines)
    counted = [Fact("counted", counted_text(release, lines)), *caveats(lines)]
    permit = [] if release.permit is None else [Fact("permit", release.permit.id)]
    return [*counted, *warnings, cost, *permit, *remaining_facts(remaining, analyst)]
