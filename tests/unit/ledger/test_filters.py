"""Filters: an OR of accounts, exact, with delta shared between them."""

import math
import random
from fractions import Fraction

import pytest

from tacit.accounting.conversions import epsilon_of_mu, epsilon_of_renyi, epsilon_of_rho
from tacit.ledger.accounts import (
    SLICES,
    WIDENING,
    ConcentratedAccount,
    GaussianAccount,
    Measured,
    NamedAccount,
    RenyiAccount,
    SumAccount,
)
from tacit.ledger.amounts import (
    UNIT_BITS,
    Amounts,
    add_amounts,
    floor_float,
)
from tacit.ledger.caps import Cap
from tacit.ledger.filters import Filter, filter_of, steps
from tacit.privacy import events
from tacit.privacy.errors import MixedRelations
from tacit.privacy.events import Event
from tacit.privacy.units import Relation
from tests.unit.accounting import truth

CAPS = {
    "pure": Cap.of(1),
    "zcdp": Cap.of(1, 1e-6),
    "renyi": Cap.of(1, 1e-6, filter="renyi", order=24),
    "gdp": Cap.of(1, 1e-6, filter="gdp"),
}
every_cap = pytest.mark.parametrize("cap", CAPS.values(), ids=CAPS)


def admitted(filter_: Filter, event: Event, count_max: int = 10_000) -> int:
    """Return how often an event is admitted, one after another."""
    totals, amounts = filter_.nothing, filter_.price(Measured(event))
    for count in range(count_max):
        if not filter_.admits(totals, amounts):
            return count
        totals = add_amounts(totals, amounts)
    return count_max


def charged(filter_: Filter, *several: Event) -> Amounts:
    totals = filter_.nothing
    for event in several:
        totals = add_amounts(totals, filter_.price(Measured(event)))
    return totals


@every_cap
@pytest.mark.parametrize(("epsilon", "count"), [(0.1, 10), (0.01, 100), (0.2, 5), (1 / 3, 3), (1 / 49, 49), (0.7, 1)])
def test_charges_that_add_up_to_the_cap_in_decimals_fit_to_the_last(cap: Cap, epsilon: float, count: int) -> None:
    filter_ = filter_of(cap)
    assert filter_.admits(charged(filter_, *[events.Laplace(epsilon)] * (count - 1)), filter_.price(_laplace(epsilon)))


@pytest.mark.parametrize(("epsilon", "count"), [(0.1, 10), (0.01, 100), (0.2, 5), (1 / 3, 3), (1 / 49, 49), (0.7, 1)])
def test_one_more_than_fits_is_refused(epsilon: float, count: int) -> None:
    assert admitted(filter_of(CAPS["pure"]), events.Laplace(epsilon)) == count


@every_cap
def test_no_more_than_the_cap_is_admitted_beyond_its_thirteenth_digit(cap: Cap) -> None:
    filter_ = filter_of(cap)
    assert filter_.admits(filter_.nothing, filter_.price(_laplace(1.0)))
    assert not filter_.admits(filter_.nothing, filter_.price(_laplace(float(1 + 2 * WIDENING))))


def test_many_small_charges_go_by_the_named_account_and_few_large_ones_by_the_sum() -> None:
    filter_ = filter_of(CAPS["zcdp"])
    assert admitted(filter_, events.Laplace(0.02)) > 110  # the sum alone: 50
    assert admitted(filter_, events.Laplace(0.5)) == 2  # zCDP alone: none


@pytest.mark.parametrize(("name", "least"), [("zcdp", 115), ("renyi", 115), ("gdp", 130)], ids=["zcdp", "renyi", "gdp"])
def test_gaussian_answers_are_admitted_as_often_as_theory_says(name: str, least: int) -> None:
    assert least <= admitted(filter_of(CAPS[name]), events.Gaussian(50)) <= 140


@every_cap
def test_the_shares_of_delta_add_up_to_no_more_than_delta(cap: Cap) -> None:
    deltas = Fraction(0)
    for account in filter_of(cap).accounts:
        deltas += Fraction(account.caps[1], 2**UNIT_BITS) if len(account.caps) > 1 else 0
        deltas += Fraction(account.delta) if isinstance(account, NamedAccount) else 0
    assert deltas <= Fraction(cap.delta)
    assert deltas >= Fraction(cap.delta) * (1 - Fraction(1, 2**30))


@pytest.mark.parametrize("name", ["zcdp", "renyi", "gdp"])
def test_the_named_account_converts_back_to_no_more_than_epsilon(name: str) -> None:
    cap = CAPS[name]
    account = filter_of(cap).accounts[1]
    most = floor_float(account.caps[0])
    match account:
        case ConcentratedAccount():
            epsilon = epsilon_of_rho(most, account.delta)
        case RenyiAccount():
            epsilon = epsilon_of_renyi(account.order, most, account.delta)
        case GaussianAccount():
            epsilon = epsilon_of_mu(math.sqrt(most), account.delta)
        case _:
            epsilon = math.inf
    assert 0.999 * cap.epsilon < epsilon <= cap.epsilon


@every_cap
def test_the_first_charge_shows_as_spent_what_it_cost(cap: Cap) -> None:
    filter_ = filter_of(cap)
    spent = filter_.spent(charged(filter_, events.Laplace(0.25)))
    assert (spent.epsilon, spent.delta) == (0.25, 0.0)


@every_cap
def test_nothing_is_spent_at_first(cap: Cap) -> None:
    filter_ = filter_of(cap)
    spent, remaining = filter_.spent(filter_.nothing), filter_.remaining(filter_.nothing)
    assert (spent.epsilon, spent.delta, spent.rho) == (0, 0, 0)
    assert remaining.epsilon == cap.epsilon


def test_spent_never_shows_more_than_the_cap_while_it_is_kept() -> None:
    filter_ = filter_of(CAPS["zcdp"])
    totals = charged(filter_, *[events.Laplace(0.1)] * 10)
    assert filter_.spent(totals).epsilon == 1.0
    assert filter_.remaining(totals).epsilon == 0.0


def test_what_is_left_of_decimals_is_shown_as_a_decimal() -> None:
    filter_ = filter_of(CAPS["pure"])
    assert filter_.remaining(charged(filter_, events.Laplace(0.1))).epsilon == 0.9
    assert filter_.remaining(charged(filter_, *[events.Laplace(0.1)] * 3)).epsilon == 0.7


def test_an_account_that_is_exceeded_stays_so_and_the_other_goes_on() -> None:
    filter_ = filter_of(CAPS["zcdp"])
    totals = charged(filter_, events.Laplace(0.5))
    assert filter_.remaining(totals).rho == 0
    assert filter_.remaining(totals).epsilon == 0.5


def test_an_event_without_a_rho_kills_the_zcdp_account_alone() -> None:
    filter_ = filter_of(Cap.of(1, 1e-6, filter="renyi", order=24))
    event = events.Sampled(0.01, events.Gaussian(2))
    amounts = filter_.price(Measured(event))
    assert amounts[1] is not None
    assert filter_.admits(filter_.nothing, amounts)
    assert filter_of(CAPS["zcdp"]).price(Measured(event)) == (None, None)


def test_approximate_events_use_up_the_delta_that_is_set_aside_for_them() -> None:
    filter_ = filter_of(CAPS["zcdp"])
    assert admitted(filter_, events.Approximate(0.01, 1e-8)) == 10
    assert admitted(filter_, events.Approximate(0.01, 2e-7)) == 0
    left = filter_.remaining(charged(filter_, events.Approximate(0.01, 4e-8)))
    assert left.delta == pytest.approx(6e-8)


SELDOM = events.Approximate(1e-3, 1e-9)
"""Gives everything away with probability 1e-9."""


@pytest.mark.parametrize("name", ["zcdp", "renyi", "gdp"])
@pytest.mark.parametrize(
    ("event", "times"),
    [
        (events.Composed((events.Gaussian(20), *(SELDOM,) * 40)), 40),
        (events.Composed((events.Gaussian(20), events.Repeated(SELDOM, 1000))), 1000),
        (events.Composed((events.Gaussian(200), events.Repeated(events.Approximate(0.3, 1e-9), 2))), 2),
        (events.Disjoint((events.Gaussian(20), SELDOM)), 1),
        (events.Repeated(events.Disjoint((events.Gaussian(20), SELDOM)), 7), 7),
    ],
    ids=["listed", "repeated", "summed", "disjoint", "repeatedly disjoint"],
)
def test_an_account_charges_every_delta_of_an_event_or_has_no_price(name: str, event: Event, times: int) -> None:
    """What is given away by chance is given away at every epsilon: 1 - (1 - delta)^times is the least that holds."""
    least = -math.expm1(times * math.log1p(-1e-9))
    filter_ = filter_of(CAPS[name])
    amounts = filter_.price(Measured(event))
    for account, amount in zip(filter_.accounts, amounts, strict=True):
        assert amount is None or (len(amount) == 2 and amount[1] >= least * 2**UNIT_BITS), account.name
    assert amounts[0] is not None
    assert filter_.cost(Measured(event), amounts).delta >= least


@pytest.mark.parametrize("name", ["zcdp", "renyi", "gdp"])
@pytest.mark.parametrize(("sigma", "epsilon"), [(200.0, 0.5), (10.0, 0.01), (2.0, 0.1)])
@pytest.mark.parametrize("given", [0.0, 1e-9])
def test_the_sum_charges_no_less_than_noise_and_randomized_response_cost_together(
    name: str, sigma: float, epsilon: float, given: float
) -> None:
    """Held at the epsilon that is charged against the delta that is charged, by the integral of one over the other."""
    event = events.Composed((events.Gaussian(sigma), events.Approximate(epsilon, given)))
    cost = filter_of(CAPS[name]).cost(Measured(event), filter_of(CAPS[name]).price(Measured(event)))
    together = truth.twice(truth.response(epsilon), truth.Whole(truth.Gaussian(1 / sigma)), cost.epsilon)
    assert given + (1 - given) * together <= cost.delta


@pytest.mark.parametrize("epsilon", [0.1, 0.75, 3.0, 20.0])
def test_the_sum_holds_its_epsilon_and_a_tenth_of_delta_in_slices(epsilon: float) -> None:
    account = SumAccount.of(Cap.of(epsilon, 1e-6))
    widened, unit = 1 + WIDENING, Fraction(1, 2**UNIT_BITS)
    most, delta_most = (cap * unit for cap in account.caps)
    assert Fraction(epsilon) <= most + unit <= Fraction(epsilon) * widened + unit
    assert Fraction(1e-6) / 10 <= delta_most + unit <= Fraction(1e-6) / 10 * widened + unit
    assert Fraction(1e-6) / 10 * (1 - Fraction(1, 2**50)) <= SLICES * Fraction(account.slice) <= Fraction(1e-6) / 10


def test_prices_of_parts_are_summed_up_and_not_rounded_down() -> None:
    """In units, which are exact: what a composition is charged is no less than its parts, whatever the last digits."""
    chance, filter_ = random.Random(3), filter_of(CAPS["zcdp"])
    (alone, slice_), _ = filter_.price(Measured(events.Gaussian(200)))  # type: ignore[misc]
    for _ in range(60):
        own = events.Approximate(chance.uniform(0.2, 0.5), chance.uniform(1e-10, 1e-9))
        (epsilon, delta), _ = filter_.price(Measured(own))  # type: ignore[misc]
        together = filter_.price(Measured(events.Composed((events.Gaussian(200), own))))[0]
        assert together is not None
        assert (together[0] >= alone + epsilon, together[1] >= slice_ + delta) == (True, True)
        apart = filter_.price(Measured(events.Disjoint((events.Gaussian(200), own))))[0]
        assert apart is not None
        assert apart[1] >= slice_ + delta


def test_every_part_is_charged_as_often_as_it_runs() -> None:
    """Parts with an epsilon of their own cost more by their rho, so the sum takes them one by one."""
    filter_ = filter_of(CAPS["zcdp"])
    noise = events.Repeated(events.Gaussian(300), 3)
    counted = [(noise, 1), (events.Approximate(0.3, 1e-9), 2), (events.Laplace(0.4), 5), (events.Pure(0.7), 1)]
    whole = filter_.price(Measured(events.Composed(tuple(events.Repeated(one, count) for one, count in counted))))[0]
    each = [(filter_.price(Measured(one))[0], count) for one, count in counted]
    assert whole is not None
    for number, charged_ in enumerate(whole):
        least = sum(count * amount[number] for amount, count in each if amount is not None)
        assert least <= charged_ <= least * (1 + Fraction(1, 10**9))


@pytest.mark.parametrize(
    "several",
    [
        [events.Approximate(0.01, 0.999e-7), *[events.Gaussian(200)] * 4],
        [events.Laplace(0.5), *[events.Gaussian(500)] * 4, events.Approximate(0.01, 1e-8)],
    ],
    ids=["the sum's delta is used up", "the rho is used up"],
)
def test_what_is_left_of_one_account_does_not_count_for_another(several: list[Event]) -> None:
    filter_ = filter_of(CAPS["zcdp"])
    totals = charged(filter_, *several)
    held = [account.holds(total) for account, total in zip(filter_.accounts, totals, strict=True)]
    assert sorted(held) == [False, True]
    left = filter_.remaining(totals)
    for event in (events.Pure(left.epsilon), events.Approximate(0, left.delta), events.ZeroConcentrated(left.rho)):
        assert filter_.admits(totals, filter_.price(Measured(event)))
    for event in (events.Pure(left.epsilon * 1.001), events.Approximate(0, left.delta * 1.001)):
        assert not filter_.admits(totals, filter_.price(Measured(event)))


@every_cap
def test_events_under_the_other_relation_are_refused(cap: Cap) -> None:
    with pytest.raises(MixedRelations, match='add-remove, or make a budget for it with relation="replace-one"'):
        filter_of(cap).price(Measured(events.Laplace(0.1, under=Relation.REPLACE_ONE)))


def test_steps_take_repetition_and_composition_apart_and_nothing_else() -> None:
    step, other = events.Gaussian(3), events.Laplace(0.1)
    plan = events.Composed([events.Repeated(events.Composed([step, other]), 5), step, events.Sampled(0.1, other)])
    assert steps(plan) == {step: 6, other: 5, events.Sampled(0.1, other): 1}


@every_cap
def test_a_plan_of_pure_steps_costs_what_its_steps_cost_and_gets_all_but_those_run_back(cap: Cap) -> None:
    filter_, step = filter_of(cap), events.Laplace(0.01)
    plan, ran = events.Repeated(step, 30), events.Repeated(step, 12)
    reserved = filter_.price(Measured(plan), as_plan=True)
    assert reserved == filter_.stepwise(plan)
    back = filter_.refund(plan, reserved, ran)
    assert add_amounts(back, filter_.stepwise(ran)) == reserved


def test_a_plan_that_the_sum_counts_as_a_whole_returns_steps_to_the_other_account_only() -> None:
    filter_, step = filter_of(CAPS["zcdp"]), events.Gaussian(200)
    plan = events.Repeated(step, 100)
    reserved = filter_.price(Measured(plan), as_plan=True)
    assert reserved[0] == filter_.price(Measured(plan))[0]
    summed, concentrated = filter_.refund(plan, reserved, events.Repeated(step, 40))
    assert summed == (0, 0)
    assert reserved[1] is not None
    assert concentrated is not None
    assert concentrated[0] == pytest.approx(0.6 * reserved[1][0], rel=1e-12)


def _laplace(epsilon: float) -> Measured:
    return Measured(events.Laplace(epsilon))
