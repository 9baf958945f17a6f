"""Output laws worked out without drawing anything, and the promise read off them.

Everything is a sum of positive doubles, good to about twelve digits. Statistical tests hold a mechanism's draws to
these laws; property tests hold the laws of neighbouring inputs to the promised epsilon and delta.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.statistical.evidence import Refuted

ROUNDING = 1e-9
"""How much of a promised bound is left to the rounding of these sums."""


def laplace_mass(steps: NDArray[Any], scale: Fraction | float) -> NDArray[np.float64]:
    """Return P(noise = k) of discrete Laplace noise for each k."""
    inverse = 1 / float(scale)
    masses: NDArray[np.float64] = np.exp(-np.abs(steps) * inverse) * math.tanh(inverse / 2)
    return masses


def laplace_at_most(steps: NDArray[Any], scale: Fraction | float) -> NDArray[np.float64]:
    """Return P(noise <= k) of discrete Laplace noise for each k."""
    inverse = 1 / float(scale)
    tails = np.exp(-(np.abs(steps) + (steps >= 0)) * inverse) / (1 + math.exp(-inverse))
    return np.asarray(np.where(steps >= 0, 1 - tails, tails))


def laplace_at_least(steps: NDArray[Any], scale: Fraction | float) -> NDArray[np.float64]:
    """Return P(noise >= k) of discrete Laplace noise for each k."""
    return laplace_at_most(-np.asarray(steps), scale)


def exponential_law(scores: Sequence[float], factor: float) -> NDArray[np.float64]:
    """Return how likely the exponential mechanism chooses each candidate."""
    weights = np.exp((np.asarray(scores, dtype=np.float64) - max(scores)) * factor)
    shares: NDArray[np.float64] = weights / weights.sum()
    return shares


def permute_and_flip_law(scores: Sequence[float], factor: float) -> NDArray[np.float64]:
    """Return how likely permute-and-flip chooses each candidate, by going through every order."""
    heads = np.exp((np.asarray(scores, dtype=np.float64) - max(scores)) * factor)
    chances = np.zeros(len(scores))
    orders = list(permutations(range(len(scores))))
    for order in orders:
        reached = 1.0 / len(orders)
        for candidate in order:
            chances[candidate] += reached * heads[candidate]
            reached *= 1 - heads[candidate]
    return chances


def noisy_max_law(steps: Sequence[int], scale: Fraction | float) -> NDArray[np.float64]:
    """Return how likely each score is the greatest after Laplace noise, the first of equals, over the whole lattice."""
    reach = math.ceil(45 * float(scale))
    lattice = np.arange(min(steps) - reach, max(steps) + reach + 1)
    chances = np.zeros(len(steps))
    for chosen, score in enumerate(steps):
        likely = laplace_mass(lattice - score, scale)
        for other, rival in enumerate(steps):
            if other != chosen:
                likely = likely * laplace_at_most(lattice - rival - (other < chosen), scale)
        chances[chosen] = likely.sum()
    return chances


def neighbouring_scores(scores: Sequence[int], *, monotonic: bool = False) -> list[list[int]]:
    """Return every list in which scores moved by at most 1, or all of them in one direction."""
    ups = [
        [score + move for score, move in zip(scores, moves, strict=True)]
        for moves in product((0, 1) if monotonic else (-1, 0, 1), repeat=len(scores))
    ]
    return ups + [[2 * score - up for score, up in zip(scores, moved, strict=True)] for moved in ups]


def loss(left: NDArray[np.float64], right: NDArray[np.float64]) -> float:
    """Return the greatest size of ln(left / right): the least epsilon under which the two laws are neighbours."""
    assert left.shape == right.shape, "two laws on the same outcomes"
    possible = (left > 0) | (right > 0)
    with np.errstate(divide="ignore"):
        return float(np.abs(np.log(left[possible]) - np.log(right[possible])).max())


def excess(left: NDArray[np.float64], right: NDArray[np.float64], epsilon: float) -> float:
    """Return the least delta under which the two laws are neighbours at epsilon, in both directions."""
    over = [np.maximum(0, p - math.exp(epsilon) * q).sum() for p, q in ((left, right), (right, left))]
    return float(max(over))


def require_pure(left: NDArray[np.float64], right: NDArray[np.float64], epsilon: float) -> float:
    """Raise `Refuted` unless the two laws are within epsilon; return how far apart they are."""
    apart = loss(left, right)
    if apart > epsilon * (1 + ROUNDING):
        raise Refuted(f"neighbours differ by {apart:.6g} in the logarithm, and {epsilon:g} was promised")
    return apart


def require_approximate(left: NDArray[np.float64], right: NDArray[np.float64], epsilon: float, delta: float) -> float:
    """Raise `Refuted` unless the two laws are within (epsilon, delta); return the delta that they need."""
    needed = excess(left, right, epsilon)
    if needed > delta * (1 + ROUNDING):
        raise Refuted(f"neighbours need a delta of {needed:.6g} at epsilon {epsilon:g}, and {delta:g} was promised")
    return needed
