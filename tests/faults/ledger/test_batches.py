"""Changes that threads ask for at the same time: one transaction, each change by itself, nothing said too early."""

import os
import select
import signal
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tacit.ledger import Cap, Ledger, Scope, SqliteStore
from tacit.ledger.group_commit import BATCH_MAX, Batches, Change
from tacit.privacy import events
from tacit.privacy.errors import (
    LedgerBusy,
    LedgerCorrupt,
    LedgerFull,
    LedgerUnavailable,
    NotPermitted,
    OutOfRange,
    TacitError,
)
from tests.faults.ledger.waiting_changes import together, writing


class Disk:
    """SQLite connections that count transactions and can fail at a statement."""

    def __init__(self) -> None:
        self.statements: list[str] = []
        self.fails_at: Callable[[str], BaseException | None] = lambda statement: None

    def connect(self, *arguments: Any, **settings: Any) -> Any:
        disk, real = self, sqlite3.connect(*arguments, **settings)

        class Connection:
            def execute(self, statement: str, values: Any = ()) -> Any:
                disk.statements.append(statement)
                if (error := disk.fails_at(statement)) is not None:
                    raise error
                return real.execute(statement, values)

            @property
            def in_transaction(self) -> bool:
                return real.in_transaction

            def close(self) -> None:
                real.close()

        return Connection()


@contextmanager
def opened(folder: Path, disk: Disk | None = None) -> Any:
    with Ledger.open(SqliteStore(folder, connect=(disk or Disk()).connect)) as ledger:
        ledger.create_budget("visits", epsilon=1.0)
        ledger.create_budget("labs", epsilon=0.05)
        yield ledger


def reserving(ledger: Ledger, epsilon: float = 0.1, **settings: Any) -> Callable[[], Any]:
    return lambda: ledger.reserve("visits", events.Laplace(epsilon), **settings)


def test_changes_that_wait_together_are_written_in_one_transaction(tmp_path: Path) -> None:
    disk = Disk()
    with opened(tmp_path, disk) as ledger:
        disk.statements.clear()
        permits = together(ledger, *[reserving(ledger)] * 8)
        assert disk.statements.count("BEGIN IMMEDIATE") == 1
        assert len({permit.id for permit in permits}) == 8
        assert ledger.budget("visits").spent().epsilon == pytest.approx(0.8)
        ledger.verify(full=True)


def test_a_long_queue_is_written_in_several_batches_and_nobody_is_forgotten(tmp_path: Path) -> None:
    with opened(tmp_path) as ledger:
        permits = together(ledger, *[reserving(ledger, 1e-3)] * (BATCH_MAX + 5))
        assert len({permit.id for permit in permits}) == BATCH_MAX + 5
        ledger.verify(full=True)


def test_the_last_drop_goes_to_one_of_those_who_wait(tmp_path: Path) -> None:
    with opened(tmp_path) as ledger:
        found = together(ledger, *[reserving(ledger, 0.4)] * 5)
        assert sorted(type(one).__name__ for one in found) == ["BudgetExceeded"] * 3 + ["Permit"] * 2
        assert ledger.budget("visits").spent().epsilon == pytest.approx(0.8)
        ledger.verify(full=True)


def test_a_change_that_raises_is_undone_alone_also_when_it_was_half_done(tmp_path: Path) -> None:
    with opened(tmp_path) as ledger:
        half = together(
            ledger,
            reserving(ledger),
            lambda: ledger.create_caps("bob", {"visits": Cap.of(0.1), "labs": Cap.of(0.1)}),  # labs has only half of it
            reserving(ledger, analyst="nobody"),
            reserving(ledger),
        )
        assert isinstance(half[1], OutOfRange)
        assert isinstance(half[2], NotPermitted)
        assert Scope("visits", "analyst", "bob") not in ledger.scopes()
        assert ledger.budget("visits").spent().epsilon == pytest.approx(0.2)
        assert ledger.budget("labs").spent().epsilon == 0
        assert {one.permit.id for one in ledger.reservations()} == {half[0].id, half[3].id}
        ledger.verify(full=True)


def test_one_key_in_one_batch_is_charged_once(tmp_path: Path) -> None:
    with opened(tmp_path) as ledger:
        first, second = together(ledger, *[reserving(ledger, key="request-1")] * 2)
        assert first.id == second.id
        assert ledger.budget("visits").spent().epsilon == pytest.approx(0.1)
        ledger.verify(full=True)


def test_the_first_of_two_answers_in_one_batch_stays_the_answer(tmp_path: Path) -> None:
    with opened(tmp_path) as ledger:
        one, other = (ledger.reserve("visits", events.Laplace(0.1)) for _ in range(2))
        together(
            ledger,
            lambda: ledger.commit(one, b"first", plan="p", data_version="v"),
            lambda: ledger.commit(other, b"second", plan="p", data_version="v"),
        )
        assert ledger.released("p", "v") == b"first"
        ledger.verify(full=True)


def test_requests_of_one_batch_count_one_another(tmp_path: Path) -> None:
    with opened(tmp_path) as ledger:
        ledger.create_cap("visits", "ana", epsilon=0.5)
        asked = together(
            ledger, *[lambda: ledger.file_request("ana", "visits", events.Laplace(0.1), "why")] * (BATCH_MAX - 1)
        )
        assert len({one.id for one in asked}) == BATCH_MAX - 1
        assert len(ledger.requests(only_open=True)) == BATCH_MAX - 1


@pytest.mark.parametrize("at", ["INSERT INTO journal", "COMMIT"])
def test_a_failing_disk_fails_everybody_in_the_batch_and_charges_nobody(tmp_path: Path, at: str) -> None:
    disk = Disk()
    with opened(tmp_path, disk) as ledger:

        def full(statement: str) -> BaseException | None:
            if not statement.startswith(at):
                return None
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            return error

        disk.fails_at = full
        found = together(ledger, *[reserving(ledger)] * 3)
        disk.fails_at = lambda statement: None
        assert [type(one) for one in found] == [LedgerFull] * 3
        assert ledger.budget("visits").spent().epsilon == 0
        assert ledger.reserve("visits", events.Laplace(0.1)).id
        ledger.verify(full=True)


def test_an_interrupted_writer_leaves_nobody_waiting_and_tells_nobody_of_success(tmp_path: Path) -> None:
    disk = Disk()
    with opened(tmp_path, disk) as ledger:
        disk.fails_at = lambda statement: KeyboardInterrupt() if statement.startswith("INSERT INTO journal") else None
        found = together(ledger, *[reserving(ledger)] * 3)
        disk.fails_at = lambda statement: None
        assert sorted(type(one).__name__ for one in found) == ["KeyboardInterrupt", *["LedgerUnavailable"] * 2]
        assert ledger.budget("visits").spent().epsilon == 0
        ledger.verify(full=True)


def test_damage_stops_the_whole_batch(tmp_path: Path) -> None:
    with opened(tmp_path) as ledger:
        with sqlite3.connect(tmp_path / "ledger.sqlite") as connection:
            connection.execute("UPDATE scopes SET totals = replace(totals, '0', '1') WHERE dataset = 'labs'")
        connection.close()
        found = together(
            ledger, reserving(ledger), lambda: ledger.reserve("labs", events.Laplace(0.01)), reserving(ledger)
        )
        assert all(isinstance(one, LedgerCorrupt) for one in found)
        with pytest.raises(TacitError):
            ledger.reserve("visits", events.Laplace(0.1))


def test_a_forked_child_does_not_wait_for_a_thread_that_it_does_not_have(tmp_path: Path) -> None:
    with opened(tmp_path) as ledger:
        with writing(ledger):  # as if another thread was writing when the process forked
            child = os.fork()
            if child == 0:
                try:
                    ledger.reserve("visits", events.Laplace(0.1))
                    os._exit(0)
                except BaseException:
                    os._exit(1)
        ended = os.pidfd_open(child)
        has_ended, _, _ = select.select([ended], [], [], 30)
        os.close(ended)
        if not has_ended:
            os.kill(child, signal.SIGKILL)
        assert os.waitpid(child, 0) == (child, 0)
        assert ledger.budget("visits").spent().epsilon == pytest.approx(0.1)


def test_a_change_whose_thread_was_interrupted_while_it_waited_is_not_made(tmp_path: Path) -> None:
    with opened(tmp_path) as ledger:

        def interrupted(change: Change) -> None:
            raise KeyboardInterrupt

        with writing(ledger), pytest.MonkeyPatch.context() as patch:  # as if another thread was writing
            patch.setattr(Change, "sleep", interrupted)
            with pytest.raises(KeyboardInterrupt):
                ledger.reserve("visits", events.Laplace(0.1))
        ledger.reserve("visits", events.Laplace(0.2))
        assert ledger.budget("visits").spent().epsilon == pytest.approx(0.2)


def test_when_the_lock_cannot_be_had_everybody_is_told_at_once(tmp_path: Path) -> None:
    disk = Disk()
    with opened(tmp_path, disk) as ledger:
        disk.statements.clear()

        def busy(statement: str) -> BaseException | None:
            if statement != "BEGIN IMMEDIATE":
                return None
            error = sqlite3.OperationalError("database is locked")
            error.sqlite_errorcode = sqlite3.SQLITE_BUSY
            return error

        disk.fails_at = busy
        found = together(ledger, *[reserving(ledger)] * 3)
        disk.fails_at = lambda statement: None
        assert [type(one) for one in found] == [LedgerBusy] * 3
        assert disk.statements.count("BEGIN IMMEDIATE") == 1
        assert ledger.budget("visits").spent().epsilon == 0


@pytest.mark.parametrize("place", ["begin", "execute", "succeed"])
@pytest.mark.parametrize("number", [0, 1, 2])
def test_an_interrupt_anywhere_in_a_batch_tells_nobody_of_success_that_is_not_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, number: int
) -> None:
    real, calls = getattr(Change, place), iter(range(100))

    def interrupted(change: Change, *arguments: Any) -> None:
        if next(calls) == number:
            raise KeyboardInterrupt
        real(change, *arguments)

    with opened(tmp_path) as ledger:
        monkeypatch.setattr(Change, place, interrupted)
        found = together(ledger, *[reserving(ledger)] * 3)
        monkeypatch.undo()
        permits = [one.id for one in found if not isinstance(one, BaseException)]
        assert [type(one) for one in found].count(KeyboardInterrupt) == 1
        assert set(permits) <= {one.permit.id for one in ledger.reservations()}
        assert ledger.budget("visits").spent().epsilon == pytest.approx(0.1 * len(ledger.reservations()))
        ledger.verify(full=True)
        assert ledger.reserve("visits", events.Laplace(0.1)).id


def test_threads_that_come_while_a_batch_ends_are_not_forgotten(tmp_path: Path) -> None:
    class Rows:
        def savepoint(self) -> None:
            pass

    class Store:
        @contextmanager
        def transaction(self, scopes: object = ()) -> Iterator[Rows]:
            yield Rows()

    batches = Batches(Store(), lambda rows: None, lambda rows, start: lambda: None)  # type: ignore[arg-type]
    done: list[int] = []

    def change(number: int) -> None:
        for turn in range(400):
            batches.write(lambda rows, turn=turn: done.append(number * 400 + turn))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    threads = [threading.Thread(target=change, args=(number,), daemon=True) for number in range(8)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
            assert not thread.is_alive(), "a thread waits for a change that nobody writes"
    finally:
        sys.setswitchinterval(interval)
    assert sorted(done) == list(range(8 * 400))


def test_a_verification_beside_charges_raises_no_false_alarm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path) as ledger:
        real = ledger._store.snapshot

        @contextmanager
        def late() -> Iterator[Any]:
            with real() as rows:
                rows.head()  # as it is now; somebody charges before it is looked at
                monkeypatch.undo()
                ledger.reserve("visits", events.Laplace(0.1))
                yield rows

        monkeypatch.setattr(ledger._store, "snapshot", late)
        ledger.verify()
        assert ledger._seen is not None
        assert (ledger._seen.number, ledger._seen.hash) == (ledger.head().number, ledger.head().hash)
        ledger.reserve("visits", events.Laplace(0.1))


def test_an_error_of_the_store_in_one_change_ends_the_transaction_for_all(tmp_path: Path) -> None:
    disk = Disk()
    with opened(tmp_path, disk) as ledger:

        def unreadable(statement: str) -> BaseException | None:
            if "FROM permits" not in statement:
                return None
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = sqlite3.SQLITE_IOERR
            return error

        disk.fails_at = unreadable
        found = together(ledger, reserving(ledger), reserving(ledger, key="a"), reserving(ledger))
        disk.fails_at = lambda statement: None
        assert [type(one) for one in found[:2]] == [LedgerUnavailable] * 2
        assert found[0] is not found[1], "each thread raises an error of its own"
        assert [one.permit.id for one in ledger.reservations()] == [found[2].id], "it was not begun, and comes next"
        ledger.verify(full=True)


def test_nothing_is_written_once_the_database_has_ended_the_transaction(tmp_path: Path) -> None:
    disk = Disk()
    with opened(tmp_path, disk) as ledger:

        def gone(work: Any) -> None:
            work.rows.put_scope(work.dataset("visits"))
            ledger._store._writer.connection.execute("ROLLBACK")  # type: ignore[attr-defined]
            disk.statements.clear()

        with pytest.raises(LedgerUnavailable, match="gave up the transaction: nothing was charged"):
            ledger._change(gone)
        assert [one for one in disk.statements if one.startswith(("INSERT", "UPDATE", "COMMIT"))] == []
        assert ledger.reserve("visits", events.Laplace(0.1)).id


@pytest.mark.parametrize(
    ("said", "code", "expected"),
    [
        ("database disk image is malformed", sqlite3.SQLITE_CORRUPT, LedgerCorrupt),
        ("disk I/O error", sqlite3.SQLITE_IOERR, LedgerUnavailable),
        ("Could not decode to UTF-8", sqlite3.SQLITE_ERROR, LedgerCorrupt),
    ],
)
def test_an_error_while_rows_are_read_has_a_code_and_damage_closes_the_ledger(
    tmp_path: Path, said: str, code: int, expected: type[TacitError]
) -> None:
    disk = Disk()
    with opened(tmp_path, disk) as ledger:

        def failing(statement: str) -> BaseException | None:
            error = sqlite3.OperationalError(said)
            error.sqlite_errorcode = code
            return error if "FROM scopes" in statement else None

        disk.fails_at = failing
        with pytest.raises(expected) as found:
            ledger.reserve("visits", events.Laplace(0.1))
        assert type(found.value) is expected
        disk.fails_at = lambda statement: None
        if expected is LedgerCorrupt:
            with pytest.raises(LedgerCorrupt):
                ledger.reserve("visits", events.Laplace(0.1))
        else:
            assert ledger.reserve("visits", events.Laplace(0.1)).id


def test_a_change_that_fails_in_a_way_nobody_foresaw_fails_with_a_code(tmp_path: Path) -> None:
    with opened(tmp_path) as ledger:

        def broken(work: Any) -> None:
            raise ZeroDivisionError

        with pytest.raises(LedgerUnavailable, match=r"ZeroDivisionError.*nothing was charged") as found:
            ledger._change(broken)
        assert isinstance(found.value.__cause__, ZeroDivisionError)
        assert ledger.reserve("visits", events.Laplace(0.1)).id
        ledger.verify(full=True)


def test_a_thread_gives_up_waiting_for_a_writer_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.ledger.group_commit.WAIT_S", 0.01)
    monkeypatch.setattr("tacit.ledger.group_commit.WAIT_MAX_S", 0.05)
    with opened(tmp_path) as ledger:
        with ledger._batches._leading, pytest.raises(LedgerBusy, match="another thread has been writing"):
            ledger.reserve("visits", events.Laplace(0.1))
        ledger.reserve("visits", events.Laplace(0.2))
        assert ledger.budget("visits").spent().epsilon == pytest.approx(0.2), "what was given up is not made later"


def test_a_damaged_ledger_keeps_nothing_of_those_who_ask_it(tmp_path: Path) -> None:
    with opened(tmp_path) as ledger:
        with sqlite3.connect(tmp_path / "ledger.sqlite") as connection:
            connection.execute("UPDATE scopes SET totals = replace(totals, '0', '1')")
        connection.close()
        for _ in range(5):
            with pytest.raises(LedgerCorrupt):
                ledger.reserve("visits", events.Laplace(0.1))
        assert ledger._damage is not None
        assert ledger._damage.__traceback__ is None
        assert ledger._damage.__context__ is None
