"""Public metadata of tables: columns with their declared facts, the privacy unit, and contribution limits.

Everything here is stated by the owner and nothing is read off the data: bounds and categories decide how far one unit
can move an answer, so a value taken from the data would itself be a release. Contribution limits decide only how
accurate answers are; any of them is private.

`fit_facts` normalizes declared facts to the kind of their column: integers stay integers, times become UTC without a
zone. The same fact is the same object, whether it was written in Python, on the command line or in the catalog's file.

Where the rows are stored is left to engines, and how the metadata are stored to the curator's catalog.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from enum import StrEnum
from typing import Final

from tacit.privacy.arguments import instance, instances
from tacit.privacy.bounds import Bounds, Categories, Category
from tacit.privacy.errors import EmptyInput, InvalidInput, NameTaken, NotInCatalog, TooLarge, WrongType
from tacit.privacy.numbers import Real, exact, native_number, truth_value, whole
from tacit.privacy.texts import did_you_mean, source_name
from tacit.privacy.units import Unit

COLUMNS_MAX: Final = 10_000
TEXT_LENGTH_MAX: Final = 4_096
"""The greatest length of a stored text; engines cut longer ones, so that no value takes much more time or memory than
another."""

MOMENT_LENGTH_MAX: Final = 64
"""How many characters a text has at most, with the spaces around it, that is read as a date or time; longer ones are
NULL."""

CONTRIBUTION_MAX: Final = 1_000_000


class Kind(StrEnum):
    """The kinds of values in queries; every engine maps its own types to them."""

    BOOLEAN = "boolean"
    INTEGER = "integer"
    """Whole numbers of 64 bits."""
    REAL = "real"
    """Doubles; NaN stands for a missing value."""
    TEXT = "text"
    DATE = "date"
    TIME = "time"
    """A date with a time of day, in UTC, to the microsecond."""

    @classmethod
    def of(cls, value: object) -> Kind:
        """Return the kind of this name, or raise an error that lists the names."""
        try:
            return cls(value)  # type: ignore[arg-type]
        except (ValueError, TypeError):
            names = ", ".join(kind.value for kind in cls)
            message = f"the kind of a column is one of {names}, not {value!r}"
            raise InvalidInput(message, name="kind", value=value) from None

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
        object.__setattr__(self, "kind", Kind.of(self.kind))
        truth_value("nullable", self.nullable)
        if isinstance(self.facts, Bounds) and self.kind in (Kind.TEXT, Kind.BOOLEAN):
            raise WrongType(f"{self.name} is {self.kind}; bounds are for numbers, dates and times", name=self.name)
        if self.facts is not None and not isinstance(self.facts, Bounds | Categories):
            raise WrongType(f"the facts of {self.name} must be Bounds or Categories", name=self.name, value=self.facts)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on the contribution of each unit; those left out are chosen for each query.

    `rows_per_unit` is applied once, when the table is registered, and makes queries fast. The other two are applied to
    the rows that a query selects: the number of groups of the answer, and the number of rows in each of them.
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

    `identified_by` lists columns whose values together are unique in each row, if the owner states that; a join of
    private rows with such a table does not multiply them. `dataset` names the budget that pays for queries of it.
    """

    name: str
    columns: tuple[Column, ...]
    unit: Unit | None = None
    limits: Limits = Limits()
    identified_by: tuple[str, ...] = ()
    dataset: str = ""
    rows: int | None = None
    """The number of rows of a public table, if stated: a join that may pair a private row with any of them multiplies
    rows by it. The row count of a private table is private."""
    _by_name: Mapping[str, Column] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        source_name("the name of a table", self.name)
        object.__setattr__(self, "columns", instances("columns", self.columns, Column, "a list of Column"))
        if not self.columns:
            raise EmptyInput(f"{self.name} has no column that can be queried", name="columns")
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
                raise InvalidInput(f"the row count of {self.name} is private; leave rows out", name="rows")
            object.__setattr__(self, "rows", whole("rows", self.rows, at_least=0))
        by_name: dict[str, Column] = {}
        for column in self.columns:
            if by_name.setdefault(column.name.lower(), column) is not column:
                raise NameTaken(f"{self.name} has two columns called {column.name}; names must differ beyond case")
        object.__setattr__(self, "_by_name", by_name)
        named = self.unit.through[0].column if self.unit and self.unit.through else self.unit and self.unit.column
        for name in (*self.identified_by, *([named] if named else [])):
            self.column(name)

    @property
    def is_private(self) -> bool:
        """Whether the table holds the data of units."""
        return self.unit is not None

    @property
    def unit_rule(self) -> str:
        """That rows without a unit are left out; empty for a public table, and where each row is numbered."""
        unit = self.unit
        if unit is None or (self.limits.rows_per_unit == 1 and unit.is_direct and unit.column.rstrip("_") == "row"):
            return ""
        return f"rows without a value of {unit.column} are left out"

    def column(self, name: str) -> Column:
        """Return a column by its name, ignoring case."""
        try:
            return self._by_name[instance("column", name, str, "the name of a column").lower()]
        except KeyError:
            known = [column.name for column in self.columns]
            instead = did_you_mean(name, known, f"it has {', '.join(known)}")
            raise NotInCatalog(f"{self.name} has no column {name}; {instead}", name="column", value=name) from None


class Schema:
    """The tables that can be queried, by name, ignoring case."""

    def __init__(self, tables: Iterable[Table] = ()) -> None:
        self.tables: Final[Mapping[str, Table]] = {table.name.lower(): table for table in tables}

    def table(self, name: str) -> Table:
        """Return a table by its name."""
        try:
            return self.tables[instance("table", name, str, "the name of a table").lower()]
        except KeyError:
            known = sorted(table.name for table in self.tables.values())
            instead = did_you_mean(name, known, f"there is {', '.join(known) or 'none yet'}")
            raise NotInCatalog(f"no table is called {name}; {instead}", name="table", value=name) from None


INTEGER_MIN: Final = -(2**63)
INTEGER_MAX: Final = 2**63 - 1

EXAMPLES: Final = {
    Kind.BOOLEAN: "true or false",
    Kind.INTEGER: "integers, such as 0 and 120",
    Kind.REAL: "numbers, such as 0 and 99.5",
    Kind.TEXT: 'texts, such as "F" and "M"',
    Kind.DATE: "dates, such as 2020-01-01 and 2024-12-31",
    Kind.TIME: "times, such as 2020-01-01T00:00:00 and 2024-12-31T23:59:59",
}
"""Examples of values of each kind, for error messages."""


def fit_facts(name: str, kind: Kind, facts: Bounds | Categories | None) -> Bounds | Categories | None:
    """Return the facts of the column `name` normalized to its kind; raise if they do not fit."""
    if isinstance(facts, Bounds):
        if kind in (Kind.TEXT, Kind.BOOLEAN):
            raise WrongType(
                f"{name} is {kind} and cannot have bounds; state its categories, or give it another kind, such as "
                "integer (values that do not fit become missing)",
                name=name,
                value=facts,
            )
        return Bounds(_bound_of_kind(name, kind, facts.lower), _bound_of_kind(name, kind, facts.upper, is_upper=True))
    return fit_categories(name, kind, facts) if isinstance(facts, Categories) else facts


def fit_categories(name: str, kind: Kind, categories: Categories) -> Categories:
    """Return the categories of a column or a key normalized to its kind; raise if they do not fit."""
    return Categories(_category(name, kind, value) for value in categories.values)


def _bound_of_kind(name: str, kind: Kind, value: Real | date, *, is_upper: bool = False) -> Real | date:
    if kind is Kind.TIME and isinstance(value, date) and not isinstance(value, datetime):
        return datetime.combine(value, time.max if is_upper else time.min)  # a bound that is a date includes the day
    if kind in (Kind.DATE, Kind.TIME):
        return _moment(name, kind, value, "bounds")
    if isinstance(value, date):
        raise _misfit(name, kind, value, "bounds")
    number = exact(f"a bound of {name}", value)
    if kind is Kind.INTEGER:
        if number.denominator != 1:
            raise _misfit(name, kind, value, "bounds")
        return _within_64_bits(name, int(number))
    return float(value) if isinstance(value, float) else native_number(number)


def _category(name: str, kind: Kind, value: Category) -> Category:
    if value is None:
        return None
    if kind in (Kind.DATE, Kind.TIME):
        return _moment(name, kind, value, "categories")
    if kind is Kind.TEXT and isinstance(value, str):
        return value
    if kind is Kind.BOOLEAN and isinstance(value, bool):
        return value
    if kind.is_number and isinstance(value, int) and not isinstance(value, bool):
        return _within_64_bits(name, int(value))
    raise _misfit(name, kind, value, "categories")


def _moment(name: str, kind: Kind, value: object, what: str) -> date:
    if isinstance(value, datetime):
        if kind is Kind.TIME:
            return value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
    elif isinstance(value, date) and kind is Kind.DATE:
        return value
    raise _misfit(name, kind, value, what)


def _within_64_bits(name: str, number: int) -> int:
    if not INTEGER_MIN <= number <= INTEGER_MAX:
        raise TooLarge(f"{name} holds integers of 64 bits, and {number} does not fit", name=name, value=number)
    return number


def _misfit(name: str, kind: Kind, value: object, what: str) -> WrongType:
    shown = value.isoformat() if isinstance(value, date) else repr(value)
    return WrongType(
        f"{name} is {kind}: its {what} are {EXAMPLES[kind]}, not {shown}; or give it another kind",
        name=name,
        value=value,
    )
