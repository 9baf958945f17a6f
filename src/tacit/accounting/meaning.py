"""The meaning of an event's cost: what an attacker can learn about one person, at most.

Promise: every number here holds against any attacker who knows everything but the one person's data.

- Rates follow from the privacy curve by the hypothesis-testing reading of differential privacy (Wasserman, Zhou 2010;
  Kairouz, Oh, Viswanath 2015): for every test of "with" against "without", FPR + e^epsilon FNR >= 1 - delta, at every
  point of the curve.
- A posterior is bounded for certain by pure epsilon alone: Bayes' rule multiplies the odds by the likelihood ratio,
  which lies within e^(±epsilon) (Kasiviswanathan, Smith 2014). (epsilon, delta) does not bound posteriors "except with
  probability delta": randomized response at epsilon 1 is (0.5, 0.3)-private, and its likelihood ratio is e^(±1) always.
- What the curve says of posteriors is how likely they are to be large (`posterior_chance`) and their mean
  (`expected_posterior`). Both are derived at the functions, for the worst mechanism that has the curve, whatever is
  done with its output afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final

import numpy as np

from tacit.accounting.closed_forms import pure_epsilon
from tacit.accounting.conversions import Bound
from tacit.accounting.curves import deltas
from tacit.accounting.curves import epsilon as epsilon_at
from tacit.privacy.errors import OutOfRange
from tacit.privacy.events import Event
from tacit.privacy.figures import at_most
from tacit.privacy.numbers import exact, inside_unit_interval, not_negative
from tacit.privacy.units import Relation

CURVE_POINTS: Final = 49
CURVE_DELTA: Final = 1e-9
TAIL_POINTS: Final = 17
SURE: Final = 0.9
"""The posterior whose probability `Meaning.sentence_for` states."""

CHANCE_ROUNDS: Final = 3
CHANCE_POINTS: Final = 17
"""The rounds, and the points in each, of the search for the epsilon that proves the least chance."""

CHANCE_SHOWN: Final = 1e-12
"""The least chance that is stated in words."""

SLACK: Final = 1e-12
"""Added to an expected posterior for the rounding errors of its sum."""


@dataclass(frozen=True)
class Meaning:
    """What an attacker can gain from one event, at most."""

    event: Event
    delta: float
    epsilon: Bound

    @cached_property
    def pure_epsilon(self) -> float:
        """The epsilon that bounds every likelihood ratio, or infinity."""
        return pure_epsilon(self.event)

    def posterior(self, prior: float) -> tuple[float, float]:
        """Return certain bounds on the posterior of a prior belief: pure epsilon moves the odds by e^±epsilon.

        (0, 1) where the event is not purely private: single answers may then be conclusive, however rarely.
        """
        odds = _log_odds(float(inside_unit_interval("prior", prior)))
        return _probability(odds - self.pure_epsilon), _probability(odds + self.pure_epsilon)

    def posterior_chance(self, prior: float, level: float) -> float:
        """Return the greatest probability that the posterior of a true belief about a person is above `level`.

        The belief ends above the level where the likelihood ratio is above e^t, t the difference of the two log-odds.
        Let S be these outputs: Q(S) <= e^-t P(S), so at every point of the curve with epsilon < t
        delta >= P(S) - e^epsilon Q(S) >= P(S) (1 - e^(epsilon - t)). Below 0 the curve is that of the neighbours
        exchanged: delta(-epsilon) = 1 - e^-epsilon (1 - delta(epsilon)).

        That is least for one epsilon, since delta is convex in e^epsilon and the divisor falls in proportion to it, so
        the least is sought between the neighbours of the best known point. An upper bound at every epsilon, it ends
        within 1 % of the least where `deltas` is exact.
        """
        after, before = (_log_odds(float(inside_unit_interval(*one))) for one in (("level", level), ("prior", prior)))
        rise = after - before - 2.0**-50 * (abs(after) + abs(before))  # a lower level is reached no less often
        if rise > self.pure_epsilon:
            return 0.0
        points = [(-epsilon, _mirrored_delta(epsilon, delta)) for epsilon, delta in reversed(self._long_curve)]
        points += self._long_curve
        found = {epsilon: delta / -math.expm1(epsilon - rise) for epsilon, delta in points if epsilon < rise}
        for _ in range(CHANCE_ROUNDS if found else 0):
            known = sorted(found)
            best = min(range(len(known)), key=lambda index: found[known[index]])
            low, high = known[max(best - 1, 0)], [*known, rise][best + 1]
            between = [one for one in np.linspace(low, high, CHANCE_POINTS).tolist() if low < one < high]
            found |= {one: at / -math.expm1(one - rise) for one, at in self._deltas_of_either_sign(between)}
        return min([1.0, *found.values()])

    def _deltas_of_either_sign(self, epsilons: Sequence[float]) -> list[tuple[float, float]]:
        """Return upper bounds on the curve at epsilons, those below 0 by the curve of the neighbours exchanged."""
        sizes = sorted({abs(one) for one in epsilons})
        known = dict(zip(sizes, deltas(self.event, sizes), strict=True))
        return [(one, known[one] if one >= 0 else _mirrored_delta(-one, known[-one])) for one in epsilons]

    def expected_posterior(self, prior: float) -> float:
        """Return the greatest mean posterior of a true belief about a person.

        With the likelihood ratio r = P / Q, prior p and c = 1 - p the mean under P is E_Q[g(r)], g(r) = p r^2 / (p r +
        c): convex, g(1) = p, g' rising from 0 to 1. So it is p + the integral of the curve over dg': of
        E_Q[(r - y)+] = delta(ln y) above y = 1 and of E_Q[(y - r)+] = y delta(-ln y) below. Both are convex in y, and
        are replaced by chords between upper bounds: the integral of a + b y over dg' is a g' + b k, k = y g' - g =
        p c y^2 / (p y + c)^2.
        """
        share = float(inside_unit_interval("prior", prior))
        above = [(math.exp(epsilon), delta) for epsilon, delta in self._long_curve if epsilon < 700]
        below = [(0.0, 0.0), *((1 / ratio, delta / ratio) for ratio, delta in reversed(above))]
        rest = above[-1][1] * (1 - _slope(share, above[-1][0]))
        mean = share + sum(_chord(share, *ends) for line in (above, below) for ends in pairwise(line)) + rest
        return min(mean + SLACK, self.posterior(share)[1])

    @property
    def posterior_factor(self) -> float:
        """The greatest ratio of posteriors with and without a person's data, for any prior: e^(2 pure epsilon).

        Bayes' rule has the likelihood of the answers in its numerator and their mean likelihood in its denominator;
        leaving the person out moves each of them by a factor of at most e^epsilon (Kasiviswanathan, Smith 2014).
        """
        return math.exp(2 * self.pure_epsilon) if self.pure_epsilon < 354 else math.inf

    def true_positive_rate(self, false_positive_rate: float) -> float:
        """Return the greatest true positive rate of any membership attack at a false positive rate."""
        rate = float(exact("false_positive_rate", false_positive_rate))
        if not 0 <= rate <= 1:
            raise OutOfRange("a rate lies between 0 and 1", name="false_positive_rate", value=false_positive_rate)
        points = [(0.0, 1.0), *self._long_curve]
        forward = min(math.exp(min(epsilon, 700.0)) * rate + delta for epsilon, delta in points)
        backward = min(1 - math.exp(-epsilon) * (1 - delta - rate) for epsilon, delta in points)
        return min(1.0, forward, backward)

    @property
    def advantage(self) -> float:
        """The greatest difference of true and false positive rates of any attack: the curve at epsilon 0."""
        return self.curve[0][1]

    @property
    def risk_factor(self) -> float:
        """e^epsilon: taking part makes any harm likelier by at most this factor, plus delta."""
        return math.exp(self.epsilon.upper) if self.epsilon.upper < 709 else math.inf

    @cached_property
    def curve(self) -> tuple[tuple[float, float], ...]:
        """Points (epsilon, delta) of upper bounds on the event's curve, from epsilon 0 to that at `delta`."""
        top, at_top = self._end
        if math.isinf(top):
            return ((0.0, 1.0),)
        epsilons = np.unique(np.linspace(0, top, CURVE_POINTS)).tolist()
        *below, last = deltas(self.event, epsilons)
        return tuple(zip(epsilons, (*below, min(last, at_top)), strict=True))

    @cached_property
    def _end(self) -> tuple[float, float]:
        """The last point of the curve; if epsilon at `delta` is infinite (Gaussian noise at 0), that at CURVE_DELTA."""
        if math.isfinite(self.epsilon.upper):
            return self.epsilon.upper, self.delta
        return epsilon_at(self.event, CURVE_DELTA).upper, CURVE_DELTA

    @cached_property
    def _long_curve(self) -> tuple[tuple[float, float], ...]:
        """The curve, continued beyond its last epsilon: rare outcomes still move posteriors."""
        top, at_top = self._end
        end = min(self.pure_epsilon, 2 * top + 2)
        if not top < end < math.inf:
            return self.curve
        epsilons = np.linspace(top, end, TAIL_POINTS).tolist()[1:]
        found = deltas(self.event, epsilons)
        return (*self.curve, *zip(epsilons, (min(one, at_top) for one in found), strict=True))

    @property
    def sentence(self) -> str:
        """The meaning in plain language for a prior of 50 %, with figures rounded towards claiming less."""
        return self.sentence_for(0.5)

    def sentence_for(self, prior: float) -> str:
        """Return the meaning in plain language for a prior belief, with figures rounded towards claiming less."""
        share = float(inside_unit_interval("prior", prior))
        if self.advantage == 1:
            return "An attacker who sees the answers may become certain about a person."
        found = _percent_up(self.true_positive_rate(0.01))
        if self.event.relation is Relation.ADD_REMOVE:
            belief, truth = "that a person is in the data", "who is"
            attack = f"an attack that wrongly accuses 1 in 100 finds at most {found} of those who are"
        else:
            belief, truth = "that a person's record is the one of two that are possible", "for whom it is true"
            attack = f"an attack that wrongly suspects 1 in 100 finds at most {found} of those who have that record"
        attacker = f"An attacker with a prior of {100 * share:.6g}% {belief} has a posterior"
        low, high = self.posterior(share)
        if self.pure_epsilon <= self.epsilon.upper < math.inf:
            return (
                f"{attacker} between {_percent_down(low)} and {_percent_up(high)} after seeing the answers, whatever "
                f"they are; {attack}."
            )
        limit = ""
        if high <= SURE:
            limit = f", and never above {_percent_up(high)}"
        elif share < SURE:
            chance = at_most(max(self.posterior_chance(share, SURE), CHANCE_SHOWN), 2)
            limit = f", and above {SURE:.0%} with a probability of at most {chance}"
        return (
            f"{attacker} of at most {_percent_up(self.expected_posterior(share))} on average after seeing the answers "
            f"about a person {truth}{limit}; {attack}."
        )


def meaning(event: Event, delta: float) -> Meaning:
    """Return what an attacker can learn from an event, for a delta of at least 0."""
    bound = epsilon_at(event, delta)
    return Meaning(event, float(not_negative("delta", delta)), bound)


def delta_warning(delta: float, units: int) -> str | None:
    """Return a warning about a delta that is too large for a number of units, or None.

    At delta = 1/n, publishing one person's record whole would satisfy the definition.
    """
    if delta >= 1 / units:
        return (
            f"delta {delta:.1g} is not below 1/{units:,}: releasing one person's record whole would keep the promise; "
            f"use {1 / units**2:.1g} or less"
        )
    if delta > 1 / units**2:
        return f"delta {delta:.1g} is above the recommended 1/n^2 = {1 / units**2:.1g}"
    return None


def _log_odds(share: float) -> float:
    """Return the log-odds of a probability."""
    return math.log(share) - math.log1p(-share)


def _probability(odds: float) -> float:
    """Return the probability of log-odds."""
    return 1 / (1 + math.exp(-odds)) if odds > -700 else 0.0


def _mirrored_delta(epsilon: float, delta: float) -> float:
    """Return delta at -epsilon of the neighbours exchanged: 1 - e^-epsilon (1 - delta)."""
    return -math.expm1(-epsilon) + math.exp(-epsilon) * delta


def _slope(prior: float, ratio: float) -> float:
    """Return g' of `Meaning.expected_posterior` at a likelihood ratio."""
    seen = prior * ratio / (prior * ratio + 1 - prior)
    return seen * (2 - seen)


def _chord(prior: float, start: tuple[float, float], end: tuple[float, float]) -> float:
    """Return the integral over dg' of the line through two points (ratio, value)."""
    (low, at_low), (high, at_high) = start, end
    rise = (at_high - at_low) / (high - low) if high > low else 0.0

    def moment(ratio: float) -> float:
        seen = ratio / (prior * ratio + 1 - prior)
        return prior * (1 - prior) * seen * seen

    steps = _slope(prior, high) - _slope(prior, low)
    return (at_low - rise * low) * steps + rise * (moment(high) - moment(low))


def _percent_up(share: float) -> str:
    return f"{math.ceil(1000 * min(share, 1.0)) / 10:g}%"


def _percent_down(share: float) -> str:
    return f"{math.floor(1000 * share) / 10:g}%"
