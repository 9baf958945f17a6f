"""The filters keep their promise against the best adaptive adversary, found by enumeration.

Deltas are large here, so that a few steps of small mechanisms come near the caps; what is admitted is decided by the
same filters that the ledger uses.
"""

from typing import Final

import pytest

from tacit.ledger.accounts import Measured
from tacit.ledger.amounts import Amounts, add_amounts
from tacit.ledger.caps import Cap
from tacit.ledger.filters import Filter, filter_of
from tests.unit.ledger.finite import Mechanism, leak, leaky_response, response, worst_delta

MENU: Final = (response(0.2), response(0.35), response(0.7), leak(0.01), leaky_response(0.3, 0.02))
STEPS_MAX: Final = 12

CAPS: Final = {
    "pure": Cap.of(1),
    "zcdp": Cap.of(1, 0.2),
    "renyi": Cap.of(1, 0.2, filter="renyi", order=4),
    "gdp": Cap.of(1, 0.2, filter="gdp"),
}


class Rule:
    """A filter as the adversary meets it."""

    def __init__(self, filter_: Filter) -> None:
        self.filter = filter_
        self.prices = {mechanism: filter_.price(Measured(mechanism.event)) for mechanism in MENU}

    def __call__(self, totals: Amounts, mechanism: Mechanism) -> Amounts | None:
        amounts = self.prices[mechanism]
        return add_amounts(totals, amounts) if self.filter.admits(totals, amounts) else None


@pytest.mark.parametrize("name", CAPS)
def test_the_best_adaptive_adversary_does_not_exceed_the_budget(name: str) -> None:
    cap = CAPS[name]
    rule = Rule(filter_of(cap))
    reached = worst_delta(cap.epsilon, MENU, STEPS_MAX, rule.filter.nothing, rule)
    assert reached <= cap.delta * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("name", ["zcdp", "renyi", "gdp"])
def test_the_adversary_gets_beyond_what_the_sum_alone_would_admit(name: str) -> None:
    """Otherwise the test above would say nothing of the OR."""
    filter_ = filter_of(CAPS[name])
    totals = filter_.nothing
    for mechanism in (response(0.35),) * 3:
        amounts = filter_.price(Measured(mechanism.event))
        assert filter_.admits(totals, amounts)
        totals = add_amounts(totals, amounts)
    assert not filter_.accounts[0].holds(totals[0])
    assert filter_.accounts[1].holds(totals[1])


def test_a_filter_that_counts_every_other_charge_is_caught() -> None:
    cap = CAPS["zcdp"]
    rule = Rule(filter_of(cap))

    def careless(state: tuple[Amounts, bool], mechanism: Mechanism) -> tuple[Amounts, bool] | None:
        totals, counts = state
        after = rule(totals, mechanism)
        return None if after is None else (after if counts else totals, not counts)

    assert worst_delta(cap.epsilon, MENU, STEPS_MAX, (rule.filter.nothing, True), careless) > cap.delta
