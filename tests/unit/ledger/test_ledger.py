"""The durable ledger: charged first, in one step, for everyone who is touched."""

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta, timezone
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
    NameTaken,
    NotPermitted,
    OutOfRange,
    TooLarge,
    UnknownName,
    WrongType,
)
from tacit.privacy.units import Relation

TENTH = events.Laplace(0.1)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "clinic") as opened:
        opened.create_budget("visits", epsilon=3.0, delta=1e-7)
        opened.create_cap("visits", "ana", epsilon=1.0, delta=1e-8)
        yield opened
        opened.verify(full=True)


def spent(ledger: Ledger, **scope: str) -> float:
    return ledger.budget("visits", **scope).spent().epsilon  # type: ignore[arg-type]


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
            shown = ledger.preview("visits", event, analyst="ana", plan=plan)
            assert ledger.reserve("visits", event, analyst="ana", plan=plan).cost == shown


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
    ledger.refund(ledger.reserve("visits", plan, plan=True, key="k"), TENTH)
    with pytest.raises(AlreadySettled, match="take a new key"):
        ledger.reserve("visits", plan, plan=True, key="k")


@pytest.mark.parametrize(
    "other",
    [
        {"event": events.Laplace(0.2)},
        {"analyst": None},
        {"plan": True},
        {"question": "SELECT 2"},
        {"data_version": "2"},
        {"question": None, "data_version": None},
    ],
)
def test_the_same_key_with_something_else_is_refused(ledger: Ledger, other: dict[str, Any]) -> None:
    asked: dict[str, Any] = {"dataset": "visits", "event": TENTH, "analyst": "ana"}
    asked |= {"question": "SELECT 1", "data_version": "1"}
    permit = ledger.reserve(**asked, key="k")
    assert ledger.reserve(**asked, key="k") == permit
    with pytest.raises(KeyReused, match="take a new key"):
        ledger.reserve(**asked | other, key="k")


@pytest.mark.parametrize("word", ["no", "", 0, 1, None, []])
def test_a_flag_is_true_or_false_and_nothing_that_is_taken_for_it(ledger: Ledger, word: Any) -> None:
    """A text such as "no" is true to Python: it granted requests and switched caps off."""
    request = ledger.file_request("ana", "visits", Cost(0.5, 0.0, 0.0), "more")
    before = ledger.head()
    for attempt in (
        lambda: ledger.decide(request, word, by="carl"),
        lambda: ledger.create_budget("labs", 1.0, per_epoch=word),
        lambda: ledger.reserve("visits", TENTH, plan=word),
        lambda: ledger.preview("visits", TENTH, plan=word),
        lambda: ledger.requests(only_open=word),
    ):
        with pytest.raises(WrongType, match="must be true or false"):
            attempt()
    assert ledger.head() == before


def test_a_budget_shows_the_cap_as_it_is_now(ledger: Ledger) -> None:
    ana = ledger.budget("visits", analyst="ana")
    ledger.decide(ledger.file_request("ana", "visits", Cost(1.0, 1e-8, 0.0), "more"), True, by="carl")
    assert (ana.epsilon, ana.delta) == (ana.cap.epsilon, ana.cap.delta) == (2.0, 2e-8)
    assert repr(ana).startswith("Budget(epsilon=2, delta=2e-08")
    report = ana.report()
    assert report.guaranteed.epsilon == report.cap.epsilon == 2.0
    assert str(report).startswith("epsilon 2 at delta 2e-08")


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
    permit = ledger.reserve("visits", TENTH, question="SELECT 1", data_version="1")
    with pytest.raises(InvalidInput, match="reserved for another"):
        ledger.commit(permit, b"17", plan=plan, data_version=version)
    ledger.commit(permit, b"17", plan="SELECT 1", data_version="1")


@pytest.mark.parametrize("half", [{"question": "SELECT 1"}, {"data_version": "1"}])
def test_a_question_is_named_with_the_version_of_its_data(ledger: Ledger, half: dict[str, Any]) -> None:
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
    permit = ledger.reserve("visits", events.Repeated(TENTH, 5), analyst="ana", plan=True)
    assert spent(ledger, analyst="ana") == pytest.approx(0.5)
    ledger.refund(permit, events.Repeated(TENTH, 2))
    ledger.commit(permit)
    assert spent(ledger, analyst="ana") == spent(ledger) == pytest.approx(0.2)
    assert ledger.budget("visits").events == {events.Repeated(TENTH, 2): 1}


def test_a_gaussian_plan_is_returned_in_the_units_of_its_account(ledger: Ledger) -> None:
    step = events.Gaussian(200)
    permit = ledger.reserve("visits", events.Repeated(step, 100), plan=True)
    before = ledger.budget("visits").remaining().rho
    ledger.refund(permit, events.Repeated(step, 40))
    assert ledger.budget("visits").remaining().rho - before == pytest.approx(60 / (2 * 200**2), rel=1e-9)


@pytest.mark.parametrize("ran", [events.Repeated(TENTH, 6), events.Laplace(0.02), events.Gaussian(1000)])
def test_what_was_not_planned_cannot_have_been_run(ledger: Ledger, ran: events.Event) -> None:
    permit = ledger.reserve("visits", events.Repeated(TENTH, 5), plan=True)
    with pytest.raises(OutOfRange, match="not a part of the plan"):
        ledger.refund(permit, ran)
    assert spent(ledger) == pytest.approx(0.5)


def test_nothing_is_refunded_twice_or_after_a_commit_or_without_a_plan(ledger: Ledger) -> None:
    step = events.Laplace(0.01)
    plan = events.Repeated(step, 5)
    with pytest.raises(InvalidInput, match="reserved as a plan"):
        ledger.refund(ledger.reserve("visits", plan), step)
    twice = ledger.reserve("visits", plan, plan=True)
    ledger.refund(twice, step)
    with pytest.raises(AlreadySettled, match="refunded before"):
        ledger.refund(twice, step)
    late = ledger.reserve("visits", plan, plan=True)
    ledger.commit(late)
    with pytest.raises(AlreadySettled, match="committed before"):
        ledger.refund(late, step)


def test_a_granted_request_raises_the_cap_and_a_declined_one_does_not(ledger: Ledger) -> None:
    ledger.reserve("visits", events.Laplace(0.9), analyst="ana")
    wanted = events.Laplace(0.6)
    request = ledger.file_request("ana", "visits", wanted, "the yearly report")
    assert (request.cost.epsilon, request.state) == (0.6, "filed")
    assert ledger.requests(only_open=True) == [request]
    decided = ledger.decide(request, granted=True, by="carl", note="until June")
    assert (decided.state, decided.decided_by, decided.note) == ("granted", "carl", "until June")
    assert ledger.budget("visits", analyst="ana").cap.epsilon == 1.6
    ledger.reserve("visits", wanted, analyst="ana")
    declined = ledger.decide(ledger.file_request("ana", "visits", Cost(1, 0, 0), "more"), granted=False, by="carl")
    assert declined.state == "declined"
    assert ledger.budget("visits", analyst="ana").cap.epsilon == 1.6
    assert [one.state for one in ledger.requests()] == ["granted", "declined"]


def test_a_grant_never_raises_a_cap_above_the_data_set(ledger: Ledger) -> None:
    request = ledger.file_request("ana", "visits", Cost(50, 1e-3, 0), "everything")
    ledger.decide(request, granted=True, by="carl")
    cap = ledger.budget("visits", analyst="ana").cap
    assert (cap.epsilon, cap.delta) == (3.0, 1e-7)
    again = ledger.file_request("ana", "visits", Cost(1, 0, 0), "even more")
    with pytest.raises(OutOfRange, match="cannot be raised"):
        ledger.decide(again, granted=True, by="carl")


def test_a_request_is_decided_once(ledger: Ledger) -> None:
    request = ledger.file_request("ana", "visits", Cost(0.1, 0, 0), "more")
    ledger.decide(request.id, granted=False, by="carl")
    with pytest.raises(AlreadySettled, match="declined before"):
        ledger.decide(request.id, granted=True, by="carl")
    with pytest.raises(UnknownName):
        ledger.decide("17-none", granted=True, by="carl")


def test_requests_that_wait_have_a_limit(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.ledger.administration.WAITING_MAX", 2)
    first, _ = (ledger.file_request("ana", "visits", Cost(0.1, 0, 0), "more") for _ in range(2))
    with pytest.raises(TooLarge, match="2 requests of ana on visits wait"):
        ledger.file_request("ana", "visits", Cost(0.1, 0, 0), "more")
    ledger.decide(first, granted=False, by="carl")
    ledger.file_request("ana", "visits", Cost(0.1, 0, 0), "more")


@pytest.mark.parametrize("what", [Cost(0, 0, 0), Cost(float("inf"), 0, 0), Cost(1, 1, 0)])
def test_a_request_asks_for_something_that_can_be_granted(ledger: Ledger, what: Cost) -> None:
    with pytest.raises(OutOfRange, match="asks for an epsilon above 0"):
        ledger.file_request("ana", "visits", what, "more")


def test_a_view_of_a_cap_that_was_raised_shows_the_new_one(ledger: Ledger) -> None:
    view = ledger.budget("visits", analyst="ana")
    ledger.decide(ledger.file_request("ana", "visits", Cost(0.5, 0, 0), "more"), granted=True, by="carl")
    assert view.remaining().epsilon == 1.5


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


def test_the_same_budget_again_changes_nothing_and_another_is_refused_once_it_is_charged(ledger: Ledger) -> None:
    ledger.reserve("visits", events.Laplace(0.1), analyst="ana")
    number = ledger.head().number
    ledger.create_budget("visits", epsilon=3.0, delta=1e-7)
    ledger.create_cap("visits", "ana", epsilon=1.0, delta=1e-8)
    assert ledger.head().number == number
    with pytest.raises(NameTaken, match="not changed"):
        ledger.create_budget("visits", epsilon=4.0, delta=1e-7)
    with pytest.raises(NameTaken):
        ledger.create_cap("visits", "ana", epsilon=2.0, delta=1e-8)


def test_a_cap_lies_within_the_data_set(ledger: Ledger) -> None:
    for epsilon, delta in ((3.5, 0), (1.0, 1e-6)):
        with pytest.raises(OutOfRange, match="within its budget"):
            ledger.create_cap("visits", "bob", epsilon, delta)


def test_caps_on_several_data_sets_are_created_together_or_not_at_all(ledger: Ledger) -> None:
    cap = ledger.budget("visits", analyst="ana").cap
    with pytest.raises(UnknownName):
        ledger.create_caps("bob", {"visits": cap, "labs": cap})
    assert Scope("visits", "analyst", "bob") not in ledger.scopes()
    ledger.create_budget("labs", epsilon=2.0, delta=1e-7)
    ledger.create_caps("bob", {"visits": cap, "labs": cap})
    assert {Scope("visits", "analyst", "bob"), Scope("labs", "analyst", "bob")} <= set(ledger.scopes())


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


def test_a_permit_of_another_ledger_is_refused(ledger: Ledger, tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "other") as other:
        other.create_budget("visits", epsilon=1.0)
        permit = other.reserve("visits", TENTH)
    with pytest.raises(UnknownName, match="has no permit"):
        ledger.commit(permit)


class TestEpochs:
    """A data set cut by time: new data brings its own budget, and spent stays spent."""

    @pytest.fixture
    def by_year(self, ledger: Ledger) -> Ledger:
        ledger.create_budget("stays", epsilon=1.0, per_epoch=True)
        for year in (2023, 2024):
            ledger.add_epoch("stays", str(year), starts=date(year, 1, 1), ends=date(year + 1, 1, 1))
        return ledger

    def test_a_release_is_charged_to_each_epoch_that_it_touches(self, by_year: Ledger) -> None:
        by_year.reserve("stays", events.Laplace(0.5), epochs=("2023", "2024"))
        by_year.reserve("stays", events.Laplace(0.4), epochs=("2024",))
        assert by_year.budget("stays", epoch="2023").spent().epsilon == 0.5
        assert by_year.budget("stays", epoch="2024").spent().epsilon == 0.9
        with pytest.raises(BudgetExceeded, match="epoch 2024 of stays"):
            by_year.reserve("stays", events.Laplace(0.2), epochs=("2023", "2024"))
        by_year.reserve("stays", events.Laplace(0.2), epochs=("2023",))

    def test_a_new_epoch_brings_its_own_budget_and_the_sum_stays_counted(self, by_year: Ledger) -> None:
        for year in ("2023", "2024"):
            by_year.reserve("stays", events.Laplace(1.0), epochs=(year,))
        by_year.add_epoch("stays", "2025", starts=date(2025, 1, 1), ends=date(2026, 1, 1))
        by_year.reserve("stays", events.Laplace(1.0), epochs=("2025",))
        assert by_year.budget("stays").spent().epsilon == 3.0
        assert by_year.budget("stays", epoch="2023").remaining().epsilon == 0

    def test_a_release_must_name_the_epochs_that_it_touches(self, by_year: Ledger) -> None:
        with pytest.raises(EmptyInput, match="name those that the release touches"):
            by_year.reserve("stays", TENTH)
        by_year.create_budget("labs", epsilon=1.0, per_epoch=True)
        with pytest.raises(EmptyInput, match="no epoch yet"):
            by_year.reserve("labs", TENTH)

    def test_without_a_budget_for_each_epoch_the_data_set_is_charged_too(self, ledger: Ledger) -> None:
        for name in ("old", "new"):
            ledger.add_epoch("visits", name, epsilon=2.0)
        ledger.reserve("visits", events.Laplace(2.0), epochs=("old",))
        with pytest.raises(BudgetExceeded, match="left for visits"):
            ledger.reserve("visits", events.Laplace(1.5), epochs=("new",))

    def test_an_epoch_has_no_more_left_than_the_data_set(self, ledger: Ledger) -> None:
        ledger.add_epoch("visits", "old", epsilon=2.0)
        ledger.add_epoch("visits", "new", epsilon=2.0)
        ledger.reserve("visits", events.Laplace(2.0), epochs=("old",))
        assert ledger.budget("visits", epoch="new").remaining().epsilon == 1.0

    def test_epochs_do_not_share_time(self, by_year: Ledger) -> None:
        with pytest.raises(OutOfRange, match="overlap epoch 2024 of stays"):
            by_year.add_epoch("stays", "summer", starts=date(2024, 6, 1), ends=date(2024, 9, 1))
        east = datetime(2025, 1, 1, 2, tzinfo=timezone(timedelta(hours=2)))
        by_year.add_epoch("stays", "2025", starts=east, ends=datetime(2026, 1, 1, tzinfo=UTC))

    @pytest.mark.parametrize(
        ("starts", "ends", "error"),
        [
            (date(2025, 1, 1), None, InvalidInput),
            (date(2025, 1, 1), date(2025, 1, 1), OutOfRange),
            (datetime(2025, 1, 1), datetime(2026, 1, 1), WrongType),
            ("2025-01-01", "2026-01-01", WrongType),
        ],
    )
    def test_an_epoch_has_two_ends_in_order(
        self, by_year: Ledger, starts: Any, ends: Any, error: type[Exception]
    ) -> None:
        with pytest.raises(error):
            by_year.add_epoch("stays", "2025", starts=starts, ends=ends)

    def test_an_epoch_is_added_once(self, by_year: Ledger) -> None:
        number = by_year.head().number
        by_year.add_epoch("stays", "2024", starts=date(2024, 1, 1), ends=date(2025, 1, 1))
        assert by_year.head().number == number
        with pytest.raises(NameTaken):
            by_year.add_epoch("stays", "2024", starts=date(2030, 1, 1), ends=date(2031, 1, 1))


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


def test_no_record_holds_an_answer(ledger: Ledger) -> None:
    ledger.commit(ledger.reserve("visits", TENTH), b"forty-two", plan="SELECT secret", data_version="1")
    for record in ledger.history():
        assert "forty-two" not in record.body
        assert "secret" not in record.body


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
