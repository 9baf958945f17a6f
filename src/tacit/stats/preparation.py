"""The arguments of a statistic, checked: columns, bounds, groups and what may be spent.

The columns of a statistic are arrays (`array_sums`), paid from a `budget` that the caller holds, or columns of one
registered table (`TableColumn`), paid from that table's budget. Nothing is charged before all arguments have been
checked and all arrays have been read.

The kind of a column is a public fact: it was registered, or the type of the array declares it (`column_reader`), or
`kind=` does, or bounds, edges or keys state it (`stated_kinds`). It never depends on values.
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
from tacit.pipeline import ReleaseOptions
from tacit.privacy.bounds import Bounds, Categories, Category
from tacit.privacy.errors import EmptyInput, InvalidInput, NotBounded, WrongKind, WrongType
from tacit.privacy.tables import Column as Declared
from tacit.privacy.tables import Kind, Limits, Table, fit_facts
from tacit.stats.answer import Answer
from tacit.stats.array_sums import ArrayRows, name_of, read_arrays
from tacit.stats.column_reader import MODULES
from tacit.stats.learned_bounds import PLACEHOLDER, StatisticWithLearntBounds, learning_parts
from tacit.stats.releases import BoundArrays, BoundRows, PreparedStatistic, release_or_prepare
from tacit.stats.rows import ColumnSteps, Cut, require_few_cells
from tacit.stats.stated_kinds import LEARN, declared_kind, kind_of_datetimes, kinds_of_groups
from tacit.stats.statistic import StatisticPlan, clamped_before


class CommonOptions(TypedDict, total=False):
    """Options of every statistic."""

    epsilon: object
    """What the whole answer costs; or `rho`."""
    rho: object
    budget: Budget
    """For arrays: the budget that pays."""
    unit: Any
    """For arrays: the unit of each row, a column of the same length; without it, every row is a unit."""
    rows_per_unit: int
    """How many rows of a unit are counted."""
    kind: Any
    """For arrays: the kind of `values` ("integer", "real", "text", "boolean", "date" or "time"), or of each column.

    Needed for lists and arrays of objects where nothing else states it, and to read a column as another kind.
    """
    analyst: str
    """For registered tables: the analyst who is charged."""
    key: str | None
    """For registered tables: the same key with the same statistic of the same data is charged once."""
    purpose: str
    timeout_s: float | None
    progress: Progress | None


class RegisteredTable(ABC):
    """A table of a curator: `table["age"]` is a column for statistics."""

    table: Table

    is_by_unit: bool = True
    """Whether a unit can have several rows."""

    @property
    @abstractmethod
    def budget(self) -> Budget:
        """The budget of its data set."""

    @abstractmethod
    def payer(self, analyst: str | None) -> Budget:
        """Return the budget that is charged for an analyst, or for the owner (None)."""

    @abstractmethod
    def bind(self) -> BoundRows:
        """Return the rows in their present version, without reading any."""

    def __getitem__(self, name: str) -> TableColumn:
        return TableColumn(self, self.table.column(name))


class TableColumn:
    """A column of a registered table, which statistics take in place of an array."""

    def __init__(self, table: RegisteredTable, declared: Declared) -> None:
        self.table: Final = table
        self.declared: Final = declared

    def stated(self, facts: Bounds | Categories) -> TableColumn:
        """Return the column with other bounds or categories than it was registered with, for one statistic."""
        name, kind = self.declared.name, self.declared.kind
        return TableColumn(self.table, replace(self.declared, facts=fit_facts(name, kind, facts)))

    def __repr__(self) -> str:
        return f"Column({self.table.table.name}.{self.declared.name})"


class StatisticInputs:
    """The columns of one statistic by their role ("value", "other", groups), and the allocation that it spends.

    `kinds` are what the arguments state about columns of arrays. With `by` and `keys` the statistic is computed in
    groups.
    """

    def __init__(
        self,
        columns: Mapping[str, Any],
        options: CommonOptions,
        kinds: Mapping[str, Kind | None] | None = None,
        *,
        by: Any = None,
        keys: Any = None,
    ) -> None:
        if (first := next(iter(columns), None)) is not None and columns[first] is None:
            raise _missing(first)
        groups = _group_columns(by)
        self._groups, self._keys = None if by is None else list(groups), keys
        given = {name: one for name, one in {**columns, **groups}.items() if one is not None}
        stated_kinds = {**(kinds or {}), **kinds_of_groups(groups, keys)}
        registered = [one for one in given.values() if isinstance(one, TableColumn)]
        self._options = _require_known(options)
        purpose = options.get("purpose")
        self._release_options = ReleaseOptions(
            "" if purpose is None else purpose,
            options.get("key"),
            options.get("timeout_s"),
            options.get("progress"),
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
                if name in options:
                    raise InvalidInput(f"a registered table has its own {name}; leave {name}= out", name=name)
            budget = self._table.budget
        else:
            if "analyst" in options:
                raise InvalidInput(
                    "analysts are charged for registered tables; arrays are paid from a budget", name="analyst"
                )
            self._names = _distinct_names(given)
            self._arrays, self._unit = read_arrays(
                {self._names[one]: given[one] for one in given},
                options.get("unit"),
                {self._names[one]: kind for one, kind in _declared_kinds(given, options.get("kind")).items()},
                {self._names[one]: kind for one, kind in stated_kinds.items() if one in given},
            )
            budget = options.get("budget")  # type: ignore[assignment]
            if not isinstance(budget, Budget):
                raise WrongType("a statistic of arrays is paid from a budget: budget=tacit.Budget(1.0)", name="budget")
        self.budget: Final = budget
        self.per_unit: Final = self._rows_per_unit()
        self._allocation: Final = Allocation.of(budget, options.get("epsilon"), options.get("rho"), self.per_unit)

    @property
    def allocation(self) -> Allocation:
        """What the statistic itself may spend: all, less the share that learns its bounds."""
        return learning_parts(self._allocation, len(self._learning))[-1]

    @property
    def is_registered(self) -> bool:
        """Whether the columns are those of a registered table."""
        return self._table is not None

    @property
    def has_units_of_one_row(self) -> bool:
        """Whether the columns are arrays of which each row is a unit."""
        return self._table is None and self._unit is None

    @property
    def is_empty(self) -> bool:
        """Whether arrays have no rows; for statistics of which the number of rows is public."""
        return self._table is None and not len(next(iter(self._arrays.values())))

    def _rows_per_unit(self) -> int:
        stated = self._options.get("rows_per_unit")
        if stated is not None:
            return Limits(rows_per_unit=stated).rows_per_unit or 1
        if self._table is not None:
            declared = self._table.table.limits.rows_per_unit
            if declared is not None:
                return declared
        elif self._unit is None:
            return 1
        raise NotBounded(
            "a unit can have any number of rows; state how many of them are counted",
            accepted="give rows_per_unit=1, or more",
        )

    def name(self, column: str) -> str:
        """Return the name of a column, in rows and in labels."""
        return self._declared[column].name if self._table is not None else self._names[column]

    def kind(self, column: str) -> Kind:
        """Return the kind of a column; raise NotBounded where nothing public declares it."""
        found = self._known_kind(column)
        if found is None:
            raise NotBounded(
                f"nothing public declares the kind of {self.name(column)}, and its values do not decide it",
                accepted='kind="integer" (or real, text, boolean, date, time), or an array of a type',
            )
        return found

    def _known_kind(self, column: str) -> Kind | None:
        if column not in (self._declared if self._table is not None else self._names):
            raise _missing(column)
        return self._declared[column].kind if self._table is not None else self._arrays[self._names[column]].kind

    def bounds(self, column: str, stated: object) -> Bounds:
        """Return the stated bounds of a column, otherwise those that it was registered with.

        "learn" returns a placeholder, and the plan is made again when the bounds are learnt (`answer`).
        """
        known = self._known_kind(column)
        if isinstance(stated, Bounds):
            return stated
        if isinstance(stated, str) and stated == LEARN:
            if not self.kind(column).is_number:
                raise WrongKind(f"bounds are learnt for numbers, and {self.name(column)} holds {known} values")
            return self._learning.setdefault(self.name(column), PLACEHOLDER)
        if stated is not None:
            if not isinstance(stated, Sequence) or isinstance(stated, str) or len(stated) != 2:
                raise WrongType(
                    'bounds must be two numbers, as in bounds=(0, 120), or "learn"', name="bounds", value=stated
                )
            return Bounds(*stated)
        if known is Kind.BOOLEAN:
            return Bounds(0, 1)
        facts = self._declared[column].facts if self._table is not None else None
        if isinstance(facts, Bounds):
            return facts
        raise NotBounded(
            f"{self.name(column)} has no declared bounds",
            accepted='give bounds=(low, high), chosen without looking at the data; or bounds="learn"',
        )

    def has_categories(self, column: str) -> bool:
        """Return whether a column was registered with the values that it can take."""
        return self._table is not None and isinstance(self._declared[column].facts, Categories)

    def learns(self, column: str) -> bool:
        """Return whether the bounds of a column are learnt."""
        return self.name(column) in self._learning

    def scale(self, column: str, stated: object, steps: int, *, centred: bool = True) -> ColumnSteps:
        """Return a column as whole numbers within its bounds."""
        known = self._known_kind(column)
        if known not in (None, Kind.INTEGER, Kind.REAL, Kind.BOOLEAN):
            raise WrongKind(f"{self.name(column)} must be numeric, and holds {known} values")
        limits = self.bounds(column, stated)
        held = Kind.REAL if self.kind(column) is Kind.REAL else Kind.INTEGER
        scale = ColumnSteps.of(self.name(column), limits, held, steps, centred=centred)
        return replace(scale, is_boolean=known is Kind.BOOLEAN)

    def cut(self, column: str, keys: Sequence[Category] | Categories | None, *, what: str = "keys") -> Cut:
        """Return the public values of a column as cells: the stated ones, otherwise those it was registered with."""
        kind = self._known_kind(column)
        if keys is not None:
            stated = keys if isinstance(keys, Categories) else Categories(_plain_keys(keys))
            found = fit_facts(self.name(column), self.kind(column), stated)
            assert isinstance(found, Categories)
            return Cut(self.name(column), found.values)
        facts = self._declared[column].facts if self._table is not None else None
        if isinstance(facts, Categories):
            return Cut(self.name(column), facts.values)
        if kind is Kind.BOOLEAN:
            return Cut(self.name(column), (False, True))
        raise NotBounded(
            f"the values of {self.name(column)} are not public, and showing one could reveal a person",
            accepted=f"give {what}=[...], listed without looking at the data",
        )

    def groups(self) -> tuple[Cut, ...]:
        """Return the public groups; `keys` is a list for one column to group by, a list each for several."""
        names, keys = self._groups, self._keys
        if names is None:
            return ()
        if keys is not None and not isinstance(keys, Iterable):
            raise WrongType("keys must be a list of values", name="keys", value=keys)
        listed = [keys] if len(names) == 1 else list(keys) if keys is not None else [None] * len(names)
        if len(listed) != len(names):
            raise InvalidInput(
                "keys must be a list for one column to group by, and a list of lists for several", name="keys"
            )
        cuts = tuple(self.cut(name, one) for name, one in zip(names, listed, strict=True))
        require_few_cells(cuts)
        return cuts

    def answer(self, make: Callable[[StatisticInputs], StatisticPlan]) -> Answer:
        """Release the plan that `make` returns; where bounds are learnt, it is made again within the learnt bounds.

        `make` reads bounds and the allocation from the inputs that it is given.
        """
        plan = make(self)
        if self._learning:
            plan = make(self)  # the first time the allocation was not yet known
            columns = {name: self._kind_of(name) for name in self._learning}
            plan = StatisticWithLearntBounds.of(
                plan, columns, self._allocation, lambda found: make(self._with_bounds(found))
            )
        return self.release(plan)

    def _kind_of(self, name: str) -> Kind:
        if self._table is not None:
            return self._table.table.column(name).kind
        kind = self._arrays[name].kind
        assert kind is not None, "bounds are learnt for numbers"
        return kind

    def _with_bounds(self, found: Mapping[str, Bounds]) -> StatisticInputs:
        twin = copy(self)
        twin._learning = dict(found)
        return twin

    def release(self, plan: StatisticPlan) -> Answer:
        """Charge a plan, measure it, and return the answer."""
        if self._learning and not isinstance(plan, StatisticWithLearntBounds):
            raise NotBounded(
                "this statistic does not learn its bounds", accepted="learn them first: tacit.stats.bounds"
            )
        if self._table is not None:
            bind, budget = self._table.bind, self._table.payer(self._options.get("analyst"))
            is_by_unit = self._table.is_by_unit
        else:
            arrays = BoundArrays(ArrayRows(self._arrays, self._unit, self.per_unit))
            bind, budget, is_by_unit = lambda: arrays, self.budget, self._unit is not None
        protected = _protection(self.budget, self.per_unit, by_unit=is_by_unit)
        if self._table is not None and (rule := self._table.table.unit_rule):
            protected += f" {rule[0].upper()}{rule[1:]}."
        columns = [] if self._table is None else [self._table.table.column(self.name(one)) for one in self._declared]
        registered = {one.name: one.facts for one in columns if isinstance(one.facts, Bounds)}
        prepared = PreparedStatistic(
            *(plan, self.per_unit, bind, budget, self._release_options, protected),
            clamped=clamped_before(plan, registered),
        )
        return release_or_prepare(prepared)


def _missing(column: str) -> EmptyInput:
    return EmptyInput(f"this statistic needs its {column} values, and was given none", name=column)


def _require_known(options: CommonOptions) -> CommonOptions:
    """Refuse arguments that no statistic has: a misspelt one, such as units=, would protect fewer rows."""
    for name in options:
        if name not in CommonOptions.__annotations__:
            raise InvalidInput(f"a statistic has no argument {name}", name=name)
    return options


def _declared_kinds(given: Mapping[str, Any], stated: object) -> dict[str, Kind]:
    """Return the kinds that `kind=` declares, for columns by name or for the first column."""
    if stated is None:
        return {}
    if not isinstance(stated, Mapping):
        return {next(iter(given)): declared_kind(stated)} if given else {}
    for name in stated:
        if name not in given:
            raise InvalidInput(f"there is no column {name!r} among {', '.join(given)}", name="kind", value=name)
    return {name: declared_kind(one) for name, one in stated.items()}


def _plain_keys(keys: Any) -> Any:
    """Return the keys of an array as Python objects, dates as dates."""
    if not isinstance(keys, np.ndarray):
        return keys
    if keys.ndim != 1:
        raise WrongType("keys must be a list of values", name="keys")
    if keys.dtype.kind != "M":
        return keys.tolist()
    return keys.astype("datetime64[D]" if kind_of_datetimes(keys.dtype) is Kind.DATE else "datetime64[us]").tolist()


def _distinct_names(given: Mapping[str, Any]) -> dict[str, str]:
    """Return distinct names of columns of arrays: their own, where they are columns of frames."""
    names: dict[str, str] = {}
    for place, values in given.items():
        own = name_of(values) or place.removeprefix("by ")
        while own in names.values():
            own = f"{own} ({place})"
        names[place] = own
    return names


def _protection(budget: Budget, per_unit: int, *, by_unit: bool) -> str:
    """Return the protected unit and the relation in a sentence, for the card."""
    what = budget.cap.relation.in_words
    if not by_unit:
        return f"Protects each row as one unit. Neighbouring data: {what}."
    rows = "one row is" if per_unit == 1 else f"{per_unit} rows are"
    return f"Protects each unit, with all of its rows; at most {rows} counted. Neighbouring data: {what}."


def _group_columns(by: Any) -> dict[str, Any]:
    """Return the columns to group by, under distinct roles."""
    if by is None:
        return {}
    if isinstance(by, Mapping):
        return {f"by {name}": one for name, one in by.items()}
    many = isinstance(by, list | tuple) and bool(by) and all(map(_is_column, by))
    return {f"group {index + 1}" if many else "group": one for index, one in enumerate(by if many else [by])}


def _is_column(one: object) -> bool:
    """Return whether an object is a column itself, and not a value in one."""
    if issubclass(type(one), TableColumn | np.ndarray | list | tuple | range):  # not the object's own __class__
        return True
    return type(one).__module__.partition(".")[0] in MODULES and hasattr(one, "__len__")
