"""Replayable randomness, for tests and simulation only.

Releases with a `SeededSource` are not private: anyone who knows the seed knows the noise. It is imported by its full
name, is never a default, and values released with it have a type that marks them (`is_simulated`), except None and
empty tuples, which mean that nothing was released.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np

from tacit.privacy.errors import TooLarge
from tacit.privacy.numbers import whole


class SeededSource:
    """SHAKE-256 of a seed and a counter, as a stream of bytes that can be replayed."""

    simulated: Final = True

    def __init__(self, seed: int) -> None:
        number = whole("seed", seed, at_least=0)
        if number >= 2**256:
            raise TooLarge("a seed must be below 2^256", name="seed", value=seed)
        self._key = number.to_bytes(32, "little")
        self._calls = 0

    def read(self, size: int) -> bytes:
        """Return the next `size` bytes of the stream."""
        self._calls += 1
        return hashlib.shake_256(self._key + self._calls.to_bytes(16, "little")).digest(size)


class _Marked:
    """The representation of a scalar with its mark."""

    def __repr__(self) -> str:
        return f"{remove_mark(self)!r} (simulated)"


class SimulatedBool(_Marked, int):
    """A bool that was released with replayable noise."""


class SimulatedInt(_Marked, int):
    """An int that was released with replayable noise."""


class SimulatedFloat(_Marked, float):
    """A float that was released with replayable noise."""


class SimulatedFraction(Fraction):
    """A fraction that was released with replayable noise."""

    def __repr__(self) -> str:
        return f"{self!s} (simulated)"


class SimulatedText(_Marked, str):
    """A text that was released with replayable noise."""


class SimulatedArray(np.ndarray[Any, Any]):
    """An array that was released with replayable noise."""

    def __repr__(self) -> str:
        return f"{np.asarray(self)!r} (simulated)"


@dataclass(frozen=True, slots=True, repr=False)
class SimulatedValue:
    """Any other value that was released with replayable noise."""

    value: Any

    def __repr__(self) -> str:
        return f"{self.value!r} (simulated)"


_MARKS: Final[dict[type, type]] = {
    bool: SimulatedBool,
    np.bool_: SimulatedBool,
    int: SimulatedInt,
    np.integer: SimulatedInt,
    float: SimulatedFloat,
    np.floating: SimulatedFloat,
    Fraction: SimulatedFraction,
    str: SimulatedText,
}
_MARKED: Final = (*dict.fromkeys(_MARKS.values()), SimulatedArray, SimulatedValue)


def mark_simulated(released: Any) -> Any:
    """Return a released value as the type that marks it as simulated."""
    if released is None or isinstance(released, _MARKED):
        return released
    if isinstance(released, np.ndarray):
        return released.view(SimulatedArray)
    if isinstance(released, tuple):
        parts = [mark_simulated(part) for part in released]
        return type(released)(*parts) if hasattr(released, "_fields") else tuple(parts)
    mark = next((mark for kind, mark in _MARKS.items() if isinstance(released, kind)), SimulatedValue)
    return mark(released)


def remove_mark(released: Any) -> Any:
    """Return a scalar without its mark."""
    if isinstance(released, SimulatedValue):
        return released.value
    plain = next((kind for kind, mark in _MARKS.items() if isinstance(released, mark)), None)
    return released if plain is None else str.__str__(released) if plain is str else plain(released)


def is_simulated(released: object) -> bool:
    """Return whether a released value is marked as simulated."""
    if isinstance(released, tuple):
        return any(is_simulated(part) for part in released)
    return isinstance(released, _MARKED)
