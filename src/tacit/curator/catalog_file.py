"""The catalog's TOML file: read whole, edited in place, replaced whole or not at all.

Promise: a change is written aside, synced and renamed over the file, with the file's permissions; a new file is
readable by its owner only. Whoever dies before the rename leaves the old file, and one who dies after it has changed
it. Changes of several processes follow one another (a lock file beside it), so none is lost; an editor that saves in
between is noticed.

The ledger lies in the same folder, so a place that cannot be written is reported as the ledger reports it.

Tables as TOML that people read, and changes of the file that leave everything else as it was.

A new table is added at the end. A changed one is changed key by key, in its own section of the file, so that comments
and the order of lines stay; what is new comes last. A comment right above a header belongs to that header
and goes when its table goes.
Whether a change came out as it was meant is for the catalog to see, which reads the outcome before it writes it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shlex
import time
import tomllib
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from functools import reduce
from pathlib import Path
from typing import Any, Final

import tomlkit
from tomlkit.exceptions import TOMLKitError

from tacit.curator.catalog_reader import LIMITS, Keys, Section, sections
from tacit.curator.table_sources import written
from tacit.engines.protocol import Source
from tacit.privacy.bounds import Bounds, Categories
from tacit.privacy.errors import (
    CatalogInvalid,
    InvalidInput,
    LedgerBusy,
    LedgerFull,
    LedgerReadOnly,
    LedgerUnavailable,
    TacitError,
    TooLarge,
)
from tacit.privacy.tables import Column, Table
from tacit.privacy.units import Unit

FILE_NAME: Final = "catalog.toml"
ASIDE_NAME: Final = f".{FILE_NAME}.new"
FILE_BYTES_MAX: Final = 64 * 2**20
LOCK_TIMEOUT_S: Final = 10.0
LOCK_PAUSE_S: Final = 0.01


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the file held at a moment, and by what a later change of it is noticed; no file is an empty text."""

    text: str
    version: tuple[int, int, int] | None


class CatalogFile:
    """`catalog.toml`, or another small text, in a folder."""

    def __init__(self, folder: Path, name: str = FILE_NAME) -> None:
        self.folder: Final = folder
        self.path: Final = folder / name

    def version(self) -> tuple[int, int, int] | None:
        """Return what changes with the file, or None if there is no file."""
        try:
            facts = self.path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise unavailable(self.path, error) from None
        return facts.st_mtime_ns, facts.st_size, facts.st_ino

    def read(self) -> Snapshot:
        """Return what the file holds now."""
        version = self.version()  # taken first: a change while the file is read is then noticed later
        if version is None:
            return Snapshot("", None)
        try:
            with self.path.open("rb") as file:
                data = file.read(FILE_BYTES_MAX + 1)
        except OSError as error:
            raise unavailable(self.path, error) from None
        if len(data) > FILE_BYTES_MAX:
            raise CatalogInvalid(f"{self.path} is larger than {FILE_BYTES_MAX:,} bytes; a catalog is a small text")
        try:
            return Snapshot(data.decode("utf-8-sig"), version)
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise CatalogInvalid(f"{self.path}, line {line}: save the file as UTF-8", value=line) from None

    @contextmanager
    def locked(self, timeout_s: float = LOCK_TIMEOUT_S) -> Iterator[None]:
        """Be the only one who changes the file, until the end of the block."""
        try:
            descriptor = os.open(self.folder / f".{self.path.stem}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise unavailable(self.folder, error) from None
        try:
            deadline_s = time.monotonic() + timeout_s
            while not _lock(descriptor):
                if time.monotonic() >= deadline_s:
                    raise LedgerBusy(f"another program has been changing {self.path} for {timeout_s:g} s; try again")
                time.sleep(LOCK_PAUSE_S)
            yield
        finally:
            os.close(descriptor)

    def replace(self, text: str, since: Snapshot) -> None:
        """Write the file anew, if it still is what was read; for the holder of the lock."""
        data = text.encode()
        if len(data) > FILE_BYTES_MAX:
            raise TooLarge(f"a catalog takes at most {FILE_BYTES_MAX:,} bytes", name="catalog")
        target = Path(os.path.realpath(self.path))
        aside = target.with_name(f".{self.path.name}.new")
        try:
            _write(aside, data, like=target)
            if self.version() != since.version:
                aside.unlink()
                raise LedgerBusy(f"{self.path} was changed by another program just now; try again")
            os.replace(aside, target)
            _sync_folder(target.parent)
        except OSError as error:
            raise unavailable(self.path, error) from None


def make_private(folder: Path) -> None:
    """Make a folder that only its owner can open, if it is missing; one that is there stays as it is."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def warning_if_open(folder: Path) -> str:
    """Return what to say of a folder that others can open, with the command that changes it; otherwise nothing."""
    try:
        mode = folder.stat().st_mode & 0o777
    except OSError:
        return ""
    if not mode & 0o077:
        return ""
    return (
        f"others on this machine can open the folder {folder} (its mode is {mode:o}), where rows, answers and the "
        f"ledger lie; unless that is meant, run: chmod 700 {shlex.quote(str(folder))}"
    )


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _write(aside: Path, data: bytes, *, like: Path) -> None:
    aside.unlink(missing_ok=True)  # left by one who died; its mode may be another
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        if like.exists():
            os.fchmod(file.fileno(), like.stat().st_mode & 0o7777)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def unavailable(path: Path, error: OSError) -> TacitError:
    """Return what the file system says of a curator's file, as an error of the tree."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return LedgerFull(f"no space is left for {path}; what it held is unchanged")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return LedgerReadOnly(f"{path} cannot be read or written by this user; change its permissions")
    return LedgerUnavailable(f"{path} cannot be used: {error.strerror or error}")


ALIGNED_MAX: Final = 24
"""Names of columns up to this length are padded, so that the statements stand below one another."""

HEADER: Final = """\
# What is public about these tables, and whom they protect. Everything here is a statement by the owner of the data,
# made without looking at it: a bound that was read off the data would itself give somebody away.
# You may edit this file; `tacit table show` checks it. A table looks like this:
#
#   [tables.visits]
#   source = "visits.parquet"     # relative to this folder, or absolute; in a DuckDB file: "clinic.duckdb#visits"
#   format = "parquet"            # csv, parquet or duckdb; with csv = [ ... ] for how CSV files are written
#   unit = "patient_id"           # whom the guarantee protects; of a table about nobody, write public = true instead
#   dataset = "clinic"            # the budget that pays; without it, one with the name of the table
#   rows_per_unit = 20            # of each unit, so many rows are counted at most; leave it out for no limit
#
#   [tables.visits.columns]
#   patient_id = { kind = "integer", nullable = false }         # kinds: boolean, integer, real, text, date, time
#   age        = { kind = "integer", bounds = [0, 120] }        # what lies outside is moved to the nearer bound
#   sex        = { kind = "text", categories = ["F", "M"] }     # other values count as none of them
#
# A table that has no column of its own for the unit leads to it through others:
#
#   unit = { column = "patient_id", through = [ { column = "visit_id", table = "visits", target = "id" } ] }
"""

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)


def table_text(table: Table, source: Source, folder: Path) -> str:
    """Return a table as it stands in the file."""
    facts, columns = _facts(table, source, folder), {column.name: column_text(column) for column in table.columns}
    header = f"tables.{key_text(table.name)}"
    width = max((len(key) for key in map(key_text, columns) if len(key) <= ALIGNED_MAX), default=0)
    return "\n".join(
        [
            f"[{header}]",
            *(f"{key} = {value}" for key, value in facts.items()),
            "",
            f"[{header}.columns]",
            *(f"{key_text(name):{width}} = {value}" for name, value in columns.items()),
            "",
        ]
    )


def column_text(column: Column) -> str:
    """Return what is stated of a column, as an inline table."""
    parts = [f"kind = {value_text(column.kind.value)}"]
    if isinstance(column.facts, Bounds):
        parts.append(f"bounds = {value_text([column.facts.lower, column.facts.upper])}")
    elif isinstance(column.facts, Categories):
        parts.append(f"categories = {value_text(list(column.facts.values))}")
    if not column.nullable:
        parts.append("nullable = false")
    return f"{{ {', '.join(parts)} }}"


def key_text(name: str) -> str:
    """Return a name as a key of TOML."""
    return name if _BARE.fullmatch(name) else value_text(name)


def value_text(value: Any) -> str:
    """Return a value as TOML; characters that do not show, or change what others look like, are written as escapes."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{"".join(map(_character, value))}"'
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Fraction):
        return f'"{value}"'
    if isinstance(value, list):
        return f"[{', '.join(map(value_text, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key_text(key)} = {value_text(one)}' for key, one in value.items())} }}"
    return "{ missing = true }" if value is None else repr(value)


def with_table(text: str, table: Table, source: Source, folder: Path, known: str | None = None) -> str:
    """Return the file with one table more, or with other statements about one that is there as `known`."""
    stated = table_text(table, source, folder)
    if known is not None:
        keys, parts = ("tables", known), sections(text)
        own = [part for part in parts if part.path[:2] == keys]
        changed = _changed(own, stated) if known == table.name else None
        if changed is not None:
            return "".join(changed.get(part.path, part.text) if part in own else part.text for part in parts)
        text = without_table(text, known)
    start = text if text.strip() else HEADER
    return f"{start.rstrip()}\n\n{stated}"


def without_table(text: str, name: str) -> str:
    """Return the file without the statements about a table."""
    parts = sections(text)
    kept = [part.text for part in parts if part.path[:2] != ("tables", name)]
    if len(kept) < len(parts):
        return "".join(kept).rstrip() + "\n"
    document = tomlkit.parse(text)  # the table was written inside of another one
    try:
        del document["tables"][name]
    except (TOMLKitError, LookupError):
        return text
    return tomlkit.dumps(document)


def _facts(table: Table, source: Source, folder: Path) -> dict[str, str]:
    """Return what is stated of a table as a whole, each value as it is written."""
    stated: dict[str, Any] = {"source": written(source, folder), "format": source.form}
    texts = {key: value_text(value) for key, value in stated.items()}
    if source.csv:
        texts["csv"] = value_text([form.to_dict() for form in source.csv])
    texts |= {"public": "true"} if table.unit is None else {"unit": _unit_text(table.unit)}
    if table.dataset != table.name:
        texts["dataset"] = value_text(table.dataset)
    texts |= {key: value_text(value) for key in LIMITS if (value := getattr(table.limits, key)) is not None}
    if table.identified_by:
        texts["identified_by"] = value_text(list(table.identified_by))
    if table.rows is not None:
        texts["rows"] = value_text(table.rows)
    return texts


def _unit_text(unit: Unit) -> str:
    if unit.is_direct:
        return value_text(unit.column)
    steps = ", ".join(
        f"{{ column = {value_text(key.column)}, table = {value_text(key.target_table)}, "
        f"target = {value_text(key.target_column)} }}"
        for key in unit.through
    )
    return f"{{ column = {value_text(unit.column)}, through = [ {steps} ] }}"


def _changed(own: list[Section], stated: str) -> dict[Keys, str] | None:
    """Return the sections of a table with what is stated now, or None where they are not laid out as ours are."""
    fresh = sections(stated)[1:]
    if [part.path for part in own] != [part.path for part in fresh]:
        return None
    try:
        return {part.path: _merged(part, new) for part, new in zip(own, fresh, strict=True)}
    except (TOMLKitError, LookupError):
        return None


def _merged(part: Section, new: Section) -> str:
    """Change what differs in one section, key by key."""
    before, wanted = (_inside(tomllib.loads(one.text), part.path) for one in (part, new))
    changed = [key for key in wanted if repr(before.get(key)) != repr(wanted[key])]  # repr tells 1 from true and 1.0
    if not changed and before.keys() == wanted.keys():
        return part.text
    lines = {key: line for line in new.text.splitlines() for key in tomllib.loads(line) if not line.startswith("[")}
    document = tomlkit.parse(part.text)
    items = _inside(document, part.path)
    for key in before.keys() - wanted.keys():
        del items[key]
    for key in changed:
        items[key] = tomlkit.parse(f"{lines[key]}\n")[key]
    return tomlkit.dumps(document)


def _inside(document: Any, path: Keys) -> Any:
    return reduce(lambda inside, key: inside[key], path, document)


def _character(character: str) -> str:
    if character in ('"', "\\"):
        return f"\\{character}"
    category = unicodedata.category(character)
    if category == "Cs":
        raise InvalidInput("names and categories must be text that can be written as UTF-8", value=character)
    if character == " " or category[0] not in "CZ":
        return character
    return f"\\u{ord(character):04X}" if ord(character) < 0x10000 else f"\\U{ord(character):08X}"
