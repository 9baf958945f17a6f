"""Tables of a server: what is public about them, and their columns for statistics; never a row of theirs.

Facts go over the wire as documents: bounds as two values, categories as a list. On the way out dates are tagged, so
that a text stays one; on the way back they are ISO texts, and the kind of the column tells them apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Final

from tacit.client.failures import understood
from tacit.client.values import cell_of, tagged
from tacit.privacy import texts
from tacit.privacy.arguments import by_name, instance, instances
from tacit.privacy.bounds import Bounds, Categories
from tacit.privacy.errors import WrongType
from tacit.privacy.numbers import truth_value
from tacit.privacy.tables import Column, Kind, Limits, Table, kind_named
from tacit.privacy.units import ForeignKey, Unit

LIMITS: Final = ("rows_per_unit", "groups_per_unit", "rows_per_group")


@dataclass(frozen=True, slots=True)
class RemoteColumn:
    """A column of a server's table, to be given to the statistics of its client."""

    table: str
    declared: Column

    @property
    def name(self) -> str:
        """What the column is called."""
        return self.declared.name

    def __repr__(self) -> str:
        return f"RemoteColumn({self.table}.{self.name})"


@dataclass(frozen=True, slots=True)
class RemoteTable:
    """What is public about a table of a server; `table["age"]` is a column of it."""

    table: Table

    @property
    def name(self) -> str:
        """What the table is called."""
        return self.table.name

    @property
    def dataset(self) -> str:
        """The budget that pays for questions about it."""
        return self.table.dataset

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns, with their kinds and facts."""
        return self.table.columns

    def __getitem__(self, name: str) -> RemoteColumn:
        return RemoteColumn(self.table.name, self.table.column(name))

    def __repr__(self) -> str:
        return f"RemoteTable({self.name!r})"


def table_of(document: Mapping[str, Any]) -> RemoteTable:
    """Read a table."""
    with understood("the table"):
        limits = document.get("limits") or {}
        return RemoteTable(
            Table(
                str(document["name"]),
                tuple(_column(one) for one in document["columns"]),
                _unit(document.get("unit")),
                Limits(**{name: limits[name] for name in LIMITS if limits.get(name) is not None}),
                tuple(map(str, document.get("identified_by") or ())),
                str(document.get("dataset") or ""),
            )
        )


def _column(document: Mapping[str, Any]) -> Column:
    kind = Kind(document["kind"])
    facts: Bounds | Categories | None = None
    if document.get("bounds") is not None:
        lower, upper = (cell_of(one, kind if kind in (Kind.DATE, Kind.TIME) else None) for one in document["bounds"])
        facts = Bounds(lower, upper)
    elif document.get("categories") is not None:
        facts = Categories(cell_of(one, None if kind is Kind.REAL else kind) for one in document["categories"])
    return Column(str(document["name"]), kind, facts, document.get("nullable") is not False)


def _unit(document: Any) -> Unit | None:
    if document is None:
        return None
    if isinstance(document, str):
        return Unit(document)
    steps = (
        ForeignKey(step["column"], step["target_table"], step["target_column"])
        for step in document.get("through") or ()
    )
    return Unit(str(document["column"]), tuple(steps))


def registration(
    name: str,
    data: object,
    *,
    unit: str | Unit | None,
    public: bool,
    columns: Mapping[str, Bounds | Categories | Column] | None,
    limits: Limits | None,
    identified_by: str | Iterable[str],
    dataset: str,
    kinds: Mapping[str, Kind] | None,
    format: str | None,
    replace: bool,
) -> dict[str, Any]:
    """Return the document that registers a table whose rows are where the server can read them."""
    if not isinstance(data, str | PurePath):
        raise WrongType(
            "a server reads rows from where they are: a path or an address of its own, never a frame that is sent",
            name="data",
        )
    named = [identified_by] if isinstance(identified_by, str) else identified_by
    document: dict[str, Any] = {
        "name": texts.name("name", name),
        "source": str(data),
        "unit": unit_document(unit),
        "public": truth_value("public", public),
        "columns": _columns_document(by_name("columns", columns), by_name("kinds", kinds)),
        "limits": limits_document(limits),
        "identified_by": list(instances("identified_by", named, str, "a list of names of columns")),
        "dataset": instance("dataset", dataset, str, "a text"),
        "format": None if format is None else instance("format", format, str, "the name of a format"),
        "replace": truth_value("replace", replace),
    }
    return {key: value for key, value in document.items() if value not in (None, {}, [], "", False)}


def limits_document(limits: Limits | None) -> dict[str, int]:
    """Return limits for the wire: those that are stated."""
    if limits is None:
        return {}
    stated = {name: getattr(instance("limits", limits, Limits, "Limits"), name) for name in LIMITS}
    return {name: value for name, value in stated.items() if value is not None}


def unit_document(unit: str | Unit | None) -> Any:
    """Return a unit for the wire: a column, and the foreign keys that lead to it."""
    if unit is None or isinstance(unit, str):
        return unit if unit is None else {"column": unit}
    if not isinstance(unit, Unit):
        raise WrongType("a unit is a column or a tacit.Unit", name="unit", value=unit)
    through = [
        {"column": step.column, "target_table": step.target_table, "target_column": step.target_column}
        for step in unit.through
    ]
    return {"column": unit.column, **({"through": through} if through else {})}


def facts_document(name: str, facts: object) -> dict[str, Any]:
    """Return what is known of a column for the wire."""
    if isinstance(facts, Column):
        inner = {} if facts.facts is None else facts_document(name, facts.facts)
        return {"kind": facts.kind.value, **({} if facts.nullable else {"nullable": False}), **inner}
    if isinstance(facts, Bounds):
        return {"bounds": [tagged(facts.lower), tagged(facts.upper)]}
    if isinstance(facts, Categories):
        return {"categories": tagged(list(facts.values))}
    raise WrongType(f"what is known of {name} is Bounds, Categories or a Column", name=name, value=facts)


def _columns_document(columns: Mapping[str, Any], kinds: Mapping[str, Kind]) -> dict[str, Any]:
    """Return what is stated of columns for the wire: facts, kinds, or both."""
    stated = {name: facts_document(name, facts) for name, facts in columns.items()}
    for name, kind in kinds.items():
        stated.setdefault(name, {}).update(kind=kind_named(kind).value)
    return stated
