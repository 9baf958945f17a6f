"""Exact uniform integers and permutations, by rejection.

Promise: every value, or every order, is equally likely. How often a draw is repeated depends on the public bound and on
the rejected bits alone.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms.randomness import Source, bits, words


def integers_below(bound: int, count: int, source: Source) -> NDArray[np.int64]:
    """Return `count` independent integers, uniform on 0 … bound - 1, for a bound of at most 2^63."""
    drawn = np.empty(count, dtype=np.int64)
    shift = np.uint64(64 - max(1, (bound - 1).bit_length()))
    missing = np.arange(count)
    while missing.size:
        proposed = (words(source, missing.size, 8).astype(np.uint64) >> shift).astype(np.int64)
        fits = proposed < bound
        drawn[missing[fits]] = proposed[fits]
        missing = missing[~fits]
    return drawn


def integer_below(bound: int, source: Source) -> int:
    """Return one integer, uniform on 0 … bound - 1, for any bound."""
    size = max(1, (bound - 1).bit_length())
    while True:
        proposed = bits(source, size)
        if proposed < bound:
            return proposed


def permutation(count: int, source: Source) -> NDArray[np.int64]:
    """Return 0 … count - 1 in a uniform order: sorted by random keys, which are drawn again when two are equal."""
    while True:
        keys = words(source, count, 8)
        order = np.argsort(keys, kind="stable")
        ranked = keys[order]
        if not np.any(ranked[1:] == ranked[:-1]):
            return order
