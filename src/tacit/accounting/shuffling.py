"""Local reports seen only after a shuffle: amplification in closed form.

Promise: `count` reports of an epsilon0-locally private randomizer, shuffled, are (epsilon, delta)-private under
replace-one for epsilon = ln(1 + (e^epsilon0 - 1) / (e^epsilon0 + 1) * (8 sqrt(e^epsilon0 ln(4 / delta)) / sqrt(count) +
8 e^epsilon0 / count)), where epsilon0 <= ln(count / (16 ln(2 / delta))) (Feldman, McMillan, Talwar 2021, theorem 3.1);
elsewhere shuffling only does no harm and epsilon is epsilon0.
"""

from __future__ import annotations

import math


def shuffled_epsilon(local_epsilon: float, count: int, delta: float) -> float:
    """Return the central epsilon at `delta` of shuffled local reports."""
    if local_epsilon > math.log(count / (16 * math.log(2 / delta))):
        return local_epsilon
    growth = math.exp(local_epsilon)
    inside = 8 * math.sqrt(growth * math.log(4 / delta) / count) + 8 * growth / count
    amplified = math.log1p((growth - 1) / (growth + 1) * inside)
    return min(local_epsilon, amplified * (1 + 2.0**-45))


def shuffled_delta(local_epsilon: float, count: int, epsilon: float) -> float:
    """Return a delta at which shuffled local reports are `epsilon`-private, nearly the least that the theorem gives."""
    low, high = math.log(1e-300), 0.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        kept = shuffled_epsilon(local_epsilon, count, math.exp(middle)) <= epsilon
        low, high = (low, middle) if kept else (middle, high)
    return math.exp(high)
