"""The double-precision filter never decides what it should not, and integers decide the rest rightly."""

from fractions import Fraction

import numpy as np
import pytest

from tacit.mechanisms.categorical import UNDECIDED, CategoricalSampler, weights_of
from tacit.mechanisms.integer_sampler import IntegerSampler
from tacit.mechanisms.laws import GaussianLaw, LaplaceLaw, Law
from tacit.mechanisms.randomness import SYSTEM

LAWS = [
    LaplaceLaw(Fraction(1, 10**6)),
    LaplaceLaw(Fraction(1, 3)),
    LaplaceLaw(Fraction(10)),
    LaplaceLaw(Fraction(1) / Fraction(0.1)),
    LaplaceLaw(Fraction(255)),
    LaplaceLaw(Fraction(10**12) + Fraction(1, 7)),
    GaussianLaw(Fraction(1, 100)),
    GaussianLaw(Fraction(100)),
    GaussianLaw(Fraction(10) ** 24),
]


class Script:
    """A source that plays back given numbers, each as eight bytes, and then zeros or ones."""

    simulated = True

    def __init__(self, *numbers: int, then: int = 0) -> None:
        self._bytes = b"".join(number.to_bytes(8, "little") for number in numbers)
        self._then = bytes([then])

    def read(self, size: int) -> bytes:
        taken, self._bytes = self._bytes[:size], self._bytes[size:]
        return taken + self._then * (size - len(taken))


def exact_upper_bounds(sampler: IntegerSampler, precision: int = 256) -> list[Fraction]:
    weights = sampler._blocks._weights(precision)
    total = sum(weight.low for weight in weights.items)
    bounds, sum_ = [], 0
    for weight in weights.items:
        sum_ += weight.low
        bounds.append(Fraction(sum_, total))
    return bounds


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_cumulative_weights_are_off_by_less_than_an_eighth_of_the_margin(law: Law) -> None:
    chooser = IntegerSampler(law)._blocks
    exact = exact_upper_bounds(IntegerSampler(law))
    worst = max(
        abs(int(bound) - min(truth * 2**64, Fraction(2**64)))
        for bound, truth in zip(chooser._upper, exact, strict=False)
    )
    assert worst * 8 <= chooser._margin


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_every_decided_cell_of_the_table_lies_within_one_item(law: Law) -> None:
    chooser = IntegerSampler(law)._blocks
    exact = exact_upper_bounds(IntegerSampler(law))
    table = chooser._table
    lows = np.array([float(bound) for bound in [Fraction(0), *exact]])
    decided = np.flatnonzero(table != UNDECIDED)
    assert decided.size > 30_000
    for cell in decided[:: max(1, decided.size // 400)]:
        item = int(table[cell])
        assert lows[item] * 2**16 <= cell
        assert cell + 1 <= float(exact[item]) * 2**16


def test_a_number_on_the_border_is_decided_by_the_bits_that_follow() -> None:
    """Two items of weight 1/2: the border is 2^63, and the first 64 bits of a number there leave nothing open."""
    chooser = CategoricalSampler(np.array([0.0, 0.0]), weights_of(lambda: [Fraction(0), Fraction(0)]))
    assert chooser.draw_one(Script(2**63 - 1, then=0xFF)) == 0
    assert chooser.draw_one(Script(2**63, then=0)) == 1


def test_an_irrational_border_is_found_to_many_more_bits_than_a_double_has() -> None:
    exponents = [Fraction(0), Fraction(1)]
    chooser = CategoricalSampler(np.array([0.0, 1.0]), weights_of(lambda: exponents))
    with_bits = chooser._weights(400)
    share = with_bits.items[0].low * 2**200 // (with_bits.items[0].low + with_bits.items[1].low)
    first, rest = share >> 136, share & (2**136 - 1)
    below = Script(first, *_words(rest - 2**20, 136))
    above = Script(first, *_words(rest + 2**20, 136))
    assert chooser.draw_one(below) == 0
    assert chooser.draw_one(above) == 1


def _words(number: int, bits: int) -> list[int]:
    """Cut a number into the words of 32 bits that the chooser asks for, as playback of 4 bytes each, two a word."""
    pieces = [number >> shift & 0xFFFFFFFF for shift in range(bits - 32, -32, -32) if shift >= 0]
    joined = b"".join(piece.to_bytes(4, "little") for piece in pieces)
    joined += b"\0" * (-len(joined) % 8)
    return [int.from_bytes(joined[start : start + 8], "little") for start in range(0, len(joined), 8)]


def test_the_tail_beyond_the_table_is_reached() -> None:
    """All ones for 128 bits lie beyond the 64 bits of the table; the exact path finds an integer far out."""
    far = IntegerSampler(LaplaceLaw(Fraction(10))).draw_one(Script(2**64 - 1, 2**64 - 1, then=0))
    assert 440 < abs(far) < 1200


@pytest.mark.parametrize("size", [1, 2, 5000])
def test_long_and_short_vectors_and_single_draws_have_the_same_items(size: int) -> None:
    law = LaplaceLaw(Fraction(3))
    drawn = IntegerSampler(law).draw(size, Script(then=0x55))
    assert set(drawn.tolist()) == {IntegerSampler(law).draw_one(Script(then=0x55))}


def test_a_choice_among_one_candidate_is_that_candidate() -> None:
    assert CategoricalSampler(np.array([0.0]), weights_of(lambda: [Fraction(0)])).draw_one(SYSTEM) == 0
