"""Pure differential privacy: what is lost at most, for certain.

Promise: `pure_epsilon` bounds every log-ratio of an event, or is infinite.
Not here: composing pure events better than by their sum. The best that is possible (Kairouz, Oh, Viswanath 2015) is the
composition of randomized responses, which `loss` does.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from tacit.privacy import events
from tacit.privacy.events import Event
from tacit.privacy.numbers import TINY, rounded_up
from tacit.privacy.relations import Relation


def pure_epsilon(event: Event) -> float:
    """Return an epsilon for which the event is purely private, or infinity."""
    match event:
        case (
            events.Pure(epsilon=epsilon)
            | events.DiscreteLaplace(epsilon=epsilon)
            | events.RandomizedResponse(epsilon=epsilon)
        ):
            return epsilon
        case events.Shuffled(epsilon=epsilon) if event.relation is Relation.REPLACE_ONE:
            return epsilon
        case events.Approximate(epsilon=epsilon, delta=delta):
            return epsilon if delta == 0 else math.inf
        case events.Repeated(inner, count):
            return summed([(count, pure_epsilon(inner))])
        case events.Composed(several):
            return summed([(times, pure_epsilon(one)) for one, times in Counter(several).items()])
        case events.Disjoint(several) if event.relation is Relation.ADD_REMOVE:
            return max(pure_epsilon(one) for one in dict.fromkeys(several))
        case events.Grouped(inner, size):
            return summed([(size, pure_epsilon(inner))])
        case events.Selected(inner, shape, _):
            return _up((2 + shape) * pure_epsilon(inner))
        case events.Sampled(rate, inner) if rate == 1 or event.relation is Relation.ADD_REMOVE:
            return amplified(rate, pure_epsilon(inner))
        case events.SampledWithoutReplacement(size, population, inner):
            exchanged = pure_epsilon(inner) * (1 if event.relation is Relation.REPLACE_ONE else 2)
            return amplified(size / population, exchanged)
        case _:
            return math.inf


def amplified(rate: float, epsilon: float) -> float:
    """Return ln(1 + rate (e^epsilon - 1)): a pure epsilon after sampling (Balle, Barthe, Gaboardi 2018)."""
    if rate == 1 or epsilon in (0, math.inf):
        return epsilon
    if epsilon > 700:  # e^epsilon may be no float: ln(1 + rate e^epsilon) is the same and a little more
        power = epsilon + math.log(rate) + 2.0**-40  # more than the rounding of the two
        number = max(power, 0.0) + math.log1p(math.exp(-abs(power)))
    else:
        number = math.log1p(rate * math.expm1(epsilon))
    return min(epsilon, max(_up(number), TINY))


def summed(parts: Sequence[tuple[int, float]]) -> float:
    """Return the sum of multiples, exactly, rounded up once: shares of an epsilon add up to no more than it."""
    if any(math.isinf(epsilon) for _, epsilon in parts):
        return math.inf
    if len(parts) == 1 and parts[0][0] == 1 and parts[0][1] >= 0:
        return parts[0][1]
    return rounded_up(sum((count * Fraction(epsilon) for count, epsilon in parts), Fraction(0)))


def _up(number: float) -> float:
    return math.nextafter(number * (1 + 2**-50), math.inf) if number else number
