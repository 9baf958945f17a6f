"""Randomized response, and exact confidence limits for its estimates.

Promise of `RandomizedResponse`: whatever the true answer, each report is at most e^epsilon times as likely as under
another true answer; the neighbours are two answers of one person, that is, replace-one (Warner 1965; over k answers:
Kairouz, Bonawitz, Ramage 2016). Under add/remove there is no promise, since the number of reports tells who took part,
and it is refused.
Given by epsilon, or by the probability `truth` with which the report is the true answer: with two coins (heads: tell
the truth; tails: report what the second coin shows) that is 3/4, and epsilon is ln 3.

Promise of `holder_limits`: of n people m hold the answer; a holder's report names it with probability `truth`, anybody
else's with probability `lie` < `truth`, independently. The limits enclose m with probability at least `level`, for
every n and m.

Each limit inverts a test of the exact law of the count X, Binomial(m, truth) + Binomial(n - m, lie) (Clopper, Pearson
1934, for this sum in the place of one binomial law): m is left out above if P_m(X <= x), and below if P_m(X >= x), is
less than (1 - level) / 2. Both tails are monotone in m, so that bisection finds the limits.

Tails are bounded from above, which can only widen the limits: by the slack that doubles need, and by cells of
neighbouring counts, of which there are at most `CELLS_MAX`, where the law is wider than that.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tacit.accounting.numerics import betainc
from tacit.mechanisms.categorical import CategoricalSampler, Weights
from tacit.mechanisms.exact_sampling import Enclosure, biased_coins, exp_negative, integers_below
from tacit.mechanisms.mechanism import Interval, Mechanism, require_replace_one
from tacit.mechanisms.randomness import SYSTEM, RandomSource
from tacit.mechanisms.simulation import mark_simulated
from tacit.mechanisms.values import array_of, refuse_masked
from tacit.privacy import events
from tacit.privacy.errors import EmptyInput, InvalidInput, OutOfRange, TooLarge, WrongType
from tacit.privacy.events import Event
from tacit.privacy.numbers import Real, inside_unit_interval, level_of, native_number, parameter, rounded_up, whole
from tacit.privacy.units import Relation

CELLS_MAX: Final = 4096
"""With more counts than these within the window, the limits are wider by less than 1/200 of the count's deviation."""

DEVIATIONS: Final = 9
COUNTS_BESIDE: Final = 40
"""The half-width of the window of counts, in standard deviations and counts; the mass beyond is added to the tail."""

RELATIVE_SLACK: Final = 1e-9
ABSOLUTE_SLACK: Final = 1e-13
"""Far more than the rounding errors of a tail; the least that is compared with it is 2^-41, above 4e-13."""


@dataclass(frozen=True, slots=True)
class Reporting:
    """The probabilities that reports name an answer, and their complements, which doubles could not always subtract."""

    truth: float
    not_truth: float
    lie: float
    not_lie: float

    def reversed(self) -> Reporting:
        """Return the law with the roles exchanged: reports that do not name the answer, by those who do not hold it."""
        return Reporting(self.not_lie, self.lie, self.not_truth, self.truth)


def holder_limits(count: int, people: int, law: Reporting, level: float) -> tuple[int, int]:
    """Return confidence limits for the number of holders among `people`, `count` of whose reports name the answer."""
    missed = (1 - level) / 2
    most = _most_holders(count, people, law, missed)
    least = people - _most_holders(people - count, people, law.reversed(), missed)
    return least, most


def _most_holders(count: int, people: int, law: Reporting, missed: float) -> int:
    """Return the greatest m with P_m(X <= count) >= missed, or 0 if there is none."""

    def refuted(holders: int) -> bool:
        return _lower_tail(count, holders, people, law) * (1 + RELATIVE_SLACK) + ABSOLUTE_SLACK < missed

    return max(0, bisect_left(range(people + 1), True, key=refuted) - 1)


def _lower_tail(count: int, holders: int, people: int, law: Reporting) -> float:
    """Return an upper bound of P(X <= count): the sum over cells of true reports of P(cell) P(lies <= the rest)."""
    deviation = math.sqrt(holders * law.truth * law.not_truth)
    reach = math.ceil(DEVIATIONS * deviation) + COUNTS_BESIDE
    centre = round(holders * law.truth)
    first, last = max(0, centre - reach), min(holders, centre + reach)
    width = -(-(last - first + 1) // CELLS_MAX)
    starts = np.arange(first, last + 1, width)
    edges = np.append(starts, last + 1)
    upto = _at_most(edges - 1, holders, law.truth, law.not_truth)
    lies = _at_most(count - starts, people - holders, law.lie, law.not_lie)
    return float(np.diff(upto) @ lies + upto[0] + (1 - upto[-1]))


def _at_most(counts: NDArray[np.int64], trials: int, chance: float, complement: float) -> NDArray[np.float64]:
    """Return the binomial distribution function, P(Binomial(trials, chance) <= count)."""
    inside = np.clip(counts, 0, max(0, trials - 1)).astype(np.float64)
    # The smaller of two complementary probabilities is the argument: a double holds it without loss.
    if complement <= chance:
        shares = betainc(np.maximum(trials - inside, 1.0), inside + 1, complement)
    else:
        shares = 1 - betainc(inside + 1, np.maximum(trials - inside, 1.0), chance)
    return np.where(counts < 0, 0.0, np.where(counts >= trials, 1.0, shares))


CATEGORIES_MAX: Final = 2**32
SHARES_MAX: Final = 2**24
"""The greatest number of answers for estimates, which hold the share of every answer, reported or not."""


@dataclass(frozen=True, slots=True)
class RandomizedResponse(Mechanism):
    """Reports of answers 0 … categories - 1, or of truth values."""

    epsilon: Real | None = None
    categories: int = 2
    truth: Real | None = field(default=None, kw_only=True)
    relation: Relation = field(default=Relation.REPLACE_ONE, kw_only=True)

    def __post_init__(self) -> None:
        Mechanism.__post_init__(self)
        require_replace_one(self.relation)
        self._normalize(categories=partial(whole, at_least=2))
        if self.categories > CATEGORIES_MAX:
            raise TooLarge(f"randomized response takes at most {CATEGORIES_MAX:,} answers", name="categories")
        if (self.epsilon is None) == (self.truth is None):
            raise InvalidInput("randomized response is given by epsilon or by truth: exactly one of them")
        if self.epsilon is not None:
            self._normalize(epsilon=parameter)
            return
        truth = inside_unit_interval("truth", self.truth)
        if truth * self.categories <= 1:
            raise OutOfRange(
                f"truth must be above 1/{self.categories}, or reports carry no information, and is {float(truth):g}",
                name="truth",
                value=self.truth,
            )
        object.__setattr__(self, "truth", native_number(truth))

    @property
    def truth_probability(self) -> float:
        """The probability that a report is the true answer."""
        if self.truth is not None:
            return float(self.truth)
        return 1 / (1 + (self.categories - 1) * math.exp(-float(self.epsilon or 0)))

    @property
    def lie_probability(self) -> float:
        """The probability that a report is one given answer that is not the true one."""
        if self.truth is not None:
            return float((1 - Fraction(self.truth)) / (self.categories - 1))
        return math.exp(-float(self.epsilon or 0)) * self.truth_probability

    @property
    def event(self) -> Event:
        if self.epsilon is not None:
            epsilon = rounded_up(Fraction(self.epsilon))
        else:
            truth = Fraction(self.truth or 0)
            odds = truth * (self.categories - 1) / (1 - truth)
            epsilon = math.nextafter(math.log(rounded_up(odds)), math.inf)
        return events.RandomizedResponse(epsilon=epsilon, categories=self.categories, under=self.relation)

    def release(self, answers: Any, *, source: RandomSource = SYSTEM) -> Any:
        """Return a report for each answer: booleans for a bool and for arrays of that dtype, otherwise integers.

        Reports on a list are integers, whatever it holds: its type would depend on every answer in it.
        """
        array = self._answers(answers)
        lies = self._lies(array.size, source).reshape(array.shape)
        others = 1 + integers_below(self.categories - 1, array.size, source).reshape(array.shape)
        reports: Any = np.where(lies, (array + others) % self.categories, array)
        if isinstance(answers, bool) or getattr(answers, "dtype", None) == np.bool_:
            reports = reports.astype(np.bool_)
        if array.ndim == 0:
            reports = reports.item()
        return mark_simulated(reports) if source.simulated else reports

    def estimate(self, reports: Any) -> Any:
        """Return the unbiased estimate of the share of ones or, for more than two answers, of each answer's share."""
        counts = self._counts(reports)
        shares = (counts / counts.sum() - self.lie_probability) / self._preference
        return float(shares[1]) if self.categories == 2 else shares

    def unbiased(self, reports: Any) -> NDArray[np.float64]:
        """Return a weight of every answer for each report; their expected values are 1 for the true answer, 0 else."""
        array = self._answers(reports)
        if array.size * self.categories > SHARES_MAX:
            raise TooLarge(f"weights are at most {SHARES_MAX:,} numbers", name="reports")
        named = array[..., None] == np.arange(self.categories)
        return np.asarray((named - self.lie_probability) / self._preference)

    def interval(self, level: float, reports: Any) -> Interval:
        """Return the range of the true share among those who reported, with a probability of at least `level`.

        For more than two answers there is an interval for each, and each covers by itself. Few reports are covered as
        well as many: the limits invert the exact law of the counts (`holder_limits`). They lie within 0 and 1, and so
        may leave out an estimate that does not.
        """
        share = level_of(level)
        counts = self._counts(reports)
        low, high = self._limits(counts, int(counts.sum()), share)
        return Interval(float(low[1]), float(high[1])) if self.categories == 2 else Interval(low, high)

    def _limits(
        self, counts: NDArray[np.int64], people: int, level: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the limits of each share, computed once for equal counts."""
        others = self.categories - 1
        truth, lie = self.truth_probability, self.lie_probability
        law = Reporting(truth, others * lie, lie, truth + (others - 1) * lie)
        different, places = np.unique(counts, return_inverse=True)
        limits = np.array([holder_limits(int(count), people, law, level) for count in different]) / people
        return limits[places, 0], limits[places, 1]

    def posterior(self, prior: float) -> float:
        """Return the posterior probability that a reported answer is true, for a prior probability."""
        before = float(inside_unit_interval("prior", prior))
        seen = before * self.truth_probability
        return seen / (seen + (1 - before) * self.lie_probability)

    @property
    def _preference(self) -> float:
        """The probability of the true answer minus that of another given one, computed without cancellation."""
        if self.truth is not None:
            return float((Fraction(self.truth) * self.categories - 1) / (self.categories - 1))
        return self.truth_probability * -math.expm1(-float(self.epsilon or 0))

    def _lies(self, count: int, source: RandomSource) -> NDArray[np.bool_]:
        if self.truth is not None:
            return biased_coins(1 - Fraction(self.truth), count, source)
        epsilon, others = Fraction(self.epsilon or 0), self.categories - 1

        def weights(precision: int) -> Weights:
            lie = exp_negative(epsilon, precision)
            one = 1 << precision
            return Weights([Enclosure(one, one), Enclosure(others * lie.low, others * lie.high)], 0)

        exponents = np.array([0.0, float(epsilon) - math.log(others)])
        lies: NDArray[np.bool_] = CategoricalSampler(exponents - exponents.min(), weights).draw(count, source) == 1
        return lies

    def _counts(self, reports: Any) -> NDArray[np.int64]:
        """Return the number of reports that name each answer."""
        if self.categories > SHARES_MAX:
            raise TooLarge(f"shares are estimated of at most {SHARES_MAX:,} answers", name="categories")
        array = self._answers(reports)
        if not array.size:
            raise EmptyInput("an estimate needs at least one report", name="reports")
        return np.bincount(array.ravel(), minlength=self.categories)

    def _answers(self, answers: Any) -> NDArray[np.int64]:
        refuse_masked(answers)
        array = array_of(answers)
        if array.dtype.kind not in "biu":
            raise WrongType("answers are truth values or whole numbers that stand for categories", name="answers")
        if array.size and (int(array.min()) < 0 or int(array.max()) >= self.categories):
            raise OutOfRange(f"answers lie between 0 and {self.categories - 1}", name="answers")
        return array.astype(np.int64)
