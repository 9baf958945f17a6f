"""Interval arithmetic: ranges of results, exact in rationals and rounded outwards where engines compute in doubles.

Promise: the result of an operation on values inside the given ranges lies inside the returned one. Addition,
subtraction, multiplication, division and square root are rounded to the nearest double by every engine (IEEE 754), and
rounding is monotone: the doubles around the exact ends hold every result. Other functions are allowed an error of
2^-50 of the result. None stands for a range that is not known, or that passes what doubles can hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Final

from tacit.privacy.numbers import rounded_down, rounded_up
from tacit.query.expressions import Range

DAY: Final = 86_400_000_000
"""Microseconds in a day."""

_SLACK: Final = Fraction(1, 2**50)
_TINY: Final = Fraction(1, 2**1070)
_EXPONENT_MAX: Final = 64


def outward(lower: Fraction, upper: Fraction) -> Range | None:
    """Return the doubles around an interval."""
    low, high = rounded_down(lower), rounded_up(upper)
    return None if math.isinf(low) or math.isinf(high) else Range(Fraction(low), Fraction(high))


def union(ranges: Sequence[Range]) -> Range:
    """Return the least interval that holds all of them."""
    return Range(min(one.lower for one in ranges), max(one.upper for one in ranges))


def add(a: Range, b: Range) -> Range:
    """Return the exact range of a + b."""
    return Range(a.lower + b.lower, a.upper + b.upper)


def negate(a: Range) -> Range:
    """Return the exact range of -a."""
    return Range(-a.upper, -a.lower)


def multiply(a: Range, b: Range) -> Range:
    """Return the exact range of a * b."""
    corners = [x * y for x in (a.lower, a.upper) for y in (b.lower, b.upper)]
    return Range(min(corners), max(corners))


def divide(a: Range, b: Range) -> Range | None:
    """Return the exact range of a / b, if b keeps away from zero."""
    if b.lower <= 0 <= b.upper:
        return None
    return multiply(a, Range(1 / b.upper, 1 / b.lower))


def truncated_quotient(a: Range, b: Range) -> Range:
    """Return the range of the whole part of a / b, for whole a and b, where b is not zero."""
    divisors = [Range(b.lower, min(b.upper, Fraction(-1))), Range(max(b.lower, Fraction(1)), b.upper)]
    quotients = [divide(a, part) for part in divisors if part.lower <= part.upper]
    known = [part for part in quotients if part is not None] or [Range(Fraction(0), Fraction(0))]
    whole = union(known)
    return Range(Fraction(math.trunc(whole.lower)), Fraction(math.trunc(whole.upper)))


def remainder(a: Range | None, b: Range | None, *, whole: bool) -> Range | None:
    """Return the range of a % b: it has the sign of a, is no larger than a, and smaller than b."""
    sizes = [] if b is None else [max(b.size - 1, Fraction(0)) if whole else b.size]
    sizes += [] if a is None else [a.size]
    if not sizes:
        return None
    size = min(sizes)
    signed = Range(-size, size)
    if a is not None:
        signed = Range(max(-size, min(a.lower, Fraction(0))), min(size, max(a.upper, Fraction(0))))
    return signed


def absolute(a: Range) -> Range:
    """Return the exact range of the absolute value."""
    smallest = Fraction(0) if a.lower <= 0 <= a.upper else min(abs(a.lower), abs(a.upper))
    return Range(smallest, a.size)


def stepwise(a: Range, rounding: Callable[[Fraction], int]) -> Range:
    """Return the range of a value after it was rounded to whole numbers by a monotone function."""
    return Range(Fraction(rounding(a.lower)), Fraction(rounding(a.upper)))


def half_away(value: Fraction) -> int:
    """Return the nearest whole number, halves away from zero, as ROUND does."""
    return math.floor(abs(value) + Fraction(1, 2)) * (1 if value >= 0 else -1)


def round_to_digits(a: Range, digits: int) -> Range | None:
    """Return the range of ROUND(a, digits); None where scaling by 10^digits loses whole numbers."""
    scale = Fraction(10) ** digits
    lower, upper = math.floor(a.lower * scale), math.ceil(a.upper * scale)
    if max(abs(lower), abs(upper)) > 2**52:
        return None
    return outward(lower / scale, upper / scale)


def power(a: Range, exponent: int) -> Range | None:
    """Return the range of a ** exponent, for a whole exponent that is not negative."""
    if exponent > _EXPONENT_MAX:
        return None
    ends = sorted((a.lower**exponent, a.upper**exponent))
    if exponent % 2 == 0 and exponent > 0 and a.lower < 0 < a.upper:
        ends[0] = Fraction(0)
    return slack(ends[0], ends[1])


def root(a: Range) -> Range | None:
    """Return the range of the square root of what is not negative."""
    upper = max(a.upper, Fraction(0))
    return slack(Fraction(_at(math.sqrt, max(a.lower, Fraction(0)))), Fraction(_at(math.sqrt, upper)))


def exponential(a: Range) -> Range | None:
    """Return the range of e^a."""
    if a.upper > 709:
        return None
    lower = Fraction(0) if a.lower < -700 else Fraction(_at(math.exp, a.lower))
    return slack(lower, Fraction(_at(math.exp, a.upper)) if a.upper > -700 else Fraction(1, 2**1000))


def logarithm(a: Range, function: Callable[[float], float], *, least: Fraction) -> Range | None:
    """Return the range of a logarithm of positive numbers; `least` is the smallest of them that can occur."""
    lower = max(a.lower, least)
    upper = max(a.upper, lower)
    if upper > Fraction(2) ** 1023:
        return None
    return slack(Fraction(_at(function, lower)), Fraction(_at(function, upper)))


def slack(lower: Fraction, upper: Fraction) -> Range | None:
    """Return an interval with room for the error of a function that is not rounded exactly, but keeps signs."""
    low = lower - abs(lower) * _SLACK - _TINY
    high = upper + abs(upper) * _SLACK + _TINY
    return outward(max(low, Fraction(0)) if lower >= 0 else low, min(high, Fraction(0)) if upper <= 0 else high)


def _at(function: Callable[[float], float], value: Fraction) -> float:
    return function(float(value))
