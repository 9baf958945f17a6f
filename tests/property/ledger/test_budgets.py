"""What holds for every budget and every sequence of charges."""

import math
import warnings
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tacit.ledger import Budget
from tacit.ledger.accounts import Measured
from tacit.ledger.amounts import (
    UNIT_BITS,
    Amounts,
    add_amounts,
    amounts_from_json,
    amounts_to_json,
    subtract_amounts,
)
from tacit.ledger.caps import Cap
from tacit.ledger.filters import Filter, filter_of
from tacit.privacy import events
from tacit.privacy.errors import BudgetExceeded, NotPriced
from tacit.privacy.events import Event
from tacit.privacy.units import Relation
from tests.property.privacy.strategies import events_under

HAIR = 1 + 1e-9

epsilons = st.floats(1e-3, 20)
deltas = st.floats(1e-15, 1e-2)
budgets: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.fixed_dictionaries({"epsilon": epsilons}),
    st.fixed_dictionaries({"epsilon": epsilons, "delta": deltas}),
    st.fixed_dictionaries({"epsilon": epsilons, "delta": deltas, "filter": st.just("gdp")}),
    st.fixed_dictionaries(
        {"epsilon": st.floats(1, 20), "delta": deltas, "filter": st.just("renyi"), "order": st.floats(100, 4000)}
    ),
)
charges = st.one_of(
    st.builds(events.Laplace, st.floats(1e-6, 2)),
    st.builds(events.Pure, st.floats(1e-6, 2)),
    st.builds(events.Exponential, st.floats(1e-6, 2)),
    st.builds(events.Gaussian, st.floats(0.5, 1e4)),
    st.builds(events.ZeroConcentrated, st.floats(0, 1)),
    st.builds(events.Approximate, st.floats(0, 1), st.floats(0, 1e-3)),
    st.builds(events.Repeated, st.builds(events.Gaussian, st.floats(10, 1e4)), st.integers(1, 50)),
    st.builds(
        lambda parts: events.Composed(parts), st.lists(st.builds(events.Laplace, st.floats(1e-6, 1)), min_size=1)
    ),
)


def total(filter_: Filter, several: list[Event]) -> Amounts:
    totals = filter_.nothing
    for event in several:
        totals = add_amounts(totals, filter_.price(Measured(event)))
    return totals


def charge_while_admitted(budget: Budget, several: list[Event]) -> None:
    for event in several:
        try:
            budget.charge(event)
        except BudgetExceeded:
            continue


@given(budgets, st.lists(charges, max_size=12), st.randoms(use_true_random=False))
def test_the_price_of_charges_does_not_depend_on_their_order(
    settings_: dict[str, Any], several: list[Event], random: Any
) -> None:
    filter_ = filter_of(Cap.of(**settings_))
    shuffled = several.copy()
    random.shuffle(shuffled)
    assert total(filter_, several) == total(filter_, shuffled)


@given(budgets, st.lists(charges, max_size=12))
def test_the_greatest_epsilon_that_is_said_to_remain_is_admitted_and_a_hair_more_is_not(
    settings_: dict[str, Any], several: list[Event]
) -> None:
    budget = Budget(**settings_)
    charge_while_admitted(budget, several)
    left = budget.remaining().epsilon
    if left < budget.cap.epsilon or budget.cap.delta == 0:
        with pytest.raises(BudgetExceeded):
            budget.charge(events.Pure(left * HAIR + 1e-9 * budget.cap.epsilon))
    if left > 0:
        budget.charge(events.Pure(left))


@given(budgets)
def test_of_a_fresh_budget_something_remains(settings_: dict[str, Any]) -> None:
    budget = Budget(**settings_)
    left = budget.remaining()
    assert left.epsilon == budget.cap.epsilon
    assert (left.delta > 0) == (budget.cap.delta > 0)
    assert (left.rho > 0) == (budget.cap.filter in ("pure", "zcdp"))


@given(budgets, st.lists(charges, max_size=12))
def test_the_rho_that_is_said_to_remain_is_admitted_and_the_account_of_rho_holds_no_more(
    settings_: dict[str, Any], several: list[Event]
) -> None:
    """The sum may admit more: it prices the same event by an epsilon and a delta of its own."""
    budget = Budget(**settings_)
    assume(budget.cap.filter == "zcdp")
    fresh = budget.remaining().rho
    charge_while_admitted(budget, several)
    left = budget.remaining().rho
    more = budget._filter.price(Measured(events.ZeroConcentrated(left * HAIR + 1e-9 * fresh)))
    account, totals = budget._filter.accounts[1], add_amounts(budget._totals, more)
    assert not account.holds(totals[1])
    if left > 0:
        budget.charge(events.ZeroConcentrated(left))


@given(budgets, st.lists(charges, max_size=6))
def test_the_epsilon_and_delta_that_are_said_to_remain_are_admitted_together_and_a_little_more_delta_is_not(
    settings_: dict[str, Any], several: list[Event]
) -> None:
    budget = Budget(**settings_)
    charge_while_admitted(budget, several)
    left = budget.remaining()
    with pytest.raises(BudgetExceeded):
        budget.charge(events.Approximate(left.epsilon, left.delta * HAIR + 1e-9 * (budget.cap.delta or 1)))
    if left.epsilon > 0:
        budget.charge(events.Approximate(left.epsilon, left.delta))


@given(budgets, st.lists(charges, max_size=6), charges)
def test_what_a_charge_is_said_to_leave_is_left_afterwards(
    settings_: dict[str, Any], several: list[Event], event: Event
) -> None:
    budget = Budget(**settings_)
    charge_while_admitted(budget, several)
    assume(budget.refusal(event) is None)
    before, leaves = budget.remaining(), budget.remaining(after=event)
    assert budget.remaining() == before
    budget.charge(event)
    assert budget.remaining() == leaves


@given(budgets, charges)
def test_the_preview_is_what_is_charged(settings_: dict[str, Any], event: Event) -> None:
    budget = Budget(**settings_)
    shown = budget.preview(event)
    if budget._filter.admits(budget._totals, budget._filter.price(Measured(event))):
        assert budget.charge(event).cost == shown
    else:
        with pytest.raises(BudgetExceeded) as refused:
            budget.charge(event)
        assert refused.value.asked == shown


@given(budgets, charges)
def test_a_recorded_cost_is_not_below_the_price_that_is_charged(settings_: dict[str, Any], event: Event) -> None:
    budget = Budget(**settings_)
    cost, (summed, *_) = budget.preview(event), budget._filter.price(Measured(event))
    if summed is not None:
        epsilon, delta = (Fraction(units, 1 << UNIT_BITS) for units in summed)
        assert Fraction(cost.epsilon) >= epsilon
        assert Fraction(cost.delta) >= min(delta, 1)


@given(budgets, st.lists(charges, max_size=12), charges)
@example({"epsilon": 1.0, "delta": 1e-6}, [events.Laplace(1.0)], events.Laplace(1e-13))
@example({"epsilon": 1.0}, [events.Laplace(1.0)], events.Laplace(math.nextafter(1e-13, 1)))
@example({"epsilon": 1.0, "delta": 1e-6}, [], events.Laplace(1.0 + 2**-42))
def test_a_refusal_names_a_unit_of_which_more_was_asked_than_is_left(
    settings_: dict[str, Any], several: list[Event], event: Event
) -> None:
    budget = Budget(**settings_)
    charge_while_admitted(budget, several)
    refused = budget.refusal(event)
    if refused is None or isinstance(refused, NotPriced):
        return
    unit = refused.message.removeprefix("asked for ").split()[0]
    assert getattr(refused.asked, unit) > getattr(refused.remaining, unit), refused.message


@given(budgets, st.lists(charges, max_size=12))
def test_spent_never_falls_and_never_passes_the_cap(settings_: dict[str, Any], several: list[Event]) -> None:
    budget, before = Budget(**settings_), 0.0
    for event in several:
        charge_while_admitted(budget, [event])
        spent = budget.spent()
        assert before <= spent.epsilon * HAIR
        assert spent.epsilon <= budget.cap.epsilon
        assert spent.delta <= budget.cap.delta
        before = spent.epsilon


@given(budgets, st.lists(charges, min_size=1, max_size=8))
def test_charging_in_small_steps_never_admits_more_than_the_accounts_hold(
    settings_: dict[str, Any], several: list[Event]
) -> None:
    budget = Budget(**settings_)
    charge_while_admitted(budget, several)
    assert any(account.holds(total) for account, total in zip(budget._filter.accounts, budget._totals, strict=True))


@given(budgets, charges, st.integers(1, 30), st.integers(1, 30))
def test_what_a_plan_gets_back_never_exceeds_what_its_unrun_steps_cost(
    settings_: dict[str, Any], step: Event, count: int, ran: int
) -> None:
    assume(ran <= count)
    filter_ = filter_of(Cap.of(**settings_))
    plan = events.Repeated(step, count)
    reserved = filter_.price(Measured(plan), as_plan=True)
    left = subtract_amounts(reserved, filter_.refund(plan, reserved, events.Repeated(step, ran)))
    for kept, needed, whole in zip(left, filter_.stepwise(events.Repeated(step, ran)), reserved, strict=True):
        assert kept in (needed, whole)


@settings(max_examples=200)
@given(budgets, events_under(Relation.ADD_REMOVE))
def test_every_event_has_a_price_in_every_account_or_none_and_it_survives_being_written(
    settings_: dict[str, Any], event: Event
) -> None:
    filter_ = filter_of(Cap.of(**settings_))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # what overflows has no bound, and that is a price too
        amounts = filter_.price(Measured(event))
    assert filter_.counts(amounts)
    assert all(amount is None or min(amount) >= 0 for amount in amounts)
    assert amounts_from_json(amounts_to_json(amounts)) == amounts
    cost = filter_.cost(Measured(event), amounts)
    assert cost.epsilon >= 0
    assert not math.isnan(cost.epsilon)


@given(budgets, st.lists(charges, max_size=12), st.floats(1e-3, 40))
def test_what_a_refusal_says_would_fit_fits(settings_: dict[str, Any], several: list[Event], epsilon: float) -> None:
    budget = Budget(**settings_)
    charge_while_admitted(budget, several)
    try:
        budget.charge(events.Laplace(epsilon))
    except BudgetExceeded as refused:
        said = refused
    else:
        return
    assert ("would fit" in said.message) == (said.fits is not None)
    if said.fits is not None:
        budget.charge(events.Laplace(said.fits.epsilon))
        with pytest.raises(BudgetExceeded):
            budget.charge(events.Laplace(epsilon))
