"""Workloads: sets of counting queries over public partitions of columns, and labels and levels of their cells.

    Ranges("age")                            every range of neighbouring cells
    Prefixes("income")                       all cells up to each one
    Cells("ward")                            each cell by itself
    Hierarchy("day", ("year", "month"))      dates by year and month; or places, by a mapping from child to parent
    Marginals(("age", "sex", "ward"), (1, 2))  all one-way and two-way tables
    Ranges("age") * Cells("sex")             every range of the one for each cell of the other
    Ranges("age") + Marginals(("sex", "ward"))  both, under one charge

They name columns and hold no data; the cells of the columns are given with the data (`domain` of `workload`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import combinations, pairwise
from typing import Any, Final, Literal, TypeAlias

from tacit.privacy.errors import EmptyInput, InvalidInput, OutOfRange, TooLarge, WrongType
from tacit.privacy.numbers import whole
from tacit.privacy.texts import is_unicode, source_name
from tacit.stats.rows import Cut

SETS_MAX: Final = 4096
WAYS_MAX: Final = 6
EDGES_MAX: Final = 2**20
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
        source_name("column", self.column)

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
    """All cells up to each one: n queries over n cells, of which the last is the total."""


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
            raise WrongType("levels must be a list of periods, or of mappings from child to parent", name="levels")
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
        columns = tuple(source_name("column", name) for name in names)
        if len(set(columns)) != len(columns) or not columns:
            raise InvalidInput("marginals need at least one column, without duplicates", name="columns", value=names)
        if sets is None:
            listed = ways if isinstance(ways, Sequence) and not isinstance(ways, str) else [ways]
            if len(listed) > SETS_MAX:
                raise TooLarge(f"ways must be at most {SETS_MAX} numbers", name="ways")
            sizes = sorted({whole("ways", one, at_least=0) for one in listed})
            if not sizes or sizes[-1] > min(WAYS_MAX, len(columns)):
                raise OutOfRange(
                    f"a table is by at most {min(WAYS_MAX, len(columns))} of these columns", name="ways", value=ways
                )
            if sum(len(list(combinations(columns, size))) for size in sizes) > SETS_MAX:
                raise TooLarge(f"a workload has at most {SETS_MAX} tables", name="ways")
            found = [one for size in sizes for one in combinations(columns, size)]
        else:
            if isinstance(sets, str) or not isinstance(sets, Sequence):
                raise WrongType("sets must be lists of columns, one for each table", name="sets", value=sets)
            found = [self._in_order(columns, one) for one in sets]
        if not 1 <= len(found) <= SETS_MAX:
            raise TooLarge(f"a workload has one to {SETS_MAX} tables, not {len(found)}", name="sets")
        object.__setattr__(self, "names", columns)
        object.__setattr__(self, "sets", tuple(dict.fromkeys(found)))

    @staticmethod
    def _in_order(columns: tuple[str, ...], wanted: Any) -> tuple[str, ...]:
        listed = [wanted] if isinstance(wanted, str) else wanted
        if not isinstance(listed, Sequence) or not all(isinstance(name, str) for name in listed):
            raise WrongType("sets must be lists of columns, one for each table", name="sets", value=wanted)
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
            raise InvalidInput("the two columns of a product must differ", name="workload")

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.one.column, self.other.column)


@dataclass(frozen=True)
class Union(Workload):
    """Several workloads under one charge."""

    parts: tuple[Workload, ...]

    def __post_init__(self) -> None:
        for one in self.parts:
            if not isinstance(one, Workload):
                raise WrongType("workloads can be joined with workloads only", name="workload", value=one)
        if not self.parts:
            raise EmptyInput("the workload is empty", name="workload")

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


@dataclass(frozen=True)
class Level:
    """One level of a hierarchy: its name, the labels of its groups, and the group of each cell."""

    name: str
    labels: tuple[Any, ...]
    groups: tuple[int, ...]


def labels_of(cut: Cut) -> tuple[Any, ...]:
    """Return the labels of cells: the listed values, or "20 to 30" for a bin."""
    if cut.values:
        return cut.values
    return tuple(f"{_shown(low)} to {_shown(high)}" for low, high in zip(cut.edges, cut.edges[1:], strict=False))


def cells_between(cut: Cut, low: Any, high: Any) -> tuple[int, int]:
    """Return the first cell and the one after the last of a range.

    With edges the range runs from one edge to another; with listed values from one value to another, both included.
    """
    if cut.values:
        places = [_place(cut.values, one, "values") for one in (low, high)]
        first, last = places[0], places[1] + 1
    else:
        first, last = (_place(cut.edges, one, "edges") for one in (low, high))
    if first >= last:
        raise OutOfRange(f"a range must rise, and {low!r} is not before {high!r}", name="range")
    return first, last


def levels_of(cut: Cut, asked: Hierarchy) -> list[Level]:
    """Return the levels of a hierarchy, the coarsest first, the cells as the last one."""
    labels = labels_of(cut)
    found = [Level(asked.column, labels, tuple(range(cut.cells)))]
    names: Sequence[Any] = labels
    for index, level in reversed(list(enumerate(asked.levels))):
        if isinstance(level, str):
            names, title = _period_labels(cut, level), level
        else:
            names, title = _parent_labels(dict(level), names, labels), f"level {index + 1}"
        order = list(dict.fromkeys(names))
        place = {name: number for number, name in enumerate(order)}
        groups = tuple(place[name] for name in names)
        below = found[0].groups
        if len(set(zip(below, groups, strict=True))) != max(below) + 1:
            raise InvalidInput("every group of a level must lie in one group of the level above it", name="levels")
        found.insert(0, Level(title, tuple(order), groups))
    return found


def date_edges(first: date, after: date, by: Literal["day", "month", "year"] = "day") -> tuple[date, ...]:
    """Return the edges of days, months or years from `first` on, of which the last one is `after`."""
    if isinstance(first, datetime) or isinstance(after, datetime) or not first < after:
        raise OutOfRange("edges must run from one date to a later one", name="edges", value=(first, after))
    if (after - first).days > EDGES_MAX:
        raise TooLarge(f"a column has at most {EDGES_MAX:,} cells", name="edges")
    found, at = [], first
    while at < after:
        found.append(at)
        if by == "day":
            at += timedelta(days=1)
        elif by == "month":
            at = date(at.year + at.month // 12, at.month % 12 + 1, 1)
        else:
            at = date(at.year + 1, 1, 1)
    return (*found, after)


def _place(known: Sequence[Any], wanted: Any, what: str) -> int:
    for place, one in enumerate(known):
        if one == wanted:
            return place
    shown = ", ".join(_shown(one) for one in known[:3])
    raise InvalidInput(
        f"{wanted!r} is not among the {what} of the column: {shown}, ..., {_shown(known[-1])}", name="range"
    )


def _period_labels(cut: Cut, period: str) -> list[str]:
    if not cut.edges or not all(isinstance(edge, date) for edge in cut.edges):
        raise InvalidInput(f"{period} is a level for cells between dates", name="levels")
    found = []
    for first, after in pairwise(edge for edge in cut.edges if isinstance(edge, date)):
        last = after - (timedelta(microseconds=1) if isinstance(after, datetime) else timedelta(days=1))
        if _period(first, period) != _period(last, period):
            raise InvalidInput(
                f"the cell from {_shown(first)} to {_shown(after)} spans more than one {period}; choose edges at which "
                f"a {period} ends",
                name="levels",
            )
        found.append(_period(first, period))
    return found


def _period(day: date, period: str) -> str:
    match period:
        case "year":
            return f"{day.year:04}"
        case "quarter":
            return f"{day.year:04} Q{(day.month + 2) // 3}"
        case "month":
            return f"{day.year:04}-{day.month:02}"
    return f"{day.year:04}-{day.month:02}-{day.day:02}"


def _parent_labels(level: dict[Any, Any], names: Sequence[Any], cells: Sequence[Any]) -> list[Any]:
    """Return the group of each cell by a mapping from the groups of the level below, or from the cells."""
    if all(name in level for name in names):
        return [level[name] for name in names]
    if all(cell in level for cell in cells):
        return [level[cell] for cell in cells]
    lacking = next(name for name in names if name not in level)
    raise InvalidInput(f"the mapping of a level has no group for {lacking!r}", name="levels", value=lacking)


def _shown(edge: Any) -> str:
    return edge.isoformat() if isinstance(edge, date) else f"{edge:g}" if isinstance(edge, float) else str(edge)
