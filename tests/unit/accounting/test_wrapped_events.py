"""Groups, disjoint data and selection: every measure of them, against laws worked out unit by unit and run by run."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import mpmath
import numpy as np
import pytest
from mpmath import mpf
from numpy.typing import NDArray
from scipy.special import ndtr

from tacit.accounting import delta, epsilon
from tacit.accounting.closed_forms import pure_epsilon
from tacit.accounting.curves import total_variation
from tacit.accounting.measures import approximate_zcdp, gaussian_mu
from tacit.accounting.renyi import renyi_curve
from tacit.privacy import Relation, events
from tests.unit.accounting import truth

Floats = NDArray[np.float64]

HAIR = 1 + 1e-6
"""What is left to the integrals of this module; all bounds that it holds are further from the truth than that."""


class Densities(NamedTuple):
    """Two laws on the line, as the masses of both around many points."""

    p: Floats
    q: Floats

    @classmethod
    def of(cls, low: float, high: float, p: Callable[[Floats], Floats], q: Callable[[Floats], Floats]) -> Densities:
        """Integrate two densities by Gauss and Legendre's rule over 400 pieces."""
        nodes, weights = np.polynomial.legendre.leggauss(12)
        half = (high - low) / 800
        middles = low + half * (2 * np.arange(400) + 1)
        points, masses = (middles[:, None] + half * nodes).ravel(), half * np.tile(weights, 400)
        found = p(points) * masses, q(points) * masses
        seen = (found[0] > 1e-300) & (found[1] > 1e-300)  # to leave some out takes from divergences
        return cls(found[0][seen], found[1][seen])

    def renyi(self, order: float) -> float:
        """Return the greater of the divergences of the two directions."""
        ways = ((self.p, self.q), (self.q, self.p))
        return max(math.log(np.exp(order * np.log(p) + (1 - order) * np.log(q)).sum()) / (order - 1) for p, q in ways)

    def delta(self, at: float) -> float:
        """Return the greater of the deltas of the two directions."""
        ways = ((self.p, self.q), (self.q, self.p))
        return max(float(np.maximum(p - math.exp(at) * q, 0).sum()) for p, q in ways)


def normal(points: Floats, mean: float, sigma: float) -> Floats:
    return np.asarray(np.exp(-(((points - mean) / sigma) ** 2) / 2) / (sigma * math.sqrt(2 * math.pi)))


def group_on_samples(rate: float, sigma: float, size: int) -> Densities:
    """Return Gaussian noise on a Poisson sample, with a group of units that each are in it by themselves, or without.

    The sum moves by the number of those who are in it, which is binomial.
    """
    chances = [math.comb(size, k) * rate**k * (1 - rate) ** (size - k) for k in range(size + 1)]
    return Densities.of(
        -12 * sigma,
        12 * sigma + 6 * size,
        lambda x: np.asarray(sum(chance * normal(x, k, sigma) for k, chance in enumerate(chances))),
        lambda x: normal(x, 0, sigma),
    )


@pytest.mark.parametrize(("rate", "sigma", "size"), [(0.1, 1.0, 2), (0.02, 0.7, 3), (0.5, 2.0, 4)])
def test_a_group_on_a_poisson_sample_costs_what_its_mixture_does(rate: float, sigma: float, size: int) -> None:
    event, law = events.Grouped(events.Sampled(rate, events.Gaussian(sigma)), size), group_on_samples(rate, sigma, size)
    assert total_variation(event) * HAIR >= law.delta(0.0)
    for at in (0.05, 0.5):
        assert delta(event, at).upper * HAIR >= law.delta(at)
    for at in (1e-2, 1e-5):
        assert law.delta(epsilon(event, at).upper) <= at * HAIR
    orders = np.array([2.0, 3.0, 6.0])
    for order, bound in zip(orders, renyi_curve(event, orders), strict=True):
        assert bound * HAIR >= law.renyi(float(order))


@pytest.mark.parametrize("inner", [events.Gaussian(2.0), events.Sampled(0.1, events.Gaussian(1.0))])
def test_a_divergence_of_a_group_is_no_less_than_the_triangle_inequality_gives(inner: events.Event) -> None:
    """D_a(P, R) <= (a - 1/2) / (a - 1) D_2a(P, Q) + D_(2a - 1)(Q, R) follows from Hölder's inequality.

    It is what the proposition on groups is made from (Mironov 2017, proposition 2), and no more than that is proved.
    """
    orders, event = np.array([2.0, 2.5, 7.0, 50.0]), inner
    for size in (2, 4, 8):
        event = events.Disjoint((event,))  # a group of disjoint data is not taken apart
        proved = (orders - 0.5) / (orders - 1) * renyi_curve(event, 2 * orders) + renyi_curve(event, 2 * orders - 1)
        event = events.Grouped(event, 2)
        assert (renyi_curve(event, orders) >= proved).all()
        at_once = renyi_curve(events.Grouped(events.Disjoint((inner,)), size), orders)
        assert at_once == pytest.approx(renyi_curve(event, orders), rel=1e-6)


@pytest.mark.parametrize("size", [2, 3, 5])
def test_a_group_in_one_of_several_disjoint_parts_costs_what_that_part_does(size: int) -> None:
    event = events.Grouped(events.Disjoint((events.Gaussian(3.0), events.Laplace(0.1))), size)
    mu = mpf(size) / 3
    rho, given = approximate_zcdp(event)
    assert (mpf(rho) * HAIR >= mu * mu / 2, given) == (True, 0.0)
    assert gaussian_mu(event) * HAIR >= mu
    assert total_variation(event) * HAIR >= truth.gaussian_delta(mu, 0)
    orders = np.array([2.0, 5.0, 40.0])
    assert (renyi_curve(event, orders) >= orders * float(mu * mu / 2)).all()
    for at in (1e-2, 1e-6):
        assert truth.gaussian_delta(mu, epsilon(event, at).upper) <= at * HAIR
    pure = events.Grouped(events.Disjoint((events.Laplace(0.2), events.Laplace(0.1))), size)
    law = truth.Whole(truth.Laplace(0.2 * size))
    assert pure_epsilon(pure) >= 0.2 * size * (1 - 2**-50)
    assert approximate_zcdp(pure)[0] >= max(truth.renyi(law, order) / order for order in (1.01, 2.0, 20.0))
    assert total_variation(pure) * HAIR >= law.delta(0)


@pytest.mark.parametrize("size", [2, 3])
def test_a_group_among_shuffled_reports_costs_what_its_histogram_does(size: int) -> None:
    """The group answers one way or the other by randomized response, all other units one way."""
    local, count = 0.5, 6
    truthful = 1 / (1 + mpmath.exp(-mpf(local)))
    one, other = (truthful, 1 - truthful), (1 - truthful, truthful)
    rest = [other] * (count - size)
    before, after = (truth._counted([way] * size + rest) for way in (one, other))
    law = truth.Finite(tuple(zip(before, after, strict=True)))
    event = events.Grouped(events.Shuffled(local, count, under=Relation.REPLACE_ONE), size)
    worst = (law, law.turned())
    assert total_variation(event) * HAIR >= law.delta(0)
    assert pure_epsilon(event) >= max(law.knots())
    for at in (0.1, 0.6):
        assert delta(event, at).upper * HAIR >= max(way.delta(at) for way in worst)
    for order in (2.0, 6.0):
        divergence = max(truth.renyi(way, order) for way in worst)
        assert renyi_curve(event, np.array([order]))[0] * HAIR >= divergence
        assert approximate_zcdp(event)[0] * order * HAIR >= divergence


def best_of_runs(sigma: float, shape: float, stop: float) -> Densities:
    """Return the greatest of several noisy numbers, at 1 against at 0, from the generating function of their count.

    A greatest number of K with the distribution F has the density G'(F) F', G(z) = E[z^K]. Of the negative binomial
    law without 0, G(z) = ((1 - (1 - stop) z)^-shape - 1) / (stop^-shape - 1); of the logarithmic one it is
    ln(1 - (1 - stop) z) / ln(stop).
    """
    factor = shape * (1 - stop) / (stop**-shape - 1) if shape else (1 - stop) / -math.log(stop)

    def density(x: Floats, mean: float) -> Floats:
        left = stop + (1 - stop) * ndtr((mean - x) / sigma)  # 1 - (1 - stop) F
        return np.asarray(factor * left ** (-shape - 1) * normal(x, mean, sigma))

    return Densities.of(-12 * sigma, 3 + 12 * sigma, lambda x: density(x, 1), lambda x: density(x, 0))


@pytest.mark.parametrize(
    ("sigma", "shape", "stop"),
    [(1 / 6, 0.0, 0.05), (1 / 10, 0.0, 0.02), (1.0, 0.0, 0.1), (1.0, 1.0, 0.05), (3.0, 2.0, 0.3), (0.5, 0.5, 0.5)],
)
def test_the_best_of_several_runs_costs_what_the_number_of_runs_makes_of_it(
    sigma: float, shape: float, stop: float
) -> None:
    law, event = best_of_runs(sigma, shape, stop), events.Selected(events.Gaussian(sigma), shape, stop)
    assert law.p.sum() == pytest.approx(1, abs=1e-9)
    orders = np.array([1.1, 1.2, 1.3, 1.5, 2.0, 4.0])
    for order, bound in zip(orders, renyi_curve(event, orders), strict=True):
        assert bound * HAIR >= law.renyi(float(order)), order
