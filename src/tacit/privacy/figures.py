"""Numbers for people to read: a few digits, rounded towards claiming less.

What may be promised is rounded up and what is certain to be lost is rounded down, so a figure is as true as the number
it stands for. A figure means the double that is nearest to it, as everywhere else: read back, `at_most(x)` is not below
`x`, `at_least(x)` is not above it, and `exactly(x)` is `x`.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Final

DIGITS: Final = 5
_PLAIN_FROM, _PLAIN_BELOW = -4, 7
"""The powers of ten between which a figure is written without an exponent."""


def at_most(number: float, digits: int = DIGITS) -> str:
    """Return a figure of so many significant digits that is not below `number`."""
    return _rounded(number, digits, ROUND_CEILING)


def at_least(number: float, digits: int = DIGITS) -> str:
    """Return a figure of so many significant digits that is not above `number`."""
    return _rounded(number, digits, ROUND_FLOOR)


def exactly(number: float) -> str:
    """Return the fewest digits that name the number."""
    return _shown(Decimal(repr(number))) if math.isfinite(number) else _not_finite(number)


def _rounded(number: float, digits: int, rounding: str) -> str:
    if not math.isfinite(number):
        return _not_finite(number)
    return _shown(Context(prec=digits, rounding=rounding).plus(Decimal(repr(number))))


def _shown(number: Decimal) -> str:
    digits = number.normalize(Context(prec=len(number.as_tuple().digits)))
    if digits == 0:
        return "0"
    if _PLAIN_FROM <= digits.adjusted() < _PLAIN_BELOW:
        return f"{digits:f}"
    mantissa, exponent = f"{digits:e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def _not_finite(number: float) -> str:
    return "∞" if number == math.inf else "-∞" if number == -math.inf else "not a number"
