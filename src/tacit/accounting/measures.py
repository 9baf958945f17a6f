"""What an event costs in each measure that may decide about admission.

Promise: every function returns a true bound rounded up, or infinity where none is known; each is sound for a filter
under full adaptivity when its own quantity is summed up (rho and delta, Rényi divergence at one order, mu squared).
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from tacit.accounting import renyi as renyi_curves
from tacit.accounting.gaussian import precision
from tacit.accounting.parts import parts
from tacit.accounting.pure import pure_epsilon
from tacit.accounting.special import erfinv
from tacit.privacy import events
from tacit.privacy.events import Event
from tacit.privacy.relations import Relation

__all__ = ["concentrated", "gaussian_mu", "pure_epsilon", "renyi"]

_UP = 1 + 2.0**-48


def concentrated(event: Event) -> tuple[float, float]:
    """Return (rho, delta): the event is delta-approximately rho-zero-concentrated private."""
    costs = [(count, *_part_concentrated(part)) for part, count in parts(event).items()]
    rho = math.fsum(count * part_rho for count, part_rho, _ in costs)
    delta = math.fsum(count * part_delta for count, _, part_delta in costs)
    return (rho * _UP, delta * _UP) if delta < 1 else (math.inf, 0.0)


def renyi(event: Event, order: float) -> float:
    """Return a bound on the Rényi divergence of the event at one order above 1."""
    return float(renyi_curves.curve(event, np.array([order]))[0])


def gaussian_mu(event: Event) -> float:
    """Return a mu for which the event is mu-Gaussian private: it tells no more than N(0, 1) against N(mu, 1)."""
    squares = (count * (mu := _part_mu(part)) * mu for part, count in parts(event).items())
    return math.sqrt(math.fsum(squares)) * _UP


def rho_of_pure(epsilon: float) -> float:
    """Return epsilon tanh(epsilon / 2), the rho of pure privacy.

    Randomized response is the worst case. Its loss is ±epsilon, with mean epsilon tanh(epsilon / 2) and, by the
    inequality of Kearns and Saul (1998) for two values, sub-Gaussian with variance proxy 2 epsilon tanh(epsilon / 2);
    so the divergence of order a is at most a epsilon tanh(epsilon / 2). It is below epsilon^2 / 2 (Bun, Steinke 2016).
    """
    return epsilon * math.tanh(epsilon / 2) * _UP if math.isfinite(epsilon) else math.inf


def _part_concentrated(event: Event) -> tuple[float, float]:
    match event:
        case events.Gaussian(sigma=sigma) | events.DiscreteGaussian(sigma=sigma):
            return _UP / 2 * precision(sigma), 0.0
        case events.ZeroConcentrated(rho=rho):
            return rho, 0.0
        case events.Exponential(epsilon=epsilon):
            return min(epsilon**2 / 8 * _UP, rho_of_pure(epsilon)), 0.0
        case events.Approximate(epsilon=epsilon, delta=delta):
            return rho_of_pure(epsilon), delta
        case events.Disjoint(several) if event.relation is Relation.ADD_REMOVE:
            each = [concentrated(one) for one in several]
            return max(rho for rho, _ in each), max(delta for _, delta in each)
        case events.Grouped(inner, size):
            rho, delta = concentrated(inner)
            of_pure = rho_of_pure(pure_epsilon(event))
            return (min(size * size * rho, of_pure), 0.0) if delta == 0 else (of_pure, 0.0)
        case _:
            return rho_of_pure(pure_epsilon(event)), 0.0


def _part_mu(event: Event) -> float:
    match event:
        case events.Gaussian(sigma=sigma):
            return 1 / sigma
        case events.DiscreteGaussian(sigma=sigma, sensitivity=sensitivity):
            return smoothed_mu(sigma, sensitivity)
        case events.Disjoint(several) if event.relation is Relation.ADD_REMOVE:
            return max(gaussian_mu(one) for one in several)
        case events.Grouped(inner, size):
            return size * gaussian_mu(inner)
        case _:
            return mu_of_pure(pure_epsilon(event))


def mu_of_pure(epsilon: float) -> float:
    """Return the mu of pure privacy: -2 Phi^-1(1 / (1 + e^epsilon)), where the two trade-offs touch.

    Near 0 that is 2 sqrt(2) erf^-1(tanh(epsilon / 2)), which keeps its digits.
    """
    if math.isinf(epsilon) or epsilon > 30:
        return math.inf
    if epsilon < 1:
        return 2 * math.sqrt(2) * float(erfinv(math.tanh(epsilon / 2))) * (1 + 2.0**-40)
    return -2 * NormalDist().inv_cdf(1 / (1 + math.exp(epsilon))) * (1 + 2.0**-40)


def smoothed_mu(sigma: float, sensitivity: float) -> float:
    """Return the mu of the discrete Gaussian: noise made from a continuous one whose variance is 4 steps less.

    As in `tacit.mechanisms.gaussian`, with r = 2: the factor differs from 1 by less than 10^-33 a coordinate.
    """
    if sigma * sensitivity > 1e100:
        return 1 / sigma * _UP
    variance = (sigma * sensitivity) ** 2 - 4
    return sensitivity / math.sqrt(variance) * _UP if variance > 0 else math.inf
