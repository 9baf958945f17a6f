"""Caps: what a person may write, and how it is kept."""

from fractions import Fraction
from typing import Any

import pytest

from tacit.ledger import Budget
from tacit.ledger.accounts import epsilon_admitting
from tacit.ledger.caps import FILTERS, Cap
from tacit.ledger.filters import filter_of
from tacit.privacy.errors import BudgetExceeded, InvalidInput, LedgerCorrupt, NotPositive, OutOfRange, WrongType
from tacit.privacy.events import ZeroConcentrated
from tacit.privacy.units import Relation


def test_the_filter_follows_from_delta_where_none_is_named() -> None:
    assert Cap.of(1).filter == "pure"
    assert Cap.of(1, 1e-6).filter == "zcdp"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"epsilon": 0}, NotPositive),
        ({"epsilon": -1}, NotPositive),
        ({"epsilon": "1"}, WrongType),
        ({"epsilon": 1e9}, OutOfRange),
        ({"epsilon": 1, "delta": -1e-9}, OutOfRange),
        ({"epsilon": 1, "delta": 1}, OutOfRange),
        ({"epsilon": 1, "filter": "pld"}, InvalidInput),
        ({"epsilon": 1, "filter": "zcdp"}, InvalidInput),
        ({"epsilon": 1, "delta": 1e-6, "filter": "pure"}, InvalidInput),
        ({"epsilon": 1, "delta": 1e-6, "filter": "renyi"}, InvalidInput),
        ({"epsilon": 1, "delta": 1e-6, "filter": "renyi", "order": 1}, OutOfRange),
        ({"epsilon": 1, "delta": 1e-6, "filter": "zcdp", "order": 8}, InvalidInput),
        ({"epsilon": 1, "relation": "substitute"}, InvalidInput),
    ],
)
def test_what_cannot_be_kept_is_refused(arguments: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        Cap.of(**arguments)


def test_an_order_at_which_nothing_fits_is_refused_with_one_at_which_something_does() -> None:
    with pytest.raises(OutOfRange, match="order of 15 or more") as refused:
        filter_of(Cap.of(1, 1e-6, filter="renyi", order=2))
    assert refused.value.value == 2
    assert filter_of(Cap.of(1, 1e-6, filter="renyi", order=15)).remaining(((0, 0), (0,))).epsilon == 1


def test_a_rational_cap_is_never_rounded_up() -> None:
    assert Fraction(Cap.of(Fraction(1, 3)).epsilon) <= Fraction(1, 3)


@pytest.mark.parametrize("name", FILTERS)
def test_a_cap_is_read_back_as_it_was_written(name: str) -> None:
    delta, order = (0 if name == "pure" else 1e-6), (32 if name == "renyi" else None)
    cap = Cap.of(1.5, delta, filter=name, order=order, relation=Relation.REPLACE_ONE)
    assert Cap.from_dict(cap.to_dict()) == cap


@pytest.mark.parametrize("change", [{"epsilon": -1}, {"filter": "pld"}, {"more": 1}, {"delta": 0}, {"epsilon": "1"}])
def test_a_cap_that_the_ledger_did_not_write_is_damage(change: dict[str, Any]) -> None:
    with pytest.raises(LedgerCorrupt, match="not a cap"):
        Cap.from_dict(Cap.of(1, 1e-6).to_dict() | change)


@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-3])
@pytest.mark.parametrize("rho", [1e-4, 0.003, 0.5, 40.0])
def test_the_cap_for_a_rho_admits_an_event_of_that_rho_and_no_second_one(rho: float, delta: float) -> None:
    budget = Budget(epsilon_admitting(rho, delta), delta)
    budget.charge(ZeroConcentrated(rho))
    with pytest.raises(BudgetExceeded):
        budget.charge(ZeroConcentrated(rho))
