"""Costs and bounds, and conversions from one measure of privacy to another.

Rényi to (epsilon, delta): Canonne, Kamath, Steinke 2020, proposition 12, valid at every order; zero-concentrated
privacy is a bound at all orders at once, so any order may be taken, and the best one is searched. Gaussian differential
privacy: `closed_forms`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from tacit.accounting.closed_forms import Side, log_delta, sigma_for
from tacit.accounting.numerics import bisect, golden_section
from tacit.privacy.figures import at_most
from tacit.privacy.numbers import TINY
from tacit.privacy.units import Relation


class Bound(NamedTuple):
    """A privacy number between two certified ends; `upper` is what may be promised."""

    lower: float
    upper: float
    method: str


@dataclass(frozen=True, slots=True)
class Cost:
    """Epsilon at delta, and rho where zero-concentrated privacy is known (infinity otherwise)."""

    epsilon: float
    delta: float
    rho: float

    def in_words(self, relation: Relation) -> str:
        """Return the cost and its definition in words: P(S) <= e^epsilon P'(S) + delta for neighbours P and P'."""
        if not self.epsilon and not self.delta:
            return "nothing: the same answer was released before"
        spent = f"epsilon {at_most(self.epsilon)}" + (f", delta {at_most(self.delta)}" if self.delta else "")
        if self.epsilon > 20:
            return spent
        factor = f"{at_most(math.exp(self.epsilon), 3)} times as likely"
        plus = f" plus {at_most(self.delta)}" if self.delta else ""
        other = "without" if relation is Relation.ADD_REMOVE else "with another's in their place"
        return f"{spent}: every answer is at most {factor}{plus} with one person's data as {other}"


UP: Final = 1 + 2.0**-45
"""The factor on upper bounds: more than the rounding errors of the formulas here."""


def epsilon_of_renyi(order: float, renyi_epsilon: float, delta: float) -> float:
    """Return the epsilon at `delta` that a Rényi bound at one order above 1 gives."""
    if math.isinf(renyi_epsilon):
        return math.inf
    gain = math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1)
    return max(0.0, (renyi_epsilon + gain) + abs(renyi_epsilon + abs(gain)) * (UP - 1))


def renyi_for(order: float, epsilon: float, delta: float) -> float:
    """Return the greatest Rényi bound at one order that still gives `epsilon` at `delta`; 0 if none does."""
    gain = math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1)
    return max(0.0, epsilon - gain - (epsilon + abs(gain)) * 2 * (UP - 1))


def epsilon_of_rho(rho: float, delta: float) -> float:
    """Return the epsilon at `delta` of rho-zero-concentrated privacy, by the best order that a short search finds."""
    if rho == 0:
        return 0.0
    if math.isinf(rho):
        return math.inf
    return _least(lambda log: _epsilon_at(math.exp(log) + 1, rho, delta), *_order_range(rho, delta))


def delta_of_rho(rho: float, epsilon: float) -> float:
    """Return the delta at `epsilon` of rho-zero-concentrated privacy, by the best order that a short search finds."""
    if rho == 0 or math.isinf(rho):
        return 0.0 if rho == 0 else 1.0

    def log_delta_at(log: float) -> float:
        order = math.exp(log) + 1
        return (order - 1) * (order * rho - epsilon + math.log1p(-1 / order)) - math.log(order)

    left = max(epsilon - rho, 0.0)
    best = (left + math.hypot(left, math.sqrt(8) * math.sqrt(rho))) / 4 / rho
    guess = min(max(math.log(best) if 0 < best < math.inf else math.copysign(math.inf, best - 1), -20.0), 600.0)
    return max(math.exp(min(0.0, _least(log_delta_at, guess - 2, guess + 1) + 1e-9)), TINY)


def rho_for(epsilon: float, delta: float) -> float:
    """Return about the greatest rho whose zero-concentrated privacy gives `epsilon` at `delta`."""
    if epsilon <= 0 or delta <= 0:
        return 0.0
    low, high = 0.0, max(epsilon, 1e-12)
    while epsilon_of_rho(high, delta) <= epsilon:
        low, high = high, 2 * high
    return bisect(low, high, lambda rho: epsilon_of_rho(rho, delta) <= epsilon, 2.0**-44)[0]


def epsilon_of_mu(mu: float, delta: float) -> float:
    """Return the epsilon at `delta` of mu-Gaussian privacy, from its closed form."""
    return _epsilons_of_mu(mu, math.log(delta), 1)[1]


def least_epsilon_of_mu(mu: float, delta: float) -> float:
    """Return a lower bound on the epsilon at `delta` of Gaussian noise of mu."""
    return _epsilons_of_mu(mu, math.log(delta), -1)[0]


def _epsilons_of_mu(mu: float, log_target: float, side: Side) -> tuple[float, float]:
    """Return neighbouring floats between which the bound on the logarithm of delta crosses a target."""
    if mu == 0 or math.isinf(mu):
        return mu, mu
    if log_delta(mu, 0.0, side) <= log_target:
        return 0.0, 0.0
    low, high = 0.0, mu * mu / 2 + mu * math.sqrt(-2 * log_target) + mu * 2.0**-20 + 1e-300
    while math.isfinite(high) and log_delta(mu, high, side) > log_target:
        high *= 2
    return bisect(low, high, lambda epsilon: log_delta(mu, epsilon, side) > log_target, 2.0**-46)


def mu_for(epsilon: float, delta: float) -> float:
    """Return about the greatest mu whose Gaussian privacy gives `epsilon` at `delta`."""
    return 1 / sigma_for(epsilon, delta) if delta > 0 else 0.0


def _epsilon_at(order: float, rho: float, delta: float) -> float:
    return epsilon_of_renyi(order, order * rho, delta)


def _order_range(rho: float, delta: float) -> tuple[float, float]:
    """Return a range of ln(order - 1) around an approximation of the best order."""
    guess = (math.log(max(-math.log(delta), 1e-9)) - math.log(rho)) / 2
    guess = min(max(guess, -20.0), 600.0)
    return guess - 1.5, guess + 0.5


def _least(function: Callable[[float], float], low: float, high: float) -> float:
    """Return the least value that a search over the logarithm of order - 1 meets."""
    return golden_section(function, low, high, 3.2e-5 * (high - low))[1]
