"""What PostgreSQL adds: a server that can go away, clients that stall, and a secret in the connection string."""

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tacit.ledger import Ledger, Permit, PostgresStore
from tacit.ledger.stores.sql import MIGRATIONS
from tacit.ledger.transactions import LedgerTransaction
from tacit.privacy import events
from tacit.privacy.errors import (
    InvalidInput,
    LedgerBusy,
    LedgerRolledBack,
    LedgerTooNew,
    LedgerUnavailable,
    OutOfRange,
    Unavailable,
    UnknownName,
)
from tacit.storage import migrations
from tests.faults.ledger.waiting_changes import together

psycopg = pytest.importorskip("psycopg", reason="pip install 'psycopg[binary]' talks to PostgreSQL")


FIRST_VERSION = Path(__file__).parents[2] / "unit" / "ledger" / "version_0001.sql"


@pytest.fixture
def schema(request: pytest.FixtureRequest) -> str:
    return f"postgres_{os.getpid()}_{abs(hash(request.node.name)) % 10**9}"


def test_connections_that_the_server_ended_are_made_anew(postgres_address: str, schema: str) -> None:
    with Ledger.open(PostgresStore(postgres_address, schema=schema)) as ledger:
        ledger.create_budget("visits", epsilon=1.0)
        for _ in range(3):
            _end_connections(postgres_address)
            ledger.reserve("visits", events.Laplace(0.1))
        ledger.verify(full=True)
        assert ledger.budget("visits").spent().epsilon == pytest.approx(0.3)


def test_a_client_that_dies_in_a_transaction_leaves_nothing_and_blocks_nobody(
    postgres_address: str, schema: str
) -> None:
    with Ledger.open(PostgresStore(postgres_address, schema=schema)) as ledger:
        ledger.create_budget("visits", epsilon=1.0)
        dying = PostgresStore(postgres_address, schema=schema)
        dying.open()

        def die_while_writing() -> None:
            with dying.transaction() as rows:
                rows.scopes()
                _end_connections(postgres_address)
                rows.permits()

        with pytest.raises(LedgerUnavailable):
            die_while_writing()
        ledger.reserve("visits", events.Laplace(0.1))
        ledger.verify(full=True)


def test_a_client_that_stalls_in_a_transaction_is_cut_off(postgres_address: str, schema: str) -> None:
    with Ledger.open(PostgresStore(postgres_address, schema=schema)) as ledger:
        ledger.create_budget("visits", epsilon=1.0)
        stalling = PostgresStore(postgres_address, schema=schema, idle_timeout_s=0.3)
        stalling.open()

        def stall_while_writing() -> None:
            with stalling.transaction() as rows:
                rows.scopes()
                started_s = time.monotonic()
                ledger.reserve("visits", events.Laplace(0.1))
                assert time.monotonic() - started_s < 10
                rows.permits()

        with pytest.raises(LedgerUnavailable):
            stall_while_writing()


def test_whoever_waits_too_long_for_the_lock_is_told(postgres_address: str, schema: str) -> None:
    holder = PostgresStore(postgres_address, schema=schema)
    with Ledger.open(PostgresStore(postgres_address, schema=schema, lock_timeout_s=0.2)) as waiting:
        waiting.create_budget("visits", epsilon=1.0)
        holder.open()
        with holder.transaction(), pytest.raises(LedgerBusy, match="nothing was charged; try again"):
            waiting.reserve("visits", events.Laplace(0.1))
        waiting.reserve("visits", events.Laplace(0.1))
    holder.close()


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://keeper:open-sesame@127.0.0.1:1/ledger?connect_timeout=2",
        "host=127.0.0.1 port=1 user=keeper password=open-sesame connect_timeout=2",
        "this is open-sesame no connection string",
    ],
)
def test_no_error_shows_the_connection_string(address: str) -> None:
    store = PostgresStore(address)
    with pytest.raises(LedgerUnavailable, match="cannot be reached") as refused:
        Ledger.open(store)
    shown = f"{refused.value!r} {refused.value.message} {store!r} {store.description}"
    assert "sesame" not in shown
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__


def test_the_connection_string_comes_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, postgres_address: str, schema: str
) -> None:
    monkeypatch.delenv("TACIT_LEDGER_POSTGRES", raising=False)
    with pytest.raises(UnknownName, match="set TACIT_LEDGER_POSTGRES"):
        PostgresStore.from_environment()
    monkeypatch.setenv("TACIT_LEDGER_POSTGRES", postgres_address)
    Ledger.open(PostgresStore.from_environment(schema=schema)).close()


def test_a_schema_name_is_a_plain_name(postgres_address: str) -> None:
    for name in ("", "a b", 'x"; DROP SCHEMA public; --', "Ledger", "1a", "a" * 64):
        with pytest.raises(InvalidInput):
            PostgresStore(postgres_address, schema=name)


def test_two_ledgers_in_two_schemas_do_not_meet(postgres_address: str, schema: str) -> None:
    with (
        Ledger.open(PostgresStore(postgres_address, schema=schema + "a")) as one,
        Ledger.open(PostgresStore(postgres_address, schema=schema + "b")) as other,
    ):
        one.create_budget("visits", epsilon=1.0)
        assert other.scopes() == []


def test_a_schema_of_a_newer_version_is_refused(postgres_address: str, schema: str, tmp_path: Path) -> None:
    for step in (MIGRATIONS / "postgres").glob("*.sql"):
        (tmp_path / step.name).write_text(step.read_text())
    number = len(migrations.load(tmp_path)) + 1
    (tmp_path / f"{number:04}_planted.sql").write_text("CREATE TABLE planted (x INTEGER);\n")
    with Ledger.open(PostgresStore(postgres_address, schema=schema)) as ledger:
        ledger.create_budget("visits", epsilon=1.0)
    with Ledger.open(PostgresStore(postgres_address, schema=schema, migrations=tmp_path)) as migrated:
        migrated.reserve("visits", events.Laplace(0.1))
        migrated.verify(full=True)
    with pytest.raises(LedgerTooNew, match="use a newer tacit"):
        Ledger.open(PostgresStore(postgres_address, schema=schema))


def test_a_schema_of_the_first_version_is_brought_to_the_newest(
    postgres_address: str, schema: str, tmp_path: Path
) -> None:
    """What PostgreSQL held then is what SQLite did: the rows come from the file of the first version."""
    first = next((MIGRATIONS / "postgres").glob("0001_*.sql"))
    (tmp_path / first.name).write_text(first.read_text())
    store = PostgresStore(postgres_address, schema=schema, migrations=tmp_path)
    store.open()
    store.close()
    written = sqlite3.connect(":memory:")
    written.executescript(FIRST_VERSION.read_text())
    with psycopg.connect(postgres_address, options=f"-c search_path={schema}") as connection:
        connection.execute("DELETE FROM head")
        for table in ("head", "journal", "scopes", "permits", "requests", "contents", "answers"):
            for row in written.execute(f"SELECT * FROM {table}"):
                connection.execute(f"INSERT INTO {table} VALUES ({', '.join(['%s'] * len(row))})", row)
    written.close()
    with Ledger.open(PostgresStore(postgres_address, schema=schema)) as ledger:
        assert ledger.verify(full=True).head.number == 22
        assert ledger.released("SELECT 1", "1") == b"answer one"
        assert ledger.budget("labs").spent().epsilon == pytest.approx(0.3)
        kept = ledger.keep_finding("labs", {}, permit=ledger.reserve("labs", events.Laplace(0.1)), by="olga")
        assert ledger.findings() == [kept]
        ledger.verify(full=True)


def test_a_database_that_was_set_back_is_noticed_by_the_head_in_a_folder_and_accepted_aloud(
    postgres_address: str, schema: str, tmp_path: Path
) -> None:
    def store() -> PostgresStore:
        return PostgresStore(postgres_address, schema=schema)

    anchor = tmp_path / "ledger.head"
    with Ledger.open(store(), anchor=anchor) as ledger:
        ledger.create_budget("visits", epsilon=1.0)
        ledger.reserve("visits", events.Laplace(0.1))
    Ledger.open(store(), anchor=anchor).close()
    with psycopg.connect(postgres_address) as connection:
        connection.execute(f"DROP SCHEMA {schema} CASCADE")
    for _ in range(2):
        with pytest.raises(LedgerRolledBack, match="records 1 to 2 were noted"):
            Ledger.open(store(), anchor=anchor)
    with pytest.raises(OutOfRange, match="2 records"):
        Ledger.restore(store(), by="carl", reason="the cluster was lost", anchor=anchor)
    with pytest.raises(InvalidInput, match="the tools of PostgreSQL"):
        Ledger.restore(store(), tmp_path / "backup", by="carl", reason="the cluster was lost", anchor=anchor)
    with Ledger.restore(store(), by="carl", reason="the cluster was lost", lost_records=2, anchor=anchor) as ledger:
        assert [record.kind for record in ledger.history()] == ["restored"]
        ledger.create_budget("visits", epsilon=1.0)
    with Ledger.open(store(), anchor=anchor) as ledger:
        ledger.verify(full=True)


TABLES = ("migrations", "caches", "journal", "head", "contents", "scopes", "permits", "requests", "answers", "findings")


@contextmanager
def put_back(address: str, schema: str) -> Iterator[None]:
    """Put a database back to what it was before, as its owner does from a dump."""
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}_dump")
        for table in TABLES:
            connection.execute(f"CREATE TABLE {schema}_dump.{table} AS SELECT * FROM {schema}.{table}")
        yield
        with connection.transaction():
            connection.execute("TRUNCATE " + ", ".join(f"{schema}.{table}" for table in TABLES))
            for table in TABLES:
                connection.execute(f"INSERT INTO {schema}.{table} SELECT * FROM {schema}_dump.{table}")
        connection.execute(f"DROP SCHEMA {schema}_dump CASCADE")


def test_a_database_that_is_put_back_under_an_open_ledger_admits_nothing(
    postgres_address: str, schema: str, tmp_path: Path
) -> None:
    with Ledger.open(PostgresStore(postgres_address, schema=schema), anchor=tmp_path / "ledger.head") as ledger:
        ledger.create_budget("visits", epsilon=1.0)
        with put_back(postgres_address, schema):
            ledger.reserve("visits", events.Laplace(1.0))
        with pytest.raises(LedgerRolledBack, match="replaced while it was open"):
            ledger.reserve("visits", events.Laplace(1.0))


def test_a_folder_whose_database_was_put_back_and_went_on_elsewhere_has_a_way_out(
    postgres_address: str, schema: str, tmp_path: Path
) -> None:
    def opened(folder: str) -> Ledger:
        return Ledger.open(PostgresStore(postgres_address, schema=schema), anchor=tmp_path / folder)

    def restored(lost: int) -> Ledger:
        store = PostgresStore(postgres_address, schema=schema)
        return Ledger.restore(store, by="carl", reason="put back", lost_records=lost, anchor=tmp_path / "one")

    with opened("one") as ledger:
        ledger.create_budget("visits", epsilon=1.0)
    opened("other").close()
    with put_back(postgres_address, schema), opened("one") as ledger:
        for _ in range(3):
            ledger.reserve("visits", events.Laplace(0.1))
    with opened("other") as ledger:
        for _ in range(5):
            ledger.reserve("visits", events.Laplace(0.1))
    with pytest.raises(LedgerRolledBack, match="record 4 is not the one"):
        opened("one")
    with pytest.raises(OutOfRange, match="4 records"):
        restored(0)
    with restored(4) as ledger:
        ledger.reserve("visits", events.Laplace(0.1))
    opened("one").close()
    opened("other").close()


def test_a_backup_is_left_to_the_database(postgres_address: str, schema: str, tmp_path: Path) -> None:
    with Ledger.open(PostgresStore(postgres_address, schema=schema)) as ledger, pytest.raises(Unavailable):
        ledger.backup(tmp_path / "copy")


def test_without_psycopg_the_way_to_get_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "psycopg", None)
    with pytest.raises(Unavailable, match=r"pip install 'tacit\[postgres\]'"):
        Ledger.open(PostgresStore("postgresql://localhost/ledger"))


def _end_connections(address: str) -> None:
    with psycopg.connect(address) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )


def test_a_server_that_was_open_while_another_restored_notes_heads_since_then(
    postgres_address: str, schema: str, tmp_path: Path
) -> None:
    def store() -> PostgresStore:
        return PostgresStore(postgres_address, schema=schema, lock_timeout_s=5)

    charge = events.Laplace(0.01)
    with Ledger.open(store(), anchor=tmp_path / "one") as one:
        one.create_budget("visits", epsilon=1.0)
        for _ in range(4):
            one.reserve("visits", charge)
    with Ledger.open(store(), anchor=tmp_path / "two") as two:
        with put_back(postgres_address, schema), Ledger.open(store(), anchor=tmp_path / "one") as one:
            for _ in range(10):
                one.reserve("visits", charge)
        Ledger.restore(store(), by="eva", reason="disk", lost_records=10, anchor=tmp_path / "one").close()
        with put_back(postgres_address, schema):
            for _ in range(5):
                two.reserve("visits", charge)
    with pytest.raises(LedgerRolledBack, match="records 7 to 11 are missing"):
        Ledger.open(store(), anchor=tmp_path / "two")


def test_a_statement_that_the_server_stops_fails_every_change_of_the_batch_with_a_code(
    postgres_address: str, schema: str
) -> None:
    with Ledger.open(PostgresStore(postgres_address, schema=schema)) as ledger:
        ledger.create_budget("visits", epsilon=1.0)

        def slow(work: LedgerTransaction) -> None:
            fetch = work.rows._fetch  # type: ignore[attr-defined]
            fetch("SET LOCAL statement_timeout = '20ms'", ())
            fetch("SELECT pg_sleep(1)", ())

        def reserve() -> Permit:
            return ledger.reserve("visits", events.Laplace(0.1))

        found = together(ledger, reserve, lambda: ledger._change(slow), reserve)
        assert [type(one) for one in found[:2]] == [LedgerUnavailable] * 2
        assert all("stopped the statement" in one.message for one in found[:2])
        assert [one.permit.id for one in ledger.reservations()] == [found[2].id]
        ledger.verify(full=True)
