"""Rényi differential privacy: curves of events over orders.

Promise: `renyi_curve(event, orders)` is at least the Rényi divergence of the event between any two neighbours, at every
order; infinity where no bound is known. Sources: Laplace and randomized response in closed form (Mironov 2017);
bounded range at its worst split (derived in `_bounded_range_curve`); sampled Gaussian by its one-dimensional integral
(Mironov, Talwar, Zhang 2019, theorems 4 and 5), other samples as derived in `sampled_curve`; shuffled reports by their
dominating pair (`shuffling`); selection by Papernot and Steinke 2022, theorem 2; groups by Mironov 2017, proposition 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tacit.accounting.closed_forms import precision, pure_epsilon
from tacit.accounting.numerics import gammaln, log_ndtr, logsumexp
from tacit.accounting.pairs import Floats
from tacit.accounting.parts import parts
from tacit.accounting.shuffling import EPSILON_MAX, shuffled_renyi
from tacit.privacy import events
from tacit.privacy.events import Event
from tacit.privacy.numbers import TINY, rounded_up
from tacit.privacy.units import Relation

ORDERS: Final[Floats] = np.unique(
    np.concatenate([1 + np.geomspace(0.01, 1, 40), np.arange(2, 64, 0.5), np.geomspace(64, 4096, 60)])
)
"""The grid of orders on which curves are compared and stored."""

INTEGER_ORDER_MAX: Final = 4097
POINTS_MAX: Final = 400_000
UP: Final = 1 + 2.0**-40


def renyi_curve(event: Event, orders: Floats = ORDERS) -> Floats:
    """Return a bound on the Rényi divergence of an event at each order."""
    total = np.zeros_like(orders)
    inside = parts(event)
    with np.errstate(all="ignore"):  # overflows and NaN become infinity at the end
        for part, count in inside.items():
            values = _part_curve(part, orders)
            total = total + np.where(values == 0, 0.0, rounded_up(Fraction(count)) * values)
        total = total * (1 + 2.0**-51 * len(inside))
    return np.where(total >= 0, total, np.inf)


def _part_curve(event: Event, orders: Floats) -> Floats:
    match event:
        case events.Laplace(epsilon=epsilon):
            return _laplace_curve(epsilon, orders)
        case events.Exponential(epsilon=epsilon):
            return _bounded_range_curve(epsilon, orders)
        case events.Gaussian(sigma=sigma) | events.DiscreteGaussian(sigma=sigma):
            return np.maximum(orders * (precision(sigma) / 2) * UP, TINY)
        case events.ZeroConcentrated(rho=rho):
            return orders * rho * UP
        case events.Sampled(rate, events.Gaussian(sigma=sigma)) if event.relation is Relation.ADD_REMOVE:
            return sampled_gaussian_curve(rate, sigma, orders)
        case events.Sampled(rate, inner) if event.relation is Relation.ADD_REMOVE:
            mixed = sampled_curve(rate, lambda at: renyi_curve(inner, at), orders)
            return np.minimum(mixed, _pure_curve(pure_epsilon(event), orders))
        case events.Selected(inner, shape, stop):
            return np.minimum(_selected_curve(inner, shape, stop, orders), _pure_curve(pure_epsilon(event), orders))
        case events.Shuffled(epsilon=epsilon, count=count) if (
            0 < epsilon < EPSILON_MAX and event.relation is Relation.REPLACE_ONE
        ):
            return np.minimum(shuffled_renyi(epsilon, count, orders), _pure_curve(epsilon, orders))
        case events.Disjoint(several) if event.relation is Relation.ADD_REMOVE:
            return np.asarray(np.max([renyi_curve(one, orders) for one in several], axis=0))
        case events.Grouped(inner, size):
            doublings = (size - 1).bit_length()
            pure = _pure_curve(pure_epsilon(event), orders)
            if doublings > 500:
                return pure
            halved = 3.0**doublings * renyi_curve(inner, 2.0**doublings * orders)
            return np.minimum(np.where(orders >= 2, halved, np.inf), pure)
        case _:
            return _pure_curve(pure_epsilon(event), orders)


def _pure_curve(epsilon: float, orders: Floats) -> Floats:
    """Return the divergence of randomized response, the worst epsilon-private mechanism."""
    if math.isinf(epsilon):
        return np.full_like(orders, np.inf)
    log_p, log_q = -np.log1p(np.exp(-epsilon)), -np.logaddexp(0, epsilon)
    terms = [orders * log_p + (1 - orders) * log_q, orders * log_q + (1 - orders) * log_p]
    exact = np.logaddexp(*terms) / (orders - 1) + _rounding(epsilon, orders)
    return np.asarray(np.minimum(exact, _pure_line(epsilon, orders)) * UP)


def _laplace_curve(epsilon: float, orders: Floats) -> Floats:
    terms = [
        np.log(orders / (2 * orders - 1)) + (orders - 1) * epsilon,
        np.log((orders - 1) / (2 * orders - 1)) - orders * epsilon,
    ]
    exact = np.logaddexp(*terms) / (orders - 1) + _rounding(epsilon, orders)
    return np.asarray(np.minimum(exact, _pure_line(epsilon, orders)) * UP)


def _rounding(epsilon: float, orders: Floats) -> Floats:
    """Return the rounding error of logarithms of sums near 1, with terms in proportion to the order, over order - 1."""
    return 2.0**-48 * (1 + epsilon) * orders / (orders - 1)


def _pure_line(epsilon: float, orders: Floats) -> Floats:
    """Return a linear bound on the divergence of pure privacy, precise for any epsilon: see `measures.rho_of_pure`."""
    line = np.minimum(orders * (epsilon * math.tanh(epsilon / 2)), epsilon)
    return np.asarray(line + (1e-300 if epsilon else 0.0))


def _bounded_range_curve(epsilon: float, orders: Floats) -> Floats:
    """Return the divergence of bounded range: all losses lie in an interval [t - epsilon, t].

    The worst has two of them, and t is where its moment peaks. The moment of order a is (A e^((a-1) t) - B e^(a t)) /
    (e^epsilon - 1), A = e^epsilon - e^(-(a-1) epsilon) and B = 1 - e^(-(a-1) epsilon), greatest at e^t = A (a - 1) /
    (B a) (Dong, Durfee, Rogers 2020 for the pairs).
    """
    if epsilon == 0:
        return np.zeros_like(orders)
    power = orders - 1
    ratio = power / orders * -np.expm1(-orders * epsilon) / -np.expm1(-power * epsilon)
    peak = np.clip(epsilon + np.log(ratio), 0, epsilon)
    high = -np.expm1(peak - epsilon) / -np.expm1(-epsilon)
    with np.errstate(divide="ignore"):
        moments = np.logaddexp(np.log(high) + power * peak, np.log1p(-high) + power * (peak - epsilon))
    exact = moments / power + _rounding(epsilon, orders)
    return np.asarray(np.minimum(np.fmin(exact, orders * (epsilon * epsilon / 8)), epsilon) * UP + 1e-300)


def sampled_gaussian_curve(rate: float, sigma: float, orders: Floats) -> Floats:
    """Return the divergence of a Poisson-sampled Gaussian under add/remove, at each order.

    E[(1 - q + q e^((2x - 1) / (2 sigma^2)))^a] over x ~ N(0, sigma^2) by the trapezoidal rule: the integrand is
    analytic in a strip of half-width pi sigma^2, so a step of a sixth of that leaves an error below e^-37.
    """
    whole = np.maximum(orders * (precision(sigma) / 2) * UP, TINY)
    if not 1e-6 <= sigma <= 1e100:
        return whole
    low, step = -12 * sigma, min(sigma / 6, math.pi * sigma**2 / 6)
    lengths = [math.ceil((max(order, 1.0) - 2 * low) / step) + 1 for order in orders.tolist()]
    points = low + step * np.arange(max((length for length in lengths if length <= POINTS_MAX), default=0))
    log_ratio = np.logaddexp(math.log1p(-rate), math.log(rate) + (2 * points - 1) / (2 * sigma**2))
    log_density = -(points**2) / (2 * sigma**2) - math.log(sigma * math.sqrt(2 * math.pi))
    bounds = []
    for order, length in zip(orders.tolist(), lengths, strict=True):
        if length > POINTS_MAX:
            bounds.append(math.inf)
            continue
        logs = order * log_ratio[:length] + log_density[:length]
        top = float(logs.max())
        moment = top + math.log(float(np.exp(logs - top).sum())) + math.log(step)
        tail = float(log_ndtr(-12.0)) + order * math.log1p(-rate / 2)
        bounds.append((max(moment, 0.0) + math.exp(min(tail, 0.0)) + 1e-13) / (order - 1))
    return np.minimum(np.array(bounds) * UP, whole)


def sampled_curve(rate: float, of: Callable[[Floats], Floats], orders: Floats) -> Floats:
    """Return the divergence of a Poisson sample under add/remove, from a curve R of what is sampled.

    A removal compares (1 - q) Q + q P with Q. Its moment of a whole order n is the sum over l of C(n, l) (1 - q)^(n-l)
    q^l E_Q[(P / Q)^l], where E_Q[(P / Q)^l] <= e^((l - 1) R(l)) (Zhu and Wang 2019). An addition compares Q with
    (1 - q) Q + q P, and has no more than the greater moment of the two removals, that of P and that of Q:

    With s = Q / P, G(s) = (1 - q + q s)^n and h(s) = s^n ((1 - q) s + q)^(1 - n), the moments are E_P[h(s)] for the
    addition, E_P[G(s)] and E_P[s G(1 / s)] for the removals. All three functions are 1 at s = 1, and E_P[s] = 1, so it
    is enough that h'' <= t G'' + (1 - t) (s G(1 / s))'' for some t in [0, 1]. But for a factor that all have, these are
    s^(n-2) w^(-n-1), v^(n-2) and w^(n-2) s^(-n-1), with w = (1 - q) s + q and v = 1 - q + q s. The logarithm of the
    geometric mean of the last two with weights t and 1 - t, less that of the first, is a multiple of ln s and positive
    multiples of ln v and ln w, so convex in ln s. It is 0 at s = 1, and so is its slope for t = (2n - 1) q / (2 (n - 2)
    q + 3), which lies in [0, 1]. So it is nowhere negative.

    Between whole orders (a - 1) R(a) is below its chord, being convex. As moments are convex in the mixture, it is also
    at most ln(1 - q + q e^((a - 1) R(a))), at any order.
    """
    whole = (orders - 1) * of(orders)
    with np.errstate(over="ignore"):
        some = np.log1p(rate * np.expm1(np.minimum(whole, 700.0)))
    simple = np.where(whole < 700, some, np.maximum(whole + math.log(rate), 0.0) + math.log(2))
    low = np.floor(orders)
    known = np.unique(np.concatenate([low, low + 1]))
    known = known[(known >= 2) & (known <= INTEGER_ORDER_MAX)].astype(np.int64)
    logs = np.array([0.0, *_integer_moments(rate, of, known)])
    between = np.interp(orders, np.array([1, *known]), logs, right=math.inf)
    return np.asarray(np.minimum(simple, between) / (orders - 1) * UP + 1e-300)


def _integer_moments(rate: float, of: Callable[[Floats], Floats], known: NDArray[np.int64]) -> list[float]:
    """Return bounds on the logarithm of a sample's moment at whole orders."""
    most = int(known[-1]) if known.size else 2
    at = np.unique(np.concatenate([np.arange(2, min(most, 128) + 1), np.geomspace(2, most, 64).round()]))
    powers = np.arange(2, most + 1)
    inner = np.interp(powers, at, (at - 1) * of(at))
    with np.errstate(divide="ignore", over="ignore"):
        excess = np.where(inner < 1, np.log(np.expm1(np.minimum(inner, 1))), inner + np.log(-np.expm1(-inner)))
    factorials = gammaln(np.arange(most + 1) + 1.0)
    bounds = []
    for order in known.tolist():
        power = powers[: order - 1]
        choices = factorials[order] - factorials[power] - factorials[order - power]
        terms = choices + (order - power) * math.log1p(-rate) + power * math.log(rate) + excess[: order - 1]
        bounds.append(float(np.logaddexp(0.0, logsumexp(terms))) * (1 + 2.0**-30))
    return bounds


def _selected_curve(inner: Event, shape: float, stop: float, orders: Floats) -> Floats:
    """Return the divergence of the best of several runs, by the theorem for every order b >= 1:

    R'(a) <= R(a) + (1 + shape) ((1 - 1/b) R(b) + ln(1/stop) / b) + ln E[runs] / (a - 1).
    """
    growth = -math.expm1(shape * math.log(stop)) / shape if shape > 1e-300 else -math.log(stop)
    least = stop * growth
    log_mean = math.log((1 - stop) / least) if least > 1e-300 else -math.log(stop) - math.log(growth)
    others = (1 - 1 / ORDERS) * renyi_curve(inner, ORDERS) - math.log(stop) / ORDERS
    return (renyi_curve(inner, orders) + (1 + shape) * float(np.min(others)) + log_mean / (orders - 1)) * UP


def delta_of_renyi_curve(values: Floats, epsilon: float) -> float:
    """Return the least delta at `epsilon` that a curve over ORDERS gives.

    ln delta = (a - 1) (R - epsilon + ln(1 - 1/a)) - ln a (Canonne, Kamath, Steinke 2020, proposition 12).
    """
    finite = np.isfinite(values)
    if not finite.any():
        return 1.0
    orders, values = ORDERS[finite], values[finite]
    with np.errstate(over="ignore"):
        logs = (orders - 1) * (values - epsilon + np.log1p(-1 / orders)) - np.log(orders)
    return float(min(1.0, np.exp(min(0.0, float(logs.min()) + 1e-9))))
