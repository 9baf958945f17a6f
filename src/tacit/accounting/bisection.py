"""Bisection that ends for every float, the smallest included."""

from __future__ import annotations

from collections.abc import Callable


def narrowed(low: float, high: float, is_low: Callable[[float], bool], share: float) -> tuple[float, float]:
    """Return numbers between `low` and `high`, on either side of where `is_low` ends, at most a share of them apart.

    Neighbouring floats are as close as numbers get, whatever share was asked for.
    """
    while high - low > share * high and low < (middle := low + (high - low) / 2) < high:
        low, high = (middle, high) if is_low(middle) else (low, middle)
    return low, high
