"""Commits, notes and refunds: a permit pays for one answer, and stays charged whatever follows."""

from pathlib import Path
from typing import Any

import pytest

from tacit.ledger import Ledger
from tacit.privacy import events
from tacit.privacy.errors import (
    AlreadySettled,
    EmptyInput,
    InvalidInput,
    OutOfRange,
    TooLarge,
    UnknownName,
    WrongType,
)
from tests.unit.ledger.clinic import TENTH, spent


def test_reservations_lists_what_was_never_committed_as_it_was_given_out(ledger: Ledger) -> None:
    first, second = ledger.reserve("visits", TENTH, analyst="ana"), ledger.reserve("visits", events.Gaussian(40))
    assert [one.permit for one in ledger.reservations()] == [first, second]
    ledger.commit(first)
    assert [one.permit for one in ledger.reservations()] == [second]


def test_an_annotation_is_kept_and_refunds_nothing(ledger: Ledger) -> None:
    permit = ledger.reserve("visits", TENTH)
    ledger.annotate(permit, "the worker was killed")
    (open_one,) = ledger.reservations()
    assert (open_one.permit, open_one.note) == (permit, "the worker was killed")
    assert spent(ledger) == 0.1
    ledger.commit(permit)
    with pytest.raises(AlreadySettled):
        ledger.annotate(permit, "late")


def test_a_committed_answer_is_given_again_at_no_cost(ledger: Ledger) -> None:
    ledger.commit(ledger.reserve("visits", TENTH), b"17", plan="SELECT 1", data_version="1")
    before = spent(ledger)
    assert ledger.released("SELECT 1", "1") == b"17"
    assert ledger.released("SELECT 1", "2") is None
    assert ledger.released("SELECT 2", "1") is None
    assert spent(ledger) == before


def test_of_two_answers_to_the_same_plan_the_first_stays(ledger: Ledger) -> None:
    one, other = ledger.reserve("visits", TENTH), ledger.reserve("visits", TENTH)
    ledger.commit(one, b"17", plan="SELECT 1", data_version="1")
    ledger.commit(other, b"19", plan="SELECT 1", data_version="1")
    assert ledger.released("SELECT 1", "1") == b"17"


def test_a_second_commit_is_refused_in_the_same_words_whatever_its_answer(ledger: Ledger) -> None:
    """Words that depend on the answer would tell whether two noisy runs met."""
    permit = ledger.reserve("visits", TENTH)
    ledger.commit(permit, b"17", plan="SELECT 1", data_version="1")
    number, said = ledger.head().number, set()
    for answer in (b"17", b"18", None):
        rest = {} if answer is None else {"plan": "SELECT 1", "data_version": "1"}
        with pytest.raises(AlreadySettled, match="committed before") as refused:
            ledger.commit(permit.id, answer, **rest)
        said.add(refused.value.message)
    assert len(said) == 1
    assert ledger.head().number == number


@pytest.mark.parametrize(("plan", "version"), [("SELECT 2", "1"), ("SELECT 1", "2")])
def test_a_permit_for_a_question_keeps_no_answer_to_another(ledger: Ledger, plan: str, version: str) -> None:
    permit = ledger.reserve("visits", TENTH, plan="SELECT 1", data_version="1")
    with pytest.raises(InvalidInput, match="reserved for another"):
        ledger.commit(permit, b"17", plan=plan, data_version=version)
    ledger.commit(permit, b"17", plan="SELECT 1", data_version="1")


@pytest.mark.parametrize("half", [{"plan": "SELECT 1"}, {"data_version": "1"}])
def test_a_plan_is_named_with_the_version_of_its_data(ledger: Ledger, half: dict[str, Any]) -> None:
    with pytest.raises(EmptyInput, match="version"):
        ledger.reserve("visits", TENTH, **half)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"answer": "17"}, WrongType),
        ({"answer": b"17", "plan": "SELECT 1"}, EmptyInput),
        ({"plan": "SELECT 1", "data_version": "1"}, EmptyInput),
        ({"answer": bytes(64 * 2**20 + 1)}, TooLarge),
    ],
)
def test_what_cannot_be_kept_is_refused(ledger: Ledger, arguments: dict[str, Any], error: type[Exception]) -> None:
    permit = ledger.reserve("visits", TENTH)
    with pytest.raises(error):
        ledger.commit(permit, **arguments)
    assert len(ledger.reservations()) == 1


def test_a_plan_that_stops_early_gets_back_the_steps_that_it_did_not_run(ledger: Ledger) -> None:
    permit = ledger.reserve("visits", events.Repeated(TENTH, 5), analyst="ana", refundable=True)
    assert spent(ledger, analyst="ana") == pytest.approx(0.5)
    ledger.refund(permit, events.Repeated(TENTH, 2))
    ledger.commit(permit)
    assert spent(ledger, analyst="ana") == spent(ledger) == pytest.approx(0.2)
    assert ledger.budget("visits").events == {events.Repeated(TENTH, 2): 1}


def test_a_gaussian_plan_is_returned_in_the_units_of_its_account(ledger: Ledger) -> None:
    step = events.Gaussian(200)
    permit = ledger.reserve("visits", events.Repeated(step, 100), refundable=True)
    before = ledger.budget("visits").remaining().rho
    ledger.refund(permit, events.Repeated(step, 40))
    assert ledger.budget("visits").remaining().rho - before == pytest.approx(60 / (2 * 200**2), rel=1e-9)


@pytest.mark.parametrize("ran", [events.Repeated(TENTH, 6), events.Laplace(0.02), events.Gaussian(1000)])
def test_what_was_not_planned_cannot_have_been_run(ledger: Ledger, ran: events.Event) -> None:
    permit = ledger.reserve("visits", events.Repeated(TENTH, 5), refundable=True)
    with pytest.raises(OutOfRange, match="not a part of the plan"):
        ledger.refund(permit, ran)
    assert spent(ledger) == pytest.approx(0.5)


def test_nothing_is_refunded_twice_or_after_a_commit_or_without_a_plan(ledger: Ledger) -> None:
    step = events.Laplace(0.01)
    plan = events.Repeated(step, 5)
    with pytest.raises(InvalidInput, match="reserved with refundable=True"):
        ledger.refund(ledger.reserve("visits", plan), step)
    twice = ledger.reserve("visits", plan, refundable=True)
    ledger.refund(twice, step)
    with pytest.raises(AlreadySettled, match="refunded before"):
        ledger.refund(twice, step)
    late = ledger.reserve("visits", plan, refundable=True)
    ledger.commit(late)
    with pytest.raises(AlreadySettled, match="committed before"):
        ledger.refund(late, step)


def test_a_permit_of_another_ledger_is_refused(ledger: Ledger, tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "other") as other:
        other.create_budget("visits", epsilon=1.0)
        permit = other.reserve("visits", TENTH)
    with pytest.raises(UnknownName, match="has no permit"):
        ledger.commit(permit)


def test_no_record_holds_an_answer(ledger: Ledger) -> None:
    ledger.commit(ledger.reserve("visits", TENTH), b"forty-two", plan="SELECT secret", data_version="1")
    records = list(ledger.history())
    assert len(records) >= 3  # the budget, the reservation and the commit
    for record in records:
        assert "forty-two" not in record.body
        assert "secret" not in record.body
