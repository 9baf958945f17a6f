"""Exact sampling of integers from a law of any scale, in vectors of any length.

Promise: the integer x is drawn with probability e^-exponent(|x|) / sum_y e^-exponent(|y|), exactly.
A block of 2^b neighbouring integers is chosen with the weight of its innermost integer (`categorical`), an integer of
the block uniformly, and it is kept with probability e^-(exponent - innermost exponent) (rejection sampling; von Neumann
1951); a bound over the whole block settles most of these coins. With b = 0, for scales below 256, there is nothing to
reject. How often a proposal was rejected is independent of the integer that was kept, so the time of a draw tells
nothing of it.
Block i is on the side of i's lowest bit: 0, 2, 4, … from 0 upwards, 1, 3, 5, … from -1 downwards.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms.categorical import CategoricalSampler, Weights
from tacit.mechanisms.exact_sampling import Enclosure, exp_negative, exponential_coin, fall_below_exponentials
from tacit.mechanisms.laws import Law
from tacit.mechanisms.randomness import RandomSource, Words, bits, words

LIKELY_EXPONENT: Final = 50
"""Blocks beyond this exponent are left to the exact path: their weight, below 2^-72 each, is far inside the margin."""

CHUNK: Final = 1 << 15
"""Longer vectors are drawn in chunks that fit into the processor's cache."""


class IntegerSampler:
    """A sampler of one law; expensive to build, so use `sampler_for`."""

    def __init__(self, law: Law) -> None:
        self._law = law
        self._block_bits = law.block_bits
        blocks = (law.reach(LIKELY_EXPONENT) >> self._block_bits) + 1
        innermost = self._innermost(np.arange(2 * blocks))
        magnitudes = np.abs(innermost).astype(np.float64)
        with np.errstate(over="ignore"):  # an infinite exponent is a weight of zero, as it should be
            exponents = law.exponents(magnitudes)
            rises = law.rises(magnitudes, np.full_like(magnitudes, 2.0**self._block_bits))
            surely_kept = np.maximum(0, (1 - rises) * 2.0**self._prefix_bits - 2)
        self._blocks = CategoricalSampler(exponents, self._block_weights)
        self._likely_lowest = self._lowest(innermost)
        self._surely_kept = surely_kept.astype(np.uint16)

    def draw(self, count: int, source: RandomSource) -> NDArray[np.int64]:
        """Return `count` independent integers of the law."""
        if 0 < count <= CHUNK:
            return self._draw_chunk(count, source)
        drawn = np.empty(count, dtype=np.int64)
        for start in range(0, count, CHUNK):
            part = drawn[start : start + CHUNK]
            part[:] = self._draw_chunk(part.size, source)
        return drawn

    def draw_one(self, source: RandomSource) -> int:
        """Return one integer of the law, as `draw` does without the cost of arrays."""
        while True:
            block = self._blocks.draw_one(source)
            negative, start = block & 1, block >> 1 << self._block_bits
            if not self._block_bits:
                return ~start if negative else start
            offset = bits(source, self._block_bits)
            inner = start + 1 if negative else start
            rise = float(self._law.rises(float(inner), float(offset)))

            def exact_rise(inner: int = inner, offset: int = offset) -> Fraction:
                return self._law.exponent(inner + offset) - self._law.exponent(inner)

            if exponential_coin(rise, exact_rise, source):
                return ~(start + offset) if negative else start + offset

    def _draw_chunk(self, count: int, source: RandomSource) -> NDArray[np.int64]:
        blocks = self._blocks.draw(count, source)
        within = int(blocks.max()) < len(self._likely_lowest)
        drawn = self._likely_lowest.take(blocks) if within else self._lowest(self._innermost(blocks))
        if not self._block_bits:
            return drawn
        places, prefixes = self._places(count, source)
        unsure = np.flatnonzero(prefixes >= self._surely_kept.take(blocks)) if within else np.arange(count)
        kept = self._accept(drawn[unsure], places[unsure].astype(np.int64), prefixes[unsure], source)
        np.add(drawn, places, out=drawn, casting="unsafe")  # places are below 2^50
        rejected = unsure[~kept]
        if rejected.size:
            drawn[rejected] = self._draw_chunk(rejected.size, source)
        return drawn

    def _innermost(self, blocks: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return each block's integer nearest to zero."""
        return (blocks >> 1 << self._block_bits) ^ -(blocks & 1)

    def _lowest(self, innermost: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the least integer of each block, from the one nearest to zero."""
        return np.where(innermost < 0, innermost - (self._width - 1), innermost)

    @property
    def _width(self) -> int:
        return 1 << self._block_bits

    @property
    def _prefix_bits(self) -> int:
        """The number of bits of the acceptance coin that are drawn at once: the unused bits of a word, or 16."""
        return min(16, 32 - self._block_bits) if self._block_bits <= 24 else 16

    def _places(self, count: int, source: RandomSource) -> tuple[Words, Words]:
        """Return uniform places within a block, counted from its lowest integer, and the first bits of the coins."""
        if self._block_bits <= 24:
            word = words(source, count, 4)
            coins = word & np.uint32(2**self._prefix_bits - 1)
            return word >> np.uint32(32 - self._block_bits), coins
        width = 4 if self._block_bits <= 32 else 8
        word = words(source, count, width)
        return word >> word.dtype.type(8 * width - self._block_bits), words(source, count, 2)

    def _accept(
        self, lowest: NDArray[np.int64], places: NDArray[np.int64], prefixes: Words, source: RandomSource
    ) -> NDArray[np.bool_]:
        """Return which integers are kept: those whose coin, with the given first bits, falls below e^-rise."""
        last = self._width - 1
        magnitudes = np.where(lowest < 0, -(lowest + last), lowest)
        offsets = np.where(lowest < 0, last - places, places)

        def exact_rise(index: int) -> Fraction:
            start, offset = int(magnitudes[index]), int(offsets[index])
            return self._law.exponent(start + offset) - self._law.exponent(start)

        rises = self._law.rises(magnitudes.astype(np.float64), offsets.astype(np.float64))
        return fall_below_exponentials(prefixes, self._prefix_bits, rises, exact_rise, source)

    def _block_weights(self, precision: int) -> Weights:
        """Return enclosures of the blocks' weights at `precision` bits, and a bound on the rest.

        Beyond reach r the exponent is above `precision` and, being convex, grows on by at least
        exponent(r) / r a step; so the rest is below a geometric series, times two for the two sides.
        """
        reach = self._law.reach(precision)
        count = (reach >> self._block_bits) + 2
        slope = self._law.exponent(reach) / reach * (1 << self._block_bits)
        rest = math.ceil(1 + 1 / slope) + 1
        upward = self._side_weights(0, count, precision)
        downward = self._side_weights(1, count, precision)
        return Weights([weight for pair in zip(upward, downward, strict=True) for weight in pair], 2 * rest)

    def _side_weights(self, innermost: int, count: int, precision: int) -> list[Enclosure]:
        """Return enclosures of the weights of `count` blocks outwards from `innermost`.

        Exponents are quadratic, so ratios of neighbouring weights form a geometric progression (`bend`).
        """
        width = 1 << self._block_bits
        first, second, third = (self._law.exponent(innermost + step * width) for step in range(3))
        weight = exp_negative(first, precision)
        ratio = exp_negative(second - first, precision)
        bend = exp_negative(third - 2 * second + first, precision)
        weights: list[Enclosure] = []
        for _ in range(count):
            weights.append(weight)
            weight, ratio = weight.times(ratio, precision), ratio.times(bend, precision)
        return weights


@lru_cache(maxsize=64)
def sampler_for(law: Law) -> IntegerSampler:
    """Return the sampler of a law, from a cache."""
    return IntegerSampler(law)
