"""Exact coins: events of probability p or e^-x, in vectors.

Promise: every entry is true with exactly the stated probability. As in `wheel`, a uniform number is drawn only as far
as is needed: double precision decides where it lies clearly on one side, integer arithmetic does the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms.enclosures import exp_negative
from tacit.mechanisms.randomness import Source, Words, bits, words

SLACK: Final = 2.0**-36
"""How far a double e^-x may be off, many times more than it is for any x below 50; beyond, both are below 2^-72."""


def exponential_coins(
    exponents: NDArray[np.float64], exact_exponent: Callable[[int], Fraction], source: Source
) -> NDArray[np.bool_]:
    """Return for each exponent x of at least 0 whether an event of probability e^-x happened."""
    return settled(words(source, exponents.size, 2), 16, exponents, exact_exponent, source)


def settled(
    prefixes: Words,
    prefix_bits: int,
    exponents: NDArray[np.float64],
    exact_exponent: Callable[[int], Fraction],
    source: Source,
) -> NDArray[np.bool_]:
    """Return whether uniform numbers, of which the first bits are given, fall below e^-exponent."""
    width = 2.0**-prefix_bits
    starts, chances = prefixes * width, np.exp(-exponents)
    happened: NDArray[np.bool_] = starts + (width + SLACK) <= chances
    close = np.flatnonzero(~happened & (starts < chances + SLACK))
    for index, more in zip(close.tolist(), words(source, close.size, 4).tolist(), strict=True):
        start, chance = (int(prefixes[index]) << 32 | more) * width * 2.0**-32, chances[index]
        if start + 2 * SLACK <= chance or start >= chance + SLACK:
            happened[index] = start < chance
        else:
            number = int(prefixes[index]) << 32 | more
            happened[index] = _decide(exact_exponent(index), number, prefix_bits + 32, source)
    return happened


def exponential_coin(exponent: float, exact_exponent: Callable[[], Fraction], source: Source) -> bool:
    """Return whether one event of probability e^-exponent happened; `exponential_coins` without the cost of arrays."""
    prefix = bits(source, 48)
    start, chance = prefix * 2.0**-48, math.exp(-exponent)
    if start + 2 * SLACK <= chance:
        return True
    if start >= chance + SLACK:
        return False
    return _decide(exact_exponent(), prefix, 48, source)


def biased_coins(chance: Fraction, count: int, source: Source) -> NDArray[np.bool_]:
    """Return `count` independent coins that are true with the rational probability `chance`."""
    if chance == 1:
        return np.ones(count, dtype=np.bool_)
    scaled = np.uint64(chance.numerator * 2**64 // chance.denominator)
    numbers = words(source, count, 8)
    happened: NDArray[np.bool_] = numbers < scaled
    for index in np.flatnonzero(numbers == scaled):
        happened[index] = _falls_below(chance, int(scaled), 64, source)
    return happened


def _falls_below(chance: Fraction, number: int, number_bits: int, source: Source) -> bool:
    """Compare a uniform number, of which the first bits are known, with a rational."""
    while True:
        scaled = chance.numerator << number_bits
        if (number + 1) * chance.denominator <= scaled:
            return True
        if number * chance.denominator >= scaled:
            return False
        number, number_bits = number << 64 | bits(source, 64), number_bits + 64


def _decide(exponent: Fraction, number: int, number_bits: int, source: Source) -> bool:
    """Compare a uniform number, of which the first bits are known, with e^-exponent."""
    while True:
        chance = exp_negative(exponent, number_bits)
        if number + 1 <= chance.low:
            return True
        if number >= chance.high:
            return False
        number, number_bits = number << 64 | bits(source, 64), number_bits + 64
