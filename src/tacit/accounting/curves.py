"""Epsilon at delta, and delta at epsilon: the cheapest accountant that is good enough.

Closed forms first (Gaussian noise, shuffled reports, delta of zero), then privacy loss distributions, and Rényi bounds
where those know more or there is no pair. An upper bound is the least of all that apply.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from tacit.accounting.bounds import Bound
from tacit.accounting.composition import WIDTH, Plan
from tacit.accounting.conversions import epsilon_of_mu, epsilon_of_renyi, epsilon_of_rho
from tacit.accounting.gaussian import log_delta
from tacit.accounting.measures import concentrated
from tacit.accounting.parts import parts
from tacit.accounting.pure import pure_epsilon
from tacit.accounting.renyi import ORDERS, curve
from tacit.accounting.shuffling import shuffled_epsilon
from tacit.privacy import events
from tacit.privacy.errors import UnknownEvent
from tacit.privacy.events import Event
from tacit.privacy.numbers import inside_unit_interval, not_negative
from tacit.privacy.relations import Relation

CLOSED_FORM_PRECISION: Final = 1 - 2.0**-28
"""The relative precision of closed forms, by which their lower ends are narrowed."""


def epsilon(event: Event, delta: float, *, width: float = WIDTH) -> Bound:
    """Return bounds on the epsilon for which an event is (epsilon, delta)-private, delta of at least 0 and below 1.

    `width` is how far apart the two ends may be, relatively, where a lattice decides it.
    """
    check_supported(event)
    if not_negative("delta", delta) == 0:
        exact = pure_epsilon(event)
        plan = Plan.of(event)
        return Bound(exact if plan is not None and plan.is_exact else 0.0, exact, "sum of pure epsilons")
    target = float(inside_unit_interval("delta", delta))
    mu = gaussian_mu_exactly(event)
    if mu is not None:
        upper = epsilon_of_mu(mu, target)
        return Bound(upper * CLOSED_FORM_PRECISION, upper, "closed form of Gaussian noise")
    bounds = [Bound(0.0, pure_epsilon(event), "sum of pure epsilons"), *_shuffled(event, target)]
    plan = Plan.of(event)
    if plan is not None:
        bounds.append(Bound(*plan.epsilon(target, width), "privacy loss distribution"))
    if plan is None or not plan.is_exact:
        bounds += _by_moments(event, target)
    best = min(bounds, key=lambda bound: bound.upper)
    return Bound(min(max(bound.lower for bound in bounds), best.upper), best.upper, best.method)


def delta(event: Event, epsilon: float) -> Bound:
    """Return bounds on the delta for which an event is (epsilon, delta)-private."""
    check_supported(event)
    target = float(not_negative("epsilon", epsilon))
    if target >= pure_epsilon(event):
        return Bound(0.0, 0.0, "sum of pure epsilons")
    mu = gaussian_mu_exactly(event)
    if mu is not None:
        upper = math.exp(log_delta(1 / mu, target)) * (1 + 2.0**-28)
        return Bound(upper * (1 - 2.0**-26), min(upper, 1.0), "closed form of Gaussian noise")
    bounds = []
    plan = Plan.of(event)
    if plan is not None:
        bounds.append(Bound(*plan.delta(target), "privacy loss distribution"))
    if plan is None or not plan.is_exact:
        bounds.append(Bound(0.0, _delta_by_renyi(event, target), "Rényi"))
    best = min(bounds, key=lambda bound: bound.upper)
    return Bound(min(max(bound.lower for bound in bounds), best.upper), best.upper, best.method)


def check_supported(event: Event) -> None:
    """Refuse an event that no accountant can bound, naming the part."""
    if not isinstance(event, Event):
        raise UnknownEvent(f"accountants read events, not {type(event).__name__}")
    for part in parts(event):
        if isinstance(part, events.Disjoint):
            if part.relation is not Relation.ADD_REMOVE:
                raise UnknownEvent(
                    "disjoint events are priced under add-remove: a replaced unit may move from one part to another"
                )
            for one in part.events:
                check_supported(one)
        elif isinstance(part, events.Sampled) and part.relation is not Relation.ADD_REMOVE:
            raise UnknownEvent("Poisson sampling is priced under add-remove; state the event under that relation")
        elif isinstance(part, events.Shuffled) and part.relation is not Relation.REPLACE_ONE:
            raise UnknownEvent("shuffled reports are priced under replace-one, since their number is public")


def gaussian_mu_exactly(event: Event) -> float | None:
    """Return mu where every part is Gaussian noise, rounded up."""
    inside = parts(event)
    if not all(isinstance(part, events.Gaussian) for part in inside):
        return None
    squares = math.fsum(count / part.sigma**2 for part, count in inside.items() if isinstance(part, events.Gaussian))
    return math.sqrt(squares) * (1 + 2.0**-50)


def _shuffled(event: Event, delta: float) -> list[Bound]:
    inside = parts(event)
    if len(inside) == 1 and list(inside.values()) == [1]:
        (part,) = inside
        if isinstance(part, events.Shuffled):
            return [Bound(0.0, shuffled_epsilon(part.epsilon, part.count, delta), "closed form of shuffling")]
    return []


def _by_moments(event: Event, delta: float) -> list[Bound]:
    """Return what Rényi bounds on the grid of orders and zero-concentrated privacy give."""
    rho, given = concentrated(event)
    bounds = []
    if given < delta:
        bounds.append(Bound(0.0, epsilon_of_rho(rho, delta - given), "zero-concentrated"))
    values = curve(event).tolist()
    best = min(epsilon_of_renyi(order, value, delta) for order, value in zip(ORDERS.tolist(), values, strict=True))
    return [*bounds, Bound(0.0, best, "Rényi")]


def _delta_by_renyi(event: Event, epsilon: float) -> float:
    """Invert the conversion at every order: ln delta = (a - 1) (R - epsilon + ln(1 - 1/a)) - ln a."""
    values = curve(event)
    finite = np.isfinite(values)
    if not finite.any():
        return 1.0
    orders, values = ORDERS[finite], values[finite]
    logs = (orders - 1) * (values - epsilon + np.log1p(-1 / orders)) - np.log(orders)
    return float(min(1.0, np.exp(min(0.0, float(logs.min()) + 1e-9))))
