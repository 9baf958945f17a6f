"""One question cannot take all memory or disk, and the next one is answered."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from tacit.engines import DuckDBEngine, Source
from tacit.engines.duckdb import connections
from tacit.engines.duckdb.connections import Connection, connect
from tacit.engines.duckdb.execution import Reader
from tacit.engines.protocol import FAILED
from tacit.privacy.errors import EngineFailed
from tacit.privacy.tables import Column, Kind, Table
from tacit.privacy.units import Unit

ROWS = 400_000
TABLE = Table("t", (Column("u", Kind.INTEGER), Column("s", Kind.TEXT)), Unit("u"))
HEAVY = "SELECT COUNT(*) AS n FROM (SELECT s, u, array_agg(s || u) AS a FROM tacit_data.t GROUP BY s, u ORDER BY a)"
LIGHT = "SELECT COUNT(*) AS n FROM tacit_data.t"
GB = 1 << 30


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    path = tmp_path_factory.mktemp("rows") / "t.parquet"
    with duckdb.connect() as connection:
        rows = f"SELECT i AS u, repeat('x', 200) || i AS s FROM range({ROWS}) AS r(i)"
        connection.execute(f"COPY ({rows}) TO '{path}' (FORMAT parquet)")
    return Source("parquet", str(path))


@pytest.fixture
def engine(tmp_path: Path, source: Source) -> Iterator[DuckDBEngine]:
    DuckDBEngine(tmp_path, salt=1).register(TABLE, source, {})  # stored with memory enough
    made = DuckDBEngine(tmp_path, salt=1, threads=2, memory_limit="40MB")
    made.register(TABLE, source, {})
    yield made
    made.close()


def setting(connection: Connection, name: str) -> str:
    found = connection.execute(f"SELECT current_setting('{name}')").fetchone()
    assert found is not None
    return str(found[0])


@pytest.mark.soak
def test_a_question_beyond_memory_and_disk_fails_and_the_next_is_answered(
    engine: DuckDBEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "SPILL_MAX_BYTES", 1 << 20)
    for _ in range(2):
        with pytest.raises(EngineFailed, match=FAILED):
            engine.run(HEAVY)
        assert list(engine.run(LIGHT)["n"]) == [ROWS]
    assert sum(path.stat().st_size for path in (tmp_path / "spill").rglob("*") if path.is_file()) <= 1 << 20
    assert (tmp_path / "spill").stat().st_mode & 0o077 == 0


def test_a_preparation_beyond_memory_and_disk_fails_and_can_be_done_again(
    tmp_path: Path, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(connections, "SPILL_MAX_BYTES", 1 << 20)
        small = DuckDBEngine(tmp_path, salt=1, threads=2, memory_limit="30MB")
        with pytest.raises(EngineFailed, match="memory"):
            small.register(TABLE, source, {})
        other = Table("t", (Column("u", Kind.INTEGER),))
        small.register(other, source, {})
        assert list(small.run(LIGHT)["n"]) == [ROWS]
        small.close()
    engine = DuckDBEngine(tmp_path, salt=1)
    engine.register(TABLE, source, {})
    assert list(engine.run(LIGHT)["n"]) == [ROWS]
    engine.close()


def test_a_connection_that_is_broken_is_made_anew(engine: DuckDBEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Reader] = []
    start = Reader.__init__

    def counted(self: Reader, *arguments: object) -> None:
        made.append(self)
        start(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Reader, "__init__", counted)
    engine.run(LIGHT)
    with pytest.raises(EngineFailed):
        engine.run("SELECT nothing")
    engine.run(LIGHT)
    (reader,) = made  # a question that is wrong breaks nothing
    reader.close()
    with pytest.raises(EngineFailed):
        engine.run(LIGHT)
    assert list(engine.run(LIGHT)["n"]) == [ROWS]


def test_connections_leave_memory_and_disk_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "memory_bytes", lambda: 10 * GB)
    monkeypatch.setattr(connections, "SPILL_MAX_BYTES", GB)
    connection = connect({"temp_directory": str(tmp_path / "spill" / "1")})
    assert setting(connection, "memory_limit") == "4.0 GiB"
    assert setting(connection, "max_temp_directory_size") == "1.0 GiB"
    connection.close()


def test_without_a_folder_nothing_is_spilled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    connection = connect({"memory_limit": "30MB", "threads": 2})
    with pytest.raises(duckdb.OutOfMemoryException):
        connection.execute("CREATE TABLE t AS SELECT i, repeat('x', 100) || i AS s FROM range(2000000) AS r(i)")
    connection.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("limit", "expected"), [("max\n", None), (f"{GB}\n", GB), ("", None), ("9223372036854771712", None)]
)
def test_the_limit_of_a_container_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, expected: int | None
) -> None:
    monkeypatch.setattr(connections, "CGROUP_FILES", ())
    machine = connections.memory_bytes()
    (tmp_path / "memory.max").write_text(limit)
    monkeypatch.setattr(connections, "CGROUP_FILES", (str(tmp_path / "none"), str(tmp_path / "memory.max")))
    assert connections.memory_bytes() == (expected or machine)
