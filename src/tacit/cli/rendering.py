"""Answers to queries as tables, CSV and JSON: noisy numbers with their intervals, and what they cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from typing import TYPE_CHECKING, Any, Final, Protocol

from tacit.cli.error_messages import with_options
from tacit.cli.output import Fact, Screen
from tacit.privacy.figures import at_least, at_most

if TYPE_CHECKING:
    from tacit import Cost
    from tacit.mechanisms.mechanism import Interval
    from tacit.privacy.tables import Table
    from tacit.query import Preview
    from tacit.query.explain import Line


ROWS_SHOWN: Final = 1000


class Answer(Protocol):
    """What is shown of an answer; `tacit.query.Release` is one, and so is what a client of a server gets."""

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows, in their order."""

    @property
    def cost(self) -> Cost:
        """What was charged."""

    @property
    def counted(self) -> str:
        """How much of each unit is counted, in words."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What makes numbers unreliable."""

    @property
    def card(self) -> str:
        """What was released, in plain language."""

    @property
    def datasets(self) -> tuple[str, ...]:
        """The budgets that paid."""

    @property
    def permit(self) -> Any:
        """The ledger's permit; None if the answer had been released before."""

    def intervals(self, level: float) -> list[dict[str, Interval | None]]:
        """Return where the numbers without noise lie."""


def cost_text(cost: Cost) -> str:
    """Return a cost for people."""
    if not cost.epsilon:
        return "nothing: the same answer was released before"
    return f"ε {at_most(cost.epsilon)}" + (f", δ {at_most(cost.delta)}" if cost.delta else "")


def cost_object(cost: Cost) -> dict[str, float | None]:
    """Return a cost for programs; a rho that is not known is null."""
    return {
        "epsilon": cost.epsilon,
        "delta": cost.delta,
        "rho": cost.rho if cost.rho != float("inf") else None,
    }


def row_object(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row for programs: dates as texts, intervals as pairs."""
    return {name: plain(value) for name, value in row.items()}


def answer_object(release: Answer, remaining: Mapping[str, Cost], level: float) -> dict[str, Any]:
    """Return an answer for programs."""
    return {
        "rows": [row_object(row) for row in release.rows],
        "intervals": [row_object(row) for row in release.intervals(level)],
        "level": level,
        "cost": cost_object(release.cost),
        "remaining": {name: cost_object(cost) for name, cost in remaining.items()},
        "permit": release.permit.id if release.permit is not None else None,
        "counted": release.counted,
        "warnings": list(release.warnings),
        "card": release.card,
    }


def plain(value: Any) -> Any:
    """Return a value that JSON has."""
    if isinstance(value, tuple):
        return [plain(part) for part in value]
    if isinstance(value, float) and value != value:
        return None
    return value.isoformat() if isinstance(value, date) else value


def table_rows(release: Answer, level: float) -> list[tuple[str, ...]]:
    """Return the rows of an answer as text, noisy numbers with their intervals."""
    spans = release.intervals(level)
    return [
        tuple(cell(row[name], span.get(name)) for name in release.columns)
        for row, span in zip(release.rows[:ROWS_SHOWN], spans, strict=False)
    ]


def csv_table(release: Answer, level: float) -> tuple[list[str], list[list[str]]]:
    """Return the names and rows of an answer for a pipe: all digits, and each interval's ends behind its number."""
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
    """Return a value for a pipe, with all its digits and nothing else; what does not print is written as an escape."""
    from tacit.cli.catalog_rendering import shown

    found = plain(value)
    if isinstance(found, bool):
        return str(found).lower()
    return "" if found is None else repr(found) if isinstance(found, float) else shown(str(found))


def show_answer(screen: Screen, release: Answer, level: float) -> None:
    """Write the rows of an answer in the format of the screen, other than JSON."""
    if screen.format == "csv":
        screen.show_csv(*csv_table(release, level))
    elif screen.format == "markdown":
        screen.show_markdown(release.columns, table_rows(release, level))
    else:
        screen.show_table(release.columns, table_rows(release, level))


def cell(value: Any, span: Any = None) -> str:
    """Return one value as text; what does not print is written as an escape, so that no value steers a terminal."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        shown = str(value).lower()
    elif isinstance(value, int):
        shown = f"{value:,}"
    elif isinstance(value, float):
        shown = f"{value:,.6g}"
    else:
        text = str(value)
        shown = text if text.isprintable() else repr(text)[1:-1]
    if span is None:
        return shown
    from tacit.query.release import spread

    return f"{shown} {spread(value, span)}"


ONE_ROW: Final = "1 row a unit"
"""The least that can be counted of a unit, so that no lower limit is proposed."""


def counted_text(release: Answer) -> str:
    """Return how much of each unit an answer is about; its intervals do not tell what is left out."""
    if release.counted == ONE_ROW:
        return f"at most {ONE_ROW}; intervals cover the noise only"
    return (
        f"at most {release.counted}; further rows are left out, and intervals cover the noise only "
        "(lower limits give less noise: --rows-per-unit of the table, --rows-per-group, --groups-per-unit)"
    )


def budget_facts(preview: Preview) -> list[Fact]:
    """Return what is left of the budgets that would pay, and why they would not."""
    left = [Fact("left", f"ε {at_least(cost.epsilon)} on {name}") for name, cost in preview.remaining.items()]
    return left if preview.fits else [*left, Fact("does not fit", with_options(preview.refusal), True)]


def plan_facts(lines: Iterable[Line]) -> list[Fact]:
    """Return what is public about how a question would be answered: what is counted, and which groups are shown."""
    lines = list(lines)
    (first, *cuts) = [line.text for line in lines if line.label == "bounds"]
    facts = [Fact("counted", f"at most {first}"), *(Fact("counted", f"{cut}; the rest is left out") for cut in cuts)]
    return [*facts, *caveats(lines)]


def category_hints(sql: str, tables: Iterable[Table]) -> list[str]:
    """Return which texts in a query are no category of the column that they are compared with; all of it is public."""
    from tacit.privacy.near_names import did_you_mean

    known = _categories(tables)
    hints = []
    for column, text in _comparisons(sql):
        values = known.get(column.lower())
        if values is not None and text not in values:
            texts = sorted(value for value in values if isinstance(value, str))
            near = did_you_mean(text, texts, f"it has {', '.join(texts)}")
            hints.append(f"'{text}' is not a category of {column}; {near}")
    return hints


def _categories(tables: Iterable[Table]) -> dict[str, set[Any]]:
    """Return the categories of columns by their names; none where one table states something else of the name."""
    from tacit.privacy.bounds import Categories

    found: dict[str, set[Any]] = {}
    without = set()
    for column in (column for table in tables for column in table.columns):
        if isinstance(column.facts, Categories):
            found.setdefault(column.name.lower(), set()).update(column.facts.values)
        else:
            without.add(column.name.lower())
    return {name: values for name, values in found.items() if name not in without}


def _comparisons(sql: str) -> Iterator[tuple[str, str]]:
    """Yield columns and the texts that they are compared with by =, <> or IN."""
    from sqlglot import exp, parse_one
    from sqlglot.errors import SqlglotError

    try:
        nodes = list(parse_one(sql, read="duckdb").find_all(exp.EQ, exp.NEQ, exp.In))
    except (SqlglotError, RecursionError):
        return  # refused as a whole, in words of its own
    for node in nodes:
        sides = [node.this, node.args.get("expression"), *node.args.get("expressions", [])]
        columns = [one.name for one in sides if isinstance(one, exp.Column)]
        texts = [one.name for one in sides if isinstance(one, exp.Literal) and one.is_string]
        yield from ((column, text) for column in columns[:1] for text in texts)


def caveats(lines: Iterable[Line]) -> list[Fact]:
    """Return what whoever reads an answer must know: which groups and rows are not in it, which intervals there are."""
    kept = [line for line in lines if line.label in ("keys", "spans") and not line.text.startswith("public")]
    return [Fact("keys" if line.label == "keys" else "intervals", line.text) for line in kept]


def selections(lines: Iterable[Line]) -> list[str]:
    """Return below how many units a group is hidden, where the keys of a question are not public."""
    return [line.text for line in lines if line.label == "keys" and line.text.startswith("not public")]


def empty_answer_text(lines: Iterable[Line]) -> str:
    """Say why an answer has no rows, and what would show some."""
    found = selections(lines)
    if not found:
        return "the answer has no rows"
    return (
        f"no group is shown: keys are {found[0]}; state them with --keys COLUMN=A,B or as categories of the column, "
        "or pay more"
    )


def contents(release: Answer, lines: Iterable[Line]) -> list[Fact]:
    """Return what an answer is about, what is not in it, and what makes it unreliable."""
    warnings = [Fact("warning", one) for one in release.warnings]
    return [Fact("counted", counted_text(release)), *caveats(lines), *warnings]


def answer_facts(release: Answer, remaining: Mapping[str, Cost], lines: Iterable[Line]) -> list[Fact]:
    """Return what is said below an answer: what is in it, what it cost and what is left."""
    facts = [*contents(release, lines), Fact("cost", cost_text(release.cost), True)]
    facts += [Fact("left", f"ε {at_least(cost.epsilon)} on {name}") for name, cost in remaining.items()]
    return facts
