"""Units and foreign keys keep every digit: two values of a source are never one unit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import duckdb
import pytest

from tacit.engines import UNIT, DuckDBEngine, Source
from tacit.engines.duckdb import kinds
from tacit.privacy.errors import InvalidInput
from tacit.privacy.tables import Column, Kind, Table
from tacit.privacy.units import ForeignKey, Unit

WIDE = "(9007199254740993::HUGEINT + i)"
"""Whole numbers from 2^53 + 1 on, which doubles do not tell apart."""

PEOPLE = 1_000


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[DuckDBEngine]:
    made = DuckDBEngine(tmp_path / "folder", salt=1, threads=2)
    yield made
    made.close()


def written(path: Path, *items: str, rows: int = PEOPLE) -> Source:
    """Write a table with the columns k0, k1, ... and the row's number n."""
    columns = ", ".join(f"{item} AS k{index}" for index, item in enumerate(items))
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE OR REPLACE TABLE t AS SELECT {columns}, i AS n FROM range({rows}) AS r(i)")
    return Source("duckdb", str(path), "t")


def by_unit(kind: Kind) -> Table:
    return Table("t", (Column("k0", kind), Column("n", Kind.INTEGER)), Unit("k0"))


def units(engine: DuckDBEngine, source: Source, kind: Kind) -> int:
    """Return how many units a table has when k0 is read as a kind."""
    engine.register(by_unit(kind), source, {})
    return int(engine.run(f"SELECT COUNT(DISTINCT {UNIT}) AS n FROM tacit_data.t")["n"][0])


IDS = {
    "UBIGINT": f"{WIDE}::UBIGINT",
    "HUGEINT": WIDE,
    "UHUGEINT": f"{WIDE}::UHUGEINT",
    "DECIMAL(38,0)": f"{WIDE}::DECIMAL(38,0)",
    "DECIMAL(38,9)": f"{WIDE}::DECIMAL(38,9) + 0.000000001",
    "BIGNUM": f"{WIDE}::BIGNUM",
    "VARCHAR": f"{WIDE}::VARCHAR",
    "UUID": "('00000000-0000-0000-0000-' || lpad(i::VARCHAR, 12, '0'))::UUID",
    "BLOB": "('\\x00\\xFF' || lpad(i::VARCHAR, 4, '0'))::BLOB",
    "BIT": "(i::INTEGER)::BIT",
    "FLOAT": "(i / 3)::FLOAT",
    "DOUBLE": "1 + i / 4503599627370496",
    "TIMESTAMP": "TIMESTAMP '2020-01-01' + to_microseconds(i)",
    "TIMESTAMP_NS": "make_timestamp_ns(1577836800000000000 + i)",
    "TIMESTAMP_MS": "(TIMESTAMP '2020-01-01' + to_milliseconds(i))::TIMESTAMP_MS",
    "TIMESTAMPTZ": "(TIMESTAMP '2020-01-01' + to_microseconds(i)) AT TIME ZONE 'UTC'",
    "TIME": "TIME '00:00' + to_microseconds(i)",
    "DATE": "DATE '2020-01-01' + i::INTEGER",
    "DATE beyond 9999": "DATE '20000-01-01' + i::INTEGER",
    "zero bytes": "'a' || repeat(chr(0), i::INTEGER)",
    "wide integers as texts": f"' ' || {WIDE} || '.0'",
    "fractions as texts": "'1.' || lpad(i::VARCHAR, 30, '0')",
    "dates as texts": "'2020-01-01 00:00:00.' || lpad(i::VARCHAR, 6, '0')",
}


@pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
def test_units_are_told_apart_or_left_out_or_refused(engine: DuckDBEngine, tmp_path: Path, ids: str) -> None:
    source, merged = written(tmp_path / "t.duckdb", ids), {}
    assert units(engine, source, Kind.TEXT) == PEOPLE
    for kind in Kind:
        with suppress(InvalidInput):
            found = units(engine, source, kind)
            rows = int(engine.run("SELECT COUNT(*) AS n FROM tacit_data.t")["n"][0])
            merged |= {kind: (rows, found)} if rows != found else {}
    assert merged == {}


@pytest.mark.parametrize(
    ("ids", "kind"),
    [
        (f"{WIDE}::UBIGINT", Kind.INTEGER),
        (WIDE, Kind.INTEGER),
        (f"{WIDE}::DECIMAL(38,3)", Kind.INTEGER),
        (f"' ' || {WIDE} || '.0'", Kind.INTEGER),
        ("i::DOUBLE", Kind.INTEGER),
        ("i::FLOAT / 7", Kind.REAL),
        ("i::UINTEGER", Kind.REAL),
        ("TIMESTAMP '2020-01-01' + to_microseconds(i)", Kind.TIME),
        ("DATE '2020-01-01' + i::INTEGER", Kind.TIME),
    ],
)
def test_kinds_that_hold_every_value_keep_every_unit(
    engine: DuckDBEngine, tmp_path: Path, ids: str, kind: Kind
) -> None:
    assert units(engine, written(tmp_path / "t.duckdb", ids), kind) == PEOPLE


def test_a_number_that_is_not_whole_or_too_large_is_no_integer(engine: DuckDBEngine, tmp_path: Path) -> None:
    items = ["2.5::DOUBLE", "2.5::DECIMAL(9,1)", "'2.5'", "'2e-1'", "2.0::DOUBLE", "3.0::DECIMAL(9,1)", "' 4.00 '"]
    items += ["(10::HUGEINT) ** 20", "'100000000000000000000'", "'NaN'::DOUBLE", "'-7'", "true", "1e19"]
    source = written(tmp_path / "t.duckdb", *items, rows=1)
    columns = (Column("n", Kind.INTEGER), *(Column(f"k{index}", Kind.INTEGER) for index in range(len(items))))
    engine.register(Table("t", columns, Unit("n")), source, {})
    names = ", ".join(f"k{index}" for index in range(len(items)))
    found = [one[0] for one in engine.run(f"SELECT {names} FROM tacit_data.t").values()]
    assert found == [None, None, None, None, 2, 3, 4, None, None, None, -7, 1, None]


@pytest.mark.parametrize("kind", [Kind.REAL, Kind.TEXT])
@pytest.mark.parametrize("type_name", ["FLOAT", "DOUBLE"])
def test_of_the_two_zeros_one_is_a_unit_and_nan_is_none(
    engine: DuckDBEngine, tmp_path: Path, kind: Kind, type_name: str
) -> None:
    ids = f"CASE i WHEN 0 THEN 'nan'::{type_name} WHEN 1 THEN '-0'::{type_name} WHEN 2 THEN 0::{type_name} ELSE i END"
    assert units(engine, written(tmp_path / "t.duckdb", f"({ids})::{type_name}", rows=5), kind) == 3


@pytest.mark.parametrize("nested", ["[i]", "{'a': i}", "INTERVAL 1 DAY * i", "MAP {i: i}", "i::VARIANT"])
def test_types_whose_texts_do_not_tell_values_apart_are_no_units(
    engine: DuckDBEngine, tmp_path: Path, nested: str
) -> None:
    with pytest.raises(InvalidInput, match="k0"):
        units(engine, written(tmp_path / "t.duckdb", nested, rows=3), Kind.TEXT)


@pytest.mark.parametrize("kind", [Kind.REAL, Kind.TEXT, Kind.INTEGER])
def test_wide_foreign_keys_lead_to_one_row_or_are_refused(engine: DuckDBEngine, tmp_path: Path, kind: Kind) -> None:
    children = written(tmp_path / "child.duckdb", f"{WIDE}::DECIMAL(38,0)")
    for ids in (WIDE, f"{WIDE}::DOUBLE"):
        parents = written(tmp_path / "parent.duckdb", ids)
        parent = Table("p", (Column("k0", kind), Column("n", Kind.INTEGER)), Unit("n"))
        columns = (Column("k0", kind), Column("n", Kind.INTEGER))
        child = Table("t", columns, Unit("n", (ForeignKey("k0", "p", "k0"),)))
        engine.register(parent, parents, {})
        try:
            engine.register(child, children, {"p": parent})
        except InvalidInput as refused:
            assert "k0" in str(refused)  # noqa: PT017
            continue
        assert kind is not Kind.REAL
        found = engine.run(f"SELECT n, {UNIT} AS unit FROM tacit_data.t")
        assert list(found["n"]) == list(found["unit"])
        assert len(found["n"]) == PEOPLE


def test_the_key_of_a_parent_is_exact_as_well(engine: DuckDBEngine, tmp_path: Path) -> None:
    parents, children = written(tmp_path / "parent.duckdb", WIDE), written(tmp_path / "child.duckdb", f"{WIDE}::DOUBLE")
    columns = (Column("k0", Kind.REAL), Column("n", Kind.INTEGER))
    parent = Table("p", columns, Unit("n"))
    engine.register(parent, parents, {})
    with pytest.raises(InvalidInput, match=r"p\.k0"):
        engine.register(Table("t", columns, Unit("n", (ForeignKey("k0", "p", "k0"),))), children, {"p": parent})


@pytest.mark.parametrize("kind", [Kind.DATE, Kind.TIME])
def test_dates_that_are_moved_to_the_last_year_lead_to_no_unit(
    engine: DuckDBEngine, tmp_path: Path, kind: Kind
) -> None:
    source = written(tmp_path / "t.duckdb", "DATE '20000-01-01' + i::INTEGER", rows=3)
    columns = (Column("k0", kind), Column("n", Kind.INTEGER))
    parent = Table("p", columns)
    engine.register(parent, source, {})
    for through in (Unit("n", (ForeignKey("k0", "p", "k0"),)), Unit("k0", (ForeignKey("n", "p", "n"),))):
        with pytest.raises(InvalidInput, match="k0 is a key to the unit"):
            engine.register(Table("t", columns, through), source, {"p": parent})


def test_the_unit_at_the_end_of_foreign_keys_is_exact_as_well(engine: DuckDBEngine, tmp_path: Path) -> None:
    parents = written(tmp_path / "parent.duckdb", WIDE, rows=3)
    children = written(tmp_path / "child.duckdb", "1", rows=3)
    parent = Table("p", (Column("k0", Kind.REAL), Column("n", Kind.INTEGER)))
    engine.register(parent, parents, {})
    through = Unit("k0", (ForeignKey("n", "p", "n"),))
    with pytest.raises(InvalidInput, match=r"p\.k0"):
        engine.register(Table("t", (Column("n", Kind.INTEGER),), through), children, {"p": parent})


def test_wide_ids_of_a_csv_file_are_texts_or_integers(engine: DuckDBEngine, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("k0,n\n" + "".join(f"{10**20 + number},{number}\n" for number in range(PEOPLE)))
    source = Source("csv", str(path))
    assert units(engine, source, Kind.TEXT) == PEOPLE
    assert units(engine, source, Kind.INTEGER) == 0
    for kind in (Kind.REAL, Kind.DATE, Kind.TIME, Kind.BOOLEAN):
        with pytest.raises(InvalidInput, match='"text"'):
            engine.register(by_unit(kind), source, {})


def test_an_unknown_type_is_never_exact() -> None:
    assert not any(kinds.is_exact("SOMETHING NEW", kind) for kind in Kind)
    assert not any(kinds.is_exact("VARCHAR[]", kind) for kind in Kind)
