"""The sampler's proposals, without drawing: every integer is proposed once, and weighs what the law says.

On both sides of every change of the block size up to 2^12, and at wide ones. That a coin with a given exponent is
exact is the business of `test_coins`, that items are chosen by their weights that of `test_categorical`.
"""

from fractions import Fraction
from itertools import pairwise
from typing import Any

import mpmath
import numpy as np
import pytest

from tacit.mechanisms import integer_sampler
from tacit.mechanisms.integer_sampler import IntegerSampler
from tacit.mechanisms.laws import GaussianLaw, LaplaceLaw
from tacit.mechanisms.randomness import SYSTEM

BELOW = 1 - Fraction(1, 2**30)
SCALES = [Fraction(1, 3), Fraction(3), *(2**power * side for power in range(7, 13) for side in (BELOW, 1)), 2**45]
LAWS: list[Any] = [law for scale in map(Fraction, SCALES) for law in (LaplaceLaw(scale), GaussianLaw(scale**2))]


def offsets_of(law: Any) -> list[int]:
    """All offsets within a block, or those at its ends and in its middle where they are many."""
    width = 1 << law.block_bits
    some = {0, 1, 2, width // 2 - 1, width // 2, width - 2, width - 1}
    return list(range(width)) if width <= 64 else sorted(some)


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_every_integer_is_proposed_once_with_the_weight_of_the_law(law: Any, monkeypatch: Any) -> None:
    sampler, offsets, blocks = IntegerSampler(law), offsets_of(law), 4
    enclosed = sampler._block_weights(96).items
    rises: list[Fraction] = []

    def kept(_: float, exact_rise: Any, __: Any) -> bool:
        rises.append(exact_rise())
        return True

    monkeypatch.setattr(integer_sampler, "exponential_coin", kept)
    proposed = []
    for block in range(blocks):
        for offset in offsets:
            monkeypatch.setattr(sampler._blocks, "draw_one", lambda _, block=block: block)
            monkeypatch.setattr(integer_sampler, "bits", lambda _, __, offset=offset: offset)
            rises.clear()
            drawn = sampler.draw_one(SYSTEM)
            proposed.append(drawn)
            weight = enclosed[block]
            with mpmath.workprec(200):
                exponent = law.exponent(abs(drawn)) - sum(rises, Fraction(0))
                exact = mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator) * 2**96
            assert weight.low <= exact <= weight.high
    width = 1 << law.block_bits
    expected = {start + offset for start in range(0, blocks // 2 * width, width) for offset in offsets}
    expected |= {-1 - number for number in expected}
    assert len(proposed) == len(set(proposed))
    assert set(proposed) == expected
    if width <= 64:
        assert all(second - first == 1 for first, second in pairwise(sorted(proposed)))


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_vectors_propose_what_single_draws_do_and_keep_without_a_coin_only_what_is_surely_kept(
    law: Any, monkeypatch: Any
) -> None:
    sampler, offsets = IntegerSampler(law), offsets_of(law)
    last = (1 << law.block_bits) - 1
    blocks = np.repeat(np.arange(4), len(offsets))
    away = np.tile(np.array(offsets, dtype=np.int64), 4)  # from zero; places are counted from the lowest integer
    places = np.where(blocks & 1, last - away, away)
    rises: list[Fraction] = []

    def settled(prefixes: Any, _: int, doubles: Any, exact_rise: Any, __: Any) -> Any:
        rises.extend(exact_rise(index) for index in range(len(prefixes)))
        assert doubles == pytest.approx([float(rise) for rise in rises], rel=1e-12, abs=1e-300)
        return np.ones(len(prefixes), dtype=bool)

    monkeypatch.setattr(sampler._blocks, "draw", lambda *_: blocks)
    monkeypatch.setattr(sampler, "_places", lambda *_: (places, np.full(len(places), 2**16 - 1, dtype=np.uint16)))
    monkeypatch.setattr(integer_sampler, "fall_below_exponentials", settled)
    vector = sampler._draw_chunk(len(blocks), SYSTEM).tolist()
    innermost = sampler._innermost(blocks).tolist()
    if law.block_bits:
        expected = [
            law.exponent(abs(one)) - law.exponent(abs(inner)) for one, inner in zip(vector, innermost, strict=True)
        ]
        assert rises == expected
    monkeypatch.setattr(integer_sampler, "exponential_coin", lambda *_: True)
    for block, offset, drawn in zip(blocks.tolist(), away.tolist(), vector, strict=True):
        monkeypatch.setattr(sampler._blocks, "draw_one", lambda _, block=block: block)
        monkeypatch.setattr(integer_sampler, "bits", lambda _, __, offset=offset: offset)
        assert sampler.draw_one(SYSTEM) == drawn
    if law.block_bits:
        sure_of = sampler._surely_kept[:200].tolist()
        for inner, sure in zip(sampler._innermost(np.arange(len(sure_of))).tolist(), sure_of, strict=True):
            rise = law.exponent(abs(inner) + last) - law.exponent(abs(inner))
            assert sure <= mpmath.exp(-mpmath.mpf(rise.numerator) / rise.denominator) * 2**sampler._prefix_bits
