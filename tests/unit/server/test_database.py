"""The server's own database: all or nothing, one after another, for threads, forks and processes, in both stores."""

import itertools
import multiprocessing
import os
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tacit.privacy.errors import (
    InvalidInput,
    StorageBusy,
    StorageCorrupt,
    StorageTooNew,
    StorageUnavailable,
)
from tacit.server.database import FILE_NAME, MIGRATIONS, Database, PostgresDatabase, SqliteDatabase, open_database
from tacit.server.error_responses import status_of
from tacit.storage import migrations
from tests.support import postgres_server

Open = Callable[[], Database]
_SCHEMAS = itertools.count()
ADD = "INSERT INTO used_states (sha256, expires_at_us) VALUES (?, ?)"
COUNT = "SELECT COUNT(*), MAX(expires_at_us) FROM used_states"


@pytest.fixture(params=["sqlite", "postgres"])
def another(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """A function that opens one and the same new place, each time by another handle."""
    opened: list[Database] = []
    schema = f"server_{os.getpid()}_{next(_SCHEMAS)}"

    def open_() -> Database:
        made: SqliteDatabase | PostgresDatabase
        if request.param == "sqlite":
            made = SqliteDatabase(tmp_path, busy_timeout_s=20)
        else:
            made = PostgresDatabase(postgres_server.address(), schema=schema, lock_timeout_s=20)
        made.open()
        opened.append(made)
        return made

    yield open_
    for database in opened:
        database.close()


def test_what_one_handle_writes_another_reads(another: Open) -> None:
    one, other = another(), another()
    one.write((ADD, ("a", 1)), (ADD, ("b", 2)))
    assert other.read(COUNT) == [(2, 2)]
    assert other.read("SELECT expires_at_us FROM used_states WHERE sha256 = ?", ("b",)) == [(2,)]
    assert other.read("SELECT sha256 FROM used_states WHERE sha256 LIKE 'b%' AND expires_at_us > ?", (1,)) == [("b",)]


def test_statements_happen_all_or_none(another: Open) -> None:
    database = another()
    database.write((ADD, ("a", 1)))
    with pytest.raises(StorageCorrupt, match="the server's own database violates its own constraints") as found:
        database.write((ADD, ("b", 2)), (ADD, ("a", 3)))
    assert found.type is StorageCorrupt, "a ledger's error would say that nothing is admitted"
    assert database.read(COUNT) == [(1, 1)]


def test_a_block_that_raises_changes_nothing(another: Open) -> None:
    database = another()

    def change() -> None:
        with database.transaction() as execute:
            assert execute(ADD, ("a", 1)) == []
            again = "UPDATE used_states SET expires_at_us = 2 WHERE sha256 = ? RETURNING sha256"
            assert execute(again, ("a",)) == [("a",)]
            raise InvalidInput("no")

    with pytest.raises(InvalidInput):
        change()
    assert database.read(COUNT) == [(0, None)]
    database.write((ADD, ("b", 1)))


def test_texts_that_no_database_takes_are_refused_in_a_sentence(another: Open) -> None:
    database = another()
    for text in ("a\x00b", "\ud800", "größe \udfff"):
        with pytest.raises(InvalidInput, match="cannot be stored"):
            database.read("SELECT 1 FROM used_states WHERE sha256 = ?", (text,))
        with pytest.raises(InvalidInput, match="cannot be stored"):
            database.write((ADD, (text, 1)))
    database.write((ADD, ("größe ε 😀", 1)))
    assert database.read("SELECT sha256 FROM used_states") == [("größe ε 😀",)]


def test_a_transaction_holds_the_write_lock_from_its_start(another: Open) -> None:
    """Two that read, add one and write: without the lock from the start one addition is lost."""
    another().write((ADD, ("n", 0)))

    def add(database: Database) -> None:
        for _ in range(20):
            with database.transaction() as execute:
                ((value,),) = execute("SELECT expires_at_us FROM used_states WHERE sha256 = ?", ("n",))
                execute("UPDATE used_states SET expires_at_us = ? WHERE sha256 = ?", (value + 1, "n"))

    shared = another()
    threads = [threading.Thread(target=add, args=(one,)) for one in (shared, shared, another())]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert shared.read(COUNT) == [(1, 60)]


def test_a_reader_does_not_wait_for_a_writer(another: Open) -> None:
    one, other = another(), another()
    with one.transaction() as execute:
        execute(ADD, ("a", 1))
        assert other.read(COUNT) == [(0, None)]
        assert one.read(COUNT) == [(0, None)]
    assert other.read(COUNT) == [(1, 1)]


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # forking is what is looked at
def test_a_forked_child_uses_a_connection_of_its_own(another: Open) -> None:
    database = another()
    database.write((ADD, ("parent", 1)))
    context = multiprocessing.get_context("fork")
    child = context.Process(target=lambda: database.write((ADD, ("child", database.read(COUNT)[0][0] + 1))))
    child.start()
    child.join(30)
    assert child.exitcode == 0
    database.write((ADD, ("parent again", 3)))
    assert database.read(COUNT) == [(3, 3)]


def test_the_file_is_for_its_owner_only_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        database = open_database(tmp_path)
        database.write((ADD, ("a", 1)))
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes[FILE_NAME] == 0o600
    assert set(modes.values()) == {0o600}
    database.close()
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]


def test_several_that_open_a_new_place_at_once_share_it(tmp_path: Path) -> None:
    handles: list[Database] = []
    threads = [threading.Thread(target=lambda: handles.append(open_database(tmp_path))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, handle in enumerate(handles):
        handle.write((ADD, (str(number), number)))
    assert handles[0].read(COUNT) == [(8, 7)]
    for handle in handles:
        handle.close()


def test_failures_speak_of_the_servers_own_database(tmp_path: Path) -> None:
    database = open_database(tmp_path)
    impatient = SqliteDatabase(tmp_path, busy_timeout_s=0.05)
    others = "the server's own database was used by others for longer"
    with database.transaction(), pytest.raises(StorageBusy, match=others) as busy:
        impatient.write((ADD, ("a", 1)))
    with pytest.raises(StorageUnavailable, match="the server's own database cannot be used now") as unavailable:
        database.read("SELECT nothing FROM nowhere")
    database.close()
    impatient.close()
    (tmp_path / FILE_NAME).write_bytes(b"something else, and long enough to be looked at" * 10)
    with pytest.raises(StorageCorrupt, match="is not a server's database") as foreign:
        open_database(tmp_path)
    assert [one.type for one in (busy, unavailable, foreign)] == [StorageBusy, StorageUnavailable, StorageCorrupt]


def test_a_newer_database_is_refused(tmp_path: Path) -> None:
    database = open_database(tmp_path)
    database.write((migrations.NOTE, (999, "later", "x", 0)))
    database.close()
    with pytest.raises(StorageTooNew, match="the server's own database has version 999") as found:
        open_database(tmp_path)
    assert found.type is StorageTooNew


def test_a_damaged_table_is_no_error_of_the_ledger(tmp_path: Path) -> None:
    database = open_database(tmp_path)
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_schema SET rootpage = 1 WHERE name = 'used_states'")
        connection.commit()
    database.close()
    with pytest.raises(StorageCorrupt, match="the server's own database is damaged") as found:
        database.read(COUNT)
    database.close()
    assert found.type is StorageCorrupt
    assert (found.value.code, status_of(found.value)) == ("T521", 503)


def test_both_stores_have_the_same_migrations_and_tables() -> None:
    sqlite, postgres = (migrations.load(MIGRATIONS / name) for name in ("sqlite", "postgres"))
    assert [(step.version, step.name) for step in sqlite] == [(step.version, step.name) for step in postgres]


def test_a_password_of_the_connection_string_is_in_no_error(tmp_path: Path) -> None:
    secret = "hunter2-hunter2"
    database = PostgresDatabase(f"postgresql://ana:{secret}@127.0.0.1:9/none?connect_timeout=1")
    with pytest.raises(StorageUnavailable, match="cannot be reached") as found:
        database.open()
    error: BaseException | None = found.value
    while error is not None:
        assert secret not in str(error)
        error = error.__cause__
    assert secret not in repr(database)
