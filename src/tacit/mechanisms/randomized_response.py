"""Randomized response: a person's own answer, changed by chance before anybody sees it.

Promise: whatever the true answer, each report is at most e^epsilon times as likely as under another true answer; the
neighbours are two answers of one person, that is, replace-one (Warner 1965; over k answers: Kairouz, Bonawitz, Ramage
2016). Under add/remove there is no promise, since the number of reports tells who took part, and it is refused.
Given by epsilon, or by the probability `truth` with which the report is the true answer: with two coins (heads: tell
the truth; tails: report what the second coin shows) that is 3/4, and epsilon is ln 3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms.binomial_limits import Reporting, holder_limits
from tacit.mechanisms.coins import biased_coins
from tacit.mechanisms.enclosures import Enclosure, exp_negative
from tacit.mechanisms.mechanism import Interval, Mechanism, require_replace_one
from tacit.mechanisms.randomness import SYSTEM, Source
from tacit.mechanisms.simulation import marked
from tacit.mechanisms.uniform import integers_below
from tacit.mechanisms.values import array_of, refuse_masked
from tacit.mechanisms.wheel import Weights, Wheel
from tacit.privacy import events
from tacit.privacy.errors import EmptyInput, InvalidInput, OutOfRange, TooLarge, WrongType
from tacit.privacy.events import Event
from tacit.privacy.numbers import Real, inside_unit_interval, level_of, parameter, plain, rounded_up, whole
from tacit.privacy.relations import Relation

CATEGORIES_MAX: Final = 2**32
SHARES_MAX: Final = 2**24
"""For so many answers an estimate is worked out at most: every one of them has a share, also if nobody reports it."""


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
        object.__setattr__(self, "categories", whole("categories", self.categories, at_least=2))
        if self.categories > CATEGORIES_MAX:
            raise TooLarge(f"at most {CATEGORIES_MAX:,} answers can be told apart", name="categories")
        if (self.epsilon is None) == (self.truth is None):
            raise InvalidInput("randomized response is given by epsilon or by truth: exactly one of them")
        if self.epsilon is not None:
            object.__setattr__(self, "epsilon", plain(parameter("epsilon", self.epsilon)))
            return
        truth = inside_unit_interval("truth", self.truth)
        if truth * self.categories <= 1:
            raise OutOfRange(
                f"truth must be above 1/{self.categories}, or reports say nothing, and is {float(truth):g}",
                name="truth",
                value=self.truth,
            )
        object.__setattr__(self, "truth", plain(truth))

    @property
    def truth_probability(self) -> float:
        """How likely a report is the true answer."""
        if self.truth is not None:
            return float(self.truth)
        return 1 / (1 + (self.categories - 1) * math.exp(-float(self.epsilon or 0)))

    @property
    def lie_probability(self) -> float:
        """How likely a report is one given answer that is not the true one."""
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

    def release(self, answers: Any, *, source: Source = SYSTEM) -> Any:
        """Return a report for each answer: one or an array, of truth values for one and for arrays of that dtype.

        Reports on a list are integers, whatever it holds: its kind would depend on every answer in it.
        """
        array = self._answers(answers)
        lies = self._lies(array.size, source).reshape(array.shape)
        others = 1 + integers_below(self.categories - 1, array.size, source).reshape(array.shape)
        reports: Any = np.where(lies, (array + others) % self.categories, array)
        if isinstance(answers, bool) or getattr(answers, "dtype", None) == np.bool_:
            reports = reports.astype(np.bool_)
        if array.ndim == 0:
            reports = reports.item()
        return marked(reports) if source.simulated else reports

    def estimate(self, reports: Any) -> Any:
        """Return the unbiased estimate of the share of ones or, for more than two answers, of each answer's share."""
        counts = self._counts(reports)
        shares = (counts / counts.sum() - self.lie_probability) / self._preference
        return float(shares[1]) if self.categories == 2 else shares

    def interval(self, level: float, reports: Any) -> Interval:
        """Return where the share among those who reported lies, with a probability of at least `level`.

        For more than two answers there is an interval for each, and each covers by itself. Few reports are covered as
        well as many: the limits invert the exact law of the counts (`binomial_limits`). They lie within 0 and 1, and so
        may leave out an estimate that does not.
        """
        share = level_of(level)
        counts = self._counts(reports)
        low, high = self._limits(counts, int(counts.sum()), share)
        return Interval(float(low[1]), float(high[1])) if self.categories == 2 else Interval(low, high)

    def _limits(
        self, counts: NDArray[np.int64], people: int, level: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the limits of each share, worked out once for equal counts."""
        others = self.categories - 1
        truth, lie = self.truth_probability, self.lie_probability
        law = Reporting(truth, others * lie, lie, truth + (others - 1) * lie)
        different, places = np.unique(counts, return_inverse=True)
        limits = np.array([holder_limits(int(count), people, law, level) for count in different]) / people
        return limits[places, 0], limits[places, 1]

    def posterior(self, prior: float) -> float:
        """Return how likely an answer is true for somebody who held it for `prior` and saw it reported."""
        before = float(inside_unit_interval("prior", prior))
        seen = before * self.truth_probability
        return seen / (seen + (1 - before) * self.lie_probability)

    @property
    def _preference(self) -> float:
        """How much likelier a report is the true answer than another given one: worked out without cancelling."""
        if self.truth is not None:
            return float((Fraction(self.truth) * self.categories - 1) / (self.categories - 1))
        return self.truth_probability * -math.expm1(-float(self.epsilon or 0))

    def _lies(self, count: int, source: Source) -> NDArray[np.bool_]:
        if self.truth is not None:
            return biased_coins(1 - Fraction(self.truth), count, source)
        epsilon, others = Fraction(self.epsilon or 0), self.categories - 1

        def weights(precision: int) -> Weights:
            lie = exp_negative(epsilon, precision)
            one = 1 << precision
            return Weights([Enclosure(one, one), Enclosure(others * lie.low, others * lie.high)], 0)

        exponents = np.array([0.0, float(epsilon) - math.log(others)])
        lies: NDArray[np.bool_] = Wheel(exponents - exponents.min(), weights).draw(count, source) == 1
        return lies

    def _counts(self, reports: Any) -> NDArray[np.int64]:
        """Return how many reports name each answer."""
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
