"""What each accountant says of the same event, side by side.

Every one of them is a true bound on its own; `curves.epsilon` takes the best. Here they can be looked at: to see what a
tighter accountant is worth, or to find the number that another tool reports.
"""

from __future__ import annotations

import math

from tacit.accounting.bounds import Bound
from tacit.accounting.composition import Plan
from tacit.accounting.conversions import epsilon_of_mu, epsilon_of_renyi, epsilon_of_rho
from tacit.accounting.curves import check_supported
from tacit.accounting.measures import concentrated, gaussian_mu
from tacit.accounting.parts import parts
from tacit.accounting.pure import pure_epsilon
from tacit.accounting.renyi import ORDERS, curve
from tacit.privacy.events import Event
from tacit.privacy.numbers import inside_unit_interval


def compare(event: Event, delta: float) -> tuple[Bound, ...]:
    """Return what each accountant finds for epsilon at `delta`, infinity where it knows no bound."""
    check_supported(event)
    target = float(inside_unit_interval("delta", delta))
    rho, given = concentrated(event)
    orders = zip(ORDERS.tolist(), curve(event).tolist(), strict=True)
    plan = Plan.of(event)
    return (
        Bound(0.0, pure_epsilon(event), "sum of pure epsilons"),
        Bound(0.0, advanced_epsilon(event, target), "advanced composition"),
        Bound(0.0, epsilon_of_rho(rho, target - given) if given < target else math.inf, "zero-concentrated"),
        Bound(0.0, min(epsilon_of_renyi(order, value, target) for order, value in orders), "Rényi"),
        Bound(0.0, epsilon_of_mu(gaussian_mu(event), target), "Gaussian"),
        Bound(*(plan.epsilon(target) if plan is not None else (0.0, math.inf)), "privacy loss distribution"),
    )


def advanced_epsilon(event: Event, delta: float) -> float:
    """Return the bound of advanced composition for pure events, or infinity for others.

    The losses of epsilon_i-private parts have means of at most epsilon_i tanh(epsilon_i / 2) and lie within ±epsilon_i,
    so by Hoeffding's inequality their sum exceeds its mean by sqrt(2 ln(1 / delta) sum epsilon_i^2) with probability
    delta at most (Dwork, Rothblum, Vadhan 2010, with the mean of randomized response).
    """
    means = squares = 0.0
    for part, count in parts(event).items():
        epsilon = pure_epsilon(part)
        if math.isinf(epsilon):
            return math.inf
        means += count * epsilon * math.tanh(epsilon / 2)
        squares += count * epsilon**2
    return (means + math.sqrt(-2 * math.log(delta) * squares)) * (1 + 2.0**-45)
