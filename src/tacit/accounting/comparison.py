"""The bounds of every accountant for one event, side by side.

Each is a valid bound by itself, and `curves.epsilon` returns the least. The comparison shows what a tighter accountant
is worth, and reproduces the numbers that textbooks and other tools report.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from tacit.accounting.closed_forms import pure_epsilon, sum_rounded_up
from tacit.accounting.composition import Composition
from tacit.accounting.conversions import Bound, epsilon_of_mu, epsilon_of_renyi, epsilon_of_rho
from tacit.accounting.curves import bounds_or_trivial, check_supported, float_of_delta
from tacit.accounting.measures import approximate_zcdp, gaussian_mu
from tacit.accounting.parts import parts
from tacit.accounting.renyi import ORDERS, renyi_curve
from tacit.privacy import events
from tacit.privacy.events import Event


def compare(event: Event, delta: float) -> tuple[Bound, ...]:
    """Return the bound of each accountant on epsilon at `delta`, infinity where it has none."""
    check_supported(event)
    target = float_of_delta(delta)
    rho, given = approximate_zcdp(event)
    orders = zip(ORDERS.tolist(), renyi_curve(event).tolist(), strict=True)
    plan = Composition.of(event)
    found = (0.0, math.inf) if plan is None else bounds_or_trivial(lambda: plan.epsilon(target), math.inf)
    return (
        Bound(0.0, pure_epsilon(event), "sum of pure epsilons"),
        Bound(0.0, advanced_epsilon(event, target), "advanced composition of pure epsilons"),
        *_classical(event, target),
        Bound(0.0, epsilon_of_rho(rho, target - given) if given < target else math.inf, "zero-concentrated"),
        Bound(0.0, min(epsilon_of_renyi(order, value, target) for order, value in orders), "Rényi"),
        Bound(0.0, epsilon_of_mu(gaussian_mu(event), target), "Gaussian"),
        Bound(*found, "privacy loss distribution"),
    )


def advanced_epsilon(event: Event, delta: float) -> float:
    """Return the bound of advanced composition for pure events, or infinity for others.

    The losses of epsilon_i-private parts have means of at most epsilon_i tanh(epsilon_i / 2) and lie within ±epsilon_i,
    so by Hoeffding's inequality their sum exceeds its mean by sqrt(2 ln(1 / delta) sum epsilon_i^2) with probability
    delta at most (Dwork, Rothblum, Vadhan 2010, with the mean of randomized response).
    """
    epsilons = [(count, pure_epsilon(part)) for part, count in parts(event).items()]
    means = sum_rounded_up([(count, epsilon * math.tanh(epsilon / 2)) for count, epsilon in epsilons])
    squares = sum_rounded_up([(count, epsilon * epsilon) for count, epsilon in epsilons])
    return (means + math.sqrt(-2 * math.log(delta) * squares)) * (1 + 2.0**-45)


def _classical(event: Event, delta: float) -> Iterator[Bound]:
    """Yield the bound of the textbook theorems for equal Gaussian releases, which may be sampled."""
    inside = parts(event)
    part, count = next(iter(inside.items()))
    noise, rate = (part.event, part.rate) if isinstance(part, events.Sampled) else (part, 1.0)
    if len(inside) > 1 or not isinstance(noise, events.Gaussian):
        return
    one, whole = classical_epsilons(noise.sigma, rate, count, delta)
    chain = "classical Gaussian" + (", sampled" if rate < 1 else "") + (", advanced composition" if count > 1 else "")
    if one < 1:
        yield Bound(0.0, whole, chain)
    else:
        flaw = f"{whole:.4g} is no bound, since a release has epsilon {one:.3g} and the theorem needs one below 1"
        yield Bound(0.0, math.inf, f"{chain}: {flaw}")


def classical_epsilons(sigma: float, rate: float, count: int, delta: float) -> tuple[float, float]:
    """Return the epsilon of one release before sampling, and that of all releases, a bound if the former is below 1.

    Gaussian noise of sigma = sqrt(2 ln(1.25 / delta_0)) / epsilon_0 is (epsilon_0, delta_0)-private for epsilon_0 < 1
    (Dwork, Roth 2014, theorem A.1); on a Poisson sample it is (2 rate epsilon_0, rate delta_0)-private, for
    ln(1 + rate (e^x - 1)) <= 2 rate x where x <= 1; and `count` such releases are (epsilon, delta)-private by advanced
    composition (Dwork, Rothblum, Vadhan 2010): epsilon = sqrt(2 count ln(1 / delta')) epsilon_1 + count epsilon_1
    (e^epsilon_1 - 1), delta = count delta_1 + delta'. Here delta' is a half of delta, and the releases share the rest.
    """
    shared = delta / 2 if count > 1 else delta
    one = math.sqrt(max(0.0, 2 * (math.log(1.25 * rate) + math.log(count) - math.log(shared)))) / sigma
    each = 2 * rate * one if rate < 1 else one
    if count == 1:
        return one, each
    if each > 700:
        return one, math.inf
    return one, math.sqrt(-2 * count * math.log(delta / 2)) * each + count * each * math.expm1(each)
