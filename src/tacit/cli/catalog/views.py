"""Tables of the catalog on a screen, in a pipe and as objects."""

from __future__ import annotations

from datetime import date
from fractions import Fraction
from typing import Any, Final

from tacit.cli.kit import Fact, Screen
from tacit.curator.catalog import Catalog
from tacit.curator.sources import written
from tacit.curator.statements import LIMITS
from tacit.curator.writing import key_text
from tacit.privacy.bounds import Bounds, Categories
from tacit.privacy.tables import Column, Table

CATEGORIES_SHOWN: Final = 8
LIMIT_WORDS: Final = ("{} rows of each unit", "{} groups of an answer", "{} rows in each group")


def table_object(catalog: Catalog, table: Table) -> dict[str, Any]:
    """Return what is public about a table as plain objects."""
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
    if not catalog.tables:
        screen.console.print("no table was added yet", soft_wrap=True)
        return
    rows = [
        (
            shown(table.name),
            protects(table),
            table.dataset if table.is_private else "",
            str(len(table.columns)),
            _place(catalog, table),
        )
        for table in catalog.tables.values()
    ]
    screen.show_table(("table", "protects", "budget", "columns", "rows from"), rows)


def show_table(screen: Screen, catalog: Catalog, table: Table) -> None:
    """Show one table with its columns."""
    limits = [
        words.format(f"{value:,}")
        for words, key in zip(LIMIT_WORDS, LIMITS, strict=True)
        if (value := getattr(table.limits, key)) is not None
    ]
    facts = [Fact("table", shown(table.name), True), Fact("protects", protects(table))]
    if table.is_private:
        counted = f"at most {', '.join(limits)}" if limits else "as each question chooses"
        facts += [Fact("budget", table.dataset), Fact("counted", counted)]
    if table.identified_by:
        facts.append(Fact("identified by", ", ".join(map(shown, table.identified_by))))
    screen.show_facts([*facts, Fact("rows from", _place(catalog, table))])
    rows = [
        (shown(one.name), one.kind.value, facts_text(one), "" if one.nullable else "never missing")
        for one in table.columns
    ]
    screen.show_table(("column", "kind", "stated", ""), rows)


def protects(table: Table) -> str:
    """Say whom a table protects."""
    if table.unit is None:
        return "nobody: it is public"
    steps = [shown(f"{key.column} → {key.target_table}.{key.target_column}") for key in table.unit.through]
    return f"each {shown(table.unit.column)}" + (f", through {', '.join(steps)}" if steps else "")


def facts_text(column: Column) -> str:
    """Say what is stated of a column."""
    if isinstance(column.facts, Bounds):
        return f"{_shown_value(column.facts.lower)} to {_shown_value(column.facts.upper)}"
    if isinstance(column.facts, Categories):
        values = [_shown_value(value) for value in column.facts.values[:CATEGORIES_SHOWN]]
        more = len(column.facts.values) - len(values)
        return ", ".join(values) + (f" and {more:,} more" if more else "")
    return ""


def shown(name: str) -> str:
    """Return a name as it may be put on a screen: what does not show is written as an escape."""
    return name if name.isprintable() else key_text(name)


def _shown_value(value: object) -> str:
    if isinstance(value, str):
        return shown(value)
    return "missing" if value is None else str(_plain(value)).lower() if isinstance(value, bool) else str(_plain(value))


def _place(catalog: Catalog, table: Table) -> str:
    return shown(written(catalog.source(table.name), catalog.folder))


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
