"""Exact categorical sampling with weights e^-exponent: a double-precision filter, and integers where it cannot decide.

Promise: item i is drawn with probability e^-exponent_i / sum_j e^-exponent_j, exactly. A uniform real number is drawn
bit by bit, as far as is needed to see between which two cumulative weights it falls:

1. The first 64 bits are compared with cumulative weights: doubles, scaled and added up as integers. IEEE arithmetic
   with an exponential good to 16 units in the last place puts them off by less than 2^-46 (the mean of
   exponent * 2^-50 over the items, and 2^-49) and 2^-63 an item. A number further than eight times that from every
   cumulative weight is decided.
2. The sliver that is not (one draw in many millions) is decided by integer arithmetic (`exact_sampling`) with as many
   more random bits as it takes. Nothing is rounded away, not even the infinite tail.

Long vectors first look up 16 of the 64 bits in a table of the cells that lie within one item.
The time of a draw depends on the weights, which are public or of a public number, and on the sliver alone.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms.exact_sampling import Enclosure, exp_negative
from tacit.mechanisms.randomness import RandomSource, bits, words

CELL_BITS: Final = 16
TABLE_PAYS_FROM: Final = 4096
UNDECIDED: Final = -1
_LAST: Final = 2**64 - 1


class Weights(NamedTuple):
    """Enclosures of the weights of items 0, 1, …, and a bound on all the weights after them, times 2^bits."""

    items: Sequence[Enclosure]
    rest: int


class CategoricalSampler:
    """A sampler of items 0 … n - 1, or of infinitely many items of which n are likely."""

    def __init__(self, exponents: NDArray[np.float64], weights: Callable[[int], Weights]) -> None:
        """Build from the likely items' exponents, and a function from a precision in bits to all items' weights."""
        likely = np.exp(-exponents)
        shares = np.rint(likely * (2.0**63 / likely.sum())).astype(np.uint64)
        self._weights = weights
        self._margin = (1 << 21) + (len(exponents) << 4)
        self._upper = np.minimum(np.cumsum(shares), np.uint64(2**63 - 1)) << np.uint64(1)

    def draw(self, count: int, source: RandomSource) -> NDArray[np.int64]:
        """Return `count` independent items."""
        if count < TABLE_PAYS_FROM:
            return self._decide(words(source, count, 8).astype(np.uint64), source)
        cells = words(source, count, 2)
        drawn = self._table.take(cells).astype(np.int64)
        open_ = np.flatnonzero(drawn == UNDECIDED)
        if open_.size:
            rest = words(source, open_.size, 8).astype(np.uint64) >> np.uint64(CELL_BITS)
            prefix = cells[open_].astype(np.uint64) << np.uint64(64 - CELL_BITS)
            drawn[open_] = self._decide(prefix | rest, source)
        return drawn

    def draw_one(self, source: RandomSource) -> int:
        """Return one item, as `draw` does without the cost of arrays."""
        number = bits(source, 64)
        upper = self._upper_list
        item = bisect_right(upper, number)
        below = number - upper[item - 1] if item else number + self._margin
        above = upper[item] - number if item < len(upper) else 0
        return item if below >= self._margin and above >= self._margin else self._decide_exactly(number, source)

    def _decide(self, numbers: NDArray[np.uint64], source: RandomSource) -> NDArray[np.int64]:
        upper, margin = self._upper, np.uint64(self._margin)
        items = np.searchsorted(upper, numbers, side="right")
        inside = np.minimum(items, len(upper) - 1)
        below = np.where(items > 0, numbers - upper[np.maximum(items, 1) - 1], margin)
        above = np.where(items < len(upper), upper[inside] - numbers, np.uint64(0))
        for index in np.flatnonzero((below < margin) | (above < margin)):
            items[index] = self._decide_exactly(int(numbers[index]), source)
        return items

    def _decide_exactly(self, number: int, source: RandomSource) -> int:
        """Return the item of a 64-bit number by integer arithmetic, with as many further random bits as it takes."""
        number_bits = 64
        while True:
            number = number << 32 | bits(source, 32)
            number_bits += 32
            item = _find_item(number, number_bits, self._weights(number_bits + 64))
            if item is not None:
                return item

    @cached_property
    def _upper_list(self) -> list[int]:
        return [int(bound) for bound in self._upper]

    @cached_property
    def _table(self) -> NDArray[np.signedinteger[Any]]:
        """For each value of the first 16 bits: the item that they decide, or UNDECIDED."""
        shift, margin = np.uint64(64 - CELL_BITS), np.uint64(self._margin)
        low = np.where(self._upper > margin, self._upper - margin, np.uint64(0))
        first = (low >> shift).astype(np.int64)
        last = (np.minimum(self._upper, np.uint64(_LAST) - margin) + margin >> shift).astype(np.int64)
        starts = np.concatenate([[0], np.minimum(last + 1, 1 << CELL_BITS), [1 << CELL_BITS]])
        dtype: type[np.signedinteger[Any]] = np.int16 if len(self._upper) < 2**15 else np.int32
        table: NDArray[np.signedinteger[Any]] = np.repeat(np.arange(len(starts) - 1, dtype=dtype), np.diff(starts))
        table[first] = UNDECIDED
        table[last] = UNDECIDED
        table[-1] = UNDECIDED
        return table


def _find_item(number: int, number_bits: int, weights: Weights) -> int | None:
    """Return the item whose share contains [number, number + 1] / 2^number_bits, or None if that is not certain."""
    total_low = sum(weight.low for weight in weights.items)
    total_high = sum(weight.high for weight in weights.items) + weights.rest
    start, end = number * total_low, (number + 1) * total_high
    below_high = upto_low = 0
    for item, weight in enumerate(weights.items):
        upto_low += weight.low
        if end <= upto_low << number_bits:
            return item if start >= below_high << number_bits else None
        below_high += weight.high
    return None


def weights_of(exponents: Callable[[], Sequence[Fraction]]) -> Callable[[int], Weights]:
    """Return a function for the weights of a finite list of exact exponents, which is read only when needed."""
    return lambda bits_: Weights([exp_negative(exponent, bits_) for exponent in exponents()], 0)
