"""Plans of hypothesis tests: noisy sums, and their distribution under the null hypothesis.

A classical formula takes noisy sums for exact ones and rejects far too often. Here the p-value is the share of draws
from the null hypothesis, noise included, whose statistic is at least as large as the released one. Nuisance parameters
(the number of rows, means, variances) are drawn from their distribution given the released numbers and given that
counts and squares cannot be negative; so little data or much noise makes a test conservative instead of wrong. The
method is that of Gaboardi, Lim, Rogers and Vadhan (2016) for tables and the parametric bootstrap of Ferrando, Wang and
Sheldon (2022) elsewhere; tables are compared with a variance that includes the noise (Kifer and Rogers 2017).

Preconditions: rows are independent, one for each unit; and values lie within their bounds, because a test is about
clamped values. Values need not be nearly normal. Sums of cubes, released beside those of squares, estimate their
skewness: tests of means allow for rows of the size that the skewness indicates and that are missing from the data by
chance (`_unseen`), and relations are compared with a law of the skewness of products (`RelationTest`). For symmetric
values that costs nothing once epsilon is large, and the power is that of the classical test. No test sees a small
share of rows far from all others of which the data hold none.

Intervals of correlations and slopes need more than p-values do: they are those of nearly bivariate normal values
(Fisher's transform; for slopes, Student's law with one variance around the line). At the level 0.95 they hold 60 to
80 % of the population's numbers for lognormal values, or where the spread of one column depends on the other; each
answer warns of it (`BIVARIATE_NORMAL`).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from tacit.mechanisms.mechanism import Interval
from tacit.mechanisms.randomness import SYSTEM, RandomSource
from tacit.privacy.arrays import Numbers
from tacit.privacy.events import Event, composed
from tacit.stats.moments import FUNCTIONS, square
from tacit.stats.monte_carlo import MonteCarlo, interval_where, noise_variance, p_value
from tacit.stats.rows import ColumnSteps, Rows
from tacit.stats.statistic import Noisy, NoisySums, StatisticPlan, release_sums

DRAWS: Final = 4_999
"""The number of draws from the null hypothesis; no p-value is below 1 / (DRAWS + 1)."""
DRAWN_MAX: Final = 8_000_000
FEW_CELLS: Final = 8
"""Tables of at most so many cells are drawn with a fixed number of rows, because their discreteness matters."""
UNSEEN: Final = 5.0
"""The number of rows, of the size that the skewness indicates, that may be missing by chance (`_unseen`)."""
COUNTS: Final = (None, 0.05, 0.95)
"""The quantiles of the number of rows at which relations are tested; None for draws of it."""
SKEW_MIN: Final = 1e-3
"""The least skewness of a Poisson law that is drawn from; below it the law is nearly normal."""
BIVARIATE_NORMAL: Final = (
    "the interval of the {estimate} holds that of the population as often as stated for nearly bivariate normal "
    "values, and less often for skewed ones or where the spread of one column depends on the other; the p-value does "
    "not need that"
)
PRIOR: Final = 0.1
"""The number of rows assumed at the far end of the bounds, in addition to the data (`_unseen`)."""


@dataclass(frozen=True)
class Outcome:
    """The result of a test."""

    statistic: float
    pvalue: float
    estimate: float | None


@dataclass(frozen=True)
class Hypothesis(StatisticPlan):
    """A null hypothesis, and the noisy sums that test it."""

    claim: str
    """The null hypothesis in words: "the mean of age is 50"."""
    parts: tuple[NoisySums, ...]
    needs: tuple[str, ...]
    """Only rows with a value in these columns are counted."""
    draws: int = field(default=DRAWS, kw_only=True)

    @property
    def hypothesis(self) -> str:
        return self.claim

    @property
    def event(self) -> Event:
        return composed([part.noise.event for part in self.parts])

    @property
    def lines(self) -> tuple[str, ...]:
        return (
            f"tested is whether {self.claim}",
            *(part.line for part in self.parts),
            "the p-value counts the noise as well as chance",
        )

    def measure(self, rows: Rows, source: RandomSource = SYSTEM) -> Noisy:
        return release_sums(self.parts, rows, self.needs, source)

    def value(self, noisy: Noisy) -> float:
        return self.outcome(noisy).pvalue

    @abstractmethod
    def outcome(self, noisy: Noisy) -> Outcome:
        """Return the result of the test from the released sums."""

    def interval(self, noisy: Noisy, level: float) -> Interval | None:
        """Return the interval of the estimate in the population; unlike other intervals it covers sampling error."""
        return None


@dataclass(frozen=True)
class MeanTest(Hypothesis):
    """A test of whether a mean is a stated number, by the sum of differences from it.

    The sum of squares around the stated mean is the variance of that sum, as under changes of sign.
    """

    scale: ColumnSteps
    popmean: float

    def outcome(self, noisy: Noisy) -> Outcome:
        rows, total, squares, cubes = (float(one) for one in noisy)
        off = self._off(self.popmean)
        gap = total - off * rows
        sample = MonteCarlo(self.draws, noisy)
        of_noise = noise_variance(self.parts[1]) + off**2 * noise_variance(self.parts[0])
        before = sample.before_noise(self.parts[2], squares, at_least=0.0)
        far = self.scale.high if gap < 0 else self.scale.low
        before += _unseen(far, before, sample.before_noise(self.parts[3], cubes), of_noise)
        drawn = np.sqrt(before) * sample.normal() + sample.noise(self.parts[1]) - off * sample.noise(self.parts[0])
        variance = float(np.median(before)) + of_noise
        return Outcome(gap / float(np.sqrt(variance)), p_value(np.abs(drawn), abs(gap)), self._mean(noisy))

    def interval(self, noisy: Noisy, level: float) -> Interval:
        """Return the smallest interval with all means that are not rejected (as in Fieller 1954)."""
        rows, total, squares, cubes = (float(one) for one in noisy)
        sample = MonteCarlo(self.draws, noisy)
        before = sample.before_noise(self.parts[0], rows, at_least=1.0)
        at_zero = [
            sample.before_noise(part, one) for part, one in zip(self.parts[1:], (total, squares, cubes), strict=True)
        ]
        centre = np.clip(at_zero[0] / before, self.scale.low, self.scale.high)
        squared, cubed = _centred(centre, before, *at_zero)
        around, student = np.maximum(squared, 0.0), _student_draws(sample, before)
        of_total, of_rows = (sample.noise(part) for part in (self.parts[1], self.parts[0]))
        noises = noise_variance(self.parts[1]), noise_variance(self.parts[0])

        def is_plausible(mean: float) -> bool:
            off = self._off(mean)
            gap = total - off * rows
            far = (self.scale.high if gap < 0 else self.scale.low) - off
            spread = np.sqrt(around + _unseen(far, around, cubed, noises[0] + off**2 * noises[1]))
            return abs(gap) <= float(np.quantile(np.abs(spread * student + of_total - off * of_rows), level))

        return Interval(*interval_where(is_plausible, self.scale.lower, self.scale.upper, self._mean(noisy)))

    def _off(self, mean: float) -> float:
        return (mean - self.scale.centre) / float(self.scale.step)

    def _mean(self, noisy: Noisy) -> float:
        return float(FUNCTIONS["mean"]((self.scale,), [np.asarray(one, dtype=np.float64) for one in noisy[:2]]))


@dataclass(frozen=True)
class DifferenceTest(Hypothesis):
    """A test of whether two groups have the same mean, each with its own variance (Welch)."""

    scale: ColumnSteps

    def outcome(self, noisy: Noisy) -> Outcome:
        rows, totals = (np.asarray(one, dtype=np.float64) for one in noisy[:2])
        least = np.maximum(rows, 1.0)
        weights = least[::-1] / least.sum() * np.array([1.0, -1.0])  # each sum weighs by the size of the other group
        gap = float(weights @ totals)
        sample, reach = MonteCarlo(self.draws, noisy), float(self.scale.reach)
        count, total, squares, cubes = self._before(sample, noisy)
        mean = np.clip(total.sum(axis=1) / count.sum(axis=1), -reach, reach)[:, None]
        around, cubed = _centred(mean, count, total, squares, cubes)
        around = np.clip(around, 0.0, count * (reach + np.abs(mean)) ** 2)
        of_noise = self._of_noise(mean)
        ends = np.where(gap * weights < 0, self.scale.high, self.scale.low)  # rows may be missing above the lower mean
        around += _unseen(ends - mean, around, cubed, of_noise)
        moved = np.sqrt(around) * sample.normal(2) + sample.noise(self.parts[1], 2)
        drawn = (moved - mean * sample.noise(self.parts[0], 2)) @ weights
        seen = gap / float(np.sqrt(np.median((around + of_noise) @ weights**2)))
        means = FUNCTIONS["mean"]((self.scale,), (rows, totals))
        return Outcome(seen, p_value(np.abs(drawn), abs(gap)), float(means[0] - means[1]))

    def interval(self, noisy: Noisy, level: float) -> Interval:
        sample, reach = MonteCarlo(self.draws, noisy), float(self.scale.reach)
        count, total, squares, cubes = self._before(sample, noisy)
        mean = np.clip(total / count, -reach, reach)
        around, cubed = _centred(mean, count, total, squares, cubes)
        around = np.clip(around, 0.0, count * reach**2)
        student = _student_draws(sample, count)
        # the population's mean is above that of the data where rows are missing at the upper end
        ends = np.where(student > 0, self.scale.high, self.scale.low)
        around += _unseen(ends - mean, around, cubed, self._of_noise(mean))
        drawn = np.clip(mean + np.sqrt(around) / count * student, self.scale.low, self.scale.high)
        return _central_interval((drawn[:, 0] - drawn[:, 1]) * float(self.scale.step), level)

    def _before(self, sample: MonteCarlo, noisy: Noisy) -> list[Numbers]:
        """Return draws of each group's rows, sum, sum of squares and sum of cubes before the noise."""
        count, total, squares, cubes = (
            sample.before_noise(part, one, at_least=None if index else 1.0)
            for index, (part, one) in enumerate(zip(self.parts, noisy, strict=True))
        )
        return [count, total, squares + count * square(self.scale).offset, cubes]

    def _of_noise(self, mean: Numbers) -> Numbers:
        """Return the variance that noise adds to the sum of differences from a mean."""
        return np.asarray(noise_variance(self.parts[1]) + mean**2 * noise_variance(self.parts[0]))


@dataclass(frozen=True)
class RelationTest(Hypothesis):
    """A test of whether two columns are independent, by their correlation; `function` is the estimated statistic.

    The sum of products of n pairs of independent values has the skewness g = (skewness of one) (skewness of the other)
    / sqrt(n), and is drawn from a Poisson law with that skewness (`_skewed_draws`), which is its law for two columns of
    rare events, and nearly normal for symmetric values. The p-value is the largest of three: with the number of rows
    drawn, and with it at either end of an interval of 90 % (after Berger and Boos 1994). Without noise they are equal.

    The interval is that of nearly bivariate normal values.
    """

    function: str
    scales: tuple[ColumnSteps, ColumnSteps]

    def outcome(self, noisy: Noisy) -> Outcome:
        released = [np.asarray(one, dtype=np.float64).reshape(1) for one in noisy]
        seen = float(self._statistic(*released[:6])[0])
        beyond = [p_value(np.abs(self._drawn(noisy, released, at)), abs(seen)) for at in COUNTS]
        estimate = float(FUNCTIONS[self.function](self.scales, self._used(released))[0])
        return Outcome(seen, max(beyond), estimate)

    def _drawn(self, noisy: Noisy, released: list[Numbers], at: float | None) -> Numbers:
        """Return draws of the statistic for independent columns, with a drawn number of rows or a quantile of it."""
        sample = MonteCarlo(self.draws, noisy)
        count = sample.before_noise(self.parts[0], released[0][0], at_least=1.0)
        if at is not None:
            count = np.full_like(count, np.quantile(count, at))
        means, variances, skews = [], [], []
        for index, scale in enumerate(self.scales):
            total, cubes = (
                sample.before_noise(self.parts[place + index], released[place + index][0]) for place in (1, 6)
            )
            mean = np.clip(total / count, scale.low, scale.high)
            at_zero = released[4 + index][0] + count * (square(scale).offset - mean**2)
            around = sample.before_noise_each(self.parts[4 + index], at_zero, at_least=0.0)
            _, cubed = _centred(mean, count, count * mean, around + count * mean**2, cubes)
            variance = np.clip(around / count, 1e-9, (scale.high - mean) * (mean - scale.low) + 1e-9)
            means.append(mean)
            variances.append(variance)
            skews.append(_skewness(scale, mean, np.sqrt(variance), cubed / count))
        sums = self._null(sample, count, means, variances, skews[0] * skews[1] / np.sqrt(count))
        parts = self.parts[:6]
        return self._statistic(*(one + sample.noise(part) for one, part in zip(sums, parts, strict=True)))

    def interval(self, noisy: Noisy, level: float) -> Interval:
        sample = MonteCarlo(self.draws, noisy)
        count = sample.before_noise(self.parts[0], noisy[0], at_least=1.0)
        sums = [count, *(sample.before_noise(part, one) for part, one in zip(self.parts[1:6], noisy[1:6], strict=True))]
        related = np.clip(FUNCTIONS["correlation"](self.scales, sums), -1 + 1e-9, 1 - 1e-9)
        if self.function == "correlation":
            moved = sample.normal() / np.sqrt(np.maximum(count - 3, 1.0))
            return _central_interval(np.tanh(np.arctanh(related) + moved), level)
        slope = FUNCTIONS["trend"](self.scales, self._used(sums))
        spreads = [
            np.clip(sums[4 + index] / count + square(scale).offset - (sums[1 + index] / count) ** 2, 1.0, None)
            for index, scale in enumerate(self.scales)
        ]
        error = np.sqrt((1 - related**2) * spreads[0] / spreads[1] / count)
        worth = float(self.scales[0].step / self.scales[1].step)
        return _central_interval(slope + error * worth * _student_draws(sample, count - 1), level)

    def warnings(self, noisy: Noisy) -> tuple[str, ...]:
        return (BIVARIATE_NORMAL.format(estimate="slope" if self.function == "trend" else self.function),)

    def _used(self, sums: Any) -> list[Numbers]:
        """Return the sums of the estimate: a slope needs no squares of the first column."""
        return list(sums[:6]) if self.function == "correlation" else [*sums[:4], sums[5]]

    def _null(
        self, sample: MonteCarlo, count: Numbers, means: list[Numbers], variances: list[Numbers], skew: Numbers
    ) -> list[Numbers]:
        """Return draws of the six sums of two independent columns, that of products with a skewness."""
        moved = [np.sqrt(count * variance) * sample.normal() for variance in variances]
        together = np.sqrt(count * variances[0] * variances[1]) * _skewed_draws(sample, skew)
        products = count * means[0] * means[1] + means[1] * moved[0] + means[0] * moved[1] + together
        squares = [
            count * (variance + mean**2 - square(scale).offset) + 2 * mean * by
            for mean, variance, by, scale in zip(means, variances, moved, self.scales, strict=True)
        ]
        return [count, *(count * mean + by for mean, by in zip(means, moved, strict=True)), products, *squares]

    def _statistic(self, rows: Numbers, one: Numbers, other: Numbers, both: Numbers, *squares: Numbers) -> Numbers:
        """Return the sum of products around the means over its standard deviation, noise included."""
        count = np.maximum(rows, 1.0)
        reaches = [float(scale.reach) for scale in self.scales]
        means = [np.clip(total / count, -reach, reach) for total, reach in zip((one, other), reaches, strict=True)]
        spreads = [
            np.clip(sums / count + square(scale).offset - mean**2, 0.0, reach**2)
            for sums, scale, mean, reach in zip(squares, self.scales, means, reaches, strict=True)
        ]
        of_noise = [noise_variance(part) for part in self.parts]
        variance = count * spreads[0] * spreads[1] + of_noise[3]
        variance += means[0] ** 2 * of_noise[2] + means[1] ** 2 * of_noise[1] + (means[0] * means[1]) ** 2 * of_noise[0]
        gap = both - means[0] * other - means[1] * one + means[0] * means[1] * count
        return np.asarray(gap / np.sqrt(variance))


@dataclass(frozen=True)
class TableTest(Hypothesis):
    """A test of whether counts have stated shares, or the rows and columns of a table are independent.

    Tables of a few cells are drawn as multinomial numbers, larger ones cell by cell as Poisson numbers. Two statistics
    are compared with their draws, and the larger p-value is taken: Pearson's, and one in which cells with less than one
    expected row weigh little. They differ where noise is small and the table sparse, where Pearson's alone rejects too
    often; for the same reason the margins that are drawn from hold at least one row each.
    """

    shares: tuple[float, ...] | None = None

    def outcome(self, noisy: Noisy) -> Outcome:
        released = np.asarray(noisy[0], dtype=np.float64)
        (part,) = self.parts
        sample = MonteCarlo(min(self.draws, DRAWN_MAX // released.size), noisy)
        expected = self._expected(sample.before_noise(part, released), least=1.0)
        counts = sample.multinomial(expected) if released.size <= FEW_CELLS else sample.poisson(expected)
        drawn = counts + sample.noise(part, *released.shape)
        least = sorted({noise_variance(part), max(noise_variance(part), 1.0)})
        seen = [float(self._statistic(released[None], one)[0]) for one in least]
        beyond = [p_value(self._statistic(drawn, one), at) for one, at in zip(least, seen, strict=True)]
        return Outcome(seen[0], max(beyond), None)

    def _statistic(self, counts: Numbers, least: float) -> Numbers:
        expected = self._expected(counts)
        terms = (counts - expected) ** 2 / (expected + least)
        return np.asarray(terms.reshape(len(counts), -1).sum(axis=1))

    def _expected(self, counts: Numbers, least: float = 0.0) -> Numbers:
        """Return the expected counts under the null hypothesis, for margins of at least `least` rows each."""
        rows = np.maximum(counts.reshape(len(counts), -1).sum(axis=1), 1.0)
        if self.shares is not None:
            return np.asarray(rows[:, None] * np.array(self.shares))
        margins = [np.maximum(counts.sum(axis=axis), least) for axis in (2, 1)]
        one, other = (margin / np.maximum(margin.sum(axis=1, keepdims=True), 1e-9) for margin in margins)
        return np.asarray(rows[:, None, None] * one[:, :, None] * other[:, None, :])


def _unseen(far: Any, squares: Any, cubes: Any, of_noise: Any) -> Numbers:
    """Return the variance added to a sum for rows that are missing by chance, less that of the noise.

    Let a small share of the rows lie at a distance a from the mean. If k such rows are in the data and l were expected,
    k by Poisson's law, the sum is off by (l - k) a, and its squares show a variance of k a^2: a test that relies on
    them rejects at k = 0. With 5 a^2 added it rejects in 5.3 % at most at a level of 5 %, whatever l:
    (l - k) / sqrt(k + 5) passes 1.96 only where k or fewer have a probability below 0.05. Rows beyond the expected ones
    show in the squares. Noise of that variance has the same effect, so it is subtracted.

    The distance a is that of a two-point law with these squares and cubes around the mean, k a^2 and k a^3, on the side
    of `far`, the end of the bounds from the mean: 0 for symmetric values. `PRIOR` rows at the far end make it `far`
    where the squares are 0.
    """
    end = np.abs(np.asarray(far, dtype=np.float64))
    size = (np.sign(far) * cubes + PRIOR * end**3) / np.maximum(squares + PRIOR * end**2, 1.0)
    return np.asarray(np.maximum(UNSEEN * np.clip(size, 0.0, end) ** 2 - of_noise, 0.0))


def _centred(
    mean: Numbers, count: Numbers, total: Numbers, squares: Numbers, cubes: Numbers
) -> tuple[Numbers, Numbers]:
    """Return sums of squares and of cubes around a mean, from those around 0."""
    around = squares - 2 * mean * total + count * mean**2
    return around, cubes - 3 * mean * squares + 3 * mean**2 * total - count * mean**3


def _skewness(scale: ColumnSteps, mean: Numbers, deviation: Numbers, cubes: Numbers) -> Numbers:
    """Return the skewness of values, clamped to what is possible for their mean, deviation and bounds."""
    above, below = (np.maximum(np.abs(end - mean), deviation) / deviation for end in (scale.high, scale.low))
    return np.asarray(np.clip(cubes / deviation**3, 1 / below - below, above - 1 / above))


def _skewed_draws(sample: MonteCarlo, skew: Numbers) -> Numbers:
    """Return draws of mean 0, variance 1 and a skewness: steps of a Poisson law, half a step further from 0."""
    step = np.where(np.abs(skew) < SKEW_MIN, SKEW_MIN, skew)
    expected = 1 / step**2
    off = sample.poisson(expected) - expected
    return np.asarray(step * (off + np.sign(off) / 2))


def _student_draws(sample: MonteCarlo, count: Numbers) -> Numbers:
    """Return draws of Student's law for a mean of `count` values."""
    freedom = np.maximum(count - 1, 1.0)
    return sample.normal(*count.shape[1:]) * np.sqrt(freedom / sample.chi_squared(freedom))


def _central_interval(drawn: Numbers, level: float) -> Interval:
    tail = (1 - level) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail])
    return Interval(float(low), float(high))
