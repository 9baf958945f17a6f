"""Tables of the catalog and budgets, as tables, CSV and JSON objects."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, date, datetime
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tacit.cli.output import Fact, Screen
from tacit.curator.catalog import Catalog
from tacit.curator.catalog_reader import LIMITS
from tacit.curator.catalog_writer import key_text
from tacit.curator.table_sources import source_text
from tacit.privacy.bounds import Bounds, Categories
from tacit.privacy.figures import at_most, exactly, left_over
from tacit.privacy.tables import Column, Kind, Table
from tacit.privacy.texts import did_you_mean

if TYPE_CHECKING:
    from tacit import Cost
    from tacit.ledger import Cap, LedgerBudget


CATEGORIES_SHOWN: Final = 8
LIMIT_TEXTS: Final = ("{} rows per unit", "{} groups per unit", "{} rows per group")


def table_object(catalog: Catalog, table: Table) -> dict[str, Any]:
    """Return the public facts of a table as a JSON object."""
    source, unit = catalog.source(table.name), table.unit
    return {
        "name": table.name,
        "source": source.place,
        "format": source.form,
        **({"table": source.table} if source.table else {}),
        "public": not table.is_private,
        "unit": None if unit is None else unit.column,
        "through": [
            {"column": key.column, "table": key.target_table, "target": key.target_column}
            for key in (unit.through if unit else ())
        ],
        "dataset": table.dataset,
        **{key: getattr(table.limits, key) for key in LIMITS},
        "identified_by": list(table.identified_by),
        "columns": [_column_object(column) for column in table.columns],
    }


def show_tables(screen: Screen, catalog: Catalog) -> None:
    """List the tables."""

    def row(table: Table) -> tuple[str, ...]:
        budget = table.dataset if table.is_private else ""
        columns = str(len(table.columns))
        return printable(table.name), protected_text(table), budget, columns, _location(catalog, table)

    screen.show_list(
        "tables",
        list(catalog.tables.values()),
        partial(table_object, catalog),
        ("table", "protected", "budget", "columns", "source"),
        row,
        "no tables yet; add one with: tacit table add NAME SOURCE --unit COLUMN",
    )


def show_table(screen: Screen, catalog: Catalog, table: Table) -> None:
    """Show one table with its columns; without a reader, only the columns."""
    if not screen.has_reader:
        show_columns(screen, table)
        return
    facts = [Fact("table", printable(table.name), True), Fact("protected", protected_text(table))]
    if table.is_private:
        counted = limits_text(table) or "limits are chosen by each query"
        rules = filter(None, (counted, printable(table.unit_rule)))
        facts += [Fact("budget", table.dataset), *(Fact("counted", one) for one in rules)]
    if table.identified_by:
        facts.append(Fact("identified by", ", ".join(map(printable, table.identified_by))))
    screen.show_facts([*facts, Fact("source", _location(catalog, table))])
    show_columns(screen, table)


def table_changes(before: Table, after: Table) -> list[str]:
    """Return what differs between two registrations of a table, in words: "age: 0 to 120 → 0 to 110"."""
    old, new = ({one.name: one for one in table.columns} for table in (before, after))
    pairs = [
        ("protected", protected_text(before), protected_text(after)),
        ("data set", before.dataset, after.dataset),
        ("limits", limits_text(before) or "none", limits_text(after) or "none"),
        ("identified by", ", ".join(before.identified_by) or "none", ", ".join(after.identified_by) or "none"),
        *(pair for name in old if name in new for pair in _column_changes(old[name], new[name])),
        *((name, "a column", "left out") for name in old if name not in new),
        *((name, "left out", "a column") for name in new if name not in old),
    ]
    return [f"{printable(name)}: {printable(one)} → {printable(other)}" for name, one, other in pairs if one != other]


def _column_changes(before: Column, after: Column) -> Iterator[tuple[str, str, str]]:
    """Yield the name of a column with its kind, bounds or categories, and missing values, before and after."""
    facts, missing = "no bounds or categories", {True: "may be missing", False: "never missing"}
    yield before.name, before.kind.value, after.kind.value
    if before.facts != after.facts:
        yield before.name, facts_text(before) or facts, facts_text(after) or facts
    yield before.name, missing[before.nullable], missing[after.nullable]


def limits_text(table: Table) -> str:
    """Return the contribution limits of a table in words; empty if it has none."""
    found = [
        words.format(f"{value:,}")
        for words, key in zip(LIMIT_TEXTS, LIMITS, strict=True)
        if (value := getattr(table.limits, key)) is not None
    ]
    return f"at most {', '.join(found)}" if found else ""


def show_columns(screen: Screen, table: Table) -> None:
    """Show the columns of a table with their public facts."""
    rows = [
        (printable(one.name), one.kind.value, facts_text(one), "" if one.nullable else "never") for one in table.columns
    ]
    screen.show_records(("column", "kind", "bounds or categories", "missing"), rows)


def protected_text(table: Table) -> str:
    """Return who is protected in a table, in words."""
    if table.unit is None:
        return "no one (public)"
    steps = [printable(f"{key.column} → {key.target_table}.{key.target_column}") for key in table.unit.through]
    return f"each {printable(table.unit.column)}" + (f", through {', '.join(steps)}" if steps else "")


def facts_text(column: Column) -> str:
    """Return the bounds or categories of a column, in words."""
    if isinstance(column.facts, Bounds):
        return f"{_shown_value(column.facts.lower)} to {_shown_value(column.facts.upper)}"
    if isinstance(column.facts, Categories):
        values = [_shown_value(value) for value in column.facts.values[:CATEGORIES_SHOWN]]
        more = len(column.facts.values) - len(values)
        return ", ".join(values) + (f" and {more:,} more" if more else "")
    return ""


def missing_category(column: Column, value: object) -> str:
    """Return that a value is not one of the categories of a column; empty if it is, is None, or there are none.

    A text is compared as what it stands for. If that is no value of the column's kind the query is refused, without a
    hint.
    """
    value = _of_kind(column.kind, value) if isinstance(value, str) else value
    if not isinstance(column.facts, Categories) or value is None or value in column.facts.values:
        return ""
    near = did_you_mean(str(value), map(str, column.facts.values))
    sentence = (
        f"{_shown_value(value)!r} is not one of the categories of {printable(column.name)} ({facts_text(column)})"
    )
    return f"{sentence}; {near}" if near else sentence


def _of_kind(kind: Kind, text: str) -> str | date | None:
    """Return what a text stands for where a value of a kind is wanted; None if it stands for none."""
    if kind is Kind.TEXT:
        return text
    try:
        if kind is Kind.DATE:
            return date.fromisoformat(text.strip())
        if kind is Kind.TIME:
            moment = datetime.fromisoformat(text.strip())
            return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
    except ValueError:
        return None
    return None


def printable(name: str) -> str:
    """Return a name with unprintable characters escaped."""
    return name if name.isprintable() else key_text(name)


def _shown_value(value: object) -> str:
    if isinstance(value, str):
        return printable(value)
    return "missing" if value is None else str(_plain(value)).lower() if isinstance(value, bool) else str(_plain(value))


def _location(catalog: Catalog, table: Table) -> str:
    return printable(source_text(catalog.source(table.name), catalog.folder))


def _column_object(column: Column) -> dict[str, Any]:
    stated: dict[str, Any] = {}
    if isinstance(column.facts, Bounds):
        stated = {"bounds": [_plain(column.facts.lower), _plain(column.facts.upper)]}
    elif isinstance(column.facts, Categories):
        stated = {"categories": [_plain(value) for value in column.facts.values]}
    return {"name": column.name, "kind": column.kind.value, **stated, "nullable": column.nullable}


def _plain(value: Any) -> Any:
    if isinstance(value, date):
        return value.isoformat()
    return str(value) if isinstance(value, Fraction) else value


BAR_WIDTH: Final = 16
NO_BUDGETS: Final = "no budgets yet; set one with: tacit budget set DATASET --epsilon 1"
COLUMNS: Final = ("budget", "epsilon_spent", "epsilon_left", "epsilon", "epsilon_min", "delta", "filter")
COMPOSITION: Final = "spent and remaining ε may not add up to the total: each is the better of two composition bounds"
FULL, EMPTY = "█", "░"


def budget_object(
    scope: str, dataset: str, kind: str, name: str, cap: Cap, spent: Cost, left: Cost, least: float
) -> dict[str, Any]:
    """Return a budget as a JSON object; `kind` is dataset, analyst or epoch, `least` the smallest cost of an answer."""
    return {
        "scope": scope,
        "dataset": dataset,
        "kind": kind,
        "name": name or dataset,
        "filter": cap.filter,
        "relation": cap.relation.value,
        "epsilon": cap.epsilon,
        "epsilon_min": least,
        "delta": cap.delta,
        "epsilon_spent": spent.epsilon if math.isfinite(spent.epsilon) else None,
        "epsilon_left": left.epsilon,
        "delta_left": left.delta,
        "rho_left": left.rho if math.isfinite(left.rho) else None,
    }


def ledger_budget_object(budget: LedgerBudget) -> dict[str, Any]:
    """Return a budget of a ledger as a JSON object."""
    scope, figures = budget.scope, (budget.cap, budget.spent(), budget.remaining(), budget.epsilon_min)
    return budget_object(budget.name, scope.dataset, scope.kind, scope.name, *figures)


def show_budgets(screen: Screen, budgets: list[dict[str, Any]]) -> None:
    """Show budgets: with bars on a terminal, otherwise in the format of the screen."""
    if not (screen.has_reader and budgets):
        screen.show_list("budgets", budgets, dict, COLUMNS, lambda row: (row["scope"], *_figures(row)), NO_BUDGETS)
        return
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False, collapse_padding=True)
    for name in ("budget", "", "ε spent", "ε remaining", "ε total", "ε min", "δ", "filter"):
        table.add_column(name, justify="right" if name.startswith(("ε", "δ")) else "left", no_wrap=True)
    for row in budgets:
        filled, style = _bar(row)
        bar = Text.assemble((FULL * filled, style), (EMPTY * (BAR_WIDTH - filled), "dim"))
        name = row["scope"] if row["kind"] == "dataset" else f"  {row['name']}"
        table.add_row(Text(name), bar, *map(Text, _figures(row)))
    screen.console.print(table)
    if note := composition_note(budgets):
        screen.console.print(f" {note}", style="dim")


def composition_note(budgets: list[dict[str, Any]]) -> str:
    """Return why spent and left do not add up, if they may not."""
    return COMPOSITION if any(row["filter"] != "pure" and row["epsilon_spent"] != 0 for row in budgets) else ""


def _figures(row: dict[str, Any]) -> tuple[str, ...]:
    spent = "∞" if row["epsilon_spent"] is None else at_most(row["epsilon_spent"], 4)
    left, least = left_over(row["epsilon_left"], 4), at_most(row["epsilon_min"], 4)
    return spent, left, exactly(row["epsilon"]), least, exactly(row["delta"]), row["filter"]


def _bar(row: dict[str, Any]) -> tuple[int, str]:
    """Return the filled length of a bar and its colour; a budget that is not exhausted is not shown as full."""
    spent, cap = row["epsilon_spent"], row["epsilon"]
    share = 1.0 if spent is None else min(max(spent / cap, 1 - row["epsilon_left"] / cap), 1.0)
    filled = math.ceil(share * BAR_WIDTH - 1e-9)
    if filled == BAR_WIDTH and row["epsilon_left"] > 0:
        filled -= 1
    return filled, "red" if share > 0.9 else "yellow" if share > 0.6 else "green"
