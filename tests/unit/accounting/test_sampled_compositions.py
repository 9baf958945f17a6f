"""Samples of compositions and of events of which only a curve is known: repeated, and in Rényi divergence."""

import math

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from tacit.accounting import composition, epsilon, pairs, renyi
from tacit.accounting.conversions import epsilon_of_renyi
from tacit.privacy import events
from tacit.privacy.events import Composed, Event, Repeated, Sampled, SampledWithoutReplacement
from tests.unit.accounting import checker, truth
from tests.unit.accounting.checker import Case, Unsound

RESPONSES = (0.9, 0.5, 1.3)
NOTHING = events.Pure(0.0)


def sampled_responses(rate: float, times: int) -> Case:
    """Randomized responses, all of them on the same Poisson sample, so many times over: by all outcomes."""
    inner = truth.all_together([truth.response(size) for size in RESPONSES])
    mixed = truth.Finite(tuple(((1 - mpf(rate)) * q + mpf(rate) * p, q) for p, q in inner.outcomes))
    laws = [truth.all_together([law] * times) for law in (mixed, mixed.turned())]
    event = Sampled(rate, Composed(tuple(events.Pure(size) for size in RESPONSES)))
    return Case(Repeated(event, times), [law.delta for law in laws])


@pytest.mark.parametrize("at", [1e-2, 1e-4, 1e-9])
@pytest.mark.parametrize("rate", [0.01, 0.3, 0.9])
def test_samples_of_compositions_cost_what_their_outcomes_say(rate: float, at: float) -> None:
    case = sampled_responses(rate, 2)
    bound = epsilon(case.event, at)
    checker.check_epsilon(case, bound, at)
    assert case.delta(bound.upper * 0.98) >= at or bound.upper < 1e-6
    checker.check(sampled_responses(rate, 3), at)


@pytest.mark.parametrize("at", [1e-3, 1e-8])
@pytest.mark.parametrize(("sigma", "rate"), [(1.0, 0.1), (3.0, 0.5), (0.7, 0.01)])
def test_a_profile_loses_little_against_the_pair_itself(sigma: float, rate: float, at: float) -> None:
    disguised = Repeated(Sampled(rate, Composed((events.Gaussian(sigma), NOTHING))), 2)
    bound = epsilon(disguised, at)
    case = checker.sampled_twice(truth.Gaussian(1 / sigma), events.Gaussian(sigma), rate)
    checker.check_epsilon(Case(disguised, case.curves), bound, at)
    assert bound.upper <= 1.01 * epsilon(case.event, at).upper


@pytest.mark.parametrize("at", [1e-3, 1e-8])
@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_what_is_zero_concentrated_costs_no_less_than_gaussian_noise(rate: float, at: float) -> None:
    case = checker.sampled_twice(truth.Gaussian(1.0), events.Gaussian(1.0), rate)
    bound = epsilon(Repeated(Sampled(rate, events.ZeroConcentrated(0.5)), 2), at)
    checker.check_epsilon(Case(case.event, case.curves), bound, at)
    assert bound.upper <= 1.5 * epsilon(case.event, at).upper


@pytest.mark.parametrize(
    "inner",
    [
        events.ZeroConcentrated(0.1),
        events.Selected(events.Gaussian(5.0), 1.0, 0.1),
        Composed((events.Gaussian(2.0), events.Laplace(0.5), events.Exponential(0.5))),
        Composed((events.Approximate(0.1, 1e-9), events.Gaussian(2.0))),
        Composed((Sampled(0.5, events.Gaussian(1.0)), events.Laplace(0.5))),
        events.Disjoint((events.Gaussian(2.0), events.Laplace(0.5))),
    ],
    ids=str,
)
def test_many_samples_of_anything_have_a_price(inner: Event) -> None:
    event = Repeated(Sampled(0.01, inner), 100)
    bound = epsilon(event, 1e-6)
    assert 0 < bound.upper <= 0.5 * epsilon(Repeated(inner, 100), 1e-6).upper


def test_samples_without_replacement_of_compositions_are_amplified_when_repeated() -> None:
    inner = Composed((events.Gaussian(1.0, under="replace-one"), events.Laplace(0.5, under="replace-one")))
    event = Repeated(SampledWithoutReplacement(10, 1000, inner), 100)
    assert epsilon(event, 1e-6).upper < 0.2 * epsilon(Repeated(inner, 100), 1e-6).upper


def test_a_curve_becomes_a_pair_whose_delta_is_not_below_it() -> None:
    law = truth.Whole(truth.Gaussian(0.7))
    epsilons = np.linspace(0, 5, 90)
    rough = np.array([float(law.delta(at)) for at in epsilons]) * (1 + 0.05 * (np.arange(90) % 3))
    losses, masses = pairs.curve_pair(epsilons, rough).atoms
    given = pairs.curve_pair(epsilons, rough).only_p
    for at in np.linspace(-4, 7, 60):
        found = float(masses @ np.maximum(-np.expm1(at - losses), 0)) + given
        assert float(law.delta(at)) <= found * (1 + 1e-12)
        assert found <= 1.06 * float(law.delta(max(at, 0) * 0.98)) + float(1 - math.exp(min(at, 0))) + rough[-1]


def test_a_profile_that_is_taken_from_below_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = pairs.curve_pair
    monkeypatch.setattr(composition, "curve_pair", lambda at, deltas: whole(at, np.append(deltas[1:], deltas[-1])))
    composition._profile.cache_clear()
    case = sampled_responses(0.3, 2)
    with pytest.raises(Unsound):
        checker.check_epsilon(case, epsilon(case.event, 1e-4), 1e-4)
    composition._profile.cache_clear()


def two_laws(seed: int) -> tuple[truth.Finite, float]:
    """Return two random laws on three outcomes, and a sampling rate."""
    source = np.random.default_rng(seed)
    p = source.dirichlet(np.full(3, source.choice([0.5, 1.0, 5.0])))
    q = p * np.exp(source.normal(size=3) * source.choice([0.1, 0.5, 2.0]))
    total = math.fsum(q.tolist())
    pairs_ = [(mpf(one), mpf(other) / mpf(total)) for one, other in zip(p.tolist(), q.tolist(), strict=True)]
    whole = mpmath.fsum(one for one, _ in pairs_)
    other = mpmath.fsum(two for _, two in pairs_)
    return truth.Finite(tuple((one / whole, two / other) for one, two in pairs_)), float(
        source.choice([0.01, 0.1, 0.3, 0.6])
    )


def check_random_laws(seed: int) -> None:
    law, rate = two_laws(seed)

    def known(orders: np.ndarray) -> np.ndarray:
        return np.array([float(max(truth.renyi(law, at), truth.renyi(law.turned(), at))) for at in orders])

    mixed = truth.Finite(tuple(((1 - mpf(rate)) * q + mpf(rate) * p, q) for p, q in law.outcomes))
    orders = np.array([1.3, 2.0, 2.5, 3.0, 5.5, 9.0, 30.0])
    for order, found in zip(orders, renyi.sampled_curve(rate, known, orders), strict=True):
        true = max(truth.renyi(mixed, order), truth.renyi(mixed.turned(), order))
        if true > mpf(found) * (1 + mpf(10) ** -13):
            raise Unsound(f"order {order} of {law.outcomes} at rate {rate}: {float(true)}, above {found}")


@pytest.mark.parametrize("seed", range(30))
def test_the_divergence_of_a_sample_is_never_below_the_exact_one(seed: int) -> None:
    check_random_laws(seed)


@pytest.mark.parametrize(("sigma", "rate"), [(1.0, 0.01), (3.0, 0.1), (0.5, 1e-6), (1.0, 0.9)])
def test_a_sample_of_what_is_zero_concentrated_diverges_like_one_of_gaussian_noise(sigma: float, rate: float) -> None:
    orders = np.array([2.0, 3.0, 7.0, 20.0, 64.0, 300.0])
    found = renyi.renyi_curve(Sampled(rate, events.ZeroConcentrated(1 / (2 * sigma**2))), orders)
    exact = renyi.sampled_gaussian_curve(rate, sigma, orders)
    assert np.all(exact * (1 - 1e-9) - 2e-13 / (orders - 1) <= found)  # the integral has a margin of 1e-13
    assert np.all(found <= exact * 1.01 + 1e-12)
    for order, value in zip(orders[:4], found[:4], strict=True):
        law = truth.Sampled(truth.Gaussian(1 / sigma), rate, addition=False)
        assert value >= float(truth.renyi(law, order)) * (1 - 1e-9)


def test_divergences_of_samples_give_a_finite_epsilon_where_nothing_else_is_known() -> None:
    event = Repeated(Sampled(0.01, events.ZeroConcentrated(0.5)), 1000)
    values = zip(renyi.ORDERS.tolist(), renyi.renyi_curve(event).tolist(), strict=True)
    best = min(epsilon_of_renyi(order, value, 1e-5) for order, value in values)
    assert epsilon(event, 1e-5).upper <= best * (1 + 1e-9) < 2.2


PLANTED = {
    "one order lower": lambda at, of: of(np.maximum(at - 1, 1.01)),
    "half the divergence": lambda at, of: of(at) / 2,
}


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_in_the_moments_is_noticed(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = renyi.sampled_curve
    planted = PLANTED[bug]
    monkeypatch.setattr(
        renyi, "sampled_curve", lambda rate, of, orders: whole(rate, lambda at: planted(at, of), orders)
    )
    with pytest.raises(Unsound):
        check_random_laws(0)


def test_a_rate_that_is_halved_in_the_moments_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = renyi._integer_moments
    monkeypatch.setattr(renyi, "_integer_moments", lambda rate, *rest: whole(rate / 2, *rest))
    with pytest.raises(Unsound):
        check_random_laws(0)
