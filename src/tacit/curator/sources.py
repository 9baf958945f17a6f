"""Where a table's rows are: which format a path stands for, and how the place is written in the catalog.

In the catalog a place is relative to its folder where it lies inside it, and absolute otherwise; for a DuckDB file the
table follows after a #. Everywhere else places are absolute.
Not here: reading any of it (engines).
"""

from __future__ import annotations

import glob
import os
from pathlib import Path
from typing import Final

from tacit.engines.protocol import Described, Source
from tacit.privacy.errors import EmptyInput, InvalidInput, SourceMissing, WrongType

FORMS: Final = ("csv", "parquet", "duckdb")
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
"""How the name of a file ends, and the format that is then assumed."""


def source_of(data: object, *, folder: Path | str, format: str | None = None, table: str = "") -> Source:
    """Return the source that a path or a glob stands for, looked for here and then in the catalog's folder.

    A table of a DuckDB file is named by `table`, or after a #: "clinic.duckdb#main.visits".
    """
    if not isinstance(data, str | os.PathLike):
        raise WrongType(
            f"rows come from a CSV, Parquet or DuckDB file, not from a {type(data).__name__}; "
            'write it to a file first, for example with .to_parquet("visits.parquet"), and name that',
            name="source",
        )
    text = os.fspath(data)
    if not isinstance(text, str) or not text:
        raise EmptyInput("a source is the path of a file, such as visits.parquet", name="source", value=data)
    if "://" in text:
        raise InvalidInput(f"rows are read from files, and {text} is an address; copy it here first", name="source")
    place, inner = (text, table) if table else _parted(text, format)
    form = format_of(place, format)
    source = Source(form, _found(os.path.expanduser(place), Path(folder)), _inner_table(place, form, inner))
    written(source, Path(folder))  # a place that the catalog could not hold is refused here
    return source


def describe(source: Source) -> list[Described]:
    """Return the columns of a source: their names, and the kinds that fit them.

    The engine works in a folder of its own for that, so it never waits for one that answers questions.
    """
    from tacit.engines import DuckDBEngine

    engine = DuckDBEngine(None, salt=0)
    try:
        return engine.describe(source)
    finally:
        engine.close()


def format_of(place: str, stated: str | None) -> str:
    """Return the format of a file: the stated one, or what its name suggests."""
    if stated is not None:
        if stated not in FORMS:
            raise InvalidInput(f"a format is one of {', '.join(FORMS)}, not {stated!r}", name="format", value=stated)
        return stated
    lowered = place.lower()
    for suffix, form in SUFFIXES.items():
        if lowered.endswith(suffix):
            return form
    raise InvalidInput(
        f"the name {place} does not say what the file holds; say its format: {', '.join(FORMS[:-1])} or {FORMS[-1]}",
        name="format",
        value=place,
    )


def written(source: Source, folder: Path) -> str:
    """Return a place as the catalog writes it."""
    if "#" in source.table:
        raise InvalidInput(f"a table with # in its name cannot be named: {source.table}", name="source")
    root, place = os.path.abspath(folder), source.place
    if place.startswith(root + os.sep):
        place = os.path.relpath(place, root)
    try:
        place.encode()
    except UnicodeEncodeError:
        raise InvalidInput("the path of the rows must be text in UTF-8; rename the file", name="source") from None
    return f"{place}#{source.table}" if source.form == "duckdb" else place


def read(text: str, format: str | None, folder: Path) -> Source:
    """Return the source that the catalog's file names; whether it is there is not looked at."""
    place, inner = _parted(text, format)
    form = format_of(place, format)
    return Source(form, os.path.join(os.path.abspath(folder), place), _inner_table(place, form, inner))


def _parted(text: str, format: str | None) -> tuple[str, str]:
    """Part a DuckDB file from the table in it."""
    place, mark, inner = text.rpartition("#")
    is_database = format == "duckdb" or (format is None and SUFFIXES.get(Path(place).suffix.lower()) == "duckdb")
    return (place, inner) if mark and is_database else (text, "")


def _inner_table(place: str, form: str, inner: str) -> str:
    if form != "duckdb":
        if inner:
            raise InvalidInput(f"only a DuckDB file has tables in it, and {place} is {form}", name="table", value=inner)
        return ""
    if not inner:
        raise EmptyInput(f"{place} may hold several tables; name one of them: {place}#visits", name="table")
    return inner


def _found(place: str, folder: Path) -> str:
    """Return the absolute path or glob, from here if something is there, otherwise from the catalog's folder."""
    candidates = [os.path.abspath(place), os.path.join(os.path.abspath(folder), place)]
    for candidate in dict.fromkeys(candidates):
        if os.path.isdir(candidate):
            raise SourceMissing(f"{place} is a folder; name its files, for example {os.path.join(place, '*.parquet')}")
        if os.path.exists(candidate) or (glob.has_magic(candidate) and glob.glob(candidate, recursive=True)):
            return os.path.normpath(candidate)
    where = "here" if candidates[0] == candidates[1] else f"here or in {folder}"
    raise SourceMissing(f"there is no file {place} {where}")
