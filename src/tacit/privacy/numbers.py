"""Checks of numeric parameters, and exact conversions between rationals and floats.

Each check is named after what it returns and raises an error of `privacy.errors` for anything else. Parameters become
rationals without rounding (the float 0.1 is 3602879701896397/36028797018963968, the decimal 0.1 is 1/10), so that what
a sampler uses and what an event records are the same number. Where an event must hold a float, it is rounded in the
direction that claims less.
"""

from __future__ import annotations

import math
import sys
from decimal import Decimal
from fractions import Fraction
from numbers import Rational
from typing import Final, Protocol, TypeAlias, runtime_checkable

from tacit.privacy.errors import InvalidInput, NotFinite, NotPositive, OutOfRange, TooLarge, WrongType

Real: TypeAlias = int | float | Fraction

MAGNITUDE_MAX: Final = 2**1000
MAGNITUDE_MIN: Final = Fraction(1, MAGNITUDE_MAX)
DEFAULT_LEVEL: Final = 0.95
"""The default coverage probability of intervals."""
LEVEL_MAX: Final = 1 - 2.0**-40
DECIMAL_DIGITS_MAX: Final = 800
TIME_LIMIT_MAX_S: Final = 1_000_000
"""Eleven days; the timers of operating systems and databases overflow somewhere above."""
TINY: Final = math.ulp(0.0)
"""The least positive float; a positive cost is never rounded to 0."""


@runtime_checkable
class SupportsIntegerRatio(Protocol):
    """A number that can be written as a ratio of two ints: floats, decimals, numpy's real numbers."""

    def as_integer_ratio(self) -> tuple[int, int]:
        """Return the numerator and the denominator."""
        ...


def exact(name: str, value: object) -> Fraction:
    """Return `value` as a rational without rounding; raise unless it is a finite real number.

    Accepts ints, floats, fractions and decimals, numpy's numbers, and arrays and tensors without dimensions.
    """
    if type(value) is float and math.isfinite(value):  # by far the most frequent
        return Fraction(*value.as_integer_ratio())
    value = _unwrap_scalar(value)
    if isinstance(value, bool | complex | type) or not isinstance(value, Rational | SupportsIntegerRatio):
        raise WrongType(f"{name} must be a number, not {type(value).__name__}", name=name, value=value)
    if isinstance(value, Decimal) and value.is_finite() and _digit_count(value) > DECIMAL_DIGITS_MAX:
        raise TooLarge(f"{name} must be a decimal of at most {DECIMAL_DIGITS_MAX} digits", name=name, value=value)
    try:
        if isinstance(value, Rational):
            number = Fraction(int(value.numerator), int(value.denominator))
        else:
            number = Fraction(*value.as_integer_ratio())
    except (ValueError, OverflowError):  # NaN or infinity
        raise NotFinite(f"{name} must be a finite number, not {value}", name=name, value=value) from None
    except Exception:  # objects that only look like numbers may raise anything
        raise WrongType(f"{name} must be a number, not {type(value).__name__}", name=name, value=value) from None
    if not isinstance(value, float) and abs(number) >= MAGNITUDE_MAX:
        raise TooLarge(f"{name} must be below 2^1000 in size", name=name, value=value)
    return number


def _unwrap_scalar(value: object) -> object:
    """Return the number in an array or a tensor without dimensions; anything else unchanged."""
    try:
        is_single = getattr(value, "shape", None) == () and not hasattr(value, "mask")
        return value.item() if is_single else value  # type: ignore[attr-defined]
    except Exception:  # an object that only looks like an array
        return value


def positive(name: str, value: object) -> Fraction:
    """Return `value` as a rational above zero."""
    number = exact(name, value)
    if number <= 0:
        raise NotPositive(f"{name} must be above 0, not {_format(number)}", name=name, value=value)
    return number


def parameter(name: str, value: object) -> Fraction:
    """Return `value` as a rational of at least 2^-1000; doubles hold smaller ones with few digits or as 0."""
    number = positive(name, value)
    if number < MAGNITUDE_MIN:
        raise OutOfRange(f"{name} must be at least 2^-1000", name=name, value=value)
    return number


def not_negative(name: str, value: object) -> Fraction:
    """Return `value` as a rational of at least zero."""
    number = exact(name, value)
    if number < 0:
        raise OutOfRange(f"{name} must not be negative, and is {_format(number)}", name=name, value=value)
    return number


def inside_unit_interval(name: str, value: object) -> Fraction:
    """Return `value` as a rational strictly between zero and one."""
    number = exact(name, value)
    if not 0 < number < 1:
        raise OutOfRange(f"{name} must lie strictly between 0 and 1, and is {_format(number)}", name=name, value=value)
    return number


def failure_probability(name: str, value: object) -> Fraction:
    """Return a probability strictly between zero and one as a rational of at least 2^-1000."""
    return parameter(name, inside_unit_interval(name, value))


def agreed(name: str, own: object, stated: object) -> object:
    """Return a cost that an estimator or a training of it states; raise InvalidInput where both do and differ."""
    if own is not None and stated is not None and exact(name, own) != exact(name, stated):
        raise InvalidInput(
            f"the estimator has {name} {own} and its training {name} {stated}; state one of them", name=name
        )
    return own if stated is None else stated


def level_of(value: object) -> float:
    """Return the coverage probability of an interval as a float between 0 and 1 - 2^-40."""
    level = float(inside_unit_interval("level", value))
    if level > LEVEL_MAX:
        raise OutOfRange("the level of an interval must be at most 1 - 2^-40", name="level", value=value)
    return level


def whole(name: str, value: object, *, at_least: int = 1, at_most: int | None = None) -> int:
    """Return `value` as an int between two limits."""
    number = exact(name, value)
    if number.denominator != 1:
        raise WrongType(f"{name} must be a whole number, not {_format(number)}", name=name, value=value)
    if number < at_least:
        raise OutOfRange(f"{name} must be at least {at_least}, and is {number}", name=name, value=value)
    if at_most is not None and number > at_most:
        raise TooLarge(f"{name} must be at most {at_most:,}", name=name, value=value)
    return int(number)


def seconds(value: object) -> float:
    """Return `timeout_s` as a positive number of seconds that timers can hold."""
    found = float(positive("timeout_s", value))
    if found > TIME_LIMIT_MAX_S:
        raise OutOfRange(f"timeout_s must be at most {TIME_LIMIT_MAX_S:,} seconds", name="timeout_s", value=value)
    return found


def time_limit(value: object) -> float | None:
    """Return `timeout_s` as a positive number of seconds, or None for no limit."""
    return None if value is None else seconds(value)


def native_number(number: Fraction) -> Real:
    """Return a rational as an int or a float if one of them is exactly equal, otherwise as it is."""
    if number.denominator == 1:
        return int(number)
    near = _float(number)
    return near if Fraction(near) == number else number


def truth_value(name: str, value: object) -> bool:
    """Return `value` if it is a bool; raise for values with a truth value of their own, such as the text "no"."""
    if not isinstance(value, bool):
        raise WrongType(f"{name} must be true or false, not {type(value).__name__}", name=name, value=value)
    return value


def rounded_up(number: Fraction) -> float:
    """Return the least float that is not below `number`."""
    near = _float(number)
    if math.isinf(near):
        return near if near > 0 else -sys.float_info.max
    return near if Fraction(near) >= number else math.nextafter(near, math.inf)


def rounded_down(number: Fraction) -> float:
    """Return the greatest float that is not above `number`."""
    return -rounded_up(-number)


def _float(number: Fraction) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _format(number: Fraction) -> str:
    return f"{_float(number):.6g}"


def _digit_count(number: Decimal) -> int:
    """Return the number of digits of a decimal written without an exponent."""
    return max(len(number.as_tuple().digits), number.adjusted(), -number.adjusted())
