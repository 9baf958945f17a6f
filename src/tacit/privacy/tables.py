"""What is public about a table: its columns, whom it protects, how much of each unit is counted.

Everything here is stated by the owner, in words that a person can check, and nothing is read off the data: bounds and
categories decide how far one unit can move an answer, so a value that came from the data would itself be a release.
Limits on contributions decide only how accurate answers are; any of them is private.

Not here: where the rows are (engines) and how the statements are kept (the curator's catalog).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from tacit.privacy.arguments import instance, instances
from tacit.privacy.bounds import Bounds, Categories
from tacit.privacy.errors import EmptyInput, InvalidInput, NameTaken, NotInCatalog, TooLarge, WrongType
from tacit.privacy.numbers import truth_value, whole
from tacit.privacy.texts import source_name
from tacit.privacy.units import Unit

COLUMNS_MAX: Final = 10_000
TEXT_LENGTH_MAX: Final = 4_096
"""How many characters a stored text has at most; engines cut what is longer, so that no value takes much more time or
memory than another."""

CONTRIBUTION_MAX: Final = 1_000_000


class Kind(StrEnum):
    """The six kinds of value that a question can be about; an engine turns each type of its own into one of them."""

    BOOLEAN = "boolean"
    INTEGER = "integer"
    """Whole numbers of 64 bits."""
    REAL = "real"
    """Doubles; NaN stands for a missing value."""
    TEXT = "text"
    DATE = "date"
    TIME = "time"
    """A date with a time of day, in UTC, to the microsecond."""

    @property
    def is_number(self) -> bool:
        """Whether arithmetic is defined."""
        return self in (Kind.INTEGER, Kind.REAL)


@dataclass(frozen=True, slots=True)
class Column:
    """A column and the public facts about it; values outside of the bounds are clamped to them."""

    name: str
    kind: Kind
    facts: Bounds | Categories | None = None
    nullable: bool = True

    def __post_init__(self) -> None:
        source_name("the name of a column", self.name)
        object.__setattr__(self, "kind", kind_named(self.kind))
        truth_value("nullable", self.nullable)
        if isinstance(self.facts, Bounds) and self.kind in (Kind.TEXT, Kind.BOOLEAN):
            raise WrongType(f"{self.name} is {self.kind}; bounds are for numbers, dates and times", name=self.name)
        if self.facts is not None and not isinstance(self.facts, Bounds | Categories):
            raise WrongType(f"what is known of {self.name} is Bounds or Categories", name=self.name, value=self.facts)


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of each unit is counted, at most; what is not stated is chosen for the question at hand.

    `rows_per_unit` is applied once, when the table is registered, and makes questions fast. The other two are applied
    to the rows that a question is about: so many groups of the answer, so many rows in each of them.
    """

    rows_per_unit: int | None = None
    groups_per_unit: int | None = None
    rows_per_group: int | None = None

    def __post_init__(self) -> None:
        for name in ("rows_per_unit", "groups_per_unit", "rows_per_group"):
            value = getattr(self, name)
            if value is not None:
                number = whole(name, value)
                if number > CONTRIBUTION_MAX:
                    raise TooLarge(f"{name} is at most {CONTRIBUTION_MAX:,}", name=name, value=value)
                object.__setattr__(self, name, number)


@dataclass(frozen=True, slots=True)
class Table:
    """A table: public if it has no unit, otherwise private.

    `identified_by` names the columns that no two rows share, if the owner states that; a join of private rows with
    such a table does not multiply them. `dataset` is the budget that pays for questions about the table.
    """

    name: str
    columns: tuple[Column, ...]
    unit: Unit | None = None
    limits: Limits = Limits()
    identified_by: tuple[str, ...] = ()
    dataset: str = ""
    rows: int | None = None
    """How many rows a public table has, if that is stated: a join that may pair a private row with any of them has so
    many times the rows. Of a private table the number is no public fact, and is not stated."""
    _by_name: Mapping[str, Column] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        source_name("the name of a table", self.name)
        object.__setattr__(self, "columns", instances("columns", self.columns, Column, "a list of Column"))
        if not self.columns:
            raise EmptyInput(f"{self.name} has no column that can be asked about", name="columns")
        if len(self.columns) > COLUMNS_MAX:
            raise TooLarge(f"a table has at most {COLUMNS_MAX:,} columns", name="columns")
        if self.unit is not None:
            instance("unit", self.unit, Unit, "a Unit")
        instance("limits", self.limits, Limits, "Limits")
        identifying = instances("identified_by", self.identified_by, str, "a list of names of columns")
        object.__setattr__(self, "identified_by", identifying)
        object.__setattr__(self, "dataset", instance("dataset", self.dataset, str, "a text") or self.name)
        if self.rows is not None:
            if self.unit is not None:
                raise InvalidInput(f"how many rows {self.name} has is private", name="rows", value=self.rows)
            object.__setattr__(self, "rows", whole("rows", self.rows, at_least=0))
        by_name: dict[str, Column] = {}
        for column in self.columns:
            if by_name.setdefault(column.name.lower(), column) is not column:
                raise NameTaken(f"{self.name} has two columns called {column.name}; case does not tell them apart")
        object.__setattr__(self, "_by_name", by_name)
        named = self.unit.through[0].column if self.unit and self.unit.through else self.unit and self.unit.column
        for name in (*self.identified_by, *([named] if named else [])):
            self.column(name)

    @property
    def is_private(self) -> bool:
        """Whether the table holds the data of units."""
        return self.unit is not None

    def column(self, name: str) -> Column:
        """Return a column by its name, in any case."""
        try:
            return self._by_name[instance("column", name, str, "the name of a column").lower()]
        except KeyError:
            raise NotInCatalog(
                f"{self.name} has no column {name}; it has {', '.join(column.name for column in self.columns)}",
                name="column",
                value=name,
            ) from None


class Schema:
    """The tables that can be asked about, by name, in any case."""

    def __init__(self, tables: Iterable[Table] = ()) -> None:
        self.tables: Final[Mapping[str, Table]] = {table.name.lower(): table for table in tables}

    def table(self, name: str) -> Table:
        """Return a table by its name."""
        try:
            return self.tables[instance("table", name, str, "the name of a table").lower()]
        except KeyError:
            known = ", ".join(sorted(table.name for table in self.tables.values())) or "none yet"
            raise NotInCatalog(f"no table is called {name}; there is {known}", name="table", value=name) from None


def kind_named(value: object) -> Kind:
    """Return the kind that a name stands for, or raise with the names there are."""
    try:
        return Kind(value)  # type: ignore[arg-type]
    except (ValueError, TypeError):
        names = ", ".join(kind.value for kind in Kind)
        raise InvalidInput(f"the kind of a column is one of {names}, not {value!r}", name="kind", value=value) from None
