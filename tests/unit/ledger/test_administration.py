"""Budgets, caps, epochs, and requests for more budget."""

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest

from tacit.accounting import Cost
from tacit.ledger import Ledger, Scope
from tacit.privacy import events
from tacit.privacy.errors import (
    AlreadySettled,
    BudgetExceeded,
    EmptyInput,
    InvalidInput,
    NameTaken,
    NotPermitted,
    OutOfRange,
    TooLarge,
    UnknownName,
    WrongType,
)
from tests.unit.ledger.clinic import TENTH


@pytest.mark.parametrize("word", ["no", "", 0, 1, None, []])
def test_a_flag_is_true_or_false_and_nothing_that_is_taken_for_it(ledger: Ledger, word: Any) -> None:
    """A text such as "no" is true to Python: it granted requests and switched caps off."""
    request = ledger.file_request("ana", "visits", Cost(0.5, 0.0, 0.0), "more")
    before = ledger.head()
    for attempt in (
        lambda: ledger.decide(request, word, by="carl"),
        lambda: ledger.create_budget("labs", 1.0, per_epoch=word),
        lambda: ledger.reserve("visits", TENTH, refundable=word),
        lambda: ledger.preview("visits", TENTH, refundable=word),
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


def test_no_one_decides_their_own_request(ledger: Ledger) -> None:
    request = ledger.file_request("ana", "visits", Cost(0.1, 0, 0), "more")
    for granted in (True, False):
        with pytest.raises(NotPermitted, match="no one may decide their own"):
            ledger.decide(request, granted, by="ana")
    assert ledger.requests(only_open=True) == [request]


def test_requests_that_wait_have_a_limit(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.ledger.administration.WAITING_MAX", 2)
    first, _ = (ledger.file_request("ana", "visits", Cost(0.1, 0, 0), "more") for _ in range(2))
    with pytest.raises(TooLarge, match="ana has 2 open requests on visits, the maximum"):
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


def test_the_same_budget_again_changes_nothing_and_another_is_refused_once_it_is_charged(ledger: Ledger) -> None:
    ledger.reserve("visits", events.Laplace(0.1), analyst="ana")
    number = ledger.head().number
    ledger.create_budget("visits", epsilon=3.0, delta=1e-7)
    ledger.create_cap("visits", "ana", epsilon=1.0, delta=1e-8)
    assert ledger.head().number == number
    with pytest.raises(NameTaken, match="cannot be changed once something has been charged"):
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
        with pytest.raises(EmptyInput, match="is divided into epochs"):
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
