"""What every store keeps, wherever it lies: the kit to hold a new one to."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tacit.ledger import Ledger, Store
from tacit.ledger.caps import Cap
from tacit.ledger.filters import filter_of
from tacit.ledger.journal import Head, next_record
from tacit.ledger.permits import Scope
from tacit.ledger.rows import AnswerRow, FindingRow, PermitRow, RequestRow, ScopeRow
from tacit.ledger.stores import SqliteStore
from tacit.privacy import events
from tacit.privacy.errors import BudgetExceeded, KeyReused, LedgerBusy, LedgerCorrupt, LedgerMoved

MakeStore = Callable[..., Store]
CAP = Cap.of(1, 1e-6)
SCOPE = ScopeRow(Scope("Besuche – Ærø", "analyst", "åsa 'o\"b"), CAP, filter_of(CAP).nothing, 1)
RECORD = next_record(Head(), "annotated", {"note": "é"}, 5)


class Interrupted(Exception):
    """Something went wrong in the middle of a transaction."""


@pytest.fixture
def store(make_store: MakeStore) -> Iterator[Store]:
    opened = make_store()
    opened.open()
    yield opened
    opened.close()


@pytest.fixture
def ledger(make_store: MakeStore) -> Iterator[Ledger]:
    with Ledger.open(make_store()) as opened:
        opened.create_budget("visits", epsilon=3.0, delta=1e-6)
        opened.create_cap("visits", "ana", epsilon=1.0, delta=1e-7)
        yield opened
        opened.verify(full=True)


def test_a_new_store_is_empty(store: Store) -> None:
    with store.snapshot() as rows:
        assert rows.head() == Head()
        assert rows.end() == rows.records(1, 10) == rows.scopes() == rows.permits() == rows.requests() == []
        assert rows.findings() == []


def test_what_was_written_is_read_back_by_another_handle(make_store: MakeStore, store: Store) -> None:
    permit = PermitRow("1-a", "visits", "schlüssel", 1, "committed", True, "f" * 64, "note")
    request = RequestRow("1-b", "visits", "ana", 1, "granted", 1)
    answer = AnswerRow("a" * 64, "1", "1-a", "b" * 64)
    findings = [FindingRow("1-c", "visits", "1-a", 1), FindingRow("1-d", "Ærø", None, 1)]
    totals = ((2**130, 7), None)
    with store.transaction() as rows:
        rows.append(RECORD, is_checkpoint=True)
        rows.put_scope(SCOPE)
        rows.put_scope(replace(SCOPE, totals=totals))
        rows.put_permit(permit)
        rows.put_request(request)
        rows.put_content("b" * 64, b"\x00\xff'")
        rows.put_answer(answer)
        for finding in findings:
            rows.put_finding(finding)
        assert rows.findings("Ærø") == [rows.finding("1-d")] == findings[1:]
        assert rows.scope(SCOPE.scope) == replace(SCOPE, totals=totals)
    other = make_store()
    other.open()
    with other.snapshot() as rows:
        assert rows.head() == Head(1, RECORD.hash, 5, 1)
        assert rows.end() == rows.records(1, 10) == [RECORD]
        assert rows.scope(SCOPE.scope) == replace(SCOPE, totals=totals)
        assert rows.scopes(SCOPE.scope.dataset) == rows.scopes() == [replace(SCOPE, totals=totals)]
        assert rows.scopes("visits") == []
        assert rows.permit("1-a") == rows.permit_by_key("visits", "schlüssel") == permit
        assert rows.permits() == [permit]
        assert rows.permits(only_open=True) == []
        assert rows.requests() == [request]
        assert rows.requests(only_open=True) == []
        assert rows.answer("a" * 64, "1") == answer
        assert rows.answers() == [answer]
        assert sorted(rows.findings(), key=lambda row: row.id) == findings
        assert rows.findings("visits") == [rows.finding("1-c")] == findings[:1]
        assert rows.finding("1-e") is None
        assert rows.content("b" * 64) == b"\x00\xff'"
    other.close()


def test_scopes_that_are_named_when_a_transaction_begins_are_as_those_read_later(store: Store) -> None:
    other = replace(SCOPE, scope=Scope("100% of 'visits'; --"))
    unknown = Scope("visits", "analyst", "%s")
    with store.transaction([SCOPE.scope]) as rows:
        assert rows.scope(SCOPE.scope) is None
        rows.append(RECORD)
        rows.put_scope(SCOPE)
        rows.put_scope(other)
    with store.transaction([other.scope, unknown, SCOPE.scope]) as rows:
        assert rows.head().number == 1
        assert rows.end() == [RECORD]
        assert [rows.scope(scope) for scope in (SCOPE.scope, other.scope, unknown)] == [SCOPE, other, None]


def test_a_transaction_that_raises_leaves_nothing(store: Store) -> None:
    def interrupted() -> None:
        with store.transaction() as rows:
            rows.append(RECORD)
            rows.put_scope(SCOPE)
            raise Interrupted

    with pytest.raises(Interrupted):
        interrupted()
    with store.transaction() as rows:
        assert rows.head() == Head()
        assert rows.scope(SCOPE.scope) is None


def test_a_statement_that_fails_undoes_those_before_it(store: Store) -> None:
    def permit_without_its_record() -> None:
        with store.transaction() as rows:
            rows.append(RECORD)
            rows.put_permit(PermitRow("1-a", "visits", None, 99))

    with pytest.raises(LedgerCorrupt):
        permit_without_its_record()
    with store.transaction() as rows:
        assert rows.head() == Head()
        assert rows.records(1, 10) == []


def test_one_key_stands_for_one_permit(store: Store) -> None:
    with store.transaction() as rows:
        rows.append(RECORD)
        rows.put_permit(PermitRow("1-a", "visits", "key", 1))
        rows.put_permit(PermitRow("1-b", "labs", "key", 1))
        rows.put_permit(PermitRow("1-c", "visits", None, 1))
        rows.put_permit(PermitRow("1-d", "visits", None, 1))
    with pytest.raises(LedgerCorrupt), store.transaction() as rows:
        rows.put_permit(PermitRow("1-e", "visits", "key", 1))


def test_cached_rows_can_be_written_anew_and_the_journal_stays(store: Store) -> None:
    with store.transaction() as rows:
        rows.append(RECORD)
        rows.put_scope(SCOPE)
        rows.put_permit(PermitRow("1-a", "visits", None, 1))
    with store.transaction() as rows:
        rows.clear_caches()
        rows.put_permit(PermitRow("1-b", "visits", None, 1))
        assert rows.scopes() == []
    with store.snapshot() as rows:
        assert [row.id for row in rows.permits()] == ["1-b"]
        assert rows.scopes() == []
        assert rows.records(1, 10) == [RECORD]


def test_a_row_that_was_edited_is_noticed_when_it_is_read(store: Store) -> None:
    forged = replace(SCOPE, totals=((5, 0), (0, 0)))
    with store.transaction() as rows:
        rows.append(RECORD)
        rows.put_scope(SCOPE)
        ((statement, values),) = [one for one in rows.statements() if SCOPE.totals_text in one[1]]  # type: ignore[attr-defined]
        assert forged.totals_text != SCOPE.totals_text
        edited = tuple(forged.totals_text if value == SCOPE.totals_text else value for value in values)
        rows._changed_scopes.clear()  # type: ignore[attr-defined]
        rows._changes["edited"] = (statement, edited)  # type: ignore[attr-defined]
    with pytest.raises(LedgerCorrupt, match="changed outside"), store.snapshot() as rows:
        rows.scope(SCOPE.scope)


def test_a_second_writer_waits_for_the_first(make_store: MakeStore, store: Store) -> None:
    patient, impatient = make_store(), make_store(0.1)
    patient.open()
    impatient.open()
    started, seen = threading.Event(), []

    def write_second() -> None:
        started.set()
        with patient.transaction() as rows:
            seen.append(rows.head().number)

    with store.transaction() as rows:
        with pytest.raises(LedgerBusy), impatient.transaction():
            pytest.fail("two writers have the lock")
        waiting = threading.Thread(target=write_second, daemon=True)
        waiting.start()
        assert started.wait(20)
        rows.append(RECORD)
    waiting.join(20)
    assert seen == [1], "the second writer sees what the first one wrote"
    patient.close()
    impatient.close()


def test_a_reader_is_not_blocked_by_a_writer_and_sees_one_moment(make_store: MakeStore, store: Store) -> None:
    other = make_store()
    other.open()
    with other.snapshot() as seen:
        assert seen.head() == Head()
        with store.transaction() as rows:
            rows.append(RECORD)
        assert seen.records(1, 10) == []
    with other.snapshot() as seen:
        assert seen.head().number == 1
    other.close()


def test_a_long_look_keeps_nobody_from_charging_through_the_same_handle(ledger: Ledger) -> None:
    with ledger._store.snapshot() as seen:
        before = seen.head()
        done = threading.Thread(target=ledger.reserve, args=("visits", events.Laplace(0.1)), daemon=True)
        done.start()
        done.join(5)
        assert not done.is_alive()
        assert seen.records(before.number, 10) == seen.end()
    assert ledger.head().number == before.number + 1


def test_a_store_can_be_closed_and_opened_again(make_store: MakeStore, store: Store) -> None:
    with store.transaction() as rows:
        rows.append(RECORD)
    store.close()
    store.open()
    with store.snapshot() as rows:
        assert rows.head().number == 1


def test_the_whole_road_of_a_release(ledger: Ledger) -> None:
    event = events.Laplace(0.25)
    shown = ledger.preview("visits", event, analyst="ana")
    permit = ledger.reserve("visits", event, analyst="ana", key="k")
    assert permit.cost == shown
    assert ledger.reserve("visits", event, analyst="ana", key="k") == permit
    with pytest.raises(KeyReused):
        ledger.reserve("visits", events.Laplace(0.2), analyst="ana", key="k")
    assert [one.permit for one in ledger.reservations()] == [permit]
    ledger.commit(permit, b"answer", plan="SELECT 1", data_version="1")
    assert ledger.released("SELECT 1", "1") == b"answer"
    with pytest.raises(BudgetExceeded, match=r"0\.75 is left for ana on visits"):
        ledger.reserve("visits", events.Laplace(0.8), analyst="ana")
    request = ledger.file_request("ana", "visits", events.Laplace(0.8), "more")
    ledger.decide(request, granted=True, by="carl")
    ledger.reserve("visits", events.Laplace(0.8), analyst="ana")
    plan = ledger.reserve("visits", events.Repeated(events.Laplace(0.1), 5), refundable=True)
    ledger.refund(plan, events.Repeated(events.Laplace(0.1), 1))
    assert ledger.budget("visits").spent().epsilon == pytest.approx(1.15)
    kept = [ledger.keep_finding("visits", {"attack": "linkage"}, permit=one, by="olga") for one in (permit, None)]
    assert ledger.findings("visits") == kept
    assert ledger.findings(permit=permit) == [ledger.finding(kept[0].id)] == kept[:1]


def test_several_handles_and_threads_spend_a_budget_to_its_last_drop(make_store: MakeStore, ledger: Ledger) -> None:
    ledger.create_budget("labs", epsilon=1.0)
    ledgers = [Ledger.open(make_store()) for _ in range(4)]
    admitted: list[int] = []

    def spend(number: int) -> None:
        mine, count = ledgers[number % len(ledgers)], 0
        while True:
            try:
                mine.reserve("labs", events.Laplace(1 / 60))
            except BudgetExceeded:
                admitted.append(count)
                return
            count += 1

    threads = [threading.Thread(target=spend, args=(number,), daemon=True) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sum(admitted) == 60
    assert len(admitted) == 8
    assert ledger.budget("labs").spent().epsilon == 1.0
    for mine in ledgers:
        mine.close()


def test_what_is_moved_between_stores_stays_the_same(ledger: Ledger, make_store: MakeStore, tmp_path: Path) -> None:
    permit = ledger.reserve("visits", events.Gaussian(30), analyst="ana")
    ledger.commit(permit, b"a", plan="p", data_version="1")
    kept = ledger.keep_finding("visits", {"paper": "Ærø", "lower_bound": 0.1}, permit=permit, by="olga")
    stream, head = io.StringIO(), ledger.head()
    ledger.export(stream)
    with Ledger.open(SqliteStore(tmp_path / "moved")) as moved:
        moved.import_(io.StringIO(stream.getvalue()), source=make_store())
        with pytest.raises(LedgerMoved, match=f"was moved to {tmp_path / 'moved'}"):
            ledger.reserve("visits", events.Laplace(0.1))
        moved.verify(full=True, noted=(head.number, head.hash))
        assert moved.budget("visits").spent() == ledger.budget("visits").spent()
        assert moved.released("p", "1") == b"a"
        assert moved.findings() == [kept]


def test_an_export_fills_an_empty_store_of_this_kind(make_store: MakeStore, tmp_path: Path) -> None:
    with Ledger.open(SqliteStore(tmp_path / "source")) as source:
        source.create_budget("visits", epsilon=1.0)
        source.commit(source.reserve("visits", events.Laplace(0.1)), b"a", plan="p", data_version="1")
        kept = source.keep_finding("visits", {"attack": "tracing"}, by="olga")
        source.export(tmp_path / "export")
    with Ledger.open(make_store()) as filled:
        filled.import_(tmp_path / "export")
        with Ledger.open(tmp_path / "source") as closed, pytest.raises(LedgerMoved):
            closed.reserve("visits", events.Laplace(0.1))
        filled.verify(full=True)
        assert filled.budget("visits").remaining().epsilon == 0.9
        assert filled.findings() == [kept]


def test_a_ledger_whose_totals_were_edited_is_rebuilt_from_its_journal(make_store: MakeStore) -> None:
    with Ledger.open(make_store()) as ledger:
        ledger.create_budget("visits", epsilon=1.0)
        permit = ledger.reserve("visits", events.Laplace(0.1))
        kept = ledger.keep_finding("visits", {"attack": "tracing"}, permit=permit, by="olga")
        with ledger._store.transaction() as rows:
            row = rows.scope(Scope("visits"))
            assert row is not None
            rows.put_scope(replace(row, totals=((0, 0),)))
    with pytest.raises(LedgerCorrupt, match=r"totals is .* and should be"):
        Ledger.open(make_store())
    with Ledger.rebuild(make_store(), by="carl", reason="totals were edited") as rebuilt:
        assert rebuilt.budget("visits").spent().epsilon == 0.1
        assert rebuilt.findings() == [kept]
        rebuilt.verify(full=True)
