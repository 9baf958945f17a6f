"""Numbers formatted for people: a few digits, rounded towards claiming less.

Upper bounds are rounded up and lower bounds down, so a figure is as true as the number it stands for. Parsed as a
double, `at_most(x)` is not below `x`, `at_least(x)` is not above it, and `exactly(x)` is `x`.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Final

DIGITS: Final = 5
_PLAIN_FROM, _PLAIN_BELOW = -4, 7
"""The powers of ten between which a figure is written without an exponent."""


def at_most(number: float, digits: int = DIGITS) -> str:
    """Return `number` rounded up to `digits` significant digits."""
    return _round(number, digits, ROUND_CEILING)


def at_least(number: float, digits: int = DIGITS) -> str:
    """Return `number` rounded down to `digits` significant digits."""
    return _round(number, digits, ROUND_FLOOR)


def left_over(number: float, digits: int = DIGITS) -> str:
    """Return a difference such as 1 - 0.9 rounded down; what subtraction lost beyond the fourteenth digit is restored.

    Caps are widened by more than that (`ledger.accounts`), so that the figure fits.
    """
    return at_least(float(f"{number:.14g}"), digits)


def exactly(number: float) -> str:
    """Return the fewest digits that identify the double."""
    return _format(Decimal(repr(number))) if math.isfinite(number) else _not_finite(number)


def _round(number: float, digits: int, rounding: str) -> str:
    if not math.isfinite(number):
        return _not_finite(number)
    return _format(Context(prec=digits, rounding=rounding).plus(Decimal(repr(number))))


def _format(number: Decimal) -> str:
    digits = number.normalize(Context(prec=len(number.as_tuple().digits)))
    if digits == 0:
        return "0"
    if _PLAIN_FROM <= digits.adjusted() < _PLAIN_BELOW:
        return f"{digits:f}"
    mantissa, exponent = f"{digits:e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def _not_finite(number: float) -> str:
    return "∞" if number == math.inf else "-∞" if number == -math.inf else "not a number"
