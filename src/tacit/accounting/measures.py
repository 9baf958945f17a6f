"""The cost of an event in each measure that the ledger may admit by: pure epsilon, rho, Rényi divergence, mu.

Promise: every function returns a valid bound, rounded up, or infinity where none is known; each is sound for a filter
under full adaptivity when its own quantity is summed up (rho and delta, Rényi divergence at one order, mu squared).
"""

from __future__ import annotations

import math
import sys
from statistics import NormalDist

import numpy as np

from tacit.accounting import renyi as renyi_curves
from tacit.accounting.closed_forms import precision, pure_epsilon, sum_rounded_up, total_mu
from tacit.accounting.numerics import erfinv
from tacit.accounting.parts import parts
from tacit.accounting.shuffling import shuffled_rho
from tacit.privacy import events
from tacit.privacy.events import Event
from tacit.privacy.numbers import TINY
from tacit.privacy.units import Relation

__all__ = ["approximate_zcdp", "gaussian_mu", "pure_epsilon", "renyi"]

_UP = 1 + 2.0**-48


def approximate_zcdp(event: Event) -> tuple[float, float]:
    """Return (rho, delta): the event is delta-approximately rho-zero-concentrated private."""
    costs = [(count, *_part_zcdp(part)) for part, count in parts(event).items()]
    rho = sum_rounded_up([(count, part_rho) for count, part_rho, _ in costs])
    delta = sum_rounded_up([(count, part_delta) for count, _, part_delta in costs])
    return (rho, delta) if delta < 1 else (math.inf, 0.0)


def renyi(event: Event, order: float) -> float:
    """Return a bound on the Rényi divergence of the event at one order above 1."""
    return float(renyi_curves.renyi_curve(event, np.array([order]))[0])


def gaussian_mu(event: Event) -> float:
    """Return a mu for which the event is mu-Gaussian private: no easier to test than N(0, 1) against N(mu, 1)."""
    each = [(_part_mu(part), count) for part, count in parts(event).items()]
    if any(math.isinf(mu) for mu, _ in each):
        return math.inf
    noises = [(min(1 / mu, sys.float_info.max) * (1 - 2.0**-50), count) for mu, count in each if mu]
    return total_mu(noises, 1) if noises else 0.0


def rho_of_pure(epsilon: float) -> float:
    """Return epsilon tanh(epsilon / 2), the rho of pure privacy.

    Randomized response is the worst case. Its loss is ±epsilon, with mean epsilon tanh(epsilon / 2) and, by the
    inequality of Kearns and Saul (1998) for two values, sub-Gaussian with variance proxy 2 epsilon tanh(epsilon / 2);
    so the divergence of order a is at most a epsilon tanh(epsilon / 2). It is below epsilon^2 / 2 (Bun, Steinke 2016).
    """
    if epsilon in (0, math.inf):
        return epsilon
    return max(epsilon * math.tanh(epsilon / 2) * _UP, TINY)


def _part_zcdp(event: Event) -> tuple[float, float]:
    match event:
        case events.Gaussian(sigma=sigma) | events.DiscreteGaussian(sigma=sigma):
            return _UP / 2 * precision(sigma), 0.0
        case events.ZeroConcentrated(rho=rho):
            return rho, 0.0
        case events.Exponential(epsilon=epsilon):
            return min(epsilon * epsilon / 8 * _UP + (TINY if epsilon else 0.0), rho_of_pure(epsilon)), 0.0
        case events.Approximate(epsilon=epsilon, delta=delta):
            return rho_of_pure(epsilon), delta
        case events.Shuffled(epsilon=epsilon, count=count) if event.relation is Relation.REPLACE_ONE:
            return min(shuffled_rho(epsilon, count), rho_of_pure(epsilon)), 0.0
        case events.Disjoint(several) if event.relation is Relation.ADD_REMOVE:
            each = [approximate_zcdp(one) for one in several]
            return max(rho for rho, _ in each), max(delta for _, delta in each)
        case events.Grouped(inner, size):
            rho, delta = approximate_zcdp(inner)
            of_pure = rho_of_pure(pure_epsilon(event))
            return (min(sum_rounded_up([(size * size, rho)]), of_pure), 0.0) if delta == 0 else (of_pure, 0.0)
        case _:
            return rho_of_pure(pure_epsilon(event)), 0.0


def _part_mu(event: Event) -> float:
    match event:
        case events.Gaussian(sigma=sigma):
            return 1 / sigma * _UP
        case events.DiscreteGaussian(sigma=sigma, sensitivity=sensitivity):
            return smoothed_mu(sigma, sensitivity)
        case events.Disjoint(several) if event.relation is Relation.ADD_REMOVE:
            return max(gaussian_mu(one) for one in several)
        case events.Grouped(inner, size):
            return sum_rounded_up([(size, gaussian_mu(inner))])
        case _:
            return mu_of_pure(pure_epsilon(event))


def mu_of_pure(epsilon: float) -> float:
    """Return the mu of pure privacy: -2 Phi^-1(1 / (1 + e^epsilon)), where the two trade-off curves touch.

    Near 0 that is 2 sqrt(2) erf^-1(tanh(epsilon / 2)), which keeps its digits.
    """
    if math.isinf(epsilon) or epsilon > 30:
        return math.inf
    if epsilon < 1e-100:  # sqrt(pi / 2) epsilon, beyond what the functions below resolve
        return max(1.2533141373155003 * epsilon * (1 + 2.0**-40), TINY if epsilon else 0.0)
    if epsilon < 1:
        return 2 * math.sqrt(2) * float(erfinv(math.tanh(epsilon / 2))) * (1 + 2.0**-40)
    return -2 * NormalDist().inv_cdf(1 / (1 + math.exp(epsilon))) * (1 + 2.0**-40)


def smoothed_mu(sigma: float, sensitivity: float) -> float:
    """Return the mu of the discrete Gaussian: noise made from a continuous one whose variance is 4 steps less.

    As in `tacit.mechanisms.gaussian`, with r = 2: the factor differs from 1 by less than 10^-33 a coordinate.
    """
    if sigma * sensitivity > 1e100:
        return max(1 / sigma * _UP, TINY)
    variance = (sigma * sensitivity) ** 2 - 4
    return sensitivity / math.sqrt(variance) * _UP if variance > 0 else math.inf
