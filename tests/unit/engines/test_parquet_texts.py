"""A text of a Parquet file that is no UTF-8 changes its own row alone, unless it is to identify a unit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from tacit.engines import DuckDBEngine, Source
from tacit.engines.duckdb import engine as duckdb_engine
from tacit.privacy.errors import EngineFailed
from tacit.privacy.tables import Column, Kind, Table
from tacit.privacy.units import Unit

COLUMNS = (Column("id", Kind.INTEGER), Column("v", Kind.TEXT))
TEXTS = [b"fine", b"caf\xe9", b"\xff\xfe", b"what?", "José".encode(), b"\xed\xa0\x80"]
READ = ["fine", "caf?", "??", "what?", "José"]


def written(path: Path) -> Source:
    """Write bytes as a column, and then say in the file that they are texts."""
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    plain = pa.array(TEXTS, pa.binary())
    texts = pa.StringArray.from_buffers(len(TEXTS), plain.buffers()[1], plain.buffers()[2])
    parquet.write_table(pa.table({"id": list(range(len(TEXTS))), "v": texts}), path)
    return Source("parquet", str(path))


@pytest.fixture
def engine() -> Iterator[DuckDBEngine]:
    made = DuckDBEngine(None, salt=1, threads=2)
    yield made
    made.close()


@pytest.mark.skipif(duckdb.__version__ < "2", reason="this DuckDB reads all texts of a file, or none")
@pytest.mark.parametrize("rows_stored_max", [30_000_000, -1], ids=["stored", "live"])
def test_bytes_that_are_no_text_change_their_own_row_alone(
    engine: DuckDBEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows_stored_max: int
) -> None:
    monkeypatch.setattr(duckdb_engine, "ROWS_STORED_MAX", rows_stored_max)
    engine.register(Table("t", COLUMNS, Unit("id")), written(tmp_path / "t.parquet"), {})
    assert list(engine.run("SELECT v FROM tacit_data.t ORDER BY id")["v"])[:5] == READ


@pytest.mark.parametrize("unit", [Unit("v"), None], ids=["unit", "public"])
def test_bytes_that_are_no_text_identify_nobody(engine: DuckDBEngine, tmp_path: Path, unit: Unit | None) -> None:
    with pytest.raises(EngineFailed, match="UTF-8"):
        engine.register(Table("t", COLUMNS, unit), written(tmp_path / "t.parquet"), {})


@pytest.mark.parametrize(
    ("value", "is_stored"),
    [
        ("[1, 2]", True),
        ("[[1], [2]]", True),
        ("{'a': 1}", True),
        ("MAP {'a': 1}", True),
        ("1.5::DECIMAL(9, 2)", False),
        ("'x'", False),
    ],
)
def test_nested_columns_of_files_that_are_read_live_are_stored_instead(
    value: str, is_stored: bool, engine: DuckDBEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list is written as a text at each mention, which takes as long as one person's list is: once is enough."""
    monkeypatch.setattr(duckdb_engine, "ROWS_STORED_MAX", -1)
    path = tmp_path / "t.parquet"
    duckdb.execute(f"COPY (SELECT 1 AS id, {value} AS v) TO '{path}' (FORMAT parquet)")
    engine.register(Table("t", COLUMNS, Unit("id")), Source("parquet", str(path)), {})
    path.unlink()
    if is_stored:
        assert len(engine.run("SELECT v FROM tacit_data.t")["v"]) == 1
    else:
        with pytest.raises(EngineFailed):
            engine.run("SELECT v FROM tacit_data.t")


@pytest.mark.parametrize("rows_stored_max", [30_000_000, -1], ids=["stored", "live"])
def test_a_time_that_cannot_be_decoded_is_refused_to_the_owner_and_fails_no_question(
    engine: DuckDBEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows_stored_max: int
) -> None:
    """Milliseconds beyond what microseconds hold: read live, one such row would fail every question about it."""
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(duckdb_engine, "ROWS_STORED_MAX", rows_stored_max)
    table = Table("t", (Column("id", Kind.INTEGER), Column("v", Kind.TIME)), Unit("id"))
    path = tmp_path / "t.parquet"
    for last, is_refused in ((10**12, False), (2**62, True)):
        times = pa.array([10**12, last], pa.int64()).cast(pa.timestamp("ms"))
        parquet.write_table(pa.table({"id": [1, 2], "v": times}), path)
        if is_refused:
            with pytest.raises(EngineFailed):
                engine.register(table, Source("parquet", str(path)), {})
        else:
            engine.register(table, Source("parquet", str(path)), {})
            assert engine.run("SELECT COUNT(v) AS n FROM tacit_data.t")["n"][0] == 2
            engine.forget("t")
