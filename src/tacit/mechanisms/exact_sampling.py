"""Exact random draws: uniform integers, permutations, and coins (Bernoulli draws) of probability p or e^-x.

Promise:
- `exp_negative` returns two integers that enclose the real number times 2^bits. No floating point is used, so it
  decides whatever double precision leaves undecided.
- Uniform integers and permutations, by rejection: every value, or every order, is equally likely. How often a draw is
  repeated depends on the public bound and on the rejected bits alone.
- Coins are true with exactly the stated probability. As in `categorical`, a uniform number is drawn only as far as is
  needed: double precision decides where it lies clearly on one side, integer arithmetic does the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms.randomness import RandomSource, Words, bits, words

_GUARD_BITS: Final = 64


class Enclosure(NamedTuple):
    """Two integers that enclose a real number times 2^bits."""

    low: int
    high: int

    def times(self, other: Enclosure, bits: int) -> Enclosure:
        """Return an enclosure of the product of two numbers of at least 0, all of them times 2^bits."""
        return Enclosure(self.low * other.low >> bits, -(-self.high * other.high >> bits))


def exp_negative(exponent: Fraction, bits: int) -> Enclosure:
    """Return an enclosure of e^-exponent times 2^bits for an exponent of at least 0.

    The exponent is halved until it is below 2^-8, its exponential summed as a Taylor series, and squared back. Every
    floor loses less than one unit at bits + 64; at most 2^40 units are lost in all for up to 2^14 bits.
    """
    if exponent == 0:
        return Enclosure(1 << bits, 1 << bits)
    if exponent >= bits + 1:  # e^-x <= 2^-x
        return Enclosure(0, 1)
    precision = bits + _GUARD_BITS
    halvings = max(0, (exponent.numerator // exponent.denominator).bit_length() + 8)
    argument = (exponent.numerator << precision) // (exponent.denominator << halvings)
    term = total = 1 << precision
    index = 1
    while term:
        term = (term * argument >> precision) // index
        total += -term if index & 1 else term
        index += 1
    for _ in range(halvings):
        total = total * total >> precision
    rounded = total >> _GUARD_BITS
    return Enclosure(max(0, rounded - 1), min(1 << bits, rounded + 2))


def integers_below(bound: int, count: int, source: RandomSource) -> NDArray[np.int64]:
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


def permutation(count: int, source: RandomSource) -> NDArray[np.int64]:
    """Return 0 … count - 1 in a uniform random order: sorted by random keys, drawn again if two are equal."""
    while True:
        keys = words(source, count, 8)
        order = np.argsort(keys, kind="stable")
        ranked = keys[order]
        if not np.any(ranked[1:] == ranked[:-1]):
            return order


SLACK: Final = 2.0**-36
"""A bound on the error of a double e^-x, many times the actual one for any x below 50; beyond, both are below 2^-72."""


def exponential_coins(
    exponents: NDArray[np.float64], exact_exponent: Callable[[int], Fraction], source: RandomSource
) -> NDArray[np.bool_]:
    """Return one coin for each exponent x of at least 0, true with probability e^-x."""
    return fall_below_exponentials(words(source, exponents.size, 2), 16, exponents, exact_exponent, source)


def fall_below_exponentials(
    prefixes: Words,
    prefix_bits: int,
    exponents: NDArray[np.float64],
    exact_exponent: Callable[[int], Fraction],
    source: RandomSource,
) -> NDArray[np.bool_]:
    """Return whether uniform numbers, whose first bits are given, fall below e^-exponent."""
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
            happened[index] = _falls_below_exponential(exact_exponent(index), number, prefix_bits + 32, source)
    return happened


def exponential_coin(exponent: float, exact_exponent: Callable[[], Fraction], source: RandomSource) -> bool:
    """Return one coin that is true with probability e^-exponent, without the cost of arrays."""
    prefix = bits(source, 48)
    start, chance = prefix * 2.0**-48, math.exp(-exponent)
    if start + 2 * SLACK <= chance:
        return True
    if start >= chance + SLACK:
        return False
    return _falls_below_exponential(exact_exponent(), prefix, 48, source)


def biased_coins(chance: Fraction, count: int, source: RandomSource) -> NDArray[np.bool_]:
    """Return `count` independent coins that are true with the rational probability `chance`."""
    if chance == 1:
        return np.ones(count, dtype=np.bool_)
    scaled = np.uint64(chance.numerator * 2**64 // chance.denominator)
    numbers = words(source, count, 8)
    happened: NDArray[np.bool_] = numbers < scaled
    for index in np.flatnonzero(numbers == scaled):
        happened[index] = _falls_below_rational(chance, int(scaled), 64, source)
    return happened


def _falls_below_rational(chance: Fraction, number: int, number_bits: int, source: RandomSource) -> bool:
    """Return whether a uniform number, whose first bits are given, falls below a rational."""
    while True:
        scaled = chance.numerator << number_bits
        if (number + 1) * chance.denominator <= scaled:
            return True
        if number * chance.denominator >= scaled:
            return False
        number, number_bits = number << 64 | bits(source, 64), number_bits + 64


def _falls_below_exponential(exponent: Fraction, number: int, number_bits: int, source: RandomSource) -> bool:
    """Return whether a uniform number, whose first bits are given, falls below e^-exponent."""
    while True:
        chance = exp_negative(exponent, number_bits)
        if number + 1 <= chance.low:
            return True
        if number >= chance.high:
            return False
        number, number_bits = number << 64 | bits(source, 64), number_bits + 64
