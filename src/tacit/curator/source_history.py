"""The history of registered sources, and budgets that cover the same rows.

Files are compared by identity: globs are expanded, symbolic links resolved, and hard links found by device and inode;
paths of Spark are read as Spark reads them (`engines.spark.file_paths`). Files of a store are compared by their
address, and a table of a DuckDB file, of PostgreSQL or of Spark by its address and name.

`sources.json` keeps every registration of a folder, also of tables that were removed: table, data set, paths, and
inode, size and modification time, so that a moved file is recognized. A copy of a file, and the same frame written a
second time, are different files and are not recognized.
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
from tacit.curator.locked_file import LockedFile
from tacit.engines.frames import FOLDER as FRAMES
from tacit.engines.protocol import Source
from tacit.engines.spark import file_paths
from tacit.ledger import HEAD_FILE, Ledger, LedgerBudget
from tacit.privacy import strict_json
from tacit.privacy.arguments import instance, instances, mapping
from tacit.privacy.errors import CatalogInvalid, InvalidInput
from tacit.privacy.figures import at_most
from tacit.privacy.tables import Table

FILE_NAME: Final = "sources.json"
OWN_FOLDERS: Final = (FRAMES, "models", "prepared", "spill")
OWN_FILES: Final = (
    *("ledger.sqlite*", HEAD_FILE, "server.sqlite*", "server.toml"),
    *("catalog.toml", "versions.json", FILE_NAME, "salt*", ".*"),
)
"""Files of a folder that tacit writes itself; files of rows have other names."""

MARKS_MAX: Final = 10_000
"""Marks of the files of one table that are kept."""
_STAMP: Final = "file "
_POSTGRES_PORT: Final = 5432


@dataclass(frozen=True, slots=True)
class RegistrationRecord:
    """A registration: a table, its data set (empty for a public table), and marks of its files."""

    table: str
    dataset: str
    inner: str
    marks: tuple[str, ...]
    shared_with: tuple[str, ...] = ()
    """The data sets that had the same rows, or the same table, at the time."""


def files_of(source: Source) -> list[str]:
    """Return the present files of a source; none for a table of a server, or files of a store."""
    if _is_at_server(source):
        return []
    if source.form == "spark":
        path = file_paths.local_path(source.table)
        found = [] if path is None else file_paths.match_files(path) or ([] if glob.has_magic(path) else [path])
        return [file for one in found for file in _below(one)]
    place = source.place
    is_one = os.path.exists(place) or not glob.has_magic(place)
    found = [place] if is_one else sorted(glob.glob(place, recursive=True, include_hidden=True))
    return [file for one in found for file in _below(one)]


def _below(path: str) -> list[str]:
    """Return a file itself, or all files below a folder, which Spark reads as one table; an empty folder itself."""
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
    """Return whether a path is, under any name, a file that tacit writes in a curator's folder."""
    resolved, home = Path(os.path.realpath(path)), Path(os.path.realpath(folder))
    if any(resolved.is_relative_to(home / name) for name in OWN_FOLDERS):
        return True
    own = [one for pattern in OWN_FILES for one in home.glob(pattern)]
    own += [one for name in OWN_FOLDERS for one in (home / name).rglob("*")]
    return not _inodes([path]).isdisjoint(_inodes(map(str, own)))


class SourceHistory:
    """The registrations of one folder, in `sources.json`."""

    def __init__(self, folder: Path) -> None:
        self._file: Final = LockedFile(folder, FILE_NAME)

    def all(self) -> list[RegistrationRecord]:
        """Return every registration, oldest first."""
        return self._read(self._file.read().text)

    def has(self, table: Table) -> bool:
        """Return whether a table was registered in its data set before."""
        return any((one.table, one.dataset) == (table.name.lower(), _charged_dataset(table)) for one in self.all())

    def add(self, table: Table, source: Source, shared_with: Iterable[str] = ()) -> None:
        """Add a registration, or the new files of one that is known."""
        made = RegistrationRecord(
            table.name.lower(), _charged_dataset(table), _inner(source), _marks(source), tuple(shared_with)
        )
        with self._file.locked():
            before = self._file.read()
            known = {(one.table, one.dataset, one.inner): one for one in self._read(before.text)}
            key = (made.table, made.dataset, made.inner)
            if (last := known.get(key)) is not None:
                made = replace(
                    last,
                    marks=_merge_marks(last.marks, made.marks),
                    shared_with=tuple(dict.fromkeys((*last.shared_with, *made.shared_with))),
                )
            if made != last:
                kept = [asdict(one) for one in {**known, key: made}.values()]
                self._file.replace(json.dumps(kept, indent=1) + "\n", before)

    def _read(self, text: str) -> list[RegistrationRecord]:
        try:
            found: Any = strict_json.loads(text) if text else []
            return [
                RegistrationRecord(
                    *(str(one["table"]), str(one["dataset"]), str(one["inner"])),
                    tuple(map(str, one["marks"])),
                    tuple(map(str, one["shared_with"])),
                )
                for one in found
            ]
        except (AttributeError, InvalidInput, KeyError, TypeError):
            raise CatalogInvalid(
                f"{self._file.path} is damaged; restore it from a backup, or remove it and with it the history of "
                "registered files"
            ) from None


def registrations_of(source: Source, history: Iterable[RegistrationRecord]) -> list[RegistrationRecord]:
    """Return the registrations that had a file, or a table of a database, in common with a source."""
    inner, marks = _inner(source), frozenset(_marks(source))
    return [one for one in history if not (_are_other_tables(inner, one.inner) or marks.isdisjoint(one.marks))]


@dataclass(frozen=True, slots=True)
class SharedRows:
    """A data set that has, or had, the rows of a table of another one; an empty name stands for public tables."""

    table: Table
    dataset: str
    names: tuple[str, ...]
    """The tables of that data set with these rows."""
    is_now: bool
    """Whether one of these tables is still in the catalog."""


def shared_budgets(
    catalog: Catalog,
    history: Iterable[RegistrationRecord],
    table: Table,
    before: Mapping[str, Table],
    source: Source | None = None,
) -> list[SharedRows]:
    """Return the other data sets that have, or had, the rows of a table.

    `before` holds the previous tables of the catalog: a table that is moved to another data set takes its rows along,
    whatever its files are. `source` replaces the source of the catalog for rows that were copied.
    """
    source, payer = source or catalog.source(table.name), _charged_dataset(table)
    now: dict[str, list[str]] = {}
    for other in catalog.tables.values():
        if _charged_dataset(other) != payer and share_rows(source, catalog.source(other.name)):
            now.setdefault(_charged_dataset(other), []).append(other.name)
    found = {dataset: list(names) for dataset, names in now.items()}
    for one in registrations_of(source, history):
        if one.dataset != payer:
            found.setdefault(one.dataset, []).append(one.table)
            if _is_copied(catalog, one):
                now.setdefault(one.dataset, []).append(one.table)
    old = before.get(table.name.lower(), table)
    if old.is_private and table.is_private and old.dataset != payer:
        found.setdefault(old.dataset, []).append(old.name)
    return [SharedRows(table, dataset, tuple(names), dataset in now) for dataset, names in found.items()]


def _is_copied(catalog: Catalog, record: RegistrationRecord) -> bool:
    """Return whether a table is still in the catalog with rows that were copied into the folder."""
    table = catalog.tables.get(record.table)
    if table is None or _charged_dataset(table) != record.dataset:
        return False
    return Path(catalog.source(table.name).place).parent == catalog.folder.absolute() / FRAMES


def newly_shared(catalog: Catalog, history: Sequence[RegistrationRecord], table: Table) -> list[str]:
    """Return the data sets, or public tables, that share rows with a table and did not when either was registered.

    A table that was added to the file by hand has no registration; it is warned of instead.
    """
    payer = _charged_dataset(table)
    own = [one for one in history if (one.table, one.dataset) == (table.name.lower(), payer)]
    warned = {name for one in own for name in one.shared_with}
    warned |= {one.dataset for one in history if payer in one.shared_with}
    found = shared_budgets(catalog, history, table, {}) if own else []
    return [one.dataset or ", ".join(one.names) for one in found if one.dataset not in warned]


def require_unshared(catalog: Catalog, history: Sequence[RegistrationRecord], names: Iterable[str]) -> None:
    """Raise InvalidInput for rows of tables that a changed link or path has made those of another data set."""
    for table in [catalog.schema.table(name) for name in names]:
        if others := newly_shared(catalog, history, table):
            raise InvalidInput(
                f"the rows of {table.name} are now also those of {others[0]}; register it again to confirm",
                name="table",
                value=table.name,
            )


def shared_rows_warnings(ledger: Ledger, found: Iterable[SharedRows]) -> list[str]:
    """Return a warning for each pair of budgets that cover the same rows."""
    by_pair: dict[tuple[str, str], list[str]] = {}
    warnings = []
    for one in found:
        if not one.table.is_private:
            warnings.append(
                f"{one.table.name} is public, and its rows are or were those of {', '.join(dict.fromkeys(one.names))} "
                f"in the data set {one.dataset}: no budget protects people who are in both"
            )
        elif not one.dataset:
            warnings.append(
                f"{one.table.name} is private, and its rows are or were public as {', '.join(dict.fromkeys(one.names))}"
                ": no budget protects people who are in both"
            )
        elif one.is_now or _spent(ledger, one.dataset):
            by_pair.setdefault((one.dataset, one.table.dataset), []).append(one.table.name)
    for (other, dataset), names in by_pair.items():
        spent = _spent(ledger, other)
        what = f"was spent from the budget of {other} ({spent})" if spent else f"is spent from the budget of {other}"
        warnings.append(
            f"{', '.join(names)}: what {what} does not count against the budget of {dataset}; the costs add up for "
            "people in both"
        )
    return warnings


def _spent(ledger: Ledger, dataset: str) -> str:
    """Return the cost spent from the budget of a data set as text; empty if nothing was spent."""
    spent = [LedgerBudget(ledger, scope).spent() for scope in ledger.scopes(dataset)]
    most = max(spent, key=lambda cost: (cost.epsilon, cost.delta), default=None)  # of the data set or of an epoch
    if most is None or not (most.epsilon or most.delta):
        return ""
    return f"epsilon {at_most(most.epsilon)}, delta {at_most(most.delta)}"


def _is_at_server(source: Source) -> bool:
    return source.form == "postgres" or (source.form == "spark" and not source.table.startswith(file_paths.FILES))


def _charged_dataset(table: Table) -> str:
    return table.dataset if table.is_private else ""


def _inner(source: Source) -> str:
    """Return the normalized name of a table in its database; empty for files."""
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
    """Return the resolved paths of a source, the address of its store, or that of its database."""
    if _is_at_server(source):
        return {f"{source.form} {_server(source.place)}"}
    if source.form == "spark" and file_paths.local_path(source.table) is None:
        return {f"store {file_paths.normalize_address(source.table)}"}
    return {f"path {os.path.realpath(one)}" for one in files_of(source)}


def _server(place: str) -> str:
    """Return the normalized address of a server: without the user, with the default port."""
    if "://" not in place:
        return place
    parts = urlsplit(place)
    port = f":{parts.port or _POSTGRES_PORT}" if parts.scheme.startswith("postgres") else f":{parts.port}"
    return f"{(parts.hostname or '').lower()}{port}{parts.path}"


def _merge_marks(known: Iterable[str], new: Iterable[str]) -> tuple[str, ...]:
    """Return the newest mark of each file, at most MARKS_MAX."""
    kept = {one.rsplit(" ", 2)[0] if one.startswith(_STAMP) else one: one for one in (*known, *new)}
    return tuple(kept.values())[-MARKS_MAX:]


def _marks(source: Source) -> tuple[str, ...]:
    """Return what identifies the files of a source later: names, and stamps that a moved file keeps."""
    stamps = {
        f"{_STAMP}{facts.st_dev} {facts.st_ino} {facts.st_size} {facts.st_mtime_ns}"
        for _, facts in _stats(files_of(source))
    }
    return tuple(sorted(_names(source) | stamps))


def record_sources(
    catalog: Catalog,
    ledger: Ledger,
    folder: Path,
    names: Iterable[str],
    before: Mapping[str, Table],
    copied_from: Source | None,
) -> list[str]:
    """Add the present files of tables to the history, and return warnings of budgets that cover the same rows.

    The tables are the named ones and all whose data set is another than in `before`. `copied_from` is the source that
    the rows of the named tables were copied from, if they were.
    """
    named = {name.lower() for name in instances("names", names, str, "a list of names of tables")}
    if copied_from is not None:
        instance("copied_from", copied_from, Source, "a Source")
    for one in mapping("before", before, "the tables by their names").values():
        instance("before", one, Table, "the tables by their names")
    history = SourceHistory(folder)
    keys = named | {key for key, one in catalog.tables.items() if before.get(key, one).dataset != one.dataset}
    tables = [table for key, table in catalog.tables.items() if key in keys]
    known = history.all()
    origins = {key: copied_from if copied_from is not None and key in named else catalog.source(key) for key in keys}
    found = [
        one for table in tables for one in shared_budgets(catalog, known, table, before, origins[table.name.lower()])
    ]
    for table in tables:
        for source in dict.fromkeys((catalog.source(table.name), origins[table.name.lower()])):
            history.add(table, source, [one.dataset for one in found if one.table == table])
    return shared_rows_warnings(ledger, found)
