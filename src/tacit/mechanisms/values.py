"""Private values, read and checked in one place.

Refusals here concern the shape and kind of what the caller gave. A caller who must not learn of the data at all clamps
and replaces beforehand, as the query engine does.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tacit.privacy.errors import EmptyInput, NotFinite, TooLarge, WrongType

INTEGER_MAX: Final = 2**62


def numbers_of(value: Any) -> NDArray[Any]:
    """Return an array of int64 or float64, or refuse what holds anything but finite numbers of a fitting size."""
    try:
        array = np.asarray(value)
    except ValueError:
        raise WrongType("a value is a number or an array of numbers of one shape", name="value") from None
    if array.dtype.kind in "iu":
        if array.size and (int(array.max()) > INTEGER_MAX or int(array.min()) < -INTEGER_MAX):
            raise TooLarge("integers in arrays must lie within ±2^62", name="value")
        return array.astype(np.int64)
    if array.dtype.kind != "f":
        raise WrongType(f"a value is a number or an array of numbers, not {array.dtype}", name="value")
    with np.errstate(over="ignore"):
        doubles = np.asarray(array, dtype=np.float64)
    if doubles.size and not (np.isfinite(doubles.min()) and np.isfinite(doubles.max())):
        raise NotFinite("values must be finite: drop or replace NaN and infinity before the release", name="value")
    return doubles


def vector_of(values: Any, name: str) -> NDArray[Any]:
    """Return a vector of at least one int64 or float64, or refuse."""
    array = numbers_of(values)
    if array.ndim != 1:
        raise WrongType(f"{name} are a list of numbers", name=name)
    if not array.size:
        raise EmptyInput(f"there must be at least one of {name}", name=name)
    return array
