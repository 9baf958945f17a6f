"""Texts of a DuckDB file are compared by their code points, whatever collation their columns have."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from tacit.engines import UNIT, DuckDBEngine, Source
from tacit.engines.duckdb import engine as module
from tacit.privacy.tables import Column, Kind, Limits, Table
from tacit.privacy.units import ForeignKey, Unit

SPELLINGS = ("zoe", "Zoe", "ZOE", "zoE", "zoë", "Zoë", "ZOË", "zoe\u0308")
COLLATIONS = ("NOCASE", "NOACCENT", "NOCASE.NOACCENT", "de", "NFC", "sv.NOCASE")
COLUMNS = (Column("u", Kind.INTEGER), Column("s", Kind.TEXT), Column("e", Kind.TEXT))


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[DuckDBEngine]:
    made = DuckDBEngine(tmp_path / "folder", salt=1, threads=2)
    yield made
    made.close()


def collated(path: Path, collation: str, *, by_default: bool = False) -> Path:
    """Write a table `t` and a view `v` over it whose texts have a collation."""
    with duckdb.connect(str(path)) as connection:
        if by_default:
            connection.execute(f"SET default_collation = '{collation}'")
        of_column = "" if by_default else f"COLLATE {collation}"
        kinds = ", ".join(f"'{one}'" for one in SPELLINGS)
        connection.execute(f"CREATE TABLE t (u INTEGER, s VARCHAR {of_column}, e ENUM ({kinds}))")
        rows = [[number, text, text] for number, text in enumerate(SPELLINGS)]
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
        connection.execute("CREATE VIEW v AS SELECT u, upper(s) AS up, s, e FROM t")
    return path


@pytest.mark.parametrize("name", ["t", "v"], ids=["table", "view"])
@pytest.mark.parametrize("table", [Table("t", COLUMNS, Unit("u")), Table("t", COLUMNS)], ids=["stored", "in its file"])
@pytest.mark.parametrize("collation", [*COLLATIONS, "default NOCASE"])
def test_spellings_are_told_apart(
    engine: DuckDBEngine, tmp_path: Path, collation: str, table: Table, name: str
) -> None:
    by_default = collation.startswith("default ")
    path = collated(tmp_path / "c.duckdb", collation.removeprefix("default "), by_default=by_default)
    engine.register(table, Source("duckdb", str(path), name), {})
    for column in ("s", "e"):
        groups = engine.run(f"SELECT {column}, COUNT(*) AS n FROM tacit_data.t GROUP BY {column}")
        assert dict(zip(*groups.values(), strict=True)) == dict.fromkeys(SPELLINGS, 1)
        numbers = engine.run(
            f"SELECT COUNT(DISTINCT {column}) AS d, MIN({column}) AS low, MAX({column}) AS high, "
            f"COUNT(*) FILTER ({column} = 'zoe') AS same, COUNT(*) FILTER ({column} IN ('zoe', 'x')) AS listed, "
            f"COUNT(*) FILTER ({column} LIKE 'zo%') AS likes, COUNT(*) FILTER ({column} < 'a') AS below "
            "FROM tacit_data.t"
        )
        found = tuple(one[0] for one in numbers.values())
        assert found == (len(SPELLINGS), min(SPELLINGS), max(SPELLINGS), 1, 1, 4, 4)
        joined = engine.run(f"SELECT COUNT(*) AS n FROM tacit_data.t AS a JOIN tacit_data.t AS b USING ({column})")
        assert list(joined["n"]) == [len(SPELLINGS)]
        listed = engine.run(
            f"SELECT k, COUNT({column}) AS n FROM (VALUES ('zoe'), ('ZOE')) AS v(k) "
            f"LEFT JOIN tacit_data.t ON k = {column} GROUP BY k ORDER BY k"
        )
        assert list(listed["n"]) == [1, 1]


@pytest.mark.parametrize("limits", [Limits(), Limits(rows_per_unit=1)], ids=["all rows", "limited"])
def test_units_that_a_collation_calls_equal_stay_apart(engine: DuckDBEngine, tmp_path: Path, limits: Limits) -> None:
    path = collated(tmp_path / "c.duckdb", "NOCASE")
    table = Table("t", (Column("s", Kind.TEXT), Column("u", Kind.INTEGER)), Unit("s"), limits)
    engine.register(table, Source("duckdb", str(path), "t"), {})
    assert set(engine.run(f"SELECT DISTINCT {UNIT} AS u FROM tacit_data.t")["u"]) == set(SPELLINGS)
    assert list(engine.run("SELECT COUNT(*) AS n FROM tacit_data.t")["n"]) == [len(SPELLINGS)]


def test_foreign_keys_lead_to_the_row_that_is_spelt_the_same(
    engine: DuckDBEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = collated(tmp_path / "c.duckdb", "NOCASE.NOACCENT")
    for stored_max in (module.ROWS_STORED_MAX, 0):
        monkeypatch.setattr(module, "ROWS_STORED_MAX", stored_max)
        parent = Table("p", (Column("s", Kind.TEXT), Column("u", Kind.INTEGER)), Unit("u"))
        child = Table("t", (Column("s", Kind.TEXT), Column("u", Kind.INTEGER)), Unit("u", (ForeignKey("s", "p", "s"),)))
        engine.register(parent, Source("duckdb", str(path), "t"), {})
        engine.register(child, Source("duckdb", str(path), "v"), {"p": parent})
        found = engine.run(f"SELECT u, {UNIT} AS unit FROM tacit_data.t ORDER BY u")
        assert list(found["u"]) == list(found["unit"]) == list(range(len(SPELLINGS)))


EQUAL = {
    "INTERVAL": ("1 month", "30 days", "720 hours"),
    "TIMETZ": ("10:00:00+02", "08:00:00+00"),
    "TIMESTAMPTZ": ("2024-01-01 10:00:00+02", "2024-01-01 08:00:00+00"),
    "DECIMAL(9, 3)": ("1.5", "1.500"),
    "DOUBLE": ("0.0", "-0.0"),
    "JSON": ("[1]", "[ 1]"),
    "BIT": ("01", "1"),
    "UUID": ("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"),
    "DOUBLE[]": ("[0.0]", "[-0.0]"),
    "DATE": ("infinity", "294247-01-10"),
}


@pytest.mark.parametrize("type_", EQUAL)
def test_values_that_duckdb_holds_equal_are_the_same_bytes_or_not_equal(
    engine: DuckDBEngine, tmp_path: Path, type_: str
) -> None:
    """Which of two equal values MIN, DISTINCT or a group keeps is decided by chance: nothing may tell them apart."""
    path = tmp_path / "e.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE TABLE t (u INTEGER, s {type_})")
        connection.executemany("INSERT INTO t VALUES (?, ?)", list(enumerate(EQUAL[type_])))
    table = Table("t", (Column("u", Kind.INTEGER), Column("s", Kind.TEXT)), Unit("u"))
    engine.register(table, Source("duckdb", str(path), "t"), {})
    shown = set(engine.run("SELECT s FROM tacit_data.t")["s"])
    assert None not in shown
    assert set(engine.run("SELECT DISTINCT s FROM tacit_data.t")["s"]) == shown
    pairs = engine.run("SELECT a.s AS x, b.s AS y FROM tacit_data.t AS a JOIN tacit_data.t AS b ON a.s = b.s")
    assert list(pairs["x"]) == list(pairs["y"])
