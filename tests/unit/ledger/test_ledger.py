"""The durable ledger: every scope is charged in one step, and a ledger is found again as it was left."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tacit.accounting import Cost
from tacit.ledger import Ledger, Scope
from tacit.ledger.transactions import CHECKPOINT_EVERY
from tacit.privacy import events
from tacit.privacy.errors import (
    AlreadySettled,
    BudgetExceeded,
    EmptyInput,
    InvalidInput,
    KeyReused,
    MixedRelations,
    NotPermitted,
    TooLarge,
    UnknownName,
    WrongType,
)
from tacit.privacy.units import Relation
from tests.unit.ledger.clinic import TENTH, spent


def test_a_reservation_charges_the_data_set_and_the_analyst_together(ledger: Ledger) -> None:
    permit = ledger.reserve("visits", TENTH, analyst="ana", purpose="visits by month")
    assert permit.scopes == (Scope("visits"), Scope("visits", "analyst", "ana"))
    assert (permit.dataset, permit.purpose, permit.cost.epsilon) == ("visits", "visits by month", 0.1)
    assert spent(ledger) == spent(ledger, analyst="ana") == 0.1


@pytest.mark.parametrize(
    "event_of",
    [
        lambda left, share: events.Pure(left.epsilon * share),
        lambda left, share: events.Approximate(0, left.delta * share),
        lambda left, share: events.ZeroConcentrated(left.rho * share),
    ],
    ids=["epsilon", "delta", "rho"],
)
def test_what_remains_for_an_analyst_is_what_the_data_set_has_left_if_that_is_less(
    tmp_path: Path, event_of: Callable[[Cost, float], events.Event]
) -> None:
    with Ledger.open(tmp_path / "clinic") as ledger:
        ledger.create_budget("visits", epsilon=1.0, delta=1e-6, epsilon_min=0)
        ledger.create_cap("visits", "ana", epsilon=0.9, delta=1e-6)
        ledger.reserve("visits", events.Approximate(0.01, 0.9e-7))
        ledger.reserve("visits", events.ZeroConcentrated(0.012))
        left = ledger.budget("visits", analyst="ana").remaining()
        assert left == ledger.budget("visits").remaining()
        with pytest.raises(BudgetExceeded):
            ledger.reserve("visits", event_of(left, 1.1), analyst="ana")
        ledger.reserve("visits", event_of(left, 1.0), analyst="ana")


def test_when_one_scope_refuses_nobody_is_charged_and_the_refusal_names_it(ledger: Ledger) -> None:
    ledger.reserve("visits", events.Laplace(0.8), analyst="ana")
    with pytest.raises(BudgetExceeded, match=r"0\.2 is left for ana on visits; epsilon=0\.2 would fit") as refused:
        ledger.reserve("visits", events.Laplace(0.5), analyst="ana")
    assert refused.value.scope == "ana on visits"
    assert spent(ledger) == 0.8
    ledger.reserve("visits", events.Laplace(0.5))


def test_an_analyst_gets_no_more_than_the_data_set_has_left(ledger: Ledger) -> None:
    ledger.reserve("visits", events.Laplace(2.5))
    assert ledger.budget("visits", analyst="ana").remaining().epsilon == 0.5
    with pytest.raises(BudgetExceeded, match="left for visits"):
        ledger.reserve("visits", events.Laplace(0.9), analyst="ana")


def test_a_group_is_charged_beside_its_member(ledger: Ledger) -> None:
    ledger.create_cap("visits", "oncology", epsilon=0.5)
    ledger.reserve("visits", events.Laplace(0.4), analyst=("ana", "oncology"))
    assert spent(ledger, analyst="ana") == spent(ledger, analyst="oncology") == 0.4
    with pytest.raises(BudgetExceeded, match="oncology on visits"):
        ledger.reserve("visits", events.Laplace(0.4), analyst=("ana", "oncology"))


def test_an_analyst_without_a_cap_is_refused(ledger: Ledger) -> None:
    with pytest.raises(NotPermitted, match="bob has no cap on visits"):
        ledger.reserve("visits", TENTH, analyst="bob")


def test_the_preview_shows_what_is_charged(ledger: Ledger) -> None:
    for event in (TENTH, events.Gaussian(30), events.Repeated(events.Gaussian(300), 10)):
        for plan in (False, True):
            shown = ledger.preview("visits", event, analyst="ana", refundable=plan)
            assert ledger.reserve("visits", event, analyst="ana", refundable=plan).cost == shown


def test_the_same_key_with_the_same_event_gives_the_same_permit_and_charges_once(ledger: Ledger) -> None:
    first = ledger.reserve("visits", TENTH, analyst="ana", key="request-17")
    assert ledger.reserve("visits", TENTH, analyst="ana", key="request-17") == first
    assert spent(ledger) == 0.1


def test_the_key_of_a_committed_permit_gives_no_permit(ledger: Ledger) -> None:
    ledger.commit(ledger.reserve("visits", TENTH, key="k"))
    for _ in range(3):
        with pytest.raises(AlreadySettled, match="take a new key"):
            ledger.reserve("visits", TENTH, key="k")
    assert spent(ledger) == 0.1


def test_the_key_of_a_plan_that_was_returned_in_part_gives_no_permit(ledger: Ledger) -> None:
    """Its permit would let the whole plan be run for the price of a part."""
    plan = events.Repeated(TENTH, 5)
    ledger.refund(ledger.reserve("visits", plan, refundable=True, key="k"), TENTH)
    with pytest.raises(AlreadySettled, match="take a new key"):
        ledger.reserve("visits", plan, refundable=True, key="k")


@pytest.mark.parametrize(
    "other",
    [
        {"event": events.Laplace(0.2)},
        {"analyst": None},
        {"refundable": True},
        {"plan": "SELECT 2"},
        {"data_version": "2"},
        {"plan": None, "data_version": None},
    ],
)
def test_the_same_key_with_something_else_is_refused(ledger: Ledger, other: dict[str, Any]) -> None:
    asked: dict[str, Any] = {"dataset": "visits", "event": TENTH, "analyst": "ana"}
    asked |= {"plan": "SELECT 1", "data_version": "1"}
    permit = ledger.reserve(**asked, key="k")
    assert ledger.reserve(**asked, key="k") == permit
    with pytest.raises(KeyReused, match="take a new key"):
        ledger.reserve(**asked | other, key="k")


def test_a_report_is_of_one_moment(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Charges and grants come between any two reads; none may be in one number and missing in another."""
    ana, history, calls = ledger.budget("visits", analyst="ana"), ledger.history, []

    def busy(first: int = 1) -> Any:
        calls.append(first)
        ledger.decide(ledger.file_request("ana", "visits", Cost(0.1, 0.0, 0.0), "more"), True, by="carl")
        ledger.reserve("visits", TENTH, analyst="ana")
        return history(first)

    ledger.reserve("visits", TENTH, analyst="ana")
    monkeypatch.setattr(ledger, "history", busy)
    for _ in range(2):
        report = ana.report()
        count = sum(report.events.values())
        assert report.spent.epsilon == pytest.approx(count * 0.1)
        assert report.cap.epsilon == pytest.approx(1.0 + (count - 1) * 0.1)
        assert report.remaining.epsilon == pytest.approx(report.cap.epsilon - report.spent.epsilon)
    assert len(calls) == 2


def test_a_budget_is_of_an_analyst_or_of_an_epoch(ledger: Ledger) -> None:
    with pytest.raises(InvalidInput, match="not both"):
        ledger.budget("visits", analyst="ana", epoch="2024")


def test_a_budget_of_the_ledger_has_the_methods_of_one_in_memory(ledger: Ledger) -> None:
    budget = ledger.budget("visits", analyst="ana")
    permit = budget.charge(TENTH, purpose="ages")
    assert permit.cost == budget.preview(TENTH)
    assert ledger.reservations() == []
    assert budget.events == {TENTH: 1}
    assert budget.spent().epsilon == 0.1
    assert budget.remaining().epsilon == pytest.approx(0.9)
    report = budget.report()
    assert report.scope == "ana on visits"
    assert report.bound is not None
    assert report.bound.upper <= 0.1 * (1 + 1e-9)


def test_relations_are_not_mixed_in_one_budget(ledger: Ledger) -> None:
    with pytest.raises(MixedRelations):
        ledger.reserve("visits", events.Laplace(0.1, under=Relation.REPLACE_ONE))
    ledger.create_budget("counts", epsilon=1.0, relation=Relation.REPLACE_ONE)
    ledger.reserve("counts", events.Laplace(0.1, under=Relation.REPLACE_ONE))


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"dataset": "nothing"}, UnknownName),
        ({"dataset": ""}, EmptyInput),
        ({"dataset": "a\nb"}, InvalidInput),
        ({"event": "laplace"}, WrongType),
        ({"event": events.Composed([events.Laplace(0.1 + i * 1e-9) for i in range(20_000)])}, TooLarge),
        ({"analyst": "x" * 200}, TooLarge),
        ({"purpose": "x" * 3000}, TooLarge),
        ({"purpose": "\x1b[2J"}, InvalidInput),
        ({"key": ""}, EmptyInput),
        ({"epochs": [str(number) for number in range(1001)]}, TooLarge),
        ({"epochs": ("2024",)}, UnknownName),
    ],
)
def test_what_cannot_be_asked_is_refused_and_charges_nothing(
    ledger: Ledger, arguments: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        ledger.reserve(**{"dataset": "visits", "event": TENTH} | arguments)
    assert spent(ledger) == 0


def test_a_ledger_is_found_again_as_it_was_left(tmp_path: Path) -> None:
    with Ledger.open(tmp_path) as ledger:
        ledger.create_budget("visits", epsilon=1.0)
        permit = ledger.reserve("visits", TENTH, key="k")
    with Ledger.open(tmp_path) as again:
        assert again.budget("visits").spent().epsilon == 0.1
        assert again.reserve("visits", TENTH, key="k") == permit
        assert again.reservations()[0].permit == permit


def test_a_folder_without_a_ledger_is_not_mistaken_for_an_empty_one(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="no ledger"):
        Ledger.open(tmp_path, create=False)


def test_only_its_owner_can_read_it(tmp_path: Path) -> None:
    Ledger.open(tmp_path / "clinic").close()
    assert (tmp_path / "clinic").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "clinic" / "ledger.sqlite").stat().st_mode & 0o777 == 0o600


def test_history_is_read_from_any_record_on(ledger: Ledger) -> None:
    ledger.reserve("visits", TENTH)
    assert [record.kind for record in ledger.history(2)] == ["cap-created", "reserved"]
    assert list(ledger.history(99)) == []


def test_a_clock_that_is_set_back_is_said_in_the_record(tmp_path: Path) -> None:
    times = iter([5_000_000, *[1_000_000] * 50])
    with Ledger.open(tmp_path, clock=lambda: next(times)) as ledger:
        ledger.create_budget("visits", epsilon=1.0)
        ledger.reserve("visits", TENTH)
        records = list(ledger.history())
        assert [record.at_us for record in records] == sorted(record.at_us for record in records)
        assert records[-1].behind_us > 0
        ledger.verify(full=True)


def test_opening_reads_only_what_came_after_the_last_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tacit.ledger.transactions.CHECKPOINT_EVERY", 10)
    with Ledger.open(tmp_path) as ledger:
        ledger.create_budget("visits", epsilon=1.0)
        for _ in range(35):
            ledger.reserve("visits", events.Laplace(0.01))
    with Ledger.open(tmp_path) as again:
        verified = again.verify()
        assert 0 < verified.head.number - verified.first < 11
        assert again.verify(full=True).first == 1
        assert [record.kind for record in again.history()].count("checkpoint") == 3


def test_a_checkpoint_is_written_often_enough_to_open_quickly() -> None:
    assert CHECKPOINT_EVERY <= 1_000


def test_a_head_noted_elsewhere_is_found_again(ledger: Ledger) -> None:
    noted = ledger.head()
    ledger.reserve("visits", TENTH)
    ledger.verify(noted=(noted.number, noted.hash))
