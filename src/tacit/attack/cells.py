"""Cells of published tables as sets of values: one value, all values, a list, a pattern or a range of numbers.

`*` alone, an empty cell, `?`, None and NaN stand for all values; `130*` for texts that begin so; `130**` and `1*3` for
texts of the same length; `{a, b}` for those listed; `20-29`, `[20, 30)`, `>=65` and `65+` for numbers. Every other cell
is the value itself, compared as text. Where it cannot be told whether two sets have a value in common (a pattern and a
range may share a number that is written in another way), they are said to have one.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Any, Final

MISSING: Final = ("", "?")
"""Texts that, like None and NaN, stand for any value."""
DIGITS_MAX: Final = 30
"""How many digits a number may have after the beginning that a pattern shows."""
_NUMBER: Final = r"(-?\d+(?:\.\d+)?)"
_RANGE: Final = re.compile(rf"\s*([\[(]?)\s*{_NUMBER}\s*(?:-|–|to|,|;)\s*{_NUMBER}\s*([\])]?)\s*")
_AT_LEAST: Final = re.compile(rf"\s*{_NUMBER}\s*\+\s*")
_OPEN: Final = re.compile(rf"\s*(>=|<=|>|<|≥|≤)\s*{_NUMBER}\s*")


@dataclass(frozen=True, slots=True)
class _Everything:
    def holds(self, _value: Any) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class _Listed:
    values: tuple[str, ...]

    def holds(self, value: Any) -> bool:
        return str(value).strip() in self.values


@dataclass(frozen=True, slots=True)
class _Pattern:
    """A text in which `*` is any character; `is_open` if the text may go on after what is shown."""

    shown: str
    is_open: bool

    def holds(self, value: Any) -> bool:
        text = str(value)
        return (self.is_open or len(text) == len(self.shown)) and self.agrees(text) and len(text) >= len(self.shown)

    def agrees(self, text: str) -> bool:
        """Return whether no character of a text, which may have `*` itself, contradicts the pattern."""
        return all(one == other or "*" in (one, other) for one, other in zip(self.shown, text, strict=False))


@dataclass(frozen=True, slots=True)
class _Interval:
    low: float
    high: float
    has_low: bool = True
    has_high: bool = True

    def holds(self, value: Any) -> bool:
        try:
            number = math.nan if isinstance(value, date) else float(value)
        except (TypeError, ValueError, OverflowError):
            return False
        return (self.low < number or (self.has_low and self.low == number)) and (
            number < self.high or (self.has_high and number == self.high)
        )

    def overlaps(self, other: _Interval) -> bool:
        low, high = max(self.low, other.low), min(self.high, other.high)
        return low < high or (low == high and self.holds(low) and other.holds(low))


_Set = _Everything | _Listed | _Pattern | _Interval


def is_missing(cell: Any) -> bool:
    """Return whether a cell says nothing: such a cell fits every value, and names nobody."""
    return cell is None or (cell.strip() in MISSING if isinstance(cell, str) else bool(cell != cell))


def list_of(cell: Any) -> list[str] | None:
    """Return the values of a cell that lists them, as in `{a, b}`; None for any other cell."""
    found = _set_of(cell)
    return list(found.values) if isinstance(found, _Listed) else None


def is_generalised(cell: Any) -> bool:
    """Return whether a cell can stand for several values: it is missing, or a pattern, a list or a range."""
    return _set_of(cell) is not None


def fits(cell: Any, value: Any) -> bool:
    """Return whether a value of a person agrees with a published cell, which may be generalised.

    A value that is itself missing or generalised agrees with the same cell, and with one that stands for all values.
    """
    if cell == value or (found := _set_of(cell)) == _Everything():
        return True
    if is_missing(value) or str(cell).strip() == str(value):
        return not is_missing(value)
    return found is not None and not is_generalised(value) and found.holds(value)


def meets(cell: Any, other: Any) -> bool:
    """Return whether two cells, each of which may be generalised, can stand for the same value."""
    one, another = _set_of(cell), _set_of(other)
    if one is None or another is None:
        return fits(cell, other) or fits(other, cell)
    return _share_a_value(one, another)


def _set_of(cell: Any) -> _Set | None:
    """Return the values that a cell stands for; None if it is a value itself."""
    if is_missing(cell):
        return _Everything()
    return _parsed(cell) if isinstance(cell, str) else None


@lru_cache(maxsize=100_000)
def _parsed(cell: str) -> _Set | None:
    text = cell.strip()
    if set(text) == {"*"}:
        return _Everything()
    if text[0] == "{" and text[-1] == "}":
        return _Listed(tuple(part.strip() for part in text[1:-1].split(",")))
    if "*" in text:
        is_open = text.endswith("*") and text.count("*") == 1
        return _Pattern(text[:-1] if is_open else text, is_open)
    if (found := _RANGE.fullmatch(text)) is not None and float(found[2]) <= float(found[3]):  # 2020-05 is a month
        return _Interval(float(found[2]), float(found[3]), found[1] != "(", found[4] != ")")
    if (found := _AT_LEAST.fullmatch(text)) is not None:
        return _Interval(float(found[1]), math.inf)
    if (found := _OPEN.fullmatch(text)) is not None:
        limit, has_limit = float(found[2]), found[1] not in "<>"
        return _Interval(limit, math.inf, has_limit) if found[1] in (">", ">=", "≥") else _Interval(
            -math.inf, limit, has_high=has_limit
        )  # fmt: skip
    return None


def _share_a_value(one: _Set, other: _Set) -> bool:
    if isinstance(one, _Everything) or isinstance(other, _Everything):
        return True
    if isinstance(one, _Listed):
        return any(other.holds(value) for value in one.values)
    if isinstance(other, _Listed):
        return any(one.holds(value) for value in other.values)
    if isinstance(one, _Interval):
        return one.overlaps(other) if isinstance(other, _Interval) else _may_be_in(other, one)
    if isinstance(other, _Interval):
        return _may_be_in(one, other)
    short, long = sorted((one, other), key=lambda pattern: len(pattern.shown))
    return (short.is_open or len(short.shown) == len(long.shown)) and short.agrees(long.shown)


def _may_be_in(pattern: _Pattern, interval: _Interval) -> bool:
    """Return False only if no number that is written as the pattern says is in the interval."""
    start = pattern.shown.partition("*")[0]
    if not start.isdecimal():
        return re.fullmatch(r"[-+.\deE]*", start) is not None
    left = DIGITS_MAX if pattern.is_open else len(pattern.shown) - len(start)
    return any(
        interval.overlaps(_Interval(int(start) * 10.0**digits, (int(start) + 1) * 10.0**digits, has_high=False))
        for digits in range(left + 1)
    )
