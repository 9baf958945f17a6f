"""A smallest epsilon for a release: nobody buys a million questions that are nearly free."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tacit.ledger import Budget, Ledger, Permit
from tacit.privacy import events
from tacit.privacy.errors import InvalidInput, LedgerCorrupt, NameTaken, OutOfRange, TooCheap


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path) as opened:
        opened.create_budget("visits", epsilon=3.0, delta=1e-7)
        opened.create_cap("visits", "ana", epsilon=1.0, delta=1e-8)
        yield opened


def admissions(ledger: Ledger, event: events.Event) -> dict[str, Callable[[], Any]]:
    return {
        "reserve": lambda: ledger.reserve("visits", event),
        "preview": lambda: ledger.preview("visits", event),
        "charge": lambda: ledger.budget("visits").charge(event),
        "budget's preview": lambda: ledger.budget("visits").preview(event),
        "analyst's charge": lambda: ledger.budget("visits", analyst="ana").charge(event),
        "analyst's preview": lambda: ledger.budget("visits", analyst="ana").preview(event),
    }


def test_what_costs_less_than_the_smallest_epsilon_is_refused_and_charges_nothing(ledger: Ledger) -> None:
    for name, admission in admissions(ledger, events.Laplace(0.00029)).items():
        with pytest.raises(TooCheap) as found:
            admission()
        assert found.value.code == "T208", name
        assert str(found.value) == (
            "a release from visits costs at least epsilon 0.0003; ask for epsilon=0.0003 or more"
        ), name
    assert ledger.budget("visits").spent().epsilon == 0


def test_what_the_refusal_names_is_admitted(ledger: Ledger) -> None:
    for admission in admissions(ledger, events.Laplace(0.0003)).values():
        assert admission()
    assert ledger.reserve("visits", events.Repeated(events.Laplace(0.0001), 3)).id, "rounded, it costs a trifle less"


def test_a_cost_without_an_epsilon_of_its_own_is_converted(ledger: Ledger) -> None:
    rho = events.ZeroConcentrated(1e-12)
    assert ledger.budget("visits").cap.filter == "zcdp"
    with pytest.raises(TooCheap):
        ledger.reserve("visits", rho)
    with pytest.raises(TooCheap):
        ledger.reserve("visits", events.Gaussian(1e6))
    assert ledger.reserve("visits", events.Gaussian(100.0)).id


@pytest.mark.parametrize("filter_", ["renyi", "gdp"])
def test_every_filter_has_a_smallest_price(tmp_path: Path, filter_: str) -> None:
    with Ledger.open(tmp_path) as ledger:
        order = {"order": 64} if filter_ == "renyi" else {}
        ledger.create_budget("visits", epsilon=3.0, delta=1e-7, filter=filter_, **order)
        for cheap in (events.Laplace(1e-5), events.Gaussian(1e7)):
            with pytest.raises(TooCheap):
                ledger.reserve("visits", cheap)
        assert ledger.reserve("visits", events.Gaussian(100.0)).id


def test_a_plan_is_judged_as_a_whole_and_what_it_returns_is_not(ledger: Ledger) -> None:
    plan = ledger.reserve("visits", events.Repeated(events.Laplace(0.0001), 100), refundable=True)
    ledger.refund(plan, events.Laplace(0.0001))
    assert 0 < ledger.budget("visits").spent().epsilon < 0.0003
    with pytest.raises(TooCheap):
        ledger.reserve("visits", events.Repeated(events.Laplace(0.0001), 2), refundable=True)


def test_a_key_that_was_used_gives_its_permit_again(ledger: Ledger) -> None:
    one, other = (ledger.reserve("visits", events.Laplace(0.1), key="k") for _ in range(2))
    assert one.id == other.id


def test_an_owner_says_what_a_release_costs_at_least(tmp_path: Path) -> None:
    with Ledger.open(tmp_path) as ledger:
        budget = ledger.create_budget("visits", epsilon=3.0, epsilon_min=0.1)
        assert budget.epsilon_min == 0.1
        with pytest.raises(TooCheap, match=r"at least epsilon 0\.1; ask for epsilon=0\.1 or more"):
            budget.charge(events.Laplace(0.09))
        budget.charge(events.Laplace(0.1))
        assert ledger.create_budget("free", epsilon=3.0, epsilon_min=0).epsilon_min == 0
        ledger.reserve("free", events.Laplace(1e-12))
        ledger.create_budget("visits", epsilon=3.0, epsilon_min=0.1)
        for other in (None, 0.2):
            with pytest.raises(NameTaken):
                ledger.create_budget("visits", epsilon=3.0, epsilon_min=other)
        ledger.verify(full=True)
    with Ledger.open(tmp_path) as ledger:
        assert ledger.budget("visits").epsilon_min == 0.1


def test_a_budget_for_each_epoch_has_a_smallest_price_too(tmp_path: Path) -> None:
    with Ledger.open(tmp_path) as ledger:
        ledger.create_budget("visits", epsilon=1.0, per_epoch=True)
        ledger.add_epoch("visits", "first")
        with pytest.raises(TooCheap):
            ledger.budget("visits", epoch="first").charge(events.Laplace(0.00001))
        ledger.budget("visits", epoch="first").charge(events.Laplace(0.001))
        assert ledger.budget("visits", epoch="first").epsilon_min == 1e-4


@pytest.mark.parametrize("wrong", [-1, 3.1, float("nan"), "x", True, [0.1]])
def test_what_no_release_can_cost_is_no_smallest_price(tmp_path: Path, wrong: Any) -> None:
    with Ledger.open(tmp_path) as ledger, pytest.raises(InvalidInput):
        ledger.create_budget("visits", epsilon=3.0, epsilon_min=wrong)


def test_a_smallest_price_above_the_budget_is_refused_with_what_fits(tmp_path: Path) -> None:
    with Ledger.open(tmp_path) as ledger, pytest.raises(OutOfRange, match="at most the budget's epsilon 3"):
        ledger.create_budget("visits", epsilon=3.0, epsilon_min=4)


def test_reports_say_it(ledger: Ledger) -> None:
    ledger.reserve("visits", events.Laplace(0.1))
    report = ledger.budget("visits", analyst="ana").report()
    assert report.epsilon_min == pytest.approx(0.0003)
    assert "a release costs at least epsilon 0.0003" in str(report)


def test_a_budget_in_memory_has_none() -> None:
    budget = Budget(epsilon=3.0)
    assert budget.epsilon_min == 0
    assert isinstance(budget.charge(events.Laplace(1e-12)), Permit)
    assert "at least" not in str(budget.report())


def test_a_budget_that_was_created_without_one_is_read_and_has_the_usual_one(tmp_path: Path) -> None:
    with Ledger.open(tmp_path) as ledger:
        ledger._change(
            lambda work: work.write(
                "budget-created",
                {
                    "cap": {"delta": 0.0, "epsilon": 3.0, "filter": "pure", "order": None, "relation": "add-remove"},
                    "per_epoch": False,
                    "scope": '["visits","dataset",""]',
                },
            )
        )
        assert ledger.budget("visits").epsilon_min == pytest.approx(0.0003)
        with pytest.raises(TooCheap):
            ledger.reserve("visits", events.Laplace(0.0001))
        ledger.reserve("visits", events.Laplace(0.1))
        ledger.create_budget("visits", epsilon=3.0)
        ledger.verify(full=True)
    with closing(sqlite3.connect(tmp_path / "ledger.sqlite")) as connection:
        ((definition,),) = connection.execute("SELECT definition FROM scopes")
    assert "epsilon_min" not in json.loads(definition), "older tables hold the same text"
    with Ledger.open(tmp_path) as ledger:
        ledger.verify(full=True)


@pytest.mark.parametrize("wrong", ["0.1", -0.1, 4.0, True])
def test_a_record_with_another_smallest_price_is_damage(tmp_path: Path, wrong: Any) -> None:
    from tacit.ledger.journal import Head, next_record
    from tacit.ledger.replay import MemoryRows, apply

    body = {
        "cap": {"delta": 0.0, "epsilon": 3.0, "filter": "pure", "order": None, "relation": "add-remove"},
        "epsilon_min": wrong,
        "per_epoch": False,
        "scope": '["visits","dataset",""]',
    }
    with pytest.raises(LedgerCorrupt, match="epsilon_min"):
        apply(next_record(Head(), "budget-created", body, 0), MemoryRows())
