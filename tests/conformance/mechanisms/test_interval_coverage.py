"""Intervals cover at their level and are no wider than what is public, by the exact laws of the noise.

Where a law can be enumerated, the probability of what the interval covers is added up, and nothing can be a false
alarm. Randomized response has a file of its own.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from tacit.mechanisms import (
    ApproximateBounds,
    DiscreteGaussian,
    Exponential,
    ExponentialDensity,
    Gaussian,
    Geometric,
    InterquartileRange,
    KeySelection,
    Laplace,
    PermuteAndFlip,
    ReportNoisyMax,
    SmoothMedian,
    SmoothSensitivity,
    SparseVector,
    SubsampleAggregate,
    TopK,
)
from tacit.mechanisms.additive import Additive
from tacit.mechanisms.propose_test_release import _cell
from tacit.mechanisms.simulation import SeededSource
from tests.conformance.mechanisms.exact_masses import weights

LEVELS = (0.01, 0.3, 0.5, 0.9, 0.95, 0.999, 1 - 2**-40)
levels = pytest.mark.parametrize("level", LEVELS)

ADDITIVE: list[tuple[Additive, Any]] = [
    *((Geometric(1, epsilon), 0) for epsilon in (0.05, 0.5, 1, 3)),
    (Geometric(3, 0.7), np.zeros(2, dtype=np.int64)),
    (Laplace(1, 0.3), 0),
    (Laplace(1.0, 1), 0.0),
    (Laplace(1.0, 1, grid=1 / 64), np.zeros(5)),
    (Laplace(1.0, 0.5, grid=1.0), np.zeros(7)),
    *((DiscreteGaussian(1, sigma=sigma), 0) for sigma in (0.3, 1, 7, 400)),
    *((Gaussian(1, sigma=sigma), 0) for sigma in (0.1, 0.5, 2, 30)),
    (Gaussian(1.0, sigma=0.5), 0.0),
    (Gaussian(1.0, sigma=2, grid=0.5), np.zeros(9)),
]


def covered_by(mechanism: Additive, value: Any, width: Fraction) -> mpmath.mpf:
    """Return the probability that a release lies within `width` of the true value, whatever rounding adds to that."""
    noise = mechanism._noise_for(mechanism._read(value))
    whole = np.asarray(mechanism._read(value)).dtype.kind == "i"
    reach = noise.law.reach(90)
    weight = weights(noise.law, reach)
    rounding = Fraction(0) if whole else noise.grid.step / 2
    most = math.floor((width - rounding) / noise.grid.step)
    furthest = most * noise.fineness + noise.half  # the last lattice point that is rounded to `most`
    total = 2 * sum(weight) - weight[0]
    inside = 2 * sum(weight[: furthest + 1]) - weight[0] if most >= 0 else 0
    return mpmath.mpf(inside) / total


@levels
@pytest.mark.parametrize(("mechanism", "value"), ADDITIVE, ids=repr)
def test_added_noise_stays_within_the_interval_and_within_no_narrower_one(
    mechanism: Additive, value: Any, level: float
) -> None:
    width = Fraction(np.ravel(mechanism.interval(level, value).high)[0].item())
    assert covered_by(mechanism, value, width) >= level
    step = mechanism._noise_for(mechanism._read(value)).grid.step
    if width >= 3 * step:
        assert covered_by(mechanism, value, width - 3 * step) < level


@levels
@pytest.mark.parametrize("sensitivity", [1, 1.0, 0.5, 2.5, Fraction(1, 3)], ids=repr)
@pytest.mark.parametrize("epsilon", [0.1, 1, 4])
def test_the_noise_of_a_bins_count_is_covered(sensitivity: Any, epsilon: float, level: float) -> None:
    mechanism = ApproximateBounds(sensitivity, epsilon, bins=2)
    interval = mechanism.interval(level)
    assert covered_by(mechanism.noise, np.zeros(1, dtype=np.int64), Fraction(interval.high)) >= level
    assert interval.low == -interval.high


@levels
@pytest.mark.parametrize("count", [1, 2, 3, 10])
@pytest.mark.parametrize("epsilon", [0.1, 1, 10])
def test_the_chosen_score_is_within_the_interval_of_the_greatest(epsilon: float, count: int, level: float) -> None:
    """The worst scores: one is the greatest, and all others lie just below the interval."""
    for mechanism in (Exponential(1, epsilon), PermuteAndFlip(1, epsilon)):
        low, high = mechanism.interval(level, count)
        assert high == 0
        below = math.exp(float(mechanism.factor) * low)
        missed = 1 - 1 / (1 + (count - 1) * below)  # the exponential mechanism; permute-and-flip misses no more
        assert missed <= (1 - level) * (1 + 1e-9)
    k = min(count, 2)
    each = TopK(1, epsilon, k)
    below = math.exp(float(each._single_choice.factor) * each.interval(level, count).low)
    assert k * (1 - 1 / (1 + (count - 1) * below)) <= (1 - level) * (1 + 1e-9)


@levels
@pytest.mark.parametrize("mechanism", [ReportNoisyMax(1, 1), ReportNoisyMax(1, 8), ReportNoisyMax(3, 0.5)], ids=repr)
@pytest.mark.parametrize("others", [1, 4])
def test_the_noisy_maximum_is_within_its_interval(mechanism: ReportNoisyMax, others: int, level: float) -> None:
    """Two noises of the integer law, exactly: the greatest score against `others` just below the interval."""
    ratio = mpmath.exp(-mpmath.mpf(mechanism.factor.numerator) / mechanism.factor.denominator)
    gap = math.floor(-mechanism.interval(level, others + 1).low) + 1
    reach = gap + math.ceil(60 / float(mechanism.factor))
    mass = [(1 - ratio) / (1 + ratio) * ratio ** abs(x) for x in range(-reach, reach + 1)]
    tails = [ratio**x / (1 + ratio) if x > 0 else 1 - ratio ** (1 - x) / (1 + ratio) for x in range(-reach, 2 * reach)]
    missed = sum(one * tails[index + gap] for index, one in enumerate(mass) if index + gap < len(tails))
    assert others * missed <= 1 - level


@levels
def test_the_middle_interval_of_a_density_holds_its_share(level: float) -> None:
    for cells, density in ((5, np.sin), (64, lambda points: -40 * points), (64, lambda points: 0 * points)):
        mechanism = ExponentialDensity(1, 2, -1, 3, cells=cells)
        scores = np.asarray(density(mechanism.points))
        mass = np.exp((scores - scores.max()) * float(mechanism._choice.factor))
        low, high = mechanism.interval(level, density)
        inside = (mechanism.points >= low) & (mechanism.points <= high)
        assert mass[inside].sum() / mass.sum() >= level * (1 - 1e-12)
        assert mechanism.lower <= low <= high <= mechanism.upper


@levels
@pytest.mark.parametrize("parameters", [(0.5, 1e-6), (2, 1e-3), (0.1, 0.2), (5, 1e-9)])
def test_groups_outside_the_interval_are_hidden_or_shown_at_the_level(
    parameters: tuple[float, float], level: float
) -> None:
    mechanism = KeySelection(*parameters)
    low, high = mechanism.interval(level)
    ratio, reach = mpmath.exp(-mpmath.mpf(parameters[0])), mechanism.reach
    mass = [ratio ** abs(x) for x in range(-reach, reach + 1)]

    def shown(count: int) -> mpmath.mpf:
        return sum(one for x, one in zip(range(-reach, reach + 1), mass, strict=True) if count + x > reach) / sum(mass)

    slack = mpmath.mpf(10) ** -14
    assert 0 <= low <= high
    assert shown(low) <= 1 - level + slack
    assert shown(high) >= level - slack


@levels
@pytest.mark.parametrize("questions", [1, 10])
@pytest.mark.parametrize("positives", [1, 3])
def test_answers_outside_the_interval_are_right_at_the_level(positives: int, questions: int, level: float) -> None:
    """The chance of one wrong answer, by the tails of both noises, times the number of questions."""
    mechanism = SparseVector(1, 1, 100, positives)
    low, high = mechanism.interval(level, questions)
    widths = [
        math.floor((100 - Fraction(low)) / mechanism._grid.step),
        math.floor((Fraction(high) - 100) / mechanism._grid.step),
    ]
    for steps in widths:
        within = steps - 1  # rounding
        parts = [mpmath.mpf(scale.denominator) / scale.numerator for scale in mechanism._scales]
        split = within * (parts[1] / (parts[0] + parts[1]))  # where both tails are equally likely
        tails = [mpmath.exp(-parts[0] * split), mpmath.exp(-parts[1] * (within - split))]
        assert tails[0] + questions * tails[1] <= (1 - level) * (questions + 1)


SMOOTH = [SmoothMedian(0.5, 0, 10), SmoothMedian(1e-6, -3, 1e9), SmoothMedian(50, 0, 1), SmoothMedian(1, -0.25, -0.125)]


@levels
@pytest.mark.parametrize("mechanism", [*SMOOTH, SubsampleAggregate(0.5, 0, 10, blocks=3)], ids=repr)
def test_the_error_of_a_median_is_no_larger_than_its_range(mechanism: Any, level: float) -> None:
    low, high = mechanism.interval(level)
    length = mechanism.upper - mechanism.lower
    assert -length <= low < 0 < high <= length
    for value in (mechanism.lower, (mechanism.lower + mechanism.upper) / 2, mechanism.upper):
        around = mechanism.interval(level, value)
        assert mechanism.lower <= around.low <= value <= around.high <= mechanism.upper
        assert around.low == max(mechanism.lower, value + low)
        assert around.high == min(mechanism.upper, value + high)


@levels
def test_student_noise_stays_within_its_interval(level: float) -> None:
    for bound in (0, 1, 1000):
        mechanism = SmoothSensitivity(0.5, 1 / 1024)
        width = mpmath.mpf(mechanism.interval(level, bound).high) - mpmath.mpf(1) / 2048
        if not bound:
            assert width >= 0
            continue
        scale = mpmath.mpf(bound) / (mpmath.mpf(mechanism._sharpness.numerator) / mechanism._sharpness.denominator)
        z = width / scale
        assert z / mpmath.sqrt(2 + z * z) >= level - 1e-15  # P(|Z| <= z) for two degrees of freedom


@pytest.mark.parametrize("mechanism", SMOOTH[:1], ids=repr)
def test_the_median_of_the_worst_data_is_covered(mechanism: SmoothMedian) -> None:
    """Half of the data at each end: nearly every release is clamped, and the interval holds the true median."""
    source, data = SeededSource(1), [0.0] * 11 + [10.0] * 10
    for level in (0.5, 0.9):
        hits = 0
        for _ in range(400):
            low, high = mechanism.interval(level, float(mechanism.release(data, source=source)))
            hits += low <= 0.0 <= high
        assert hits >= 400 * level - 5 * math.sqrt(400 * level * (1 - level))


@pytest.mark.parametrize("base", [1.0001, 1.5, 2, 10])
def test_the_spread_lies_within_its_cell_for_certain(base: float) -> None:
    mechanism = InterquartileRange(1, 1e-6, base=base)
    step = math.log(base)
    for exponent in (-700.0, -3.3, 0.0, 1.0, 12.5, 700.0, 709.7):
        for near in range(-3, 4):
            spread = math.exp(exponent) * (1 + near * 2.0**-52)
            for shift in (0.0, 0.5):
                released = math.exp(min((_cell(spread, step, shift) + 0.5 - shift) * step, 709.0))
                low, high = mechanism.interval(0.9, released)
                assert low <= spread <= high
    assert mechanism.interval(0.9, 0.0) == (0.0, 0.0)
    assert mechanism.interval(0.9, math.exp(709)).high == math.inf
    assert mechanism.interval(0.9, None) == (0.0, math.inf)
