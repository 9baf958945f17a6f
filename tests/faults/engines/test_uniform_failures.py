"""Whatever goes wrong while a statement runs, a caller is told the same, and the next question is answered."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
import sqlglot

from tacit.engines import PostgresEngine, Source, SparkEngine
from tacit.engines.postgres import connections
from tacit.engines.protocol import FAILED
from tacit.engines.spark import execution, sessions
from tacit.privacy.errors import Cancelled, EngineFailed
from tacit.privacy.tables import Column, Kind, Table
from tacit.privacy.units import Unit
from tests.support import postgres_server
from tests.support.postgres_server import execute

NUMBERS = itertools.count()
TABLE = Table("t", (Column("id", Kind.INTEGER), Column("s", Kind.TEXT)), Unit("id"))
SECRET = "swordfish"


def told(work: Callable[[], object]) -> tuple[object, ...]:
    """Return all that a caller can learn from an error."""
    with pytest.raises(EngineFailed) as caught:
        work()
    error = caught.value
    assert SECRET not in repr((error, vars(error), error.args))
    return type(error), error.code, str(error), error.__cause__, error.__context__, vars(error) == {"message": FAILED}


SAME = (EngineFailed, EngineFailed.code, FAILED, None, None, True)


@pytest.fixture
def postgres(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[PostgresEngine, str]]:
    monkeypatch.setitem(connections.SETTINGS, "lock_timeout", "200ms")
    monkeypatch.setitem(connections.SETTINGS, "work_mem", "64kB")
    monkeypatch.setattr(connections, "TEMP_FILE_LIMIT", "1kB")
    schema = f"uniform_{os.getpid()}_{next(NUMBERS)}"
    execute(
        f"CREATE SCHEMA {schema}",
        f"CREATE TABLE {schema}.t AS SELECT i AS id, '{SECRET}' || i AS s FROM generate_series(1, 20000) AS i",
    )
    engine = PostgresEngine(postgres_server.place(), salt=1)
    engine.register(TABLE, Source("postgres", postgres_server.place(), f"{schema}.t"), {})
    yield engine, f"{schema}.t"
    engine.close()


def counted(engine: PostgresEngine | SparkEngine, **options: Any) -> int:
    tree: Any = sqlglot.parse_one("SELECT COUNT(*) AS c FROM tacit_data.t", dialect="duckdb")
    return int(engine.run(engine.write(tree), **options)["c"][0])


POSTGRES = {
    "a division by zero": "SELECT sum(1 / (id - 7)) AS x FROM {0}",
    "a text that is no number": "SELECT sum(s::int) AS x FROM {0}",
    "a value out of range": "SELECT sum(id::int2 * 30000::int2) AS x FROM {0}",
    "a value that is too large": "SELECT max(length(repeat(s, 200000000))) AS x FROM {0}",
    "an invalid pattern": "SELECT count(*) AS x FROM {0} WHERE s ~ '['",
    "the disk": "SELECT count(*) AS x FROM (SELECT s FROM {0} CROSS JOIN generate_series(1, 50) ORDER BY s, id) AS o",
    "an unknown table": "SELECT 1 AS x FROM nobody.nothing",
    "a syntax error": "SELECT FROM WHERE",
    "a date that Python cannot hold": "SELECT 'infinity'::date AS x FROM {0}",
    "an array": "SELECT sum(('{{1}}'::int[])[1] / (id - 7)) AS x FROM {0}",
}


@pytest.mark.parametrize("reason", POSTGRES)
def test_why_a_statement_failed_in_postgres_is_not_told(postgres: tuple[PostgresEngine, str], reason: str) -> None:
    engine, table = postgres
    assert told(lambda: engine.run(POSTGRES[reason].format(table))) == SAME
    assert counted(engine) == 20_000


def test_time_locks_and_lost_connections_of_postgres_are_told_as_any_other_failure(
    postgres: tuple[PostgresEngine, str],
) -> None:
    import psycopg

    engine, table = postgres
    slow = f"SELECT count(pg_sleep(0.01)) AS x FROM {table}"
    assert told(lambda: engine.run(slow, timeout_s=0.3)) == SAME
    with psycopg.connect(postgres_server.address()) as other:
        other.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        assert told(lambda: counted(engine)) == SAME
        other.rollback()
    ender = threading.Timer(
        1.0,
        lambda: execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(0.01)%' "
            "AND application_name = 'tacit'"
        ),
    )
    ender.start()
    assert told(lambda: engine.run(slow, timeout_s=30)) == SAME
    ender.join()
    assert counted(engine) == 20_000


def test_only_a_cancellation_is_told_apart(postgres: tuple[PostgresEngine, str]) -> None:
    engine, table = postgres
    timer = threading.Timer(0.5, engine.cancel)
    timer.start()
    with pytest.raises(Cancelled) as caught:
        engine.run(f"SELECT count(pg_sleep(0.01)) AS x FROM {table}", timeout_s=30)
    timer.join()
    assert caught.value.__cause__ is caught.value.__context__ is None
    assert counted(engine) == 20_000


@pytest.fixture
def spark(tmp_path: Path) -> Iterator[tuple[SparkEngine, Path]]:
    from tests.support.spark_session import PLACE, spark_engine

    path = tmp_path / "t.parquet"
    duckdb.sql(f"COPY (SELECT i AS id, '{SECRET}' || i AS s FROM range(2000) AS r(i)) TO '{path}' (FORMAT parquet)")
    engine = spark_engine()
    engine.register(TABLE, Source("spark", PLACE, f"parquet:{path}"), {})
    yield engine, path
    engine.close()


SPARK = {
    "an error of a row": "SELECT max(CASE WHEN id = 7 THEN raise_error(s) END) AS x FROM tacit_data_t",
    "a pattern of a row": "SELECT count(*) AS x FROM tacit_data_t WHERE s RLIKE concat('[', s)",
    "an unknown column": "SELECT nothing AS x FROM tacit_data_t",
    "an unknown function": "SELECT nothing(s) AS x FROM tacit_data_t",
}


def test_why_a_statement_failed_in_spark_is_not_told(spark: tuple[SparkEngine, Path]) -> None:
    engine, path = spark
    for statement in SPARK.values():
        assert told(lambda statement=statement: engine.run(statement)) == SAME  # type: ignore[misc]
    cross = "SELECT sum(a.id * b.id + c.id) AS x FROM tacit_data_t a, tacit_data_t b, tacit_data_t c"
    assert told(lambda: engine.run(cross, timeout_s=0.5)) == SAME
    assert counted(engine) == 2000
    path.unlink()
    assert told(lambda: counted(engine)) == SAME


class Ending:
    """A killed process whose connections are closed and that is still there until it is waited for."""

    def __init__(self, process: Any) -> None:
        self._process, self._waited = process, False

    def wait(self, timeout: float | None = None) -> int:
        self._waited = True
        return int(self._process.wait(timeout))

    def poll(self) -> int | None:
        return self._process.poll() if self._waited else None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._process, name)


@pytest.mark.soak  # starts a Java of its own
def test_after_the_java_of_spark_has_ended_the_next_question_is_answered_by_another(
    spark: tuple[SparkEngine, Path],
) -> None:
    from pyspark import SparkContext

    engine, _ = spark
    assert counted(engine) == 2000
    gateway: Any = SparkContext._gateway
    gateway.proc.kill()
    gateway.proc.wait()
    gateway.proc = Ending(gateway.proc)
    assert told(lambda: counted(engine)) == SAME
    sessions._forget_ended()  # as before Spark Connect is used: pyspark would ask the Java for call sites of columns
    assert SparkContext._gateway is None
    started_s = time.monotonic()
    assert counted(engine) == 2000
    assert time.monotonic() - started_s < 300


@pytest.mark.soak
def test_a_spark_that_does_not_stop_is_ended_and_the_next_question_is_answered(
    spark: tuple[SparkEngine, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, _ = spark
    monkeypatch.setattr(execution, "STUCK_S", 1.0)
    endless = "SELECT count(*) AS x FROM tacit_data_t WHERE repeat('a', 3000) RLIKE '^.*.*.*.*=b'"  # for the planner
    assert told(lambda: engine.run(endless, timeout_s=1)) == SAME
    assert counted(engine) == 2000
