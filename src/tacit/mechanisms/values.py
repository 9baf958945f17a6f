"""Checks and conversions of private values.

Errors here depend on the shape and type of the caller's values. Where even these must not show, as in the query engine,
the caller clamps and replaces values beforehand.

Whether numbers are released as integers or as real numbers is declared and never depends on the value: an empty sum is
the int 0 in Python and the float 0.0 in numpy, and noise that followed the type would reveal that it was empty.
- An array of one or more dimensions declares by its dtype.
- Everything else declares nothing: numbers of Python and numpy, arrays without dimensions, lists, arrays of objects,
  and empty arrays of floats, since `np.array([])` is one. There the mechanism declares, by the type of its sensitivity
  (`declared_sensitivity`): a whole-number type declares integers, any other real numbers.
Where integers are declared, floats of Python, alone or in lists, are refused by their type. Reals of numpy, alone or in
lists, are taken if they are whole, since one empty group among several makes one float 0.0 among integers. Another real
scalar is rounded to the nearest whole number, halves up: floor(x + 1/2) is monotone and moves along with x by whole
numbers, so that two numbers within a whole-number sensitivity stay within it. For several numbers at once that does not
hold, nor for a sensitivity that is not whole, and no other rounding could do it: (1/2, 1/2) is within L1 distance 1 of
all four corners of the square, which are up to 2 apart. There a real number that is not whole is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from numbers import Integral
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tacit.privacy.errors import EmptyInput, NotFinite, TooLarge, WrongType
from tacit.privacy.numbers import Real, parameter

INTEGER_MAX: Final = 2**62
EXACT_MAX: Final = 2**53
"""Every integer up to here is exactly a double."""

DIMENSIONS_MAX: Final = 64
_PLAIN_NUMBERS: Final = frozenset({int, float, np.int64, np.float64})


def declared_sensitivity(name: str, value: object) -> Real:
    """Return a sensitivity as an int if its type is integral, otherwise as the equal float or fraction."""
    number = parameter(name, value)
    if isinstance(value, Integral):
        return int(number)
    return float(number) if Fraction(float(number)) == number else number


def has_dtype(value: Any) -> bool:
    """Return whether a value declares the type of its numbers by a dtype, as numpy's arrays and scalars do."""
    return hasattr(value, "__array__")


def declared_numbers(
    value: Any, *, integers: bool, refusal: Callable[[], WrongType], rounds: bool = False
) -> NDArray[Any]:
    """Return an array of int64 or float64, as declared.

    `integers` is the mechanism's declaration for values that declare nothing; `refusal` makes the error for floats
    among them, and with `rounds` real scalars with a dtype are rounded instead.
    """
    given = _unwrap_objects(value)
    if integers and is_list(given):
        return _integers_in(given, refusal)
    array = numbers_of(given)
    is_whole = array.dtype == np.int64
    if is_whole == integers or (has_dtype(given) and array.ndim and (array.size or is_whole)):
        return array
    if not array.size:
        return array.astype(np.int64 if integers else np.float64)
    if not integers:
        require_exact(max(int(array.max()), -int(array.min())))
        return array.astype(np.float64)
    if array.ndim or not has_dtype(given):
        raise refusal()
    number = Fraction(float(array))
    if number.denominator != 1 and not rounds:
        raise refusal()
    return np.asarray(_require_int64(math.floor(number + Fraction(1, 2))), dtype=np.int64)


def counts_of(value: Any, name: str) -> NDArray[np.int64]:
    """Return a list of counts as int64; raise unless they are declared as integers."""

    def refusal() -> WrongType:
        return WrongType(f"{name} are a list of whole numbers", name=name)

    array = declared_numbers(value, integers=True, refusal=refusal)
    if array.dtype != np.int64 or array.ndim != 1:
        raise refusal()
    return array


def _integers_in(values: Any, refusal: Callable[[], WrongType]) -> NDArray[np.int64]:
    """Return a list, which may be nested, as int64; floats of numpy in it are accepted if they are whole."""
    array = array_of(values)
    if array.dtype.kind in "iu" or not array.size:
        return numbers_of(values).astype(np.int64)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise _not_finite_error()
    return np.asarray(array_of(_read_integers(values, refusal)), dtype=np.int64)


def _read_integers(part: Any, refusal: Callable[[], WrongType]) -> Any:
    """Return a part of a list with its numbers as Python ints."""
    if isinstance(part, float) and not has_dtype(part):
        raise refusal()
    if isinstance(part, int) and not isinstance(part, bool):
        return _require_int64(part)
    if is_list(part):
        return [_read_integers(one, refusal) for one in sequence_of(part)]
    array = numbers_of(part)
    if array.dtype == np.int64:
        return array.tolist()
    if not np.array_equal(array, np.floor(array)):
        raise refusal()
    if np.any(np.abs(array) > INTEGER_MAX):
        raise _too_large_error()
    return array.astype(np.int64).tolist()


def _require_int64(number: int) -> int:
    """Return an integer if int64 can hold it with its noise, otherwise raise."""
    if abs(number) > INTEGER_MAX:
        raise _too_large_error()
    return number


def is_list(value: Any) -> bool:
    """Return whether a value is a sequence whose values are read one by one."""
    return (
        isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray | range) and not has_dtype(value)
    )


def sequence_of(value: Any) -> Any:
    """Return a sequence accepted by `is_list` as a Python list or tuple."""
    if isinstance(value, list | tuple):
        return value
    try:
        return list(value)
    except Exception:
        raise _not_an_array() from None


def array_of(value: Any) -> NDArray[Any]:
    """Return a value as a numpy array; raise WrongType whatever the conversion raises."""
    try:
        return np.asarray(value)
    except Exception:
        raise _not_an_array() from None


def _not_an_array() -> WrongType:
    return WrongType("a value is a number or an array of numbers of one shape", name="value")


def _unwrap_objects(value: Any) -> Any:
    """Return an array of objects, whose dtype declares nothing, as a list; anything else unchanged."""
    refuse_masked(value)
    array = array_of(value) if has_dtype(value) else None
    return array.tolist() if array is not None and array.dtype.kind == "O" and array.ndim else value


def require_exact(magnitude: int) -> None:
    """Raise for an integer that is to be released as a real number and that a double might not hold."""
    if magnitude > EXACT_MAX:  # rounding neighbours to doubles could move them apart
        raise TooLarge("whole numbers that are released as real numbers must lie within ±2^53", name="value")


def require_finite(number: float) -> float:
    """Return a float if it is finite, otherwise raise."""
    if not math.isfinite(number):
        raise _not_finite_error()
    return number


def _too_large_error() -> TooLarge:
    return TooLarge("integers in arrays must lie within ±2^62", name="value")


def _not_finite_error() -> NotFinite:
    return NotFinite("values must be finite: drop or replace NaN and infinity before the release", name="value")


def integers_only_error(sensitivity: Real) -> WrongType:
    """Return the error for a float in a mechanism whose sensitivity declares integers."""
    return WrongType(
        f"this mechanism adds noise to whole numbers, because its sensitivity is the whole number {sensitivity}; "
        f"write sensitivity={float(sensitivity)} for real numbers",
        name="value",
    )


def refuse_masked(value: Any, *, depth: int = 0) -> None:
    """Raise for a masked array or a list that holds one: converted to an array, it would reveal the masked values.

    Lists that are nested deeper than an array can be are refused as well.
    """
    if isinstance(value, np.ma.MaskedArray):
        raise WrongType(
            "masked arrays are not supported: drop the masked entries (.compressed()) or fill them (.filled()) first",
            name="value",
        )
    if not is_list(value):
        return
    if depth >= DIMENSIONS_MAX:
        raise WrongType(f"lists are nested at most {DIMENSIONS_MAX} deep", name="value")
    parts = sequence_of(value)
    if not set(map(type, parts)) <= _PLAIN_NUMBERS:
        for part in parts:
            refuse_masked(part, depth=depth + 1)


def _holds_booleans(value: Any) -> bool:
    """Return whether a list holds a boolean, which numpy would convert to a number beside numbers."""
    if not is_list(value):
        return isinstance(value, bool) or getattr(value, "dtype", None) == np.bool_
    parts = sequence_of(value)
    return not set(map(type, parts)) <= _PLAIN_NUMBERS and any(map(_holds_booleans, parts))


def refuse_columns(values: Any, name: str) -> None:
    """Raise for containers in which the type of one record depends on other records.

    One null makes every number of a series a float, one text every number a text. Lists hold each record as it is, and
    the dtype of a numpy array is declared. A mapping or a frame would be read as its keys.
    """
    if isinstance(values, Mapping) or (hasattr(values, "__array__") and not isinstance(values, np.ndarray)):
        raise _not_records(values, name)


def records_of(records: Any, name: str) -> Sequence[Any] | NDArray[Any]:
    """Return records that can be read one by one; raise if the type of their container does not allow that."""
    if not is_list(records):
        refuse_masked(records)
    refuse_columns(records, name)
    if isinstance(records, np.ndarray) and records.ndim:
        # The width of an array of texts is that of the longest one.
        return records.tolist() if records.dtype.kind in "SU" else np.asarray(records)
    if not isinstance(records, Sequence) or isinstance(records, str | bytes | bytearray):
        raise _not_records(records, name)
    return records


def _not_records(records: Any, name: str) -> WrongType:
    return WrongType(
        f"{name} are a list or a numpy array, not {type(records).__name__}; of a series give .to_numpy(dtype=float), "
        "with a dtype that is chosen without looking at the data",
        name=name,
    )


def numbers_of(value: Any) -> NDArray[Any]:
    """Return an array of int64 or float64; raise unless all values are finite numbers within range."""
    value = _unwrap_objects(value)
    array = array_of(value)
    if array.dtype.kind in "iuf" and _holds_booleans(value):
        raise WrongType("a value is a number or an array of numbers, not truth values", name="value")
    if array.dtype.kind in "iu":
        if array.size and (int(array.max()) > INTEGER_MAX or int(array.min()) < -INTEGER_MAX):
            raise _too_large_error()
        return array.astype(np.int64)
    if array.dtype.kind != "f":
        raise WrongType(f"a value is a number or an array of numbers, not {array.dtype}", name="value")
    if array.dtype.itemsize > 8:  # rounding neighbours to doubles could move them apart
        raise WrongType(f"real numbers are float64 or shorter, not {array.dtype}", name="value")
    doubles = np.asarray(array, dtype=np.float64)
    if doubles.size and not (np.isfinite(doubles.min()) and np.isfinite(doubles.max())):
        raise _not_finite_error()
    if not has_dtype(value) and doubles.size and max(doubles.max(), -doubles.min()) >= EXACT_MAX:
        for one in np.asarray(value, dtype=object).flat:  # numpy converts an int beside a float, with rounding
            require_exact(abs(int(one)) if isinstance(one, Integral) else 0)
    return doubles


def vector_of(values: Any, name: str) -> NDArray[Any]:
    """Return a vector of at least one int64 or float64; raise for anything else."""
    array = numbers_of(values)
    if array.ndim != 1:
        raise WrongType(f"{name} are a list of numbers", name=name)
    if not array.size:
        raise EmptyInput(f"there must be at least one of {name}", name=name)
    return array
