"""Total variation: delta at epsilon 0, and so a bound on delta at every epsilon.

Promise: `total_variation` is at least the total variation distance of an event between any two neighbours. Those of
composed parts add up, also where a part is chosen by earlier answers. A sample has its rate times that of the event, by
joint convexity. Of (epsilon, delta)-privacy it is delta + (1 - delta) tanh(epsilon / 2) (Kairouz, Oh, Viswanath 2015),
of log-ratios in an interval of length epsilon tanh(epsilon / 4) (`pairs.BoundedRangePair` at 0), of mu-Gaussian privacy
erf(mu / sqrt(8)) (Dong, Roth, Su 2022). A Rényi bound R of any order above 1 is one on the relative entropy, and gives
sqrt(R / 2) (Pinsker) and sqrt(1 - e^-R) (Bretagnolle and Huber 1979).
"""

from __future__ import annotations

import math

from tacit.accounting.measures import gaussian_mu
from tacit.accounting.parts import parts, replaced
from tacit.accounting.pure import summed
from tacit.accounting.renyi import curve
from tacit.privacy import events
from tacit.privacy.events import Event
from tacit.privacy.relations import Relation

UP = 1 + 2.0**-50


def total_variation(event: Event) -> float:
    """Return a bound on the total variation between the outputs for two neighbours."""
    return min(summed([(count, _part_variation(part)) for part, count in parts(event).items()]), 1.0)


def _part_variation(event: Event) -> float:
    match event:
        case events.Sampled(rate, inner) if event.relation is Relation.ADD_REMOVE:
            return rate * total_variation(inner)  # at most the rate, also when rounded
        case events.SampledWithoutReplacement(size, population, inner):
            return size / population * total_variation(replaced(inner))
        case events.Exponential(epsilon=epsilon):
            return math.tanh(epsilon / 4) * UP
        case events.Approximate(epsilon=epsilon, delta=delta):
            return (delta + (1 - delta) * math.tanh(epsilon / 2)) * UP
        case events.Disjoint(several) if event.relation is Relation.ADD_REMOVE:
            return max(total_variation(one) for one in several)
        case events.Grouped(inner, size):
            return min(summed([(size, total_variation(inner))]), _by_measures(event))
        case _:
            return _by_measures(event)


def _by_measures(event: Event) -> float:
    mu = gaussian_mu(event)
    if math.isfinite(mu):
        return math.erf(mu / math.sqrt(8)) * UP
    entropy = float(curve(event).min())
    return min(math.sqrt(entropy / 2), math.sqrt(-math.expm1(-entropy))) * UP
