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
