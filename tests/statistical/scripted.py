"""Sources of "random" bits that a test has written down, to lead a sampler where chance hardly ever goes."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Final


class Scripted:
    """Hands out the given lists of integers one after another, each list as the bytes of one read."""

    simulated: Final = True

    def __init__(self, reads: Iterable[list[int]]) -> None:
        self._reads = list(reads)

    def read(self, size: int) -> bytes:
        """Return the next list, every integer of it in equally many little-endian bytes."""
        assert self._reads, "more bits were read than the test expected"
        numbers = self._reads.pop(0)
        return b"".join(number.to_bytes(size // len(numbers), "little") for number in numbers)

    @property
    def used_up(self) -> bool:
        """Whether everything that was written down has been read."""
        return not self._reads


class DigitsOf:
    """Hands out the binary digits of one number between 0 and 1, however many are asked for at a time."""

    simulated: Final = True

    def __init__(self, uniform: Fraction) -> None:
        assert 0 <= uniform < 1, "a uniform number lies between 0 and 1"
        self._rest = uniform

    def read(self, size: int) -> bytes:
        """Return the next digits, as one integer in little-endian bytes."""
        shifted = self._rest * 2 ** (8 * size)
        digits = int(shifted)
        self._rest = shifted - digits
        return digits.to_bytes(size, "little")
