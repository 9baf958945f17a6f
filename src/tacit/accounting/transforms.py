"""Composition of tilted masses by Fourier transforms.

Promise: the error of `compose`, in each mass of the window, is at most what `loss` allows a transform for each part;
many short parts are composed in shorter transforms first, which is one transform more for each at most. What lies
outside the window is bounded by `loss`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.accounting.numerics import irfft, next_fast_len, rfft
from tacit.accounting.pairs import Floats

Spectrum: TypeAlias = NDArray[np.complex128]

GATHERED_MIN: Final = 32
HALVED_MIN: Final = 16
BATCH: Final = 4
SQUARED_MAX: Final = 1 << 12


class Tilted(NamedTuple):
    """A lattice's tilted masses, which add up to 1, the index of the first, and the number of compositions."""

    masses: Floats
    start: int
    times: int


def compose(parts: Sequence[Tilted], start: int, points: int) -> Floats:
    """Return the composed masses from index `start` on, of at least `points` points; masses outside wrap around."""
    length = next_fast_len(points, real=True)
    gathered = _gather_short(parts, length // 4)
    origin = sum(one.times * one.start for one in gathered)
    masses = np.maximum(irfft(_product(gathered, length), length), 0.0)
    return np.roll(masses, (origin - start) % length)


def _product(parts: Sequence[Tilted], length: int) -> Spectrum:
    """Return the product of the parts' transforms, each to its power; transforms are faster in batches."""
    spectrum = np.ones(length // 2 + 1, dtype=np.complex128)
    for first in range(0, len(parts), BATCH):
        batch = parts[first : first + BATCH]
        padded = np.zeros((len(batch), length))
        for row, one in zip(padded, batch, strict=True):
            if len(one.masses) > length:
                row += np.bincount(np.arange(len(one.masses)) % length, one.masses, length)
            else:
                row[: len(one.masses)] = one.masses
        for transform, one in zip(rfft(padded, axis=1), batch, strict=True):
            spectrum *= _power(transform, one.times)
    return spectrum


def _gather_short(lattices: Sequence[Tilted], longest: int) -> list[Tilted]:
    """Return lattices, of which many short ones are composed by shorter transforms.

    A lattice that is composed n times is one for each binary digit of n; those of one digit are composed once and all
    of them raised to its power.
    """
    if len(lattices) < GATHERED_MIN:
        return list(lattices)
    gathered = [one for one in lattices if len(one.masses) > longest // 2]
    digits: dict[int, list[Tilted]] = {}
    for one in lattices:
        if len(one.masses) <= longest // 2:
            for place in range(one.times.bit_length()):
                if one.times >> place & 1:
                    digits.setdefault(1 << place, []).append(one._replace(times=1))
    for times, members in digits.items():
        group, length = list[Tilted](), 1
        for one in members:
            if length + len(one.masses) - 1 > longest:
                gathered.append(_compose_group(group, length, times))
                group, length = [], 1
            group.append(one)
            length += len(one.masses) - 1
        gathered.append(_compose_group(group, length, times))
    return gathered


def _compose_group(group: Sequence[Tilted], length: int, times: int) -> Tilted:
    """Return the composition of lattices, each once, as one lattice of `length` points that is composed `times` times.

    A group of more than HALVED_MIN is halved first, as the transforms of halves are shorter. In total that is one
    transform more for each lattice at most: two for every half, which has at least half of HALVED_MIN, and none for a
    lattice alone.
    """
    if len(group) == 1:
        return group[0]._replace(times=times)
    if len(group) > HALVED_MIN:
        middle = len(group) // 2
        halves = group[:middle], group[middle:]
        group = [_compose_group(half, 1 + sum(len(one.masses) - 1 for one in half), 1) for half in halves]
    size = next_fast_len(length, real=True)
    masses = np.maximum(irfft(_product(group, size), size)[:length], 0.0)
    return Tilted(masses, sum(one.start for one in group), times)


def _power(spectrum: Spectrum, times: int) -> Spectrum:
    """Return a spectrum to a power: by repeated squaring, or by its logarithm where that is faster."""
    if times <= SQUARED_MAX:
        power, rest = spectrum, times - 1
        square = spectrum
        while rest:
            power = power * square if rest & 1 else power
            rest >>= 1
            square = square * square if rest else square
        return power
    with np.errstate(divide="ignore", invalid="ignore"):
        raised = np.asarray(np.exp(times * np.log(spectrum)))
    raised[spectrum == 0] = 0
    return raised
