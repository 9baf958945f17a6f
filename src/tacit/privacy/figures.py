"""Numbers formatted for people: a few digits, rounded towards claiming less.

Upper bounds are rounded up and lower bounds down, so a figure is as true as the number it stands for. Parsed as a
double, `at_most(x)` is not below `x` by more than 2^-40 of it, `at_least(x)` is not above it, and `exactly(x)` is `x`.
The tolerance of 2^-40 (12 digits) is for decimals, which have no exact doubles: 0.5 + 0.5 + 0.1 + 0.1 is above 1.2 by
2e-16, and is shown as 1.2, not as 1.2001.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Final

DIGITS: Final = 5
DECIMAL_DIGITS: Final = 10
"""The most digits of a decimal that a double is taken for."""
TOLERANCE: Final = 2.0**-40
"""Relative distance below which a double is taken for a decimal; caps are widened for the same reason."""
GROUPED_DIGITS: Final = 6
_GROUPED_BELOW: Final = 1e15
_PLAIN_FROM, _PLAIN_BELOW = -4, 7
"""The powers of ten between which a figure is written without an exponent."""


def at_most(number: float, digits: int = DIGITS) -> str:
    """Return `number` rounded up to `digits` significant digits, without an excess of less than `TOLERANCE`."""
    return strictly_at_most(nearby_decimal(number, digits), digits)


def strictly_at_most(number: float, digits: int = DIGITS) -> str:
    """Return `number` rounded up to `digits` significant digits, however small its excess is."""
    return _round(number, digits, ROUND_CEILING)


def nearby_decimal(number: float, digits: int = DECIMAL_DIGITS) -> float:
    """Return the decimal of at most `digits` digits within `TOLERANCE` of `number`, or `number` if there is none."""
    if not math.isfinite(number):
        return number
    decimal = float(f"{number:.{digits - 1}e}")
    return decimal if abs(decimal - number) < TOLERANCE * abs(number) else number


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


def grouped(number: float, digits: int = GROUPED_DIGITS) -> str:
    """Return a number with thousands separators: an integer in full, a real with `digits` significant digits.

    All digits before the point are shown up to 10^15, where others would write 1.2e+07.
    """
    if isinstance(number, int):
        return f"{number:,}"
    return f"{number:,.0f}" if 10**digits <= abs(number) < _GROUPED_BELOW else f"{number:,.{digits}g}"


def with_interval(value: float, low: float, high: float) -> tuple[str, str]:
    """Return a value and its interval as text, with as many digits as the noise allows: "29,661 ± 1,198" and its ends.

    The half-width is shown after the value only if both sides of the interval are equal in the digits shown.
    """
    half = (high - low) / 2
    if not 1e-9 < half < _GROUPED_BELOW:
        return grouped(value), f"{grouped(low)} to {grouped(high)}"
    if all(isinstance(number, int) for number in (value, low, high)):
        is_centred = value - low == high - value
        return f"{value:,}{f' ± {half:,.15g}' if is_centred else ''}", f"{low:,} to {high:,}"
    decimals = 0 if isinstance(value, int) and half >= 1 else max(0, 1 - math.floor(math.log10(half)))
    texts = (f"{number:,.{decimals}f}" for number in (value, low, high, value - low, high - value))
    shown, lowest, highest, below, above = texts
    return f"{shown} ± {above}" if below == above else shown, f"{lowest} to {highest}"


def in_one_cell(value: float | None, low: float, high: float) -> str:
    """Return a value with its interval: the half-width, or both ends; None (NULL) has both ends."""
    if value is None:
        return f"None ({grouped(low)} to {grouped(high)})"
    shown, span = with_interval(value, low, high)
    return shown if "±" in shown else f"{shown} ({span})"


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
