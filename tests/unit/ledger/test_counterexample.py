"""Why a privacy loss distribution never decides: two steps that it admits lose 1.27 times what it allows.

Budget (1, d). Step 1 is randomized response at epsilon 1, which tells the truth with probability p. Step 2 depends on
what it said: after the likelier answer a response with total variation d / p, after the other one a leak with
probability d. Either pair, fixed in advance, has exactly delta d at epsilon 1; the adaptive run has (2 - p) d.
"""

import math
from typing import Final

import pytest

from tacit.ledger import Budget
from tacit.privacy.errors import BudgetExceeded
from tests.unit.ledger.finite import Mechanism, composed, delta_at, leak, response, worst_delta

DELTA: Final = 1e-3
TRUTH: Final = math.e / (1 + math.e)
FIRST: Final = response(1.0)
AFTER_THE_LIKELIER: Final = response(2 * math.atanh(DELTA / TRUTH))
AFTER_THE_OTHER: Final = leak(DELTA)
ADAPTIVE_DELTA: Final = (2 - TRUTH) * DELTA

every_filter = pytest.mark.parametrize(
    "filter_settings", [{"filter": "zcdp"}, {"filter": "renyi", "order": 16}, {"filter": "gdp"}], ids=str
)


def loss_distribution_filter(path: tuple[Mechanism, ...], mechanism: Mechanism) -> tuple[Mechanism, ...] | None:
    """The tempting rule: admit as long as the composed loss distribution of this path keeps the budget."""
    longer = (*path, mechanism)
    return longer if delta_at(1.0, composed(*longer)) <= DELTA * (1 + 1e-12) else None


@pytest.mark.parametrize("second", [AFTER_THE_LIKELIER, AFTER_THE_OTHER])
def test_each_fixed_plan_has_exactly_the_delta_of_the_budget(second: Mechanism) -> None:
    assert delta_at(1.0, composed(FIRST, second)) == pytest.approx(DELTA, rel=1e-12)


def test_the_adaptive_run_loses_more_although_both_branches_were_admitted() -> None:
    assert loss_distribution_filter((FIRST,), AFTER_THE_LIKELIER)
    assert loss_distribution_filter((FIRST,), AFTER_THE_OTHER)
    (likelier, other) = FIRST.answers
    adaptive = [(likelier[0] * p, likelier[1] * q) for p, q in AFTER_THE_LIKELIER.answers]
    adaptive += [(other[0] * p, other[1] * q) for p, q in AFTER_THE_OTHER.answers]
    assert delta_at(1.0, adaptive) == pytest.approx(ADAPTIVE_DELTA, rel=1e-9)
    assert delta_at(1.0, adaptive) > 1.26 * DELTA


def test_the_best_adversary_finds_the_attack_by_itself_and_a_better_one() -> None:
    menu = (FIRST, AFTER_THE_LIKELIER, AFTER_THE_OTHER)
    assert worst_delta(1.0, menu, 2, (), loss_distribution_filter) > ADAPTIVE_DELTA


@every_filter
@pytest.mark.parametrize("second", [AFTER_THE_LIKELIER, AFTER_THE_OTHER])
def test_every_filter_of_the_ledger_refuses_the_second_step(filter_settings: dict, second: Mechanism) -> None:
    budget = Budget(1.0, DELTA, **filter_settings)
    budget.charge(FIRST.event)
    with pytest.raises(BudgetExceeded):
        budget.charge(second.event)
