"""Replayable randomness, for tests and simulation alone.

Nothing released with a `SeededSource` protects anybody: who knows the seed knows the noise. It is imported by its full
name, is never a default, and the numbers released with it are of a type that says so (`is_simulated`).
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

import numpy as np

from tacit.privacy.numbers import whole


class SeededSource:
    """SHAKE-256 of a seed and a counter, as a stream of bytes that can be replayed."""

    simulated: Final = True

    def __init__(self, seed: int) -> None:
        self._key = whole("seed", seed, at_least=0).to_bytes(32, "little")
        self._calls = 0

    def read(self, size: int) -> bytes:
        """Return the next `size` bytes of the stream."""
        self._calls += 1
        return hashlib.shake_256(self._key + self._calls.to_bytes(16, "little")).digest(size)


class SimulatedInt(int):
    """An int that was released with replayable noise."""

    def __repr__(self) -> str:
        return f"{int(self)} (simulated)"


class SimulatedFloat(float):
    """A float that was released with replayable noise."""

    def __repr__(self) -> str:
        return f"{float(self)} (simulated)"


class SimulatedArray(np.ndarray[Any, Any]):
    """An array that was released with replayable noise."""

    def __repr__(self) -> str:
        return f"{np.asarray(self)!r} (simulated)"


def marked(released: Any) -> Any:
    """Return what was released as a value of a type that says it was simulated."""
    if isinstance(released, np.ndarray):
        return released.view(SimulatedArray)
    if isinstance(released, int | np.integer):
        return SimulatedInt(released)
    if isinstance(released, float | np.floating):
        return SimulatedFloat(released)
    if isinstance(released, tuple):
        return tuple(marked(part) for part in released)
    return released


def is_simulated(released: object) -> bool:
    """Whether a released value carries the mark of replayable noise."""
    if isinstance(released, tuple):
        return any(is_simulated(part) for part in released)
    return isinstance(released, SimulatedInt | SimulatedFloat | SimulatedArray)
