"""Prices over the whole range of doubles and counts: no raw error, never negative, never less for more."""

import dataclasses
import random
from fractions import Fraction

import pytest

from tacit.ledger import Budget
from tacit.ledger.accounts import Measured, least_units
from tacit.ledger.amounts import Amounts, amounts_from_json, amounts_to_json
from tacit.ledger.caps import Cap
from tacit.ledger.filters import Filter, filter_of
from tacit.privacy import events
from tacit.privacy.errors import BudgetExceeded, TacitError
from tacit.privacy.events import KINDS, Event
from tacit.privacy.units import Relation
from tests.property.ledger import absurd

SAMPLES = (80, pytest.param(400, marks=pytest.mark.soak))
"""How many events are drawn for each cap; `make soak` draws more."""
SLACK = Fraction(1, 10**6)
"""Conversions search for the best order, and do not find it to the last digit."""
CAPS = {
    "pure": Cap.of(1.0),
    "zcdp": Cap.of(1.0, 1e-6),
    "renyi": Cap.of(2.0, 1e-6, filter="renyi", order=32),
    "gdp": Cap.of(1.0, 1e-6, filter="gdp"),
    "greatest": Cap.of(2.0**20, 0.5),
    "least": Cap.of(5e-324, 1e-300),
}
every_cap = pytest.mark.parametrize("cap", CAPS.values(), ids=CAPS)
short_and_long = pytest.mark.parametrize("samples", SAMPLES)


def filter_under(cap: Cap, relation: Relation) -> Filter:
    return filter_of(dataclasses.replace(cap, relation=relation))


def price(filter_: Filter, event: Event, *, as_plan: bool = False) -> Amounts:
    return filter_.price(Measured(event), as_plan=as_plan)


def is_at_least(one: Amounts, other: Amounts) -> bool:
    """Whether every amount is at least another, infinity being the greatest, but for the search's precision."""
    pairs = zip(one, other, strict=True)
    return all(left is None or (right is not None and left[0] >= (1 - SLACK) * right[0] - 1) for left, right in pairs)


@short_and_long
@every_cap
@pytest.mark.parametrize("kind", KINDS)
def test_every_event_has_a_price_that_is_no_less_than_nothing(cap: Cap, kind: str, samples: int) -> None:
    chance = random.Random(kind)
    for number in range(samples // 8):
        event = absurd.event(chance, list(Relation)[number % 2], kinds=(kind,))
        filter_ = filter_under(cap, event.relation)
        for as_plan in (False, True):
            amounts = price(filter_, event, as_plan=as_plan)
            assert filter_.counts(amounts)
            assert all(amount is None or (min(amount) >= 0 and sum(amount) >= least_units(event)) for amount in amounts)
            assert amounts_from_json(amounts_to_json(amounts)) == amounts
            cost = filter_.cost(Measured(event), amounts)
            assert cost.epsilon >= 0, event
            assert 0 <= cost.delta <= 1, event
            assert cost.rho >= 0, event


@short_and_long
@every_cap
def test_an_event_that_is_repeated_costs_no_less_than_once(cap: Cap, samples: int) -> None:
    chance = random.Random(1)
    for number in range(samples):
        event = absurd.event(chance, list(Relation)[number % 2])
        filter_, count = filter_under(cap, event.relation), absurd.count(chance)
        assert is_at_least(price(filter_, events.Repeated(event, count)), price(filter_, event)), (event, count)


@short_and_long
@every_cap
def test_a_composition_of_pure_parts_costs_no_less_than_each(cap: Cap, samples: int) -> None:
    chance = random.Random(2)
    for _ in range(samples):
        kinds = ("pure", "laplace", "exponential", "discrete-laplace", "randomized-response")
        parts = [absurd.event(chance, cap.relation, kinds=kinds) for _ in range(chance.randint(1, 4))]
        whole = price(filter_of(cap), events.Composed(tuple(parts)))
        assert all(is_at_least(whole, price(filter_of(cap), part)) for part in parts), parts


@short_and_long
@every_cap
def test_totals_never_fall_and_noise_never_leaves_them_as_they_were(cap: Cap, samples: int) -> None:
    chance = random.Random(3)
    budget = Budget(cap.epsilon, cap.delta, filter=cap.filter, order=cap.order)
    for _ in range(samples):
        event, before = absurd.event(chance, cap.relation), budget._totals
        try:
            budget.charge(event)
        except BudgetExceeded:
            assert budget._totals == before
            continue
        for now, then in zip(budget._totals, before, strict=True):
            assert now is None or (then is not None and all(map(int.__ge__, now, then)))
        assert (budget._totals != before) or not least_units(event)
        assert budget.spent().epsilon <= cap.epsilon
        assert budget.remaining().epsilon >= 0


@short_and_long
@pytest.mark.parametrize("named", [None, "pure", "zcdp", "gdp", "renyi"])
def test_every_budget_can_be_used_or_is_refused_in_one_sentence(named: str | None, samples: int) -> None:
    chance, used = random.Random(4), 0
    for _ in range(samples // 2):
        epsilon, delta = chance.choice((absurd.double(chance), 1.0)), chance.choice((0.0, absurd.share(chance)))
        order = chance.choice((absurd.double(chance), 2, 64, 4096)) if named == "renyi" else None
        try:
            budget = Budget(epsilon, delta, filter=named, order=order)
        except TacitError:
            continue
        used += 1
        for event in (events.Laplace(epsilon / 2), events.Gaussian(50), events.Approximate(0, delta / 20)):
            try:
                budget.charge(event)
            except BudgetExceeded as refused:
                assert "\n" not in str(refused)  # noqa: PT017 (most of them are admitted)
            assert 0 <= budget.spent().epsilon <= epsilon
            assert 0 <= budget.remaining().epsilon <= epsilon
    assert used > samples / 40
