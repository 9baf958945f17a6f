"""Sparse vector: exact probabilities of answer patterns, held to epsilon between neighbours and to what is drawn.

The probability of a pattern is a sum over every noisy threshold on the lattice; no draws are needed to see whether the
promise holds. False alarms: each test calls `accept` once, so at most 1e-6 each over the choice of seeds, which are
fixed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.mechanisms import AboveThreshold, SparseVector
from tacit.mechanisms.simulation import SeededSource, is_simulated
from tacit.privacy.errors import Exhausted
from tests.statistical.evidence import Refuted, accept, binomial_p, chi_square_p
from tests.statistical.exact_laws import laplace_at_most, laplace_mass, require_pure

DRAWS = 3_000
MODERATE = (0, 3, -2)
ABOVE, BELOW = True, False
Pattern = tuple[bool, ...]


class NoThresholdNoise(SparseVector):
    """Wrong: the threshold is compared as it is (next to no noise, so that the same code runs)."""

    @property
    def _scales(self) -> tuple[Fraction, Fraction]:
        return Fraction(1, 100), SparseVector._scales.fget(self)[1]  # type: ignore[attr-defined]


class NoiseNotGrownWithPositives(SparseVector):
    """Wrong: the questions' noise does not grow with the number of positive answers."""

    @property
    def _scales(self) -> tuple[Fraction, Fraction]:
        first, second = SparseVector._scales.fget(self)  # type: ignore[attr-defined]
        return first, second / self.positives


class NoiseNotDoubled(SparseVector):
    """Wrong: the questions' noise leaves out that threshold and value can move towards each other."""

    @property
    def _scales(self) -> tuple[Fraction, Fraction]:
        first, second = SparseVector._scales.fget(self)  # type: ignore[attr-defined]
        return first, second / 2


def patterns(questions: int, positives: int) -> list[Pattern]:
    """Return every series of answers that a session can give to this many questions."""
    found = set()
    for answers in product((ABOVE, BELOW), repeat=questions):
        ends = [place for place in range(questions) if sum(answers[: place + 1]) == positives]
        found.add(answers[: ends[0] + 1] if ends else answers)
    return sorted(found)


@lru_cache(maxsize=4)
def lattice(scale: Fraction, reach: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    size = int(30 * scale) + reach
    thresholds = np.arange(-size, size + 1)
    return thresholds, laplace_mass(thresholds, scale)


@lru_cache(maxsize=24)
def answered_below(mechanism: SparseVector, steps: int, reach: int) -> NDArray[np.float64]:
    """Return P(a value of `steps` above the threshold is answered "below") for each noise of the threshold."""
    threshold_scale, question_scale = mechanism._scales
    thresholds, _ = lattice(threshold_scale, reach)
    return laplace_at_most(thresholds - steps - 1, question_scale)


def pattern_law(mechanism: SparseVector, steps: Sequence[int], asked: Iterable[Pattern]) -> NDArray[np.float64]:
    """Return the probability of each pattern for values that lie `steps` above the threshold on the grid."""
    reach = 2 * max(abs(step) for step in steps)
    _, masses = lattice(mechanism._scales[0], reach)
    chances = []
    for pattern in asked:
        likely = masses
        for step, above in zip(steps, pattern, strict=False):
            below = answered_below(mechanism, step, reach)
            likely = likely * (1 - below if above else below)
        chances.append(likely.sum())
    return np.array(chances)


def check_draws(mechanism: SparseVector, law_of: SparseVector, seed: int) -> None:
    source = SeededSource(seed)
    values = [float(law_of.threshold) + value for value in MODERATE]
    counts = Counter(mechanism.release(values, source=source) for _ in range(DRAWS))
    asked = patterns(len(values), law_of.positives)
    assert set(counts) <= set(asked)
    steps = [round(value / law_of._grid.step) for value in MODERATE]
    accept(chi_square_p([counts[pattern] for pattern in asked], pattern_law(law_of, steps, asked)), "sparse vector")


def greatest_loss(
    mechanism: SparseVector, values: Sequence[int], asked: Sequence[Pattern], moves: Iterable[Sequence[int]]
) -> float:
    """Hold the laws of neighbours to epsilon; values and moves in sensitivities, each with one step for rounding."""
    apart = int(Fraction(mechanism.sensitivity) // mechanism._grid.step) + 1
    here = pattern_law(mechanism, [value * apart for value in values], asked)
    greatest = 0.0
    for move in moves:
        moved = [(value + change) * apart for value, change in zip(values, move, strict=True)]
        greatest = max(greatest, require_pure(here, pattern_law(mechanism, moved, asked), float(mechanism.epsilon)))
    return greatest


def all_moves(questions: int, *, monotonic: bool) -> list[tuple[int, ...]]:
    if not monotonic:
        return list(product((-1, 0, 1), repeat=questions))
    return list(product((0, 1), repeat=questions)) + list(product((0, -1), repeat=questions))


def loss_of_one_pattern(mechanism: SparseVector, pattern: Pattern, distance: int) -> float:
    """Hold one unlikely pattern to epsilon: all "below" lie far above the threshold, all "above" far below.

    The neighbours move every value further from its answer, or every value nearer to it.
    """
    values = [-distance if above else distance for above in pattern]
    away = [-1 if above else 1 for above in pattern]
    return greatest_loss(mechanism, values, [pattern], [away, [-move for move in away]])


@pytest.mark.parametrize(
    "mechanism",
    [SparseVector(1, 1, 5), SparseVector(2, 3, -1.5, positives=2), SparseVector(1, 2, 0, 2, monotonic=True)],
)
def test_patterns_of_answers_are_as_likely_as_worked_out(mechanism: SparseVector) -> None:
    check_draws(mechanism, mechanism, seed=1)


@pytest.mark.parametrize("planted", [NoThresholdNoise, NoiseNotGrownWithPositives, NoiseNotDoubled])
def test_wrong_noise_is_noticed_in_the_answers(planted: type[SparseVector]) -> None:
    with pytest.raises(Refuted):
        check_draws(planted(1, 1, 0, 2), SparseVector(1, 1, 0, 2), seed=2)


@pytest.mark.parametrize("monotonic", [False, True])
@pytest.mark.parametrize(("values", "positives"), [((0, 0, 0), 1), ((0, 4, -4), 2), ((6, -6, 2), 1), ((-3, -3, 5), 2)])
def test_neighbours_give_every_pattern_within_epsilon(values: tuple[int, ...], positives: int, monotonic: bool) -> None:
    mechanism = SparseVector(1, 1, 0, positives, monotonic)
    moves = all_moves(len(values), monotonic=monotonic)
    assert greatest_loss(mechanism, values, patterns(len(values), positives), moves) > 0.2


FAR = 20
THRESHOLD_PINNED = (BELOW, BELOW, BELOW, BELOW, ABOVE)
"""So many values above the threshold answered "below" that its noise must be large, and one below it that is above."""

FOUR_EACH = (BELOW, BELOW, BELOW, BELOW, ABOVE, ABOVE, ABOVE, ABOVE)


def test_the_promise_is_nearly_used_up_by_unlikely_answers() -> None:
    assert loss_of_one_pattern(SparseVector(1, 1, 0), THRESHOLD_PINNED, FAR) > 0.95
    assert loss_of_one_pattern(SparseVector(1, 1, 0, 4), FOUR_EACH, FAR) > 0.6
    assert loss_of_one_pattern(SparseVector(1, 1, 0), (BELOW,) * 5, FAR) > 0.3


@pytest.mark.parametrize(
    ("planted", "positives", "pattern"),
    [
        (NoThresholdNoise, 1, (BELOW,) * 5),
        (NoiseNotGrownWithPositives, 4, FOUR_EACH),
        (NoiseNotDoubled, 1, THRESHOLD_PINNED),
    ],
)
def test_each_published_wrong_variant_breaks_the_promise(
    planted: type[SparseVector], positives: int, pattern: Pattern
) -> None:
    with pytest.raises(Refuted):
        loss_of_one_pattern(planted(1, 1, 0, positives), pattern, FAR)


def test_answering_on_after_the_positive_that_was_paid_for_would_break_the_promise() -> None:
    with pytest.raises(Refuted):
        loss_of_one_pattern(SparseVector(1, 1, 0, positives=1), FOUR_EACH, FAR)


def test_a_session_ends_with_the_last_positive_answer_that_was_paid_for() -> None:
    session = SparseVector(1, 100, 0, positives=2).start(source=SeededSource(4))
    assert [session.ask(value) for value in (50, -50, 50)] == [True, False, True]
    assert session.exhausted
    with pytest.raises(Exhausted) as refused:
        session.ask(-50)
    assert refused.value.code == "T201"


def test_a_release_ends_early_and_never_reads_on() -> None:
    def values() -> Iterable[float]:
        yield from (-50, 50)
        raise AssertionError("a question was read after the last answer")

    answers = SparseVector(1, 100, 0).release(values(), source=SeededSource(5))
    assert answers == (False, True)
    assert is_simulated(answers)


def test_the_first_value_above_is_found_or_none() -> None:
    mechanism = AboveThreshold(1, 100, threshold=10)
    found = mechanism.first([0, 0, 20, 20], source=SeededSource(6))
    assert found == 2
    assert is_simulated(found)
    assert mechanism.first([0, 0, 0], source=SeededSource(7)) is None
    assert mechanism.first([], source=SeededSource(8)) is None


def test_values_outside_the_interval_are_answered_rightly_at_its_level() -> None:
    mechanism, source = SparseVector(1, 1, 7, positives=4), SeededSource(9)
    low, high = mechanism.interval(0.8, questions=4)
    truth = (True, False, True, False)
    values = [high if above else low for above in truth]
    right = sum(mechanism.release(values, source=source) == truth for _ in range(500))
    accept(binomial_p(min(right, 400), 500, 0.8), "right at the level")
