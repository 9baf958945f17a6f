"""Whatever tables are stated, they are there again; whatever the file holds, it is a catalog or the reason is said."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.curator.catalog import FILE_NAME, Catalog
from tacit.curator.catalog_reader import sections
from tacit.engines.csv_format import CsvFormat
from tacit.engines.protocol import Source
from tacit.privacy import Bounds, Categories, ForeignKey, Unit
from tacit.privacy.errors import CatalogInvalid, InvalidInput
from tacit.privacy.tables import Column, Kind, Limits, Table

characters = st.characters(exclude_categories=["Cs"])
odd_names = st.sampled_from(
    ['"', "'", "a.b", "a b", "#", "=", "[x]", "\n", "\\", "é", "列", "\u202e", "\x00", "-", "1"]
)
column_names = odd_names | st.text(characters, min_size=1, max_size=8)
table_names = st.sampled_from(["visits", "a.b", 'say "x"', "Ärzte", "1", "列", "[a]", "x y", "#1", "'", "columns"])
whole = st.integers(-(2**63), 2**63 - 1)
real = whole | st.floats(allow_nan=False, allow_infinity=False) | st.fractions()
moments: dict[Kind, st.SearchStrategy[Any]] = {
    Kind.INTEGER: whole,
    Kind.REAL: real,
    Kind.DATE: st.dates(),
    Kind.TIME: st.datetimes(),
}
categories: dict[Kind, st.SearchStrategy[Any]] = {
    Kind.BOOLEAN: st.booleans(),
    Kind.INTEGER: whole,
    Kind.REAL: whole,
    Kind.TEXT: st.text(characters, max_size=6),
    Kind.DATE: st.dates(),
    Kind.TIME: st.datetimes(),
}


def size(value: Any) -> Any:
    return value if isinstance(value, date | datetime) else float(value)


@st.composite
def facts(draw: st.DrawFn, kind: Kind) -> Bounds | Categories | None:
    form = draw(st.sampled_from(["none", "bounds", "categories"]))
    if form == "bounds" and kind in moments:
        lower, upper = draw(st.tuples(moments[kind], moments[kind]).filter(lambda ends: size(ends[0]) != size(ends[1])))
        return Bounds(lower, upper) if lower < upper else Bounds(upper, lower)
    if form == "categories":
        return Categories(draw(st.lists(categories[kind] | st.none(), min_size=1, max_size=3, unique=True)))
    return None


@st.composite
def tables(draw: st.DrawFn) -> Table:
    names = draw(st.lists(column_names, min_size=1, max_size=4, unique_by=str.lower))
    kinds = [draw(st.sampled_from(Kind)) for _ in names]
    columns = tuple(
        Column(name, kind, draw(facts(kind)), draw(st.booleans())) for name, kind in zip(names, kinds, strict=True)
    )
    limit = st.none() | st.integers(1, 1_000_000)
    is_private = draw(st.booleans())
    name = draw(table_names)
    return Table(
        name,
        columns,
        Unit(draw(st.sampled_from(names))) if is_private else None,
        Limits(draw(limit), draw(limit), draw(limit)) if is_private else Limits(),
        tuple(draw(st.lists(st.sampled_from(names), max_size=2, unique=True))),
        draw(st.sampled_from(["", f'data of "{name}"'])),
    )


sources = st.sampled_from(
    [("csv", "/data/a b.csv", ""), ("parquet", "/data/*.parquet", ""), ("duckdb", "/x#y.db", 'main."v w"')]
).map(lambda parts: Source(*parts))
signs = st.characters(min_codepoint=32, max_codepoint=126)


@st.composite
def written_sources(draw: st.DrawFn) -> Source:
    """A source, of CSV files with the forms by which they are read."""
    source = draw(sources)
    if source.form != "csv":
        return source
    delimiter, quote, comment = draw(st.lists(signs, min_size=3, max_size=3, unique=True))
    names = tuple(draw(st.lists(st.text(min_size=1), min_size=1, max_size=3, unique_by=str.lower)))
    try:
        form = CsvFormat(
            delimiter, quote, quote, comment, "\r\n", draw(st.integers(0, 9)), draw(st.booleans()), draw(st.booleans()),
            "latin-1", names, ("VARCHAR",) * len(names), "%d/%m/%Y", "",
        )  # fmt: skip
    except InvalidInput:
        return source
    return replace(source, csv=(form,))


@contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@given(
    st.lists(
        st.tuples(tables(), written_sources()), min_size=1, max_size=3, unique_by=lambda stated: stated[0].name.lower()
    )
)
@settings(max_examples=60)
def test_tables_are_there_again_with_every_statement(stated: list[tuple[Table, Source]]) -> None:
    with folder() as place:
        catalog = Catalog.open(place)
        for table, source in stated:
            catalog.add(table, source)
        again = Catalog.open(place)
        assert [(table, again.source(table.name)) for table in again.tables.values()] == stated
        for table, _ in stated:
            catalog.remove(table.name)
        assert Catalog.open(place).tables == {}


@given(tables(), tables(), sources)
@settings(max_examples=60)
def test_a_replaced_table_is_the_new_one_and_others_are_left_alone(old: Table, new: Table, source: Source) -> None:
    neighbour = Table("zz", (Column("x", Kind.TEXT),), Unit("x", ()))
    way = Table("lines", (Column("k", Kind.TEXT),), Unit("x", (ForeignKey("k", "zz", "x"),)))
    with folder() as place:
        catalog = Catalog.open(place)
        catalog.add(old, source)
        catalog.add(neighbour, source)
        catalog.add(way, source)
        statement = catalog.table_text("lines")
        renamed = Table(old.name, new.columns, new.unit, new.limits, new.identified_by, new.dataset)
        catalog.add(renamed, source, replace=True)
        found = Catalog.open(place).tables[old.name.lower()]
        assert sorted(found.columns, key=lambda one: one.name) == sorted(renamed.columns, key=lambda one: one.name)
        assert (found.unit, found.limits, found.dataset) == (renamed.unit, renamed.limits, renamed.dataset)
        assert statement in catalog.path.read_text()


@given(st.text(characters, min_size=1, max_size=3))
def test_the_name_of_a_table_is_kept_or_refused(name: str) -> None:
    with folder() as place:
        catalog = Catalog.open(place)
        try:
            catalog.add(Table(name, (Column("x", Kind.TEXT),)), Source("csv", "/a.csv"))
        except InvalidInput:
            assert not (place / FILE_NAME).exists()
        else:
            assert [table.name for table in Catalog.open(place).tables.values()] == [name]


VALID = (
    '# above\n[tables.a]\nsource = "a.csv"\nunit = "x"\nrows_per_unit = 3\n\n'
    '[tables.a.columns]\nx = { kind = "integer", bounds = [0, 1] }\ny = { kind = "text", categories = ["p", "q"] }\n'
)
pieces = st.sampled_from([*'[]{}"=,.#1 é', "\n", "\x00", "unit", "true", "tables"])


def refusal(place: Path) -> str | None:
    try:
        Catalog.open(place)
    except CatalogInvalid as refused:
        return refused.message
    return None


@given(st.integers(0, len(VALID)), st.integers(0, 12), st.lists(pieces, max_size=4).map("".join))
@settings(max_examples=300)
def test_a_damaged_file_is_a_catalog_or_refused_in_one_sentence(start: int, removed: int, put: str) -> None:
    text = VALID[:start] + put + VALID[start + removed :]
    assert "".join(part.text for part in sections(text)) == text
    with folder() as place:
        (place / FILE_NAME).write_text(text, encoding="utf-8", newline="")
        assert (refusal(place) or str(place)).startswith(str(place))


@given(st.binary(max_size=40))
def test_bytes_are_a_catalog_or_refused(data: bytes) -> None:
    with folder() as place:
        (place / FILE_NAME).write_bytes(data)
        assert (refusal(place) or str(place)).startswith(str(place))
