"""Rows that get a number each, so that every one of them is a unit by itself.

Promise: the written file holds each row of the source once, with the declared columns and a number that no other row
has. Numbers say nothing: which row has which is by chance.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
from pathlib import Path

from tacit.engines.duckdb import relations
from tacit.engines.duckdb.connecting import connect
from tacit.engines.duckdb.recoding import Recoder
from tacit.engines.duckdb.running import Runs
from tacit.engines.duckdb.sources import find, opened
from tacit.engines.names import literal, quoted
from tacit.engines.protocol import Source
from tacit.privacy.errors import EngineFailed
from tacit.privacy.tables import Table


def numbered(source: Source, table: Table, number: str, path: Path) -> Source:
    """Write the columns of `table`, and the column `number`, to a new Parquet file."""
    spill = path.parent / "spill"
    connection, recoder = connect({"temp_directory": str(spill)}), Recoder(spill / f"{os.getpid()}-{path.name}")
    named = ", ".join(f"c{index} AS {quoted(one.name)}" for index, one in enumerate(table.columns))
    failure = (
        f"the rows of {source.place} could not be numbered; check that its files are complete, and that the disk of "
        f"{path.parent} suffices"
    )
    try:
        for parallel in (True, False):  # texts over several lines can be read by one thread only
            rows = relations.declared(find(connection, source, recoder, parallel=parallel), table)
            sql = f"SELECT row_number() OVER () AS {quoted(number)}, {named} FROM ({rows.sql})"
            copy = f"COPY ({sql}) TO {literal(str(path))} (FORMAT parquet)"
            with opened(connection, rows.attached), suppress(EngineFailed):
                Runs().run(connection, partial(connection.execute, copy), failure=failure)
                return Source("parquet", str(path))
    finally:
        connection.close()
        recoder.clear()
    raise EngineFailed(failure)
