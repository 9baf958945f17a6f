"""Copies of files with a column that numbers the rows, for tables in which every row is a unit."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from urllib.parse import quote

from tacit.engines.frames import FOLDER as TABLES
from tacit.engines.protocol import Source
from tacit.privacy.errors import InvalidInput
from tacit.privacy.tables import Table

FILES: Final = ("csv", "parquet", "duckdb")
"""The forms of sources whose rows can be numbered."""


def write_numbered_rows(source: Source, table: Table, path: Path) -> Source:
    """Write the columns of a table to a new Parquet file, with distinct row numbers in its unit column."""
    from tacit.engines.duckdb.prepared import write_numbered

    if source.form not in FILES or table.unit is None:
        raise InvalidInput("rows can be numbered in files only; state the column of the unit instead", name="each_row")
    number = table.unit.column
    columns = tuple(replace(one, facts=None, nullable=True) for one in table.columns if one.name != number)
    return write_numbered(source, Table(table.name, columns), number, path)


@contextmanager
def numbered_copy(folder: Path, table: Table, source: Source) -> Iterator[Source]:
    """Write a numbered copy of a file to the folder's own tables, and yield it; it is removed if the block raises."""
    tables = folder.absolute() / TABLES
    tables.mkdir(mode=0o700, parents=True, exist_ok=True)
    tables.chmod(0o700)
    path = tables / f"{quote(table.name, safe=' ')}-{secrets.token_hex(4)}.parquet"
    with TemporaryDirectory(prefix=".numbering-", dir=tables) as aside:
        written = Path(write_numbered_rows(source, table, Path(aside) / "rows.parquet").place)
        written.chmod(0o600)
        written.replace(path)
    try:
        yield Source("parquet", str(path))
    except BaseException:
        path.unlink(missing_ok=True)
        raise
