"""Workloads: sets of counting queries that are asked together, over public partitions of columns.

    Ranges("age")                            every range of neighbouring cells
    Prefixes("income")                       everything up to each cell
    Cells("ward")                            each cell by itself
    Hierarchy("day", ("year", "month"))      dates by year and month; or places, by a mapping from child to parent
    Marginals(("age", "sex", "ward"), (1, 2))  all one-way and two-way tables
    Ranges("age") * Cells("sex")             every range of the one for each cell of the other
    Ranges("age") + Marginals(("sex", "ward"))  both, under one price

They name columns and hold no data; what the cells of a column are is said where they are asked (`domain`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import combinations
from typing import Any, Final, TypeAlias

from tacit.privacy.errors import EmptyInput, InvalidInput, OutOfRange, TooLarge, WrongType
from tacit.privacy.numbers import whole
from tacit.privacy.texts import is_unicode, source_name

SETS_MAX: Final = 4096
WAYS_MAX: Final = 6
PERIODS: Final = ("year", "quarter", "month", "day")


class Workload(ABC):
    """A set of counting queries; `+` joins two of them."""

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The columns that it counts by."""

    def __add__(self, other: Workload) -> Union:
        mine = self.parts if isinstance(self, Union) else (self,)
        return Union((*mine, *(other.parts if isinstance(other, Union) else (other,))))


@dataclass(frozen=True)
class OneColumn(Workload):
    """Queries over the cells of one column."""

    column: str

    def __post_init__(self) -> None:
        named(self.column)

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def __mul__(self, other: OneColumn) -> Product:
        return Product(self, other)


@dataclass(frozen=True)
class Ranges(OneColumn):
    """Every range of neighbouring cells: n (n + 1) / 2 queries over n cells."""


@dataclass(frozen=True)
class Prefixes(OneColumn):
    """Everything up to each cell: n queries over n cells, of which the last is the total."""


@dataclass(frozen=True)
class Cells(OneColumn):
    """Each cell by itself."""


Levels: TypeAlias = tuple[str | tuple[tuple[Any, Any], ...], ...]


@dataclass(frozen=True)
class Hierarchy(OneColumn):
    """Each cell, and the groups of cells of each level, from the coarsest to the finest.

    A level is "year", "quarter", "month" or "day" for cells between dates, or a mapping to its groups from the cells,
    or from the groups of the level after it.
    """

    levels: Levels

    def __init__(self, column: str, levels: Sequence[str | Mapping[Any, Any]] | Mapping[Any, Any]) -> None:
        if not isinstance(levels, Mapping | str | Sequence):
            raise WrongType("levels are a list of periods, or of mappings from child to parent", name="levels")
        listed: list[Any] = [levels] if isinstance(levels, Mapping | str) else list(levels)
        read: list[str | tuple[tuple[Any, Any], ...]] = []
        for one in listed:
            if isinstance(one, Mapping):
                read.append(_groups(one))
            elif isinstance(one, str) and one in PERIODS:
                read.append(one)
            else:
                raise WrongType(
                    f"a level is one of {', '.join(PERIODS)}, or a mapping from child to parent",
                    name="levels",
                    value=one,
                )
        if not read:
            raise EmptyInput("a hierarchy has at least one level above its cells", name="levels")
        object.__setattr__(self, "column", column)
        object.__setattr__(self, "levels", tuple(read))
        self.__post_init__()


@dataclass(frozen=True)
class Marginals(Workload):
    """Tables of counts by sets of columns."""

    names: tuple[str, ...]
    sets: tuple[tuple[str, ...], ...]

    def __init__(
        self,
        names: Sequence[str],
        ways: Any = (1, 2),
        *,
        sets: Any = None,
    ) -> None:
        columns = tuple(map(named, names))
        if len(set(columns)) != len(columns) or not columns:
            raise InvalidInput("tables are asked by columns that differ, at least one", name="columns", value=names)
        if sets is None:
            listed = ways if isinstance(ways, Sequence) and not isinstance(ways, str) else [ways]
            if len(listed) > SETS_MAX:
                raise TooLarge(f"ways are at most {SETS_MAX} numbers", name="ways")
            sizes = sorted({whole("ways", one, at_least=0) for one in listed})
            if not sizes or sizes[-1] > min(WAYS_MAX, len(columns)):
                raise OutOfRange(
                    f"a table is by at most {min(WAYS_MAX, len(columns))} of these columns", name="ways", value=ways
                )
            if sum(len(list(combinations(columns, size))) for size in sizes) > SETS_MAX:
                raise TooLarge(f"at most {SETS_MAX} tables are answered at once", name="ways")
            found = [one for size in sizes for one in combinations(columns, size)]
        else:
            if isinstance(sets, str) or not isinstance(sets, Sequence):
                raise WrongType("sets are lists of columns, a list for each table", name="sets", value=sets)
            found = [self._in_order(columns, one) for one in sets]
        if not 1 <= len(found) <= SETS_MAX:
            raise TooLarge(f"one to {SETS_MAX} tables are answered at once, not {len(found)}", name="sets")
        object.__setattr__(self, "names", columns)
        object.__setattr__(self, "sets", tuple(dict.fromkeys(found)))

    @staticmethod
    def _in_order(columns: tuple[str, ...], wanted: Any) -> tuple[str, ...]:
        listed = [wanted] if isinstance(wanted, str) else wanted
        if not isinstance(listed, Sequence) or not all(isinstance(name, str) for name in listed):
            raise WrongType("sets are lists of columns, a list for each table", name="sets", value=wanted)
        chosen = set(listed)
        if not chosen <= set(columns) or len(chosen) > WAYS_MAX:
            raise InvalidInput(f"a table is by at most {WAYS_MAX} of the columns that are given", name="sets")
        return tuple(name for name in columns if name in chosen)

    @property
    def columns(self) -> tuple[str, ...]:
        return self.names


@dataclass(frozen=True)
class Product(Workload):
    """Each query over one column for each query over the other."""

    one: OneColumn
    other: OneColumn

    def __post_init__(self) -> None:
        if not all(isinstance(part, OneColumn) for part in (self.one, self.other)):
            raise WrongType("a product is of two workloads over one column each", name="workload")
        if self.one.column == self.other.column:
            raise InvalidInput("the two columns of a product differ", name="workload")

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.one.column, self.other.column)


@dataclass(frozen=True)
class Union(Workload):
    """Several workloads under one price."""

    parts: tuple[Workload, ...]

    def __post_init__(self) -> None:
        for one in self.parts:
            if not isinstance(one, Workload):
                raise WrongType("workloads are joined with workloads", name="workload", value=one)
        if not self.parts:
            raise EmptyInput("there is nothing asked", name="workload")

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for part in self.parts for name in part.columns))


def _groups(level: Mapping[Any, Any]) -> tuple[tuple[Any, Any], ...]:
    """Return a level as pairs of child and parent."""
    for pair in level.items():
        for one in pair:
            if not isinstance(one, str | int | float | date | None) or (isinstance(one, str) and not is_unicode(one)):
                raise WrongType(
                    "a level is a mapping from child to parent: texts, numbers or dates", name="levels", value=one
                )
    return tuple(level.items())


def named(column: object) -> str:
    """Return the name of a column, or refuse what is none."""
    return source_name("column", column)
