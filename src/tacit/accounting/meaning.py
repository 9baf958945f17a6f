"""What an event's cost is worth to somebody who attacks one person.

Promise: every number here holds against any attacker who knows everything but the one person's data, since it follows
from the event's privacy curve by the hypothesis-testing reading of differential privacy (Wasserman, Zhou 2010; Kairouz,
Oh, Viswanath 2015): for every test of "with" against "without", FPR + e^epsilon FNR >= 1 - delta, at every point of
the curve.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from tacit.accounting.bounds import Bound
from tacit.accounting.curves import deltas
from tacit.accounting.curves import epsilon as epsilon_at
from tacit.privacy.errors import OutOfRange
from tacit.privacy.events import Event
from tacit.privacy.figures import at_most
from tacit.privacy.numbers import exact, inside_unit_interval

CURVE_POINTS: Final = 49


@dataclass(frozen=True)
class Meaning:
    """What an attacker can gain from one event, at most."""

    event: Event
    delta: float
    epsilon: Bound

    def posterior(self, prior: float) -> tuple[float, float]:
        """Return between which beliefs a prior belief ends, except with probability delta: odds move by e^±epsilon."""
        belief = float(inside_unit_interval("prior", prior))
        odds = math.log(belief) - math.log1p(-belief)
        return _share(odds - self.epsilon.upper), _share(odds + self.epsilon.upper)

    def textbook_posterior(self, prior: float) -> tuple[float, float]:
        """Return prior times e^-epsilon and e^epsilon, at most 1: the simpler and wider bound of the textbooks."""
        belief = float(inside_unit_interval("prior", prior))
        return belief * math.exp(-self.epsilon.upper), math.exp(min(0.0, math.log(belief) + self.epsilon.upper))

    def true_positive_rate(self, false_positive_rate: float) -> float:
        """Return how many of the people who are in the data an attacker finds at most, at a rate of false alarms."""
        rate = float(exact("false_positive_rate", false_positive_rate))
        if not 0 <= rate <= 1:
            raise OutOfRange("a rate lies between 0 and 1", name="false_positive_rate", value=false_positive_rate)
        points = [(0.0, 1.0), *self.curve]
        forward = min(math.exp(min(epsilon, 700.0)) * rate + delta for epsilon, delta in points)
        backward = min(1 - math.exp(-epsilon) * (1 - delta - rate) for epsilon, delta in points)
        return min(1.0, forward, backward)

    @property
    def advantage(self) -> float:
        """How far an attacker's true positives can exceed the false ones, at most: the curve at epsilon 0."""
        return self.curve[0][1]

    @property
    def risk_factor(self) -> float:
        """By what factor taking part can make any harm more likely, but for delta: e^epsilon."""
        return math.exp(self.epsilon.upper) if self.epsilon.upper < 709 else math.inf

    @cached_property
    def curve(self) -> tuple[tuple[float, float], ...]:
        """Points (epsilon, delta) of the event's curve, upper bounds, from epsilon 0 to the one asked for."""
        top = self.epsilon.upper
        if math.isinf(top):
            return ((0.0, 1.0),)
        epsilons = np.unique(np.linspace(0, top, CURVE_POINTS)).tolist()
        *below, last = deltas(self.event, epsilons)
        return tuple(zip(epsilons, (*below, min(last, self.delta)), strict=True))

    @property
    def sentence(self) -> str:
        """The meaning in plain words, with figures rounded towards claiming less."""
        low, high = self.posterior(0.5)
        found = self.true_positive_rate(0.01)
        chance = f", but for a chance of {at_most(self.delta, 2)}" if self.delta else ""
        return (
            "Whoever thinks it as likely as not that a person is in the data will think it between "
            f"{_percent_down(low)} and {_percent_up(high)} likely after seeing the answers{chance}; "
            f"an attack that wrongly accuses 1 in 100 finds at most {_percent_up(found)} of those who are."
        )


def meaning(event: Event, delta: float) -> Meaning:
    """Say what an event is worth to an attacker, at a delta of at least 0."""
    return Meaning(event, float(delta), epsilon_at(event, delta))


def delta_warning(delta: float, units: int) -> str | None:
    """Return what is wrong with a delta for a number of units, or None: at 1/n one person may be given away whole."""
    if delta >= 1 / units:
        return (
            f"delta {delta:.1g} is not below 1/{units:,}: releasing one person's record whole would keep the promise; "
            f"use {1 / units**2:.1g} or less"
        )
    if delta > 1 / units**2:
        return f"delta {delta:.1g} is above the recommended 1/n^2 = {1 / units**2:.1g}"
    return None


def _share(odds: float) -> float:
    return 1 / (1 + math.exp(-odds)) if odds > -700 else 0.0


def _percent_up(share: float) -> str:
    return f"{math.ceil(1000 * share) / 10:g}%"


def _percent_down(share: float) -> str:
    return f"{math.floor(1000 * share) / 10:g}%"
