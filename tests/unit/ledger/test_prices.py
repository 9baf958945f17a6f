"""Prices: whatever an accountant says, no charge is negative, none for noise is nothing, and none lowers a total."""

import contextlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tacit.ledger import Budget, Ledger, accounts
from tacit.ledger.accounts import Measured, least_units
from tacit.ledger.amounts import add_charge, multiply_amounts
from tacit.ledger.caps import Cap
from tacit.ledger.filters import filter_of
from tacit.privacy import events
from tacit.privacy.errors import BudgetExceeded, LedgerCorrupt, NotPriced, OutOfRange, TacitError
from tacit.privacy.events import Event

CAPS = {
    "pure": Cap.of(1),
    "zcdp": Cap.of(1, 1e-6),
    "renyi": Cap.of(1, 1e-6, filter="renyi", order=24),
    "gdp": Cap.of(1, 1e-6, filter="gdp"),
}
NUMBERS: dict[str, Callable[[float], Any]] = {
    "pure_epsilon": float,
    "approximate_zcdp": lambda number: (number, 0.0),
    "renyi": float,
    "gaussian_mu": float,
}
"""What each accountant returns, made from one number."""
every_cap = pytest.mark.parametrize("cap", CAPS.values(), ids=CAPS)
SUBSAMPLED = events.Sampled(5e-324, events.Laplace(701.0))
"""Of this an accountant once said that it costs epsilon -43."""


def say(monkeypatch: pytest.MonkeyPatch, number: float, *accountants: str) -> None:
    """Make accountants say one number of every event."""
    for name in accountants or NUMBERS:
        said = NUMBERS[name]
        monkeypatch.setattr(f"tacit.ledger.accounts.{name}", lambda *_, said=said: said(number))


@every_cap
@pytest.mark.parametrize("number", [-80.0, -5e-324, math.nan, math.inf, -math.inf])
def test_what_no_cost_can_be_is_no_bound_and_is_refused(
    monkeypatch: pytest.MonkeyPatch, cap: Cap, number: float
) -> None:
    say(monkeypatch, number)
    budget = Budget(cap.epsilon, cap.delta, filter=cap.filter, order=cap.order)
    for event in (events.Laplace(0.5), events.Repeated(events.Gaussian(3), 7)):
        assert filter_of(cap).price(Measured(event)) == (None,) * len(filter_of(cap).accounts)
        with pytest.raises(NotPriced):
            budget.charge(event)
    assert budget.spent().epsilon == 0


@every_cap
@pytest.mark.parametrize("number", [0.0, -0.0])
def test_noise_is_never_free_whatever_the_accountants_say(
    monkeypatch: pytest.MonkeyPatch, cap: Cap, number: float
) -> None:
    say(monkeypatch, number)
    for event in (events.Laplace(0.5), events.Gaussian(3), events.Repeated(events.Gaussian(3), 7)):
        for priced in (filter_of(cap).price(Measured(event)), filter_of(cap).price(Measured(event), as_plan=True)):
            assert all(amount is not None and any(amount) for amount in priced)


@pytest.mark.parametrize("accountant", NUMBERS)
@every_cap
def test_one_accountant_that_is_wrong_about_a_part_is_not_believed_about_the_whole(
    monkeypatch: pytest.MonkeyPatch, cap: Cap, accountant: str
) -> None:

    right = getattr(accounts, accountant)

    def wrong_about_sampling(event: Event, *order: float) -> Any:
        if isinstance(event, events.Composed):  # a sum hides what is wrong with one of its terms
            said = [wrong_about_sampling(part, *order) for part in event.events]
            return tuple(map(sum, zip(*said, strict=True))) if isinstance(said[0], tuple) else sum(said)
        return NUMBERS[accountant](-43.0) if isinstance(event, events.Sampled) else right(event, *order)

    monkeypatch.setattr(accounts, accountant, wrong_about_sampling)
    whole = filter_of(cap).price(Measured(events.Composed((SUBSAMPLED, events.Laplace(50.0)))))
    monkeypatch.setattr(accounts, accountant, right)
    alone = filter_of(cap).price(Measured(events.Laplace(50.0)))
    for amount, least in zip(whole, alone, strict=True):
        assert amount is None or (least is not None and amount[0] >= least[0])


@every_cap
@pytest.mark.parametrize("number", [-80.0, math.nan])
def test_conversions_that_fail_do_not_make_anything_cheap(
    monkeypatch: pytest.MonkeyPatch, cap: Cap, number: float
) -> None:
    for name in ("epsilon_of_rho", "epsilon_of_renyi", "epsilon_of_mu"):
        monkeypatch.setattr(f"tacit.ledger.accounts.{name}", lambda *_: number)
    (summed, *_) = filter_of(cap).price(Measured(events.Gaussian(1.0)))
    assert summed is None


@every_cap
def test_subsampled_noise_is_refused_or_charged_more_each_time(cap: Cap) -> None:
    budget = Budget(cap.epsilon, cap.delta, filter=cap.filter, order=cap.order)
    for event in (SUBSAMPLED, events.Composed((SUBSAMPLED, events.Laplace(0.1)))):
        for _ in range(3):
            before = budget._totals
            try:
                permit = budget.charge(event)
            except BudgetExceeded:
                continue
            assert budget._totals != before
            assert permit.cost.epsilon > 0


def test_a_durable_ledger_previews_what_it_charges_whatever_the_accountants_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Ledger.open(tmp_path) as ledger:
        ledger.create_budget("visits", epsilon=1.0, delta=1e-6, epsilon_min=0)
        for number in (0.0, -0.0, 5e-324, -80.0, math.nan):
            say(monkeypatch, number)
            shown = ledger.preview("visits", events.Laplace(0.5))
            before = ledger.row_of(ledger.scopes()[0]).totals
            if number >= 0:
                assert ledger.reserve("visits", events.Laplace(0.5)).cost == shown
                assert shown.epsilon > 0
                assert ledger.row_of(ledger.scopes()[0]).totals != before
            else:
                with pytest.raises(NotPriced) as refused:
                    ledger.reserve("visits", events.Laplace(0.5))
                assert refused.value.asked == shown
        ledger.verify(full=True)


@pytest.mark.parametrize(
    "event",
    [
        events.Pure(0),
        events.Laplace(0),
        events.Exponential(0),
        events.DiscreteLaplace(0, 5),
        events.RandomizedResponse(0, 3),
        events.Approximate(0, 0),
        events.Repeated(events.Laplace(0), 10**9),
        events.Composed((events.Laplace(0), events.Pure(0))),
        events.Sampled(0.1, events.Laplace(0)),
    ],
)
@every_cap
def test_only_what_is_free_by_its_parameters_is_free(cap: Cap, event: Event) -> None:
    assert least_units(event) == 0
    assert all(amount is None or not any(amount) for amount in filter_of(cap).price(Measured(event)))


@pytest.mark.parametrize(
    "event",
    [
        events.Laplace(5e-324),
        events.ZeroConcentrated(5e-324),
        events.Approximate(0, 5e-324),
        events.Gaussian(1.7e308),
        events.DiscreteGaussian(1e200, 1e200),
        events.NoisyMax(1e300),
        events.TreeAggregation(1e300, 4),
        events.Composed((events.Laplace(0), events.Laplace(1e-300))),
        events.Sampled(5e-324, events.Laplace(1e-300)),
    ],
)
@every_cap
def test_the_least_noise_costs_at_least_one_unit_in_every_account_that_has_a_price(cap: Cap, event: Event) -> None:
    assert least_units(event) == 1
    assert all(amount is None or any(amount) for amount in filter_of(cap).price(Measured(event)))


def test_a_charge_that_would_lower_a_total_is_not_made() -> None:
    totals = ((5, 5), (5,))
    assert add_charge(totals, ((0, 1), None)) == ((5, 6), None)
    with pytest.raises(LedgerCorrupt, match="lower"):
        add_charge(totals, ((3, -1), (1,)))


def test_what_is_multiplied_beyond_every_cap_is_infinite() -> None:
    """Sums of absurd counts would otherwise be integers too long to be written."""
    assert multiply_amounts(((1, 2), (3,)), 10**400) == (None, None)
    nested: Event = events.Laplace(1.0)
    for _ in range(20):
        nested = events.Repeated(nested, 10**300)
    with pytest.raises(BudgetExceeded):
        Budget(1.0).charge(nested)
    assert filter_of(CAPS["zcdp"]).price(Measured(nested), as_plan=True) == (None, None)


@every_cap
def test_noise_whose_cost_is_rounded_to_nothing_is_not_had_by_repeating_it(cap: Cap) -> None:
    """1 / sigma^2 is 0 as a double; the cost of so many repetitions is not."""
    tiny = events.Gaussian(1e163)
    for many in (
        events.Repeated(tiny, 10**40),
        events.Sampled(0.5, events.Repeated(tiny, 10**40)),
        events.Composed((events.Repeated(events.Repeated(tiny, 10**20), 10**20), events.Laplace(0))),
    ):
        with pytest.raises(BudgetExceeded):
            Budget(cap.epsilon, cap.delta, filter=cap.filter, order=cap.order).charge(many)


@pytest.mark.parametrize("count", [10**15, 10**299, 10**300, 2**999])
@every_cap
def test_counts_of_any_size_are_priced_or_refused(cap: Cap, count: int) -> None:
    budget = Budget(cap.epsilon, cap.delta, filter=cap.filter, order=cap.order)
    for event in (events.Laplace(0.1), events.Gaussian(10), events.Approximate(0.1, 1e-9), events.Laplace(5e-324)):
        for many in (events.Repeated(event, count), events.Grouped(event, count)):
            with contextlib.suppress(BudgetExceeded):
                budget.charge(many)
            assert str(budget.report())


@pytest.mark.parametrize("delta", [5e-324, 1e-308, 1e-302])
@pytest.mark.parametrize("named", [{}, {"filter": "gdp"}, {"filter": "renyi", "order": 4096}])
def test_a_delta_that_no_conversion_can_use_is_refused_in_one_sentence(delta: float, named: dict[str, Any]) -> None:
    with pytest.raises(OutOfRange, match="delta must be 0 or at least"):
        Budget(1, delta, **named)
    assert Budget(2.0, 1e-300, **named).remaining().epsilon > 0


@pytest.mark.parametrize("epsilon", [5e-324, 1e-300, 1e-9])
def test_an_order_that_is_said_to_do_it_does_it_or_none_is_said(epsilon: float) -> None:
    with pytest.raises(TacitError) as refused:
        Budget(epsilon, 1e-6, filter="renyi", order=2)
    assert "an order of" not in refused.value.message


@pytest.mark.parametrize(
    ("event", "units"),
    [
        (events.Pure(0.0), 0),
        (events.ZeroConcentrated(0.0), 0),
        (events.Approximate(0.0, 0.0), 0),
        (events.Approximate(0.0, 5e-324), 1),
        (events.Laplace(5e-324), 1),
        (events.Gaussian(1e300), 1),
        (events.Disjoint((events.Pure(0.0), events.Gaussian(1e300))), 1),
        (events.Disjoint((events.Gaussian(1e300), events.Pure(0.0))), 1),
        (events.Composed((events.Pure(0.0), events.Gaussian(1e300), events.Laplace(5e-324))), 2),
        (events.Repeated(events.Gaussian(1e300), 7), 7),
        (events.Grouped(events.Composed((events.Gaussian(1e300), events.Gaussian(1e301))), 5), 10),
        (events.Sampled(0.5, events.Repeated(events.Gaussian(1e300), 3)), 3),
        (events.Disjoint((events.Repeated(events.Gaussian(1e300), 3), events.Gaussian(1e300))), 3),
    ],
    ids=lambda one: type(one).__name__ if isinstance(one, Event) else str(one),
)
def test_every_noise_in_an_event_is_charged_a_unit_at_least(event: Event, units: int) -> None:
    assert least_units(event) == units
    for cap in CAPS.values():
        prices = filter_of(cap).price(Measured(event))
        assert all(price is None or max(price) >= units for price in prices)
