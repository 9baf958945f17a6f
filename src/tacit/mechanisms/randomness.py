"""Sources of random bytes: the operating system, and nothing else in production.

Promise: `SYSTEM` returns bytes of the kernel's CSPRNG, requested in one block per call and never stored, so that no bit
is used twice, also after a fork and across threads.
A replayable source exists for tests and simulation only (`tacit.mechanisms.simulation`); it declares itself through
`simulated`, and whatever is released with it is marked.
"""

from __future__ import annotations

import os
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Words: TypeAlias = NDArray[np.unsignedinteger[Any]]

_UNSIGNED: Final[dict[int, np.dtype[np.unsignedinteger[Any]]]] = {
    1: np.dtype(np.uint8),
    2: np.dtype(np.uint16),
    4: np.dtype(np.uint32),
    8: np.dtype(np.uint64),
}


SIMULATED: Final = "The noise is reproducible: this is a simulation and gives no privacy."
"""What the card of a release with a simulated source says."""


class RandomSource(Protocol):
    """A source of independent uniform bytes."""

    @property
    def simulated(self) -> bool:
        """Whether the bytes can be replayed, so that releases made with them are not private."""
        ...

    def read(self, size: int) -> bytes:
        """Return `size` fresh random bytes."""
        ...


class SystemSource:
    """The operating system's CSPRNG."""

    simulated: Final = False

    def read(self, size: int) -> bytes:
        """Return `size` fresh random bytes."""
        return os.urandom(size)


SYSTEM: Final[RandomSource] = SystemSource()


def words(source: RandomSource, count: int, bytes_each: int) -> Words:
    """Return `count` uniform unsigned integers of 1, 2, 4 or 8 bytes."""
    return np.frombuffer(source.read(count * bytes_each), dtype=_UNSIGNED[bytes_each])


def bits(source: RandomSource, count: int) -> int:
    """Return one uniform integer of `count` random bits."""
    size = (count + 7) // 8
    return int.from_bytes(source.read(size), "little") >> (8 * size - count)
