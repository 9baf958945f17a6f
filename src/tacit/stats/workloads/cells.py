"""The cells of a column, for people: what they are called, which of them a range holds, and their levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import pairwise
from typing import Any, Final, Literal

from tacit.privacy.errors import InvalidInput, OutOfRange, TooLarge
from tacit.stats.rows import Cut
from tacit.stats.workloads.asked import Hierarchy

EDGES_MAX: Final = 2**20


@dataclass(frozen=True)
class Level:
    """One level of a hierarchy: its name, its groups, and in which one each cell is."""

    name: str
    labels: tuple[Any, ...]
    groups: tuple[int, ...]


def labels_of(cut: Cut) -> tuple[Any, ...]:
    """Return what cells are called: the listed values, or "20 to 30" for a bin."""
    if cut.values:
        return cut.values
    return tuple(f"{_shown(low)} to {_shown(high)}" for low, high in zip(cut.edges, cut.edges[1:], strict=False))


def cells_between(cut: Cut, low: Any, high: Any) -> tuple[int, int]:
    """Return the first cell and the one after the last of a range.

    With edges, from one edge to another; with listed values, from one value to another, both in the range.
    """
    if cut.values:
        places = [_place(cut.values, one, "values") for one in (low, high)]
        first, last = places[0], places[1] + 1
    else:
        first, last = (_place(cut.edges, one, "edges") for one in (low, high))
    if first >= last:
        raise OutOfRange(f"a range runs upwards, and {low!r} does not lie before {high!r}", name="range")
    return first, last


def levels_of(cut: Cut, asked: Hierarchy) -> list[Level]:
    """Return the levels of a hierarchy, the coarsest first, the cells as the last one."""
    labels = labels_of(cut)
    found = [Level(asked.column, labels, tuple(range(cut.cells)))]
    names: Sequence[Any] = labels
    for index, level in reversed(list(enumerate(asked.levels))):
        if isinstance(level, str):
            names, title = _periods(cut, level), level
        else:
            names, title = _mapped(dict(level), names, labels), f"level {index + 1}"
        order = list(dict.fromkeys(names))
        place = {name: number for number, name in enumerate(order)}
        groups = tuple(place[name] for name in names)
        below = found[0].groups
        if len(set(zip(below, groups, strict=True))) != max(below) + 1:
            raise InvalidInput("every group of a level lies in one group of the level above it", name="levels")
        found.insert(0, Level(title, tuple(order), groups))
    return found


def date_edges(first: date, after: date, by: Literal["day", "month", "year"] = "day") -> tuple[date, ...]:
    """Return the edges of days, months or years from `first` on, of which the last one is `after`."""
    if isinstance(first, datetime) or isinstance(after, datetime) or not first < after:
        raise OutOfRange("edges run from one date to a later one", name="edges", value=(first, after))
    if (after - first).days > EDGES_MAX:
        raise TooLarge(f"at most {EDGES_MAX:,} cells are counted at once", name="edges")
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
        f"{wanted!r} is not among the {what} that were counted by: {shown}, ..., {_shown(known[-1])}", name="range"
    )


def _periods(cut: Cut, period: str) -> list[str]:
    if not cut.edges or not all(isinstance(edge, date) for edge in cut.edges):
        raise InvalidInput(f"{period} is a level of cells between dates", name="levels")
    found = []
    for first, after in pairwise(edge for edge in cut.edges if isinstance(edge, date)):
        last = after - (timedelta(microseconds=1) if isinstance(after, datetime) else timedelta(days=1))
        if _period(first, period) != _period(last, period):
            raise InvalidInput(
                f"the cell from {_shown(first)} to {_shown(after)} lies in more than one {period}; end cells with it",
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


def _mapped(level: dict[Any, Any], names: Sequence[Any], cells: Sequence[Any]) -> list[Any]:
    """Return the groups of cells by a mapping from the groups of the level below, or from the cells themselves."""
    if all(name in level for name in names):
        return [level[name] for name in names]
    if all(cell in level for cell in cells):
        return [level[cell] for cell in cells]
    lacking = next(name for name in names if name not in level)
    raise InvalidInput(f"the mapping of a level has no group for {lacking!r}", name="levels", value=lacking)


def _shown(edge: Any) -> str:
    return edge.isoformat() if isinstance(edge, date) else f"{edge:g}" if isinstance(edge, float) else str(edge)
