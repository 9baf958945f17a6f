"""From the arguments of a statistic to rows, funds and an answer.

Columns are arrays (`arrays`) or columns of a registered table (`Column`), all of one kind in one statistic. Arrays are
paid from a `budget` that the caller holds; a registered table has its own. Nothing is charged before all arguments have
been checked and all arrays have been read.

What values a column holds is a public fact: it was registered, or the type of the array declares it, or `kind=` does,
or bounds, edges or keys state it (`column_kinds`). It is never found by looking at values.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from typing import Any, Final, TypedDict

import numpy as np

from tacit.ledger import Budget
from tacit.ledger.answer_size import require_keepable
from tacit.mechanisms.randomness import SYSTEM, Source
from tacit.privacy import texts
from tacit.privacy.bounds import Bounds, Categories, Category
from tacit.privacy.errors import EmptyInput, InvalidInput, NotBounded, WrongKind, WrongType
from tacit.privacy.facts import fitted
from tacit.privacy.numbers import time_limit, whole
from tacit.privacy.tables import Column as Declared
from tacit.privacy.tables import Kind, Table
from tacit.stats.answer import Answer
from tacit.stats.arrays import ArrayRows, arrays, name_of
from tacit.stats.column_kinds import LEARN, declared_kind
from tacit.stats.column_reader import MODULES
from tacit.stats.funds import Funds
from tacit.stats.learnt import PLACEHOLDER, Learnt, learning_funds
from tacit.stats.plan import Plan, bytes_max
from tacit.stats.rows import Cut, Scale


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


class RegisteredTable(ABC):
    """A table of a curator, ready for statistics: `table["age"]` is a column of it."""

    table: Table

    @property
    @abstractmethod
    def budget(self) -> Budget:
        """The budget of its data set."""

    @abstractmethod
    def answered(self, plan: Plan, asked: Asked, per_unit: int) -> Answer:
        """Answer a plan by the road of a release: reserve, run on the engine, noise, commit."""

    def __getitem__(self, name: str) -> Column:
        return Column(self, self.table.column(name))


class Column:
    """A column of a registered table, to be given to statistics in the place of an array."""

    def __init__(self, table: RegisteredTable, declared: Declared) -> None:
        self.table: Final = table
        self.declared: Final = declared

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
        registered = [one for one in given.values() if isinstance(one, Column)]
        self._asked, self._source = _checked(asked), source
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
            if asked.get("key") is not None:
                raise InvalidInput(
                    "a key is for statistics of a registered table, whose ledger keeps the answer; leave key= out",
                    name="key",
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
        self._funds: Final = Funds.of(budget, asked.get("epsilon"), asked.get("rho"))

    @property
    def funds(self) -> Funds:
        """What the statistic itself may spend: all, less what learning its bounds takes."""
        return learning_funds(self._funds, len(self._learning))[-1]

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

        With "learn" they are learnt with a part of the funds (see `answer`).
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

    def scale(self, column: str, stated: object, steps: int, *, centred: bool = True) -> Scale:
        """Return a column as whole numbers within its bounds."""
        known = self._known_kind(column)
        if known not in (None, Kind.INTEGER, Kind.REAL, Kind.BOOLEAN):
            raise WrongKind(f"{self.name(column)} is computed with as a number, and holds {known} values")
        limits = self.bounds(column, stated)
        held = Kind.REAL if self.kind(column) is Kind.REAL else Kind.INTEGER
        return Scale.of(self.column(column), limits, held, steps, centred=centred)

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

    def answer(self, make: Callable[[Survey], Plan]) -> Answer:
        """Make a plan and answer it; where bounds are to be learnt, the plan learns them first and is then made anew.

        `make` reads bounds and funds from the survey that it is given.
        """
        plan = make(self)
        if self._learning:
            plan = make(self)  # the first time the funds were not yet known
            columns = {name: self._kind_of(name) for name in self._learning}
            plan = Learnt.of(plan, columns, self._funds, self.per_unit, lambda found: make(self._with_bounds(found)))
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

    def answered(self, plan: Plan) -> Answer:
        """Charge a plan, measure it, and return the answer."""
        if self._learning and not isinstance(plan, Learnt):
            raise NotBounded(
                "this statistic does not learn its bounds", accepted="learn them first: tacit.stats.bounds"
            )
        largest = plan.rehearse(self.per_unit)
        if self._table is not None:
            require_keepable(bytes_max(largest))
            return self._table.answered(plan, self._asked, self.per_unit)
        rows = ArrayRows(self._arrays, self._unit, self.per_unit, source=self._source)
        permit = self.budget.charge(plan.event, self._asked["purpose"] or plan.label)
        return Answer(plan, plan.measure(rows, self._source), permit.cost, permit, self.protected)

    @property
    def protected(self) -> str:
        """Who is protected, in a sentence."""
        return protected(self.budget, self.per_unit, by_unit=self._unit is not None)


def _checked(asked: Asked) -> Asked:
    """Return what was asked with its key, purpose and time limit in their usual forms, or refuse it.

    Arguments that no statistic has are refused: one that was misspelt, such as units=, would protect fewer rows.
    """
    for name in asked:
        if name not in Asked.__annotations__:
            raise InvalidInput(f"a statistic has no argument {name}", name=name)
    stated = asked.get("purpose")
    purpose = "" if stated is None else texts.note("purpose", stated)
    key = asked.get("key")
    return {
        **asked,
        "key": None if key is None else texts.key(key),
        "purpose": purpose,
        "timeout_s": time_limit(asked.get("timeout_s")),
    }


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
        return f"Protected is each row as a unit; between neighbouring data sets {what}."
    rows = "one row is" if per_unit == 1 else f"{per_unit} rows are"
    return (
        f"Protected is each unit with everything it contributed, of which at most {rows} counted; "
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
    if isinstance(one, Column | np.ndarray | list | tuple | range):
        return True
    return type(one).__module__.partition(".")[0] in MODULES and hasattr(one, "__len__")
