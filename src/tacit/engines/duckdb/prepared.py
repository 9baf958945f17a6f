"""Rows stored for queries: one immutable DuckDB file per table and version, numbered where each row is a unit.

Rows that get a number each, so that every one of them is a unit by itself.

Promise: the written file holds each row of the source once, with the declared columns and a number that no other row
has. Numbers say nothing: which row has which is by chance.

Promise: a file that is there is complete, and only its owner can read it. It is made aside, flushed to the disk and
renamed, and never changed after that; a process that dies while it makes one leaves only something that the next one
sweeps away. So any number of processes can read the same files without locks, and two that make the same one at once
make it twice and keep one.

A version is in a file's name; files of other versions of a table are removed when a new one is there, but for the one
that was shown before it: if the new rows are not taken in the end, those are shown again. A process that still has a
removed file open keeps it until it lets go.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Final

from tacit.engines.duckdb import relations
from tacit.engines.duckdb.connections import connect
from tacit.engines.duckdb.csv_files import Recoder
from tacit.engines.duckdb.execution import Runs
from tacit.engines.duckdb.sources import check_files, find, opened
from tacit.engines.protocol import Source
from tacit.engines.quoting import digest, literal, quoted
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
        check_files(connection, source, recoder)
        rows = relations.declared(find(connection, source, recoder), table)
        sql = f"SELECT row_number() OVER () AS {quoted(number)}, {named} FROM ({rows.sql})"
        copy = f"COPY ({sql}) TO {literal(str(path))} (FORMAT parquet)"
        with opened(connection, rows.attached):
            Runs().run(connection, partial(connection.execute, copy), failure=failure)
        return Source("parquet", str(path))
    finally:
        connection.close()
        recoder.clear()


FOLDER: Final = "prepared"
SPILL: Final = "spill"
"""Where work goes that does not fit into memory, in a folder a process and engine."""
SUFFIX: Final = ".duckdb"
TABLE: Final = "stored"
_ASIDE: Final = re.compile(r"\.aside-(\d+)-\d+(\.wal)?$")
_NUMBERS: Final = count()


class PreparedStore:
    """The prepared files of one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder: Final = folder / FOLDER
        self.spill: Final = folder / SPILL

    def path(self, name: str, version: str) -> Path:
        """Return where the rows of a table in a version are, or would be."""
        return self.folder / f"{_stem(name)}-{version[:32]}{SUFFIX}"

    def make(self, name: str, version: str, fill: Callable[[str], None], kept: Path | None = None) -> Path:
        """Make the file of a table: `fill` is given the path of an empty place for it, and closes what it writes.

        Files of other versions are removed, except `kept`.
        """
        path = self.path(name, version)
        self._ready()
        aside = f"{path}.aside-{os.getpid()}-{next(_NUMBERS)}"
        try:
            fill(aside)
            os.chmod(aside, 0o600)
            _flush(aside)
            os.replace(aside, path)
            _flush(str(self.folder))
        except OSError:
            raise EngineFailed(
                f"the prepared rows of {name} cannot be written in {self.folder}; is the disk full?"
            ) from None
        finally:
            for leftover in (aside, f"{aside}.wal"):
                with suppress(OSError):
                    os.unlink(leftover)
        self.forget(name, but=(path, kept))
        return path

    def forget(self, name: str, but: Sequence[Path | None] = ()) -> None:
        """Remove the files and marks of a table, except some."""
        for path in self.folder.glob(f"{_stem(name)}-*"):
            if path not in but and not _ASIDE.search(path.name):
                with suppress(OSError):
                    path.unlink()

    def sweep(self) -> None:
        """Remove what processes that are no more have left: files half made, and rows that did not fit into memory.

        The folder for such rows is made before DuckDB needs it, so that only its owner can read them.
        """
        with suppress(OSError):
            self.spill.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.spill.chmod(0o700)
        for path in self.folder.glob("*.aside-*"):
            found = _ASIDE.search(path.name)
            if found and not _alive(int(found[1])):
                with suppress(OSError):
                    path.unlink()
        for path in self.spill.glob("*-*"):
            owner = path.name.partition("-")[0]
            if owner.isdigit() and not _alive(int(owner)):
                shutil.rmtree(path, ignore_errors=True)

    def mark(self, name: str, fact: str) -> None:
        """Remember that a fact was found to hold; it is named by a digest of all that it depends on."""
        self._ready()
        with suppress(OSError):  # it will be looked at again
            self._mark(name, fact).touch()

    def is_marked(self, name: str, fact: str) -> bool:
        """Return whether a fact was found to hold."""
        return self._mark(name, fact).exists()

    def _mark(self, name: str, fact: str) -> Path:
        return self.folder / f"{_stem(name)}-{fact[:32]}.holds"

    def _ready(self) -> None:
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.folder.chmod(0o700)
        except OSError:
            raise EngineFailed(
                f"{self.folder} cannot be made; check that {self.folder.parent} can be written"
            ) from None


def _stem(name: str) -> str:
    return digest(name.lower())[:16]


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _flush(path: str) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
