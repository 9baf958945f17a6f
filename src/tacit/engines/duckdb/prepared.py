"""Rows stored for queries: one immutable DuckDB file per table and version; files whose rows are numbered.

Promise of `PreparedStore`: a file that exists is complete, and only its owner can read it. It is written under another
name, flushed to disk, renamed, and never changed after that; what a process leaves that dies while it writes is removed
by the next one. So any number of processes can read the same files without locks, and two that write the same one at
once write it twice and keep one. The version is in a file's name; files of other versions of a table are removed when a
new one is complete, except the one that was shown before it: if the new rows are refused, those are shown again. A
process that has a removed file open keeps it until it closes it.

Promise of `write_numbered`: the file holds each row of the source once, with the declared columns and a number that no
other row has, so that each row can be a unit. Numbers are random and independent of one another, so that a row that is
there or not changes no other row's number.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Final

from tacit.engines.duckdb import relations
from tacit.engines.duckdb.connections import connect
from tacit.engines.duckdb.csv_files import Utf8Copies
from tacit.engines.duckdb.execution import DuckDBStatements
from tacit.engines.duckdb.sources import attached, check_files, inspect_source
from tacit.engines.protocol import Source
from tacit.engines.quoting import digest, literal, quoted
from tacit.privacy.errors import EngineFailed, InvalidInput
from tacit.privacy.tables import Table
from tacit.storage.files import sync

FOLDER: Final = "prepared"
SPILL: Final = "spill"
"""Where rows are written that do not fit into memory, in one folder per process and engine."""
SUFFIX: Final = ".duckdb"
TABLE: Final = "stored"
NUMBER_DIGITS: Final = 15
"""Hexadecimal digits of the random number of a row, so that it fits into 63 bits."""
NUMBERING_ATTEMPTS: Final = 8
"""How often rows are numbered until no two have the same number, which happens to 0.5 % of the files with 10^8 rows and
35 % of those with 10^9."""
_ASIDE: Final = re.compile(r"\.aside-(\d+)-\d+(\.wal)?$")
_NUMBERS: Final = count()


class PreparedStore:
    """The prepared files of one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder: Final = folder / FOLDER
        self.spill: Final = folder / SPILL

    def path(self, name: str, version: str) -> Path:
        """Return the path of the file for a table in a version, which need not exist."""
        return self.folder / f"{_stem(name)}-{version[:32]}{SUFFIX}"

    def make(self, name: str, version: str, fill: Callable[[str], None], kept: Path | None = None) -> Path:
        """Write the file of a table: `fill` writes and closes it at the path that it is given.

        Files of other versions are removed, except `kept`.
        """
        path = self.path(name, version)
        self._make_folder()
        aside = f"{path}.aside-{os.getpid()}-{next(_NUMBERS)}"
        try:
            fill(aside)
            os.chmod(aside, 0o600)
            sync(Path(aside))
            os.replace(aside, path)
            sync(self.folder)
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
        """Remove incomplete files, and rows spilled to disk, of processes that have ended.

        The folder for spilled rows is made before DuckDB needs it, so that only its owner can read it.
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
        """Record that a check has passed; `fact` is a digest of all that its outcome depends on."""
        self._make_folder()
        with suppress(OSError):  # it will be checked again
            self._mark(name, fact).touch()

    def is_marked(self, name: str, fact: str) -> bool:
        """Return whether a check has passed before."""
        return self._mark(name, fact).exists()

    def _mark(self, name: str, fact: str) -> Path:
        return self.folder / f"{_stem(name)}-{fact[:32]}.holds"

    def _make_folder(self) -> None:
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.folder.chmod(0o700)
        except OSError:
            raise EngineFailed(
                f"{self.folder} cannot be made; check that {self.folder.parent} can be written"
            ) from None


def write_numbered(source: Source, table: Table, number: str, path: Path) -> Source:
    """Write the columns of `table`, and the column `number`, to a new Parquet file, and return it as a source.

    Numbers are random: the first digits of a digest of a secret and the row's position, the secret new for each file.
    If they were positions, removing one row would change the numbers, and with them the answers, of all rows after it.
    Raise InvalidInput if no attempt gives distinct numbers.
    """
    spill = path.parent / "spill"
    connection, copies = connect({"temp_directory": str(spill)}), Utf8Copies(spill / f"{os.getpid()}-{path.name}")
    named = ", ".join(f"c{index} AS {quoted(one.name)}" for index, one in enumerate(table.columns))
    failure = (
        f"the rows of {source.place} could not be numbered; check that its files are complete, and that the disk of "
        f"{path.parent} suffices"
    )
    try:
        check_files(connection, source, copies)
        rows = relations.select_declared(inspect_source(connection, source, copies), table)
        check = f"SELECT COUNT(*) = COUNT(DISTINCT {quoted(number)}) FROM {literal(str(path))}"
        for _ in range(NUMBERING_ATTEMPTS):
            secret = literal(secrets.token_hex(32))
            digits = f"left(sha256({secret} || row_number() OVER ()), {NUMBER_DIGITS})"
            sql = f"SELECT CAST('0x' || {digits} AS BIGINT) AS {quoted(number)}, {named} FROM ({rows.sql})"
            copy = f"COPY ({sql}) TO {literal(str(path))} (FORMAT parquet)"
            with attached(connection, rows.attached):
                DuckDBStatements().run(connection, partial(connection.execute, copy), failure=failure)
            found = DuckDBStatements().run(connection, lambda: connection.execute(check).fetchall(), failure=failure)
            if found == [(True,)]:
                return Source("parquet", str(path))
        raise InvalidInput(
            f"{source.place} has too many rows for distinct random numbers; state the column of its unit instead",
            name="each_row",
        )
    finally:
        connection.close()
        copies.clear()


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
