"""Which files tables are and were registered with, and whose budgets know of the same rows.

Files are compared as files, not as texts: globs are expanded, symbolic links resolved, and two names of one file are
found by its device and inode. A table of a DuckDB file, of PostgreSQL or of Spark is compared by its place and name.

`sources.json` keeps every registration of a folder, also of tables that were removed since: under which name and data
set, by which paths, and by which inode, size and time of change, so that a file that was moved is known again. A copy
of a file, and the same frame written down a second time, are other files and are not noticed.
"""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from tacit.curator.catalog import Catalog
from tacit.curator.catalog_file import CatalogFile
from tacit.engines.frames import FOLDER as FRAMES
from tacit.engines.protocol import Source
from tacit.ledger import HEAD_FILE, Ledger, LedgerBudget
from tacit.privacy import strict_json
from tacit.privacy.errors import CatalogInvalid, InvalidInput
from tacit.privacy.figures import at_most
from tacit.privacy.tables import Table

FILE_NAME: Final = "sources.json"
OWN_FOLDERS: Final = (FRAMES, "prepared", "spill")
OWN_FILES: Final = (
    *("ledger.sqlite*", HEAD_FILE, "server.sqlite*", "server.toml"),
    *("catalog.toml", "versions.json", FILE_NAME, "salt*", ".*"),
)
"""What a folder holds for itself; rows that somebody put there have other names."""

MARKS_MAX: Final = 10_000
"""How many marks of the files of one table are kept at most."""
_STAMP: Final = "file "
_SPARK_FILES: Final = "parquet:"
_POSTGRES_PORT: Final = 5432


@dataclass(frozen=True, slots=True)
class Registered:
    """A registration: a table, the data set that paid (none for a public table), and marks of its files."""

    table: str
    dataset: str
    inner: str
    marks: tuple[str, ...]
    shared_with: tuple[str, ...] = ()
    """The data sets that had the same rows, or the same table, when it was made."""


def files_of(source: Source) -> list[str]:
    """Return the files that a source stands for now; none for a table of a server."""
    if _is_at_server(source):
        return []
    place = source.table.removeprefix(_SPARK_FILES) if source.form == "spark" else source.place
    place = place.removeprefix("file://")
    is_one = os.path.exists(place) or not glob.has_magic(place)
    found = [place] if is_one else sorted(glob.glob(place, recursive=True, include_hidden=True))
    return [file for one in found for file in _below(one)]


def _below(path: str) -> list[str]:
    """Return a file, or all files below a folder, which Spark reads as one table; a folder without any stays itself."""
    if not os.path.isdir(path):
        return [path]
    return [os.path.join(folder, name) for folder, _, names in os.walk(path) for name in sorted(names)] or [path]


def share_rows(one: Source, other: Source) -> bool:
    """Return whether two sources have a file, or a table of a database, in common now."""
    if _are_other_tables(_inner(one), _inner(other)):
        return False
    mine, others = _inodes(files_of(one)), _inodes(files_of(other))
    return not mine.isdisjoint(others) or not _names(one).isdisjoint(_names(other))


def is_own_file(path: str, folder: Path) -> bool:
    """Return whether a file is one of those that a curator's folder holds for itself, under any name."""
    resolved, home = Path(os.path.realpath(path)), Path(os.path.realpath(folder))
    if any(resolved.is_relative_to(home / name) for name in OWN_FOLDERS):
        return True
    own = [one for pattern in OWN_FILES for one in home.glob(pattern)]
    own += [one for name in OWN_FOLDERS for one in (home / name).rglob("*")]
    return not _inodes([path]).isdisjoint(_inodes(map(str, own)))


class SourceHistory:
    """The registrations of one folder."""

    def __init__(self, folder: Path) -> None:
        self._file: Final = CatalogFile(folder, FILE_NAME)

    def all(self) -> list[Registered]:
        """Return every registration, oldest first."""
        return self._read(self._file.read().text)

    def has(self, table: Table) -> bool:
        """Return whether a table was registered before in its data set."""
        return any((one.table, one.dataset) == (table.name.lower(), _payer(table)) for one in self.all())

    def add(self, table: Table, source: Source, shared_with: Iterable[str] = ()) -> None:
        """Keep a registration; files that the same table of the same data set has anew are added to its own."""
        made = Registered(table.name.lower(), _payer(table), _inner(source), _marks(source), tuple(shared_with))
        with self._file.locked():
            before = self._file.read()
            known = {(one.table, one.dataset, one.inner): one for one in self._read(before.text)}
            key = (made.table, made.dataset, made.inner)
            if (last := known.get(key)) is not None:
                made = replace(
                    last,
                    marks=_together(last.marks, made.marks),
                    shared_with=tuple(dict.fromkeys((*last.shared_with, *made.shared_with))),
                )
            if made != last:
                kept = [asdict(one) for one in {**known, key: made}.values()]
                self._file.replace(json.dumps(kept, indent=1) + "\n", before)

    def _read(self, text: str) -> list[Registered]:
        try:
            found: Any = strict_json.loads(text) if text else []
            return [
                Registered(
                    *(str(one["table"]), str(one["dataset"]), str(one["inner"])),
                    tuple(map(str, one["marks"])),
                    tuple(map(str, one["shared_with"])),
                )
                for one in found
            ]
        except (AttributeError, InvalidInput, KeyError, TypeError):
            raise CatalogInvalid(
                f"{self._file.path} is not what tacit wrote; restore it from a copy, or remove it and with it the "
                "memory of which files were registered before"
            ) from None


def registered_with(source: Source, history: Iterable[Registered]) -> list[Registered]:
    """Return the registrations that had a file, or a table of a database, in common with a source."""
    inner, marks = _inner(source), frozenset(_marks(source))
    return [one for one in history if not (_are_other_tables(inner, one.inner) or marks.isdisjoint(one.marks))]


@dataclass(frozen=True, slots=True)
class Shared:
    """A data set that has, or had, the rows of a table of another one; without a name, public tables."""

    table: Table
    dataset: str
    names: tuple[str, ...]
    """The tables by which it has them."""
    is_now: bool
    """Whether questions can still be asked about one of these."""


def shared_budgets(
    catalog: Catalog, history: Iterable[Registered], table: Table, before: Mapping[str, Table]
) -> list[Shared]:
    """Return the data sets other than its own that have, or had, the rows of a table.

    `before` are the tables of the catalog as it was: a table that has left a data set takes its people along, whatever
    its files are.
    """
    source, payer = catalog.source(table.name), _payer(table)
    now: dict[str, list[str]] = {}
    for other in catalog.tables.values():
        if _payer(other) != payer and share_rows(source, catalog.source(other.name)):
            now.setdefault(_payer(other), []).append(other.name)
    found = {dataset: list(names) for dataset, names in now.items()}
    for one in registered_with(source, history):
        if one.dataset != payer:
            found.setdefault(one.dataset, []).append(one.table)
    old = before.get(table.name.lower(), table)
    if old.is_private and table.is_private and old.dataset != payer:
        found.setdefault(old.dataset, []).append(old.name)
    return [Shared(table, dataset, tuple(names), dataset in now) for dataset, names in found.items()]


def newly_shared(catalog: Catalog, history: Sequence[Registered], table: Table) -> list[str]:
    """Return the data sets, or public tables, that share rows with a table and of which no registration of either knew.

    A table that was never registered here has no such rows: it was stated by hand, and is warned of.
    """
    payer = _payer(table)
    own = [one for one in history if (one.table, one.dataset) == (table.name.lower(), payer)]
    told = {name for one in own for name in one.shared_with}
    told |= {one.dataset for one in history if payer in one.shared_with}
    found = shared_budgets(catalog, history, table, {}) if own else []
    return [one.dataset or ", ".join(one.names) for one in found if one.dataset not in told]


def sentences(ledger: Ledger, found: Iterable[Shared]) -> list[str]:
    """Return what their owner should know of budgets that do not know of one another, a sentence for each pair."""
    together: dict[tuple[str, str], list[str]] = {}
    said = []
    for one in found:
        if not one.table.is_private:
            said.append(
                f"{one.table.name} is public, and its rows are or were those of {', '.join(dict.fromkeys(one.names))} "
                f"in the data set {one.dataset}: no budget protects people who are in both"
            )
        elif not one.dataset:
            said.append(
                f"{one.table.name} is private, and its rows are or were public as {', '.join(dict.fromkeys(one.names))}"
                ": no budget protects people who are in both"
            )
        elif one.is_now or _spent(ledger, one.dataset):
            together.setdefault((one.dataset, one.table.dataset), []).append(one.table.name)
    for (other, dataset), names in together.items():
        spent = _spent(ledger, other)
        what = f"was spent from the budget of {other} ({spent})" if spent else f"is spent from the budget of {other}"
        said.append(
            f"{', '.join(names)}: what {what} does not count against the budget of {dataset}; people in these tables "
            "may lose both"
        )
    return said


def _spent(ledger: Ledger, dataset: str) -> str:
    """Return what was spent from the budget of a data set, for people; an empty text where nothing was."""
    spent = [LedgerBudget(ledger, scope).spent() for scope in ledger.scopes(dataset)]
    most = max(spent, key=lambda cost: (cost.epsilon, cost.delta), default=None)  # that of the whole, or an epoch
    if most is None or not (most.epsilon or most.delta):
        return ""
    return f"epsilon {at_most(most.epsilon)}, delta {at_most(most.delta)}"


def _is_at_server(source: Source) -> bool:
    return source.form == "postgres" or (source.form == "spark" and not source.table.startswith(_SPARK_FILES))


def _payer(table: Table) -> str:
    return table.dataset if table.is_private else ""


def _inner(source: Source) -> str:
    """Return the name of a table in its database, in one spelling; empty for files."""
    if source.form == "spark" and not _is_at_server(source):
        return ""
    name = source.table.replace('"', "").lower()
    default = {"duckdb": "main.", "postgres": "public."}.get(source.form, "")
    return name if not name or "." in name else default + name


def _are_other_tables(one: str, other: str) -> bool:
    return bool(one and other and one != other)


def _inodes(paths: Iterable[str]) -> set[tuple[int, int]]:
    return {(facts.st_dev, facts.st_ino) for _, facts in _stats(paths)}


def _stats(paths: Iterable[str]) -> Iterator[tuple[str, os.stat_result]]:
    for path in paths:
        try:
            yield path, os.stat(path)
        except (OSError, ValueError):
            continue


def _names(source: Source) -> set[str]:
    """Return by which names a source is found: resolved paths, or the address of a database."""
    if _is_at_server(source):
        return {f"{source.form} {_server(source.place)}"}
    return {f"path {os.path.realpath(one)}" for one in files_of(source)}


def _server(place: str) -> str:
    """Return the address of a server without the user, and with the port that is meant if none is written."""
    if "://" not in place:
        return place
    parts = urlsplit(place)
    port = f":{parts.port or _POSTGRES_PORT}" if parts.scheme.startswith("postgres") else f":{parts.port}"
    return f"{(parts.hostname or '').lower()}{port}{parts.path}"


def _together(known: Iterable[str], new: Iterable[str]) -> tuple[str, ...]:
    """Return marks of a table's files, the newest of each file, and no more than MARKS_MAX."""
    kept = {one.rsplit(" ", 2)[0] if one.startswith(_STAMP) else one: one for one in (*known, *new)}
    return tuple(kept.values())[-MARKS_MAX:]


def _marks(source: Source) -> tuple[str, ...]:
    """Return by what the files of a source are known later: names, and what a file keeps when it is moved."""
    stamps = {
        f"{_STAMP}{facts.st_dev} {facts.st_ino} {facts.st_size} {facts.st_mtime_ns}"
        for _, facts in _stats(files_of(source))
    }
    return tuple(sorted(_names(source) | stamps))
