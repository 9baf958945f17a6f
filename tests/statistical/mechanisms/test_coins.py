"""Coins fall with exactly the stated probability, also where double precision cannot tell.

False alarms: each test calls `accept` once, so at most 1e-6 each over the choice of seeds, which are fixed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from tacit.mechanisms.exact_sampling import biased_coins, exponential_coin, exponential_coins
from tacit.mechanisms.randomness import RandomSource
from tacit.mechanisms.simulation import SeededSource
from tests.statistical.evidence import Refuted, accept, binomial_p
from tests.statistical.scripted import DigitsOf, Scripted

DRAWS = 200_000
EXPONENTS = [Fraction(1, 10**9), Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(30)]


def biased_heads(chance: Fraction, seed: int) -> int:
    return int(np.count_nonzero(biased_coins(chance, DRAWS, SeededSource(seed))))


def exponential_heads(exponent: Fraction, seed: int) -> int:
    exponents = np.full(DRAWS, float(exponent))
    return int(np.count_nonzero(exponential_coins(exponents, lambda _: exponent, SeededSource(seed))))


@pytest.mark.parametrize("chance", [Fraction(1, 3), Fraction(1, 2), Fraction(0.1), Fraction(999, 1000)])
def test_biased_coins_fall_with_their_chance(chance: Fraction) -> None:
    accept(binomial_p(biased_heads(chance, seed=1), DRAWS, float(chance)))


def test_a_chance_that_is_off_by_one_part_in_fifty_is_noticed() -> None:
    with pytest.raises(Refuted):
        accept(binomial_p(biased_heads(Fraction(51, 150), seed=2), DRAWS, 1 / 3))


@pytest.mark.parametrize(("chance", "heads"), [(0, 0), (1, DRAWS), (Fraction(1, 10**30), 0)])
def test_certain_coins_are_certain(chance: Fraction, heads: int) -> None:
    assert biased_heads(Fraction(chance), seed=3) == heads


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_exponential_coins_fall_with_e_to_the_minus_exponent(exponent: Fraction) -> None:
    accept(binomial_p(exponential_heads(exponent, seed=4), DRAWS, math.exp(-exponent)))


def test_exponential_coins_of_mixed_exponents_do_not_mix_them_up() -> None:
    exponents = np.tile([0.0, 0.5, 2.0, 100.0], DRAWS // 4)
    coins = exponential_coins(exponents, lambda index: Fraction(exponents[index]), SeededSource(5))
    assert coins[0::4].all()
    assert not coins[3::4].any()
    accept(binomial_p(int(np.count_nonzero(coins[1::4])), DRAWS // 4, math.exp(-0.5)))
    accept(binomial_p(int(np.count_nonzero(coins[2::4])), DRAWS // 4, math.exp(-2.0)))


def test_an_exponent_that_is_off_by_one_part_in_fifty_is_noticed() -> None:
    with pytest.raises(Refuted):
        accept(binomial_p(exponential_heads(Fraction(51, 50), seed=6), DRAWS, math.exp(-1)))


@pytest.mark.parametrize("exponent", [Fraction(1, 3), Fraction(2)])
def test_a_single_exponential_coin_has_the_same_law(exponent: Fraction) -> None:
    source = SeededSource(7)
    heads = sum(exponential_coin(float(exponent), lambda: exponent, source) for _ in range(20_000))
    accept(binomial_p(heads, 20_000, math.exp(-exponent)))


DEPTHS = [1, 8, 15, 16, 17, 30, 47, 48, 49, 52, 53, 54, 63, 64, 65, 80, 112, 128, 129, 200, 300]
"""After how many binary digits a uniform number first differs from the chance with which it is compared."""

CHANCES = [
    Fraction(1, 3),
    Fraction(2, 7),
    Fraction(0.1),
    Fraction(1, 10**9),
    Fraction(1, 2**70),
    1 - Fraction(1, 2**90),
]


def check_edge(coin: Callable[[RandomSource], bool], chance: Fraction) -> None:
    """Hold a coin to its chance with uniform numbers that lie ever closer to it, on both sides."""
    for depth in DEPTHS:
        for uniform in (chance - Fraction(1, 2**depth), chance + Fraction(1, 2**depth)):
            if 0 <= uniform < 1 and coin(DigitsOf(uniform)) is not (uniform < chance):
                raise Refuted(f"the coin fell wrongly for a number {float(uniform - chance):g} beside its chance")


def exp_negative_digits(exponent: Fraction) -> Fraction:
    """Return e^-exponent to 400 binary digits."""
    with mpmath.workprec(500):
        power = mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator)
        return Fraction(int(mpmath.floor(power * 2**400)), 2**400)


@pytest.mark.parametrize("chance", CHANCES)
def test_a_biased_coin_on_the_edge_is_decided_by_as_many_digits_as_it_takes(chance: Fraction) -> None:
    check_edge(lambda source: bool(biased_coins(chance, 1, source)[0]), chance)


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_exponential_coins_on_the_edge_are_decided_by_as_many_digits_as_it_takes(exponent: Fraction) -> None:
    def coin(source: RandomSource) -> bool:
        return bool(exponential_coins(np.array([float(exponent)]), lambda _: exponent, source)[0])

    check_edge(coin, exp_negative_digits(exponent))


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_a_single_exponential_coin_on_the_edge_is_decided_by_as_many_digits_as_it_takes(exponent: Fraction) -> None:
    check_edge(
        lambda source: exponential_coin(float(exponent), lambda: exponent, source), exp_negative_digits(exponent)
    )


def test_a_coin_that_stops_at_double_precision_is_noticed() -> None:
    with pytest.raises(Refuted):
        check_edge(lambda source: int.from_bytes(source.read(8), "little") * 2.0**-64 < 1 / 3, Fraction(1, 3))


def test_the_exact_exponent_decides_where_its_double_is_off() -> None:
    exponent = Fraction(1)
    source = DigitsOf(exp_negative_digits(exponent) - Fraction(1, 2**60))
    assert exponential_coins(np.array([1.0 + 2**-45]), lambda _: exponent, source).tolist() == [True]


def test_a_vector_reads_on_only_for_the_coins_that_are_undecided() -> None:
    third = 2**64 // 3
    source = Scripted([[third - 1, third, third + 1, 0], [third - 1]])
    assert biased_coins(Fraction(1, 3), 4, source).tolist() == [True, True, False, True]
    assert source.used_up
