"""Sources of tables: their formats by path or address, and their text in the catalog.

In the catalog a path inside its folder is relative to it; everywhere else paths are absolute. The table of a DuckDB
file, a PostgreSQL server or a Spark session follows after a #.

    visits.parquet                               a file, or a glob of files
    clinic.duckdb#main.visits                    a table of a DuckDB file
    postgresql://ana@db.clinic:5432/care#public.visits    a table that stays in PostgreSQL; no password stands here
    env:CLINIC_DB#public.visits                  the same, the address being in an environment variable (or file:PATH,
                                                 service:NAME)
    sc://spark.clinic:15002#care.visits          a table that Spark knows, through Spark Connect (or spark://host:7077)
    spark:env:CLINIC_SPARK#care.visits           the same, the address with its token being in the environment
    spark:local#parquet:/data/visits/*.parquet   files read by a Spark of this process

An address consists of parts that are known to hold no secret (`engines.addresses`); others are refused, and no error
quotes them.
"""

from __future__ import annotations

import glob
import os
from pathlib import Path
from typing import Final

from tacit.engines import addresses
from tacit.engines.opening import engine_key, open_engine
from tacit.engines.protocol import Source, SourceColumn
from tacit.privacy import texts
from tacit.privacy.arguments import instance
from tacit.privacy.errors import EmptyInput, InvalidInput, SourceMissing, WrongType

FORMS: Final = ("csv", "parquet", "duckdb", "postgres", "spark")
ADDRESSES: Final = {
    "postgresql://": "postgres",
    "postgres://": "postgres",
    "env:": "postgres",
    "file:": "postgres",
    "service:": "postgres",
    "sc://": "spark",
    "spark://": "spark",
    "spark:": "spark",
}
"""Prefixes of addresses, and the engine of each."""

_LOCAL: Final = "spark:"
_FILES: Final = "parquet:"
SUFFIXES: Final = {
    ".csv": "csv",
    ".csv.gz": "csv",
    ".csv.zst": "csv",
    ".tsv": "csv",
    ".tsv.gz": "csv",
    ".tsv.zst": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".duckdb": "duckdb",
    ".db": "duckdb",
}
"""Suffixes of file names, and the format of each."""


def source_of(data: object, *, folder: Path | str, format: str | None = None, table: str = "") -> Source:
    """Return the source of a path, a glob or an address; files are searched here, then in the folder.

    A table of a DuckDB file or of a database is named by `table`, or after a #: "clinic.duckdb#main.visits".
    """
    if not isinstance(data, str | os.PathLike):
        raise WrongType(
            f"a source is a CSV, Parquet or DuckDB file or an address, not a {type(data).__name__}; "
            'write it to a file first, for example with .to_parquet("visits.parquet"), and name that',
            name="source",
        )
    if format is not None:
        instance("format", format, str, "the name of a format")
    text = os.fspath(data)
    if not isinstance(text, str) or not text:
        raise EmptyInput("a source is the path of a file, such as visits.parquet", name="source", value=data)
    if (address := _address(f"{text}#{table}" if table else text)) is not None:
        if format not in (None, address.form):
            raise InvalidInput(f"this is an address of {address.form}, not a {format} file", name="format")
        return address
    place, inner = (text, table) if table else _split_inner_table(text, format)
    texts.path("source", place)
    found = _resolve_path(
        os.path.expanduser(place), Path(folder)
    )  # before the format: a mistyped name has none, either
    form = format_of(place, format)
    source = Source(form, found, _inner_table(place, form, inner))
    source_text(source, Path(folder))  # raises if the catalog cannot hold it
    return source


def describe(source: Source) -> list[SourceColumn]:
    """Return the columns of a source, read by a separate engine that never waits for one that runs queries."""
    engine = open_engine(engine_key(source), None, salt=0)
    try:
        return engine.describe(source)
    finally:
        engine.close()


def format_of(place: str, stated: str | None) -> str:
    """Return the format of a file: the stated one, or that of its suffix."""
    if stated is not None:
        if stated not in FORMS:
            raise InvalidInput(f"a format is one of {', '.join(FORMS)}, not {stated!r}", name="format", value=stated)
        return stated
    lowered = place.lower()
    for suffix, form in SUFFIXES.items():
        if lowered.endswith(suffix):
            return form
    raise InvalidInput(
        f"the name {addresses.redact(place)} has no known suffix; state the format: csv, parquet or duckdb",
        name="format",
        value=addresses.redact(place),
    )


def source_text(source: Source, folder: Path) -> str:
    """Return a source as its text in the catalog."""
    if "#" in source.table:
        raise InvalidInput(f"the name of a source table must not contain #: {source.table}", name="source")
    if source.form == "spark":
        return f"{source.place if '://' in source.place else _LOCAL + source.place}#{source.table}"
    if source.form == "postgres":
        return f"{source.place}#{source.table}"
    root, place = os.path.abspath(folder), source.place
    if place.startswith(root + os.sep):
        place = os.path.relpath(place, root)
    try:
        place.encode()
    except UnicodeEncodeError:
        raise InvalidInput("the path of a file must be valid UTF-8; rename the file", name="source") from None
    return f"{place}#{source.table}" if source.form == "duckdb" else place


def parse_source(text: str, format: str | None, folder: Path) -> Source:
    """Return the source of a text in the catalog, whether it exists or not."""
    if (address := _address(text)) is not None:
        return address
    place, inner = _split_inner_table(text, format)
    texts.path("source", place)
    form = format_of(place, format)
    return Source(form, os.path.join(os.path.abspath(folder), place), _inner_table(place, form, inner))


def _address(text: str) -> Source | None:
    """Return the source of an address, or None for a path; raise for an address that may hold a secret."""
    start = next((start for start in ADDRESSES if text.startswith(start)), None)
    if start is None:
        if "://" in text:
            known = ", ".join(sorted(start for start in ADDRESSES if start.endswith("://")))
            raise InvalidInput(
                f"a source is a file or an address that begins with {known}; copy the rows to a file first",
                name="source",
            )
        return None
    form = ADDRESSES[start]
    place, _, inner = text.partition("#")
    if form == "postgres":
        addresses.check_postgres(place)
    else:
        place = place.removeprefix(_LOCAL) if start == _LOCAL else place
        addresses.check_spark(place)
    if not inner:
        raise EmptyInput(f"{place} holds several tables; name one of them: {place}#public.visits", name="table")
    if form == "spark" and inner.startswith(_FILES):
        addresses.check_file_address(inner.removeprefix(_FILES))
    else:
        addresses.check_table_name(inner)
    return Source(form, place, inner)


def _split_inner_table(text: str, format: str | None) -> tuple[str, str]:
    """Split the path of a DuckDB file from the table in it."""
    place, mark, inner = text.rpartition("#")
    is_database = format == "duckdb" or (format is None and SUFFIXES.get(Path(place).suffix.lower()) == "duckdb")
    return (place, inner) if mark and is_database else (text, "")


def _inner_table(place: str, form: str, inner: str) -> str:
    if form != "duckdb":
        if inner:
            raise InvalidInput(
                f"only a DuckDB file has tables in it, and {addresses.redact(place)} is {form}", name="table"
            )
        return ""
    if not inner:
        shown = addresses.redact(place)
        raise EmptyInput(f"{shown} may hold several tables; name one of them: {shown}#visits", name="table")
    return inner


def _resolve_path(place: str, folder: Path) -> str:
    """Return the absolute path or glob, relative to the working directory or else to the catalog's folder."""
    candidates = [os.path.abspath(place), os.path.join(os.path.abspath(folder), place)]
    shown = addresses.redact(place)
    for candidate in dict.fromkeys(candidates):
        if os.path.isdir(candidate):
            raise SourceMissing(f"{shown} is a folder; name its files, for example {os.path.join(shown, '*.parquet')}")
        if os.path.exists(candidate) or (glob.has_magic(candidate) and glob.glob(candidate, recursive=True)):
            return os.path.normpath(candidate)
    where = "here" if candidates[0] == candidates[1] else f"here or in {folder}"
    raise SourceMissing(f"there is no file {shown} {where}")
