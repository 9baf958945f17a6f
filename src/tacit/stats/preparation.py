"""From the arguments of a statistic to rows, an allocation and an answer.

Columns are arrays (`array_sums`) or columns of a registered table (`TableColumn`), all of one kind in one statistic.
Arrays are paid from a `budget` that the caller holds; a registered table has its own. Nothing is charged before all
arguments have been checked and all arrays have been read.

What values a column holds is a public fact: it was registered, or the type of the array declares it, or `kind=` does,
or bounds, edges or keys state it (`column_reader`). It is never found by looking at values.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Final, TypedDict

import numpy as np

from tacit.engines.protocol import Progress
from tacit.ledger import Budget
from tacit.measuring.allocation import Allocation
from tacit.mechanisms.randomness import SYSTEM, Source
from tacit.pipeline import Order
from tacit.privacy.bounds import Bounds, Categories, Category
from tacit.privacy.errors import EmptyInput, InvalidInput, NotBounded, WrongKind, WrongType
from tacit.privacy.numbers import whole
from tacit.privacy.tables import Column as Declared
from tacit.privacy.tables import Kind, Table, fitted
from tacit.stats.answer import Answer
from tacit.stats.array_sums import ArrayRows, arrays, name_of
from tacit.stats.column_reader import LEARN, MODULES, declared_kind
from tacit.stats.learned_bounds import PLACEHOLDER, StatisticWithLearntBounds, learning_parts
from tacit.stats.releases import BoundArrays, BoundRows, PreparedStatistic, answered
from tacit.stats.rows import ColumnSteps, Cut
from tacit.stats.statistic import StatisticPlan


class Asked(TypedDict, total=False):
    """What every statistic can be told."""

    epsilon: object
    """What the whole answer costs; or `rho`."""
    rho: object
    budget: Budget
    """Who pays for arrays."""
    unit: Any
    """For arrays: whose row each row is, a column of the same length; without it, every row is a person."""
    rows_per_unit: int
    """How many rows of a unit are counted."""
    kind: Any
    """For arrays: what `values` hold: "integer", "real", "text", "boolean", "date" or "time"; or that of each column.

    Needed for lists and arrays of objects where nothing else states it, and to read a column as another kind.
    """
    analyst: str
    """For registered tables: who asks."""
    key: str | None
    """For registered tables: the same key with the same statistic of the same data is charged once."""
    purpose: str
    timeout_s: float | None
    progress: Progress | None


class RegisteredTable(ABC):
    """A table of a curator, ready for statistics: `table["age"]` is a column of it."""

    table: Table

    is_by_unit: bool = True
    """Whether a unit can have several rows."""

    @property
    @abstractmethod
    def budget(self) -> Budget:
        """The budget of its data set."""

    @abstractmethod
    def payer(self, analyst: str | None) -> Budget:
        """Return the budget that pays for what an analyst asks, or for what its owner asks (None)."""

    @abstractmethod
    def bind(self) -> BoundRows:
        """Return its rows in their present version; looks at no row."""

    def __getitem__(self, name: str) -> TableColumn:
        return TableColumn(self, self.table.column(name))


class TableColumn:
    """A column of a registered table, to be given to statistics in the place of an array."""

    def __init__(self, table: RegisteredTable, declared: Declared) -> None:
        self.table: Final = table
        self.declared: Final = declared

    def stated(self, facts: Bounds | Categories) -> TableColumn:
        """Return the column with other bounds or categories than it was registered with, for one statistic."""
        name, kind = self.declared.name, self.declared.kind
        return TableColumn(self.table, replace(self.declared, facts=fitted(name, kind, facts)))

    def __repr__(self) -> str:
        return f"Column({self.table.table.name}.{self.declared.name})"


class Survey:
    """One statistic being asked: its columns by the names that its plan uses, and who pays."""

    def __init__(
        self,
        columns: Mapping[str, Any],
        asked: Asked,
        kinds: Mapping[str, Kind | None] | None = None,
        *,
        source: Source = SYSTEM,
    ) -> None:
        if (first := next(iter(columns), None)) is not None and columns[first] is None:
            raise EmptyInput(f"this statistic needs its {first} values, and was given none", name=first)
        given = {name: one for name, one in columns.items() if one is not None}
        registered = [one for one in given.values() if isinstance(one, TableColumn)]
        self._asked, self._source = _checked(asked), source
        purpose = asked.get("purpose")
        self._order = Order(
            "" if purpose is None else purpose, asked.get("key"), asked.get("timeout_s"), asked.get("progress"), source
        )
        self._table: RegisteredTable | None = None
        self._declared: dict[str, Declared] = {}
        self._learning: dict[str, Bounds] = {}
        if registered:
            if len(registered) != len(given) or len({one.table.table.name for one in registered}) > 1:
                raise InvalidInput("the columns of one statistic are arrays, or columns of one registered table")
            self._table = registered[0].table
            self._declared = {name: one.declared for name, one in given.items()}
            for name in ("budget", "unit", "kind"):
                if name in asked:
                    raise InvalidInput(f"a registered table has its own {name}; leave {name}= out", name=name)
            budget = self._table.budget
        else:
            if "analyst" in asked:
                raise InvalidInput(
                    "analysts ask about registered tables; arrays are paid from a budget", name="analyst"
                )
            self._names = _names(given)
            self._arrays, self._unit = arrays(
                {self._names[one]: given[one] for one in given},
                asked.get("unit"),
                {self._names[one]: kind for one, kind in _declared(given, asked.get("kind")).items()},
                {self._names[one]: kind for one, kind in (kinds or {}).items() if one in given},
            )
            budget = asked.get("budget")  # type: ignore[assignment]
            if not isinstance(budget, Budget):
                raise WrongType("a statistic of arrays is paid from a budget: budget=tacit.Budget(1.0)", name="budget")
        self.budget: Final = budget
        self.per_unit: Final = self._limit()
        self._allocation: Final = Allocation.of(budget, asked.get("epsilon"), asked.get("rho"), self.per_unit)

    @property
    def allocation(self) -> Allocation:
        """What the statistic itself may spend: all, less what learning its bounds takes."""
        return learning_parts(self._allocation, len(self._learning))[-1]

    @property
    def has_rows_alone(self) -> bool:
        """Whether each row of arrays is a person."""
        return self._table is None and self._unit is None

    @property
    def is_empty(self) -> bool:
        """Whether arrays have no rows: for statistics whose number of rows is public."""
        return self._table is None and not len(next(iter(self._arrays.values())))

    def _limit(self) -> int:
        """Return how many rows of a unit are counted."""
        stated = self._asked.get("rows_per_unit")
        if stated is not None:
            return whole("rows_per_unit", stated)
        if self._table is not None:
            declared = self._table.table.limits.rows_per_unit
            if declared is not None:
                return declared
        elif self._unit is None:
            return 1
        raise NotBounded(
            "a unit can have any number of rows; say how many of them are counted", accepted="rows_per_unit=1, or more"
        )

    def name(self, column: str) -> str:
        """Return what a column is called, for people."""
        return self._declared[column].name if self._table is not None else self._names[column]

    def column(self, column: str) -> str:
        """Return the name under which rows know a column."""
        return self.name(column)

    def kind(self, column: str) -> Kind:
        """Return what values a column has."""
        found = self._known_kind(column)
        if found is None:
            raise NotBounded(
                f"nothing public says what {self.name(column)} holds, and its values are not looked at for that",
                accepted='kind="integer" (or real, text, boolean, date, time), or an array of a type',
            )
        return found

    def _known_kind(self, column: str) -> Kind | None:
        if column not in (self._declared if self._table is not None else self._names):
            raise EmptyInput(f"this statistic needs its {column} values, and was given none", name=column)
        return self._declared[column].kind if self._table is not None else self._arrays[self._names[column]].kind

    def bounds(self, column: str, stated: object) -> Bounds:
        """Return the bounds of a column: those that are stated, otherwise those that it was registered with.

        With "learn" they are learnt with a part of the budget (see `answer`).
        """
        known = self._known_kind(column)
        if isinstance(stated, Bounds):
            return stated
        if isinstance(stated, str) and stated == LEARN:
            if not self.kind(column).is_number:
                raise WrongKind(f"bounds are learnt for numbers, and {self.name(column)} holds {known} values")
            return self._learning.setdefault(self.column(column), PLACEHOLDER)
        if stated is not None:
            if not isinstance(stated, Sequence) or isinstance(stated, str) or len(stated) != 2:
                raise WrongType(
                    'bounds are two numbers, as in bounds=(0, 120), or "learn"', name="bounds", value=stated
                )
            return Bounds(*stated)
        if known is Kind.BOOLEAN:
            return Bounds(0, 1)
        facts = self._declared[column].facts if self._table is not None else None
        if isinstance(facts, Bounds):
            return facts
        raise NotBounded(
            f"nothing public limits {self.name(column)}",
            accepted='bounds=(low, high), chosen without looking at the data; or bounds="learn"',
        )

    def is_listed(self, column: str) -> bool:
        """Whether a column was registered with the values that it can take."""
        return self._table is not None and isinstance(self._declared[column].facts, Categories)

    def learns(self, column: str) -> bool:
        """Whether the bounds of a column are learnt."""
        return self.column(column) in self._learning

    def scale(self, column: str, stated: object, steps: int, *, centred: bool = True) -> ColumnSteps:
        """Return a column as whole numbers within its bounds."""
        known = self._known_kind(column)
        if known not in (None, Kind.INTEGER, Kind.REAL, Kind.BOOLEAN):
            raise WrongKind(f"{self.name(column)} is computed with as a number, and holds {known} values")
        limits = self.bounds(column, stated)
        held = Kind.REAL if self.kind(column) is Kind.REAL else Kind.INTEGER
        return ColumnSteps.of(self.column(column), limits, held, steps, centred=centred)

    def cut(self, column: str, keys: Sequence[Category] | Categories | None, *, what: str = "keys") -> Cut:
        """Return a column's public values as cells: those that are stated, otherwise those it was registered with."""
        kind = self._known_kind(column)
        if keys is not None:
            stated = keys if isinstance(keys, Categories) else Categories(_listed(keys))
            found = fitted(self.name(column), self.kind(column), stated)
            assert isinstance(found, Categories)
            return Cut(self.column(column), found.values)
        facts = self._declared[column].facts if self._table is not None else None
        if isinstance(facts, Categories):
            return Cut(self.column(column), facts.values)
        if kind is Kind.BOOLEAN:
            return Cut(self.column(column), (False, True))
        raise NotBounded(
            f"the values of {self.name(column)} are not public, and showing one could give a person away",
            accepted=f"{what}=[...], listed without looking at the data",
        )

    def cuts(self, by: Mapping[str, Any], keys: Any) -> tuple[Cut, ...]:
        """Return the public groups of the columns `by`; `keys` is a list for one column, a list each for several."""
        names = list(by)
        if keys is not None and not isinstance(keys, Iterable):
            raise WrongType("keys are a list of values", name="keys", value=keys)
        listed = [keys] if len(names) == 1 else list(keys) if keys is not None else [None] * len(names)
        if len(listed) != len(names):
            raise InvalidInput("with several columns to group by, keys is a list with the keys of each", name="keys")
        return tuple(self.cut(name, one) for name, one in zip(names, listed, strict=True))

    def answer(self, make: Callable[[Survey], StatisticPlan]) -> Answer:
        """Make a plan and answer it; where bounds are to be learnt, the plan learns them first and is then made anew.

        `make` reads bounds and the allocation from the survey that it is given.
        """
        plan = make(self)
        if self._learning:
            plan = make(self)  # the first time the allocation was not yet known
            columns = {name: self._kind_of(name) for name in self._learning}
            plan = StatisticWithLearntBounds.of(
                plan, columns, self._allocation, lambda found: make(self._with_bounds(found))
            )
        return self.answered(plan)

    def _kind_of(self, name: str) -> Kind:
        if self._table is not None:
            return self._table.table.column(name).kind
        kind = self._arrays[name].kind
        assert kind is not None, "bounds are learnt for numbers"
        return kind

    def _with_bounds(self, found: Mapping[str, Bounds]) -> Survey:
        twin = copy(self)
        twin._learning = dict(found)
        return twin

    def answered(self, plan: StatisticPlan) -> Answer:
        """Charge a plan, measure it, and return the answer."""
        if self._learning and not isinstance(plan, StatisticWithLearntBounds):
            raise NotBounded(
                "this statistic does not learn its bounds", accepted="learn them first: tacit.stats.bounds"
            )
        if self._table is not None:
            bind, budget = self._table.bind, self._table.payer(self._asked.get("analyst"))
        else:
            arrays = BoundArrays(ArrayRows(self._arrays, self._unit, self.per_unit, source=self._source))
            bind, budget = lambda: arrays, self.budget
        return answered(PreparedStatistic(plan, self.per_unit, bind, budget, self._order, self.protected))

    @property
    def protected(self) -> str:
        """Who is protected, in a sentence."""
        by_unit = self._unit is not None if self._table is None else self._table.is_by_unit
        return protected(self.budget, self.per_unit, by_unit=by_unit)


def _checked(asked: Asked) -> Asked:
    """Refuse arguments that no statistic has: one that was misspelt, such as units=, would protect fewer rows."""
    for name in asked:
        if name not in Asked.__annotations__:
            raise InvalidInput(f"a statistic has no argument {name}", name=name)
    return asked


def _declared(given: Mapping[str, Any], stated: object) -> dict[str, Kind]:
    """Return the kinds that are declared for columns by name, or for the first column."""
    if stated is None:
        return {}
    if not isinstance(stated, Mapping):
        return {next(iter(given)): declared_kind(stated)} if given else {}
    for name in stated:
        if name not in given:
            raise InvalidInput(f"there is no column {name!r} among {', '.join(given)}", name="kind", value=name)
    return {name: declared_kind(one) for name, one in stated.items()}


def _listed(keys: Any) -> Any:
    """Return keys of an array as Python objects, dates as dates."""
    if not isinstance(keys, np.ndarray):
        return keys
    if keys.ndim != 1:
        raise WrongType("keys are a list of values", name="keys")
    is_time = keys.dtype.kind == "M" and np.datetime_data(keys.dtype)[0] not in ("Y", "M", "W", "D")
    return keys.astype(
        "datetime64[us]" if is_time else "datetime64[D]" if keys.dtype.kind == "M" else keys.dtype
    ).tolist()


def _names(given: Mapping[str, Any]) -> dict[str, str]:
    """Return what columns of arrays are called: by their own names where they have some, each differently."""
    names: dict[str, str] = {}
    for place, values in given.items():
        own = name_of(values) or place.removeprefix("by ")
        while own in names.values():
            own = f"{own} ({place})"
        names[place] = own
    return names


def protected(budget: Budget, per_unit: int, *, by_unit: bool) -> str:
    """Return who is protected, in a sentence."""
    what = budget.cap.relation.in_words
    if not by_unit:
        return f"Each row is protected as one unit; between neighbouring data sets {what}."
    rows = "one row is" if per_unit == 1 else f"{per_unit} rows are"
    return (
        f"Each unit is protected with everything it contributed, of which at most {rows} counted; "
        f"between neighbouring data sets {what}."
    )


def grouped(by: Any) -> dict[str, Any]:
    """Return the columns to group by, under names of their own."""
    if by is None:
        return {}
    if isinstance(by, Mapping):
        return {f"by {name}": one for name, one in by.items()}
    many = isinstance(by, list | tuple) and bool(by) and all(map(_is_column, by))
    return {f"group {index + 1}" if many else "group": one for index, one in enumerate(by if many else [by])}


def _is_column(one: object) -> bool:
    """Whether something is a column itself, and not a value in one."""
    if isinstance(one, TableColumn | np.ndarray | list | tuple | range):
        return True
    return type(one).__module__.partition(".")[0] in MODULES and hasattr(one, "__len__")
