"""Random nested events with parameters from the whole range of doubles: bounds are ordered, and none is refused."""

from __future__ import annotations

import math
import random

import pytest

from tacit.accounting import delta, epsilon
from tacit.accounting.closed_forms import pure_epsilon
from tacit.accounting.curves import total_variation
from tacit.accounting.measures import approximate_zcdp, gaussian_mu, renyi
from tacit.privacy import Relation, events
from tacit.privacy.events import Event

SEEDS = range(60)


class Draw:
    """Random events of one relation."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.under = self.random.choice([Relation.ADD_REMOVE, Relation.REPLACE_ONE])

    def positive(self) -> float:
        reach = self.random.choice([3, 3, 12, 307])
        return float(10 ** self.random.uniform(-reach, reach))

    def share(self) -> float:
        return float(10 ** self.random.uniform(-self.random.choice([3, 12, 320]), -1e-4))

    def count(self) -> int:
        return self.random.choice([self.random.randint(1, 20), 10 ** self.random.randint(1, 5), 10**25])

    def leaf(self) -> Event:
        positive, under = self.positive, self.under
        makers = [
            lambda: events.Pure(positive(), under=under),
            lambda: events.Approximate(positive(), self.share(), under=under),
            lambda: events.Laplace(positive(), under=under),
            lambda: events.DiscreteLaplace(positive(), self.count(), under=under),
            lambda: events.Gaussian(positive(), under=under),
            lambda: events.DiscreteGaussian(positive(), positive(), under=under),
            lambda: events.DiscreteGaussian(positive(), float(self.random.randint(1, 9)), scalar=True, under=under),
            lambda: events.Exponential(positive(), under=under),
            lambda: events.RandomizedResponse(positive(), self.random.choice([2, 3, 10**6]), under=under),
            lambda: events.ZeroConcentrated(positive(), under=under),
            lambda: events.NoisyMax(positive(), under=under),
            lambda: events.TreeAggregation(positive(), self.count(), under=under),
        ]
        return self.random.choice(makers)()

    def event(self, depth: int) -> Event:
        if depth == 0 or self.random.random() < 0.25:
            return self.leaf()
        inner, count = self.event(depth - 1), self.count()
        kind = self.random.randrange(6)
        if kind == 0:
            return events.Repeated(inner, count)
        if kind == 1:
            return events.Composed((inner, self.event(depth - 1)))
        if kind == 2:
            return events.Grouped(inner, count)
        if kind == 3:
            return events.SampledWithoutReplacement(self.random.randint(1, count), count, inner)
        if kind == 4 and self.under is Relation.ADD_REMOVE:
            return events.Sampled(min(1.0, 2 * self.share()), inner)
        return events.Selected(inner, self.random.choice([0.0, 1.0, self.positive()]), self.share())


@pytest.mark.parametrize("seed", SEEDS)
def test_random_events_have_ordered_bounds_that_agree_with_one_another(seed: int) -> None:
    draw = Draw(seed)
    event = draw.event(draw.random.randint(0, 3))
    small, large = sorted((draw.share(), draw.share()))
    dear, cheap = epsilon(event, small), epsilon(event, large)
    at_zero, back = delta(event, 0.0), delta(event, min(dear.upper, 1e300))
    for bound in (dear, cheap, at_zero, back):
        assert 0 <= bound.lower <= bound.upper
    assert cheap.lower <= dear.upper
    assert cheap.upper <= dear.upper * 1.02
    assert back.lower <= small * (1 + 1e-9) or dear.upper == math.inf
    assert at_zero.lower <= total_variation(event) * (1 + 1e-9) <= 1 + 1e-9
    rho, given = approximate_zcdp(event)
    assert min(rho, given, gaussian_mu(event), pure_epsilon(event)) >= 0
    assert min(renyi(event, order) for order in (1.01, 2.0, 4096.0)) >= 0
