"""Plans of hypothesis tests: noisy sums, and how surprising they would be if nothing were there.

A classical formula takes noisy sums for exact ones and rejects far too often. Here the p-value is the share of draws
from the null hypothesis, noise included, that look at least as much like an effect as what was released. What the null
hypothesis leaves open (the number of rows, means, variances) is drawn from what the released numbers leave open, given
that counts and squares cannot be negative; so little data or much noise makes a test cautious instead of wrong. The way
is that of Gaboardi, Lim, Rogers and Vadhan (2016) for tables and of the parametric bootstrap of Ferrando, Wang and
Sheldon (2022) elsewhere; tables are compared with a variance that holds the noise (Kifer and Rogers 2017).

Preconditions: rows are independent, one a unit; and values within their bounds, since a test is about values as they
are clamped. Means need not be nearly normal: rows at the far end of the bounds that chance may have kept out of the
data are allowed for (`_unseen`), which makes tests of means cautious where there are fewer rows than a few times
(width of the bounds / standard deviation)^2, however large epsilon is. Relations and tables are tested without that:
for two columns of rare events, or some tens of skewed values, up to 8 % of true hypotheses are rejected at a level of
5 %.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from tacit.mechanisms.mechanism import Interval
from tacit.mechanisms.randomness import SYSTEM, Source
from tacit.privacy.events import Event
from tacit.stats.chances import Chance, Numbers, share_beyond, variance_of, where
from tacit.stats.moments import FUNCTIONS, square
from tacit.stats.plan import Measured, Noisy, Plan, composed, measured
from tacit.stats.rows import Rows, Scale

DRAWS: Final = 4_999
"""How often the null hypothesis is drawn; no p-value is below 1 / (DRAWS + 1)."""
DRAWN_MAX: Final = 8_000_000
FEW_CELLS: Final = 8
"""Tables of at most so many cells are drawn with a number of rows that stays: beside noise their steps are seen."""
UNSEEN: Final = 4.0
"""How many rows at the far end of the bounds chance may have kept out of the data (`_unseen`)."""


@dataclass(frozen=True)
class Outcome:
    """What a test found."""

    statistic: float
    pvalue: float
    estimate: float | None


@dataclass(frozen=True)
class Hypothesis(Plan):
    """A null hypothesis, and the noisy sums by which it is tested."""

    claim: str
    """The null hypothesis, for people: "the mean of age is 50"."""
    parts: tuple[Measured, ...]
    needs: tuple[str, ...]
    """Columns without a value in which a row is left out."""
    draws: int = field(default=DRAWS, kw_only=True)

    @property
    def event(self) -> Event:
        return composed(self.parts)

    @property
    def lines(self) -> tuple[str, ...]:
        return (
            f"tested is whether {self.claim}",
            *(part.line for part in self.parts),
            "the p-value counts the noise as well as chance",
        )

    def measure(self, rows: Rows, source: Source = SYSTEM) -> Noisy:
        return measured(self.parts, rows, self.needs, source)

    def value(self, noisy: Noisy) -> float:
        return self.outcome(noisy).pvalue

    @abstractmethod
    def outcome(self, noisy: Noisy) -> Outcome:
        """Return what the released sums say about the null hypothesis."""

    def interval(self, noisy: Noisy, level: float) -> Interval | None:
        """Return where the estimated number of the population lies; unlike other intervals it counts chance too."""
        return None


@dataclass(frozen=True)
class MeanTest(Hypothesis):
    """Whether a mean is a stated number: by the sum of what values lie above it, which is 0 but for chance and noise.

    The sum of squares around the stated mean is the variance of that sum, as under changes of sign.
    """

    scale: Scale
    popmean: float

    def outcome(self, noisy: Noisy) -> Outcome:
        rows, total, squares = (float(one) for one in noisy)
        off = self._off(self.popmean)
        gap = total - off * rows
        chance = Chance(self.draws, noisy)
        of_noise = variance_of(self.parts[1]) + off**2 * variance_of(self.parts[0])
        unseen = float(_unseen(self.scale.high if gap < 0 else self.scale.low, of_noise))
        spread = np.sqrt(chance.before(self.parts[2], squares, at_least=0.0) + unseen)
        drawn = spread * chance.normal() + chance.noise(self.parts[1]) - off * chance.noise(self.parts[0])
        variance = max(squares, 0.0) + of_noise + unseen
        return Outcome(gap / float(np.sqrt(variance)), share_beyond(np.abs(drawn), abs(gap)), self._mean(noisy))

    def interval(self, noisy: Noisy, level: float) -> Interval:
        """Return the means that would not be rejected: a set as Fieller's (1954), made an interval."""
        rows, total, squares = (float(one) for one in noisy)
        chance = Chance(self.draws, noisy)
        before = chance.before(self.parts[0], rows, at_least=1.0)
        around = chance.before(self.parts[2], squares, at_least=0.0) - chance.before(self.parts[1], total) ** 2 / before
        around, student = np.maximum(around, 0.0), _student(chance, before)
        of_total, of_rows = (chance.noise(part) for part in (self.parts[1], self.parts[0]))
        noises = variance_of(self.parts[1]), variance_of(self.parts[0])

        def is_plausible(mean: float) -> bool:
            off = self._off(mean)
            gap = total - off * rows
            far = (self.scale.high if gap < 0 else self.scale.low) - off
            spread = np.sqrt(around + _unseen(far, noises[0] + off**2 * noises[1]))
            return abs(gap) <= float(np.quantile(np.abs(spread * student + of_total - off * of_rows), level))

        return Interval(*where(is_plausible, self.scale.lower, self.scale.upper, self._mean(noisy)))

    def _off(self, mean: float) -> float:
        return (mean - self.scale.centre) / float(self.scale.step)

    def _mean(self, noisy: Noisy) -> float:
        return float(FUNCTIONS["mean"]((self.scale,), [np.asarray(one, dtype=np.float64) for one in noisy[:2]]))


@dataclass(frozen=True)
class DifferenceTest(Hypothesis):
    """Whether two groups have one mean, each with a variance of its own (Welch)."""

    scale: Scale

    def outcome(self, noisy: Noisy) -> Outcome:
        rows, totals, squares = (np.asarray(one, dtype=np.float64)[None] for one in noisy)
        chance, reach = Chance(self.draws, noisy), float(self.scale.reach)
        seen = float(self._statistic(rows, totals, squares)[0])
        count = chance.before(self.parts[0], rows[0], at_least=1.0)
        total = chance.before(self.parts[1], totals[0])
        mean = np.clip(total.sum(axis=1) / count.sum(axis=1), -reach, reach)[:, None]
        variance = self._around(mean, count, total, chance.before(self.parts[2], squares[0]))
        normal = chance.normal(2)
        moved = np.sqrt(count * variance) * normal
        of_noise = self._of_noise(mean)
        missed = chance.normal(2)
        ends = np.where(missed < 0, self.scale.high, self.scale.low)  # who is missing above is missed below
        missed *= np.sqrt(_unseen(ends - mean, of_noise))
        square_sums = variance * (normal**2 + chance.chi_squared(np.maximum(count - 1, 1.0)))
        square_sums += count * (mean**2 - square(self.scale).offset) + 2 * mean * (moved + missed)
        sums = (count, count * mean + moved + missed, square_sums)
        drawn = self._statistic(*(one + chance.noise(part, 2) for one, part in zip(sums, self.parts, strict=True)))
        means = self._means(rows, totals)[0]
        return Outcome(seen, share_beyond(np.abs(drawn), abs(seen)), float(means[0] - means[1]))

    def interval(self, noisy: Noisy, level: float) -> Interval:
        rows, totals, squares = (np.asarray(one, dtype=np.float64) for one in noisy)
        chance, reach = Chance(self.draws, noisy), float(self.scale.reach)
        count = chance.before(self.parts[0], rows, at_least=1.0)
        mean = np.clip(chance.before(self.parts[1], totals) / count, -reach, reach)
        at_zero = chance.before(self.parts[2], squares) / count + square(self.scale).offset
        variance = np.clip(at_zero - mean**2, 0.0, reach**2)
        student = _student(chance, count)
        # the population's mean is above that of the data where rows are missing at the upper end
        ends = np.where(student > 0, self.scale.high, self.scale.low)
        variance += _unseen(ends - mean, self._of_noise(mean)) / count
        drawn = np.clip(mean + np.sqrt(variance / count) * student, self.scale.low, self.scale.high)
        return _middle((drawn[:, 0] - drawn[:, 1]) * float(self.scale.step), level)

    def _statistic(self, rows: Numbers, totals: Numbers, squares: Numbers) -> Numbers:
        """The difference of means, each sum taken at its own size, over what noise and chance make of it."""
        reach = float(self.scale.reach)
        count = np.maximum(rows, 1.0)
        share = count[:, ::-1] / count.sum(axis=1, keepdims=True)
        mean = np.clip(totals.sum(axis=1, keepdims=True) / count.sum(axis=1, keepdims=True), -reach, reach)
        gap = (share * totals * np.array([1.0, -1.0])).sum(axis=1)
        lower = (gap[:, None] < 0) == np.array([True, False])  # the group with the lower mean
        of_noise = self._of_noise(mean)
        variance = count * self._around(mean, count, totals, squares) + of_noise
        variance += _unseen(np.where(lower, self.scale.high, self.scale.low) - mean, of_noise)
        return np.asarray(gap / np.sqrt((share**2 * variance).sum(axis=1)))

    def _around(self, mean: Numbers, count: Numbers, totals: Numbers, squares: Numbers) -> Numbers:
        """Return the mean squared distance of each group's values from the mean of both groups together."""
        reach = float(self.scale.reach)
        at_zero = squares / count + square(self.scale).offset
        return np.asarray(np.clip(at_zero - 2 * mean * totals / count + mean**2, 0.0, (reach + np.abs(mean)) ** 2))

    def _of_noise(self, mean: Numbers) -> Numbers:
        """Return the variance that noise gives to the sum of what values lie above a mean."""
        return np.asarray(variance_of(self.parts[1]) + mean**2 * variance_of(self.parts[0]))

    def _means(self, rows: Numbers, totals: Numbers) -> Numbers:
        return FUNCTIONS["mean"]((self.scale,), (rows, totals))


@dataclass(frozen=True)
class RelationTest(Hypothesis):
    """Whether two columns are independent, by their correlation; `function` says what is estimated of the relation."""

    function: str
    scales: tuple[Scale, Scale]

    def outcome(self, noisy: Noisy) -> Outcome:
        released = [np.asarray(one, dtype=np.float64).reshape(1) for one in noisy]
        seen = float(self._statistic(*released)[0])
        chance = Chance(self.draws, noisy)
        count = chance.before(self.parts[0], released[0][0], at_least=1.0)
        means, variances = [], []
        for index, scale in enumerate(self.scales):
            reach = float(scale.reach)
            mean = np.clip(chance.before(self.parts[1 + index], released[1 + index][0]) / count, -reach, reach)
            at_zero = chance.before(self.parts[4 + index], released[4 + index][0]) / count + square(scale).offset
            means.append(mean)
            variances.append(np.clip(at_zero - mean**2, 0.0, reach**2 - mean**2))
        sums = self._null(chance, count, means, variances)
        drawn = self._statistic(*(one + chance.noise(part) for one, part in zip(sums, self.parts, strict=True)))
        estimate = float(FUNCTIONS[self.function](self.scales, self._used(released))[0])
        return Outcome(seen, share_beyond(np.abs(drawn), abs(seen)), estimate)

    def interval(self, noisy: Noisy, level: float) -> Interval:
        chance = Chance(self.draws, noisy)
        count = chance.before(self.parts[0], noisy[0], at_least=1.0)
        sums = [count, *(chance.before(part, one) for part, one in zip(self.parts[1:], noisy[1:], strict=True))]
        related = np.clip(FUNCTIONS["correlation"](self.scales, sums), -1 + 1e-9, 1 - 1e-9)
        if self.function == "correlation":
            moved = chance.normal() / np.sqrt(np.maximum(count - 3, 1.0))
            return _middle(np.tanh(np.arctanh(related) + moved), level)
        slope = FUNCTIONS["trend"](self.scales, self._used(sums))
        spreads = [
            np.clip(sums[4 + index] / count + square(scale).offset - (sums[1 + index] / count) ** 2, 1.0, None)
            for index, scale in enumerate(self.scales)
        ]
        error = np.sqrt((1 - related**2) * spreads[0] / spreads[1] / count)
        worth = float(self.scales[0].step / self.scales[1].step)
        return _middle(slope + error * worth * _student(chance, count - 1), level)

    def _used(self, sums: Any) -> list[Numbers]:
        """Return the sums that the estimate is made of: a slope needs no squares of the first column."""
        return list(sums) if self.function == "correlation" else [*sums[:4], sums[5]]

    def _null(self, chance: Chance, count: Numbers, means: list[Numbers], variances: list[Numbers]) -> list[Numbers]:
        """Draw the six sums of two independent columns."""
        moved = [np.sqrt(count * variance) * chance.normal() for variance in variances]
        together = np.sqrt(count * variances[0] * variances[1]) * chance.normal()
        products = count * means[0] * means[1] + means[1] * moved[0] + means[0] * moved[1] + together
        squares = [
            count * (variance + mean**2 - square(scale).offset) + 2 * mean * by
            for mean, variance, by, scale in zip(means, variances, moved, self.scales, strict=True)
        ]
        return [count, *(count * mean + by for mean, by in zip(means, moved, strict=True)), products, *squares]

    def _statistic(self, rows: Numbers, one: Numbers, other: Numbers, both: Numbers, *squares: Numbers) -> Numbers:
        """The sum of products around the means, over what noise and chance make of it."""
        count = np.maximum(rows, 1.0)
        reaches = [float(scale.reach) for scale in self.scales]
        means = [np.clip(total / count, -reach, reach) for total, reach in zip((one, other), reaches, strict=True)]
        spreads = [
            np.clip(sums / count + square(scale).offset - mean**2, 0.0, reach**2)
            for sums, scale, mean, reach in zip(squares, self.scales, means, reaches, strict=True)
        ]
        of_noise = [variance_of(part) for part in self.parts]
        variance = count * spreads[0] * spreads[1] + of_noise[3]
        variance += means[0] ** 2 * of_noise[2] + means[1] ** 2 * of_noise[1] + (means[0] * means[1]) ** 2 * of_noise[0]
        gap = both - means[0] * other - means[1] * one + means[0] * means[1] * count
        return np.asarray(gap / np.sqrt(variance))


@dataclass(frozen=True)
class TableTest(Hypothesis):
    """Whether counts have stated shares, or the rows and columns of a table are independent.

    Tables of a few cells are drawn with the number of rows that may have been there, larger ones cell by cell, by
    Poisson's law. Two statistics are compared with their draws, and the larger p-value is taken: Pearson's, and one in
    which cells that expect less than a row weigh little. They differ where noise is small and the table sparse, where
    Pearson's alone rejects too often; for the same reason the margins that are drawn from hold at least a row each.
    """

    shares: tuple[float, ...] | None = None

    def outcome(self, noisy: Noisy) -> Outcome:
        released = np.asarray(noisy[0], dtype=np.float64)
        (part,) = self.parts
        chance = Chance(min(self.draws, DRAWN_MAX // released.size), noisy)
        expected = self._expected(chance.before(part, released), least=1.0)
        counts = chance.multinomial(expected) if released.size <= FEW_CELLS else chance.poisson(expected)
        drawn = counts + chance.noise(part, *released.shape)
        least = sorted({variance_of(part), max(variance_of(part), 1.0)})
        seen = [float(self._statistic(released[None], one)[0]) for one in least]
        beyond = [share_beyond(self._statistic(drawn, one), at) for one, at in zip(least, seen, strict=True)]
        return Outcome(seen[0], max(beyond), None)

    def _statistic(self, counts: Numbers, least: float) -> Numbers:
        expected = self._expected(counts)
        terms = (counts - expected) ** 2 / (expected + least)
        return np.asarray(terms.reshape(len(counts), -1).sum(axis=1))

    def _expected(self, counts: Numbers, least: float = 0.0) -> Numbers:
        """Return what the null hypothesis expects, along the first axis, of margins that hold `least` rows each."""
        rows = np.maximum(counts.reshape(len(counts), -1).sum(axis=1), 1.0)
        if self.shares is not None:
            return np.asarray(rows[:, None] * np.array(self.shares))
        margins = [np.maximum(counts.sum(axis=axis), least) for axis in (2, 1)]
        one, other = (margin / np.maximum(margin.sum(axis=1, keepdims=True), 1e-9) for margin in margins)
        return np.asarray(rows[:, None, None] * one[:, :, None] * other[:, None, :])


def _unseen(far: Any, of_noise: Any) -> Numbers:
    """Return what is added to the variance of a sum for rows that chance kept out of the data, less what noise adds.

    A share of rows too small to be seen can lie at the far end of the bounds. If k such rows are in the data and l were
    expected, k by Poisson's law, the sum is off by (l - k) far, and its squares show a variance of k far^2: a test that
    trusts them rejects at k = 0. With 4 far^2 beside them it rejects in 5.7 % at most at a level of 5 %, whatever l:
    (l - k) / sqrt(k + 4) passes 1.96 only where k or fewer have a probability below 0.05. Rows beyond what was expected
    show in the squares. Noise of that variance gives the same caution, so a test pays for it at a large epsilon alone.
    """
    return np.asarray(np.maximum(UNSEEN * np.asarray(far, dtype=np.float64) ** 2 - of_noise, 0.0))


def _student(chance: Chance, count: Numbers) -> Numbers:
    """Draw what Student's law makes of a mean of so many values."""
    freedom = np.maximum(count - 1, 1.0)
    return chance.normal(*count.shape[1:]) * np.sqrt(freedom / chance.chi_squared(freedom))


def _middle(drawn: Numbers, level: float) -> Interval:
    tail = (1 - level) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail])
    return Interval(float(low), float(high))
