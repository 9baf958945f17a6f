"""The catalog of a folder: which tables there are, what is public about them, and where their rows lie.

    catalog = Catalog.open(Path("clinic"))          # clinic/catalog.toml, a file that people read and edit
    catalog.add(table, source)
    catalog.schema.table("visits"), catalog.source("visits")

Promise: the file is either whole and means what it says, or CatalogInvalid says where it does not; a change is in it
entirely or not at all, keeps comments, and is compared with what was meant before it is written. Nothing is ever read
off the data into it besides names and kinds of columns.
Not here: opening the rows (engines), budgets (the ledger).
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace as with_changes
from pathlib import Path
from typing import Final, TypeVar

from tacit.curator.catalog_file import HEADER, CatalogFile, Snapshot, table_text, with_table, without_table
from tacit.curator.catalog_reader import Contents, check_units, check_way, in_dataset, linked, ordered, read, through
from tacit.engines.protocol import Source
from tacit.privacy import texts
from tacit.privacy.errors import CatalogInvalid, InvalidInput, NameTaken
from tacit.privacy.tables import Limits, Schema, Table, fit_facts

T = TypeVar("T")


class Catalog:
    """The tables of one folder; what is read is what the file said when it was last read or written here."""

    def __init__(self, file: CatalogFile, snapshot: Snapshot) -> None:
        self._file: Final = file
        self._take(snapshot, self._read(snapshot.text))

    @classmethod
    def open(cls, folder: Path | str) -> Catalog:
        """Read the catalog of a folder; where there is no file, there is no table yet."""
        file = CatalogFile(Path(folder))
        return cls(file, file.read())

    @classmethod
    def create(cls, folder: Path | str) -> Catalog:
        """Write a catalog without tables, with a comment that shows how they are written; never over another one."""
        file = CatalogFile(Path(folder))
        with file.locked():
            snapshot = file.read()
            if snapshot.version is not None:
                raise NameTaken(f"{file.path} is there already", name="folder", value=str(folder))
            file.replace(HEADER, snapshot)
        return cls.open(folder)

    @property
    def folder(self) -> Path:
        """Where the catalog lies."""
        return self._file.folder

    @property
    def path(self) -> Path:
        """The file."""
        return self._file.path

    @property
    def text(self) -> str:
        """The file as it was last read."""
        return self._snapshot.text

    @property
    def tables(self) -> Mapping[str, Table]:
        """Tables by their names in lower case, in the order of the file."""
        return self._contents.tables

    @property
    def schema(self) -> Schema:
        """The tables that can be asked about."""
        return self._schema

    def source(self, name: str) -> Source:
        """Return where the rows of a table lie, as an absolute path."""
        return self._contents.sources[self.schema.table(name).name.lower()]

    def ordered(self) -> list[Table]:
        """Return the tables so that each stands after those through which it leads to its unit."""
        return ordered(self.tables)

    def statement(self, name: str) -> str:
        """Return a table as TOML."""
        return table_text(self.schema.table(name), self.source(name), self.folder)

    def add(self, table: Table, source: Source, *, replace: bool = False, with_linked: bool = False) -> None:
        """State a table; one that is there already is replaced only if that is asked for.

        Tables that are linked to it by foreign keys to their unit have its data set: one that has another is refused,
        or, `with_linked`, moved into it in the same change.
        """
        table = _writable(table)

        def change(text: str, contents: Contents) -> tuple[str, Contents]:
            key = table.name.lower()
            known = contents.tables.get(key)
            if known is not None and not replace:
                raise NameTaken(
                    f"a table {known.name} is in {self.path} already; replace it, or choose another name",
                    name="table",
                    value=table.name,
                )
            tables = {**contents.tables, key: table}
            for other in tables.values():
                check_way(other, tables)
            if known is not None and known.dataset != table.dataset:
                tables |= _moved(linked(table, tables), table, with_linked=with_linked)
            for other in ordered(tables):
                tables[other.name.lower()] = in_dataset(other, tables)
            check_units(tables)
            wanted = Contents(tables, {**contents.sources, key: source})
            text = with_table(text, tables[key], source, self.folder, known.name if known else None)
            for one in contents.tables.values():
                now = tables[one.name.lower()]
                if one.name.lower() != key and now != one:
                    text = with_table(text, now, contents.sources[one.name.lower()], self.folder, one.name)
            return text, wanted

        self._change(change)

    def remove(self, name: str) -> None:
        """Take a table out of the catalog; its rows and its budget stay as they are."""

        def change(text: str, contents: Contents) -> tuple[str, Contents]:
            known = Schema(contents.tables.values()).table(name)
            key = known.name.lower()
            for other in contents.tables.values():
                if any(step.target_table.lower() == key for step in through(other)):
                    raise InvalidInput(
                        f"{other.name} leads to its unit through {known.name}; remove {other.name} first", name="table"
                    )
            wanted = Contents(_without(contents.tables, key), _without(contents.sources, key))
            return without_table(text, known.name), wanted

        self._change(change)

    @classmethod
    def rewrite(cls, folder: Path | str, text: str, since: str) -> Catalog:
        """Put a text in the file's place, if it is a catalog and the file still holds `since`, valid or not."""
        file = CatalogFile(Path(folder))
        _contents(file, text)
        with file.locked():
            before = file.read()
            if before.text != since:
                raise NameTaken(f"{file.path} was changed by somebody else meanwhile; read it again", name="catalog")
            file.replace(text, before)
        return cls.open(folder)

    def reload(self) -> bool:
        """Read the file again if it has changed, and say whether it has; where it is invalid, nothing changes here."""
        if self._file.version() == self._snapshot.version:
            return False
        snapshot = self._file.read()
        self._take(snapshot, self._read(snapshot.text))
        return True

    def _change(self, change: Callable[[str, Contents], tuple[str, Contents]]) -> None:
        with self._file.locked():
            before = self._file.read()
            text, wanted = change(before.text, self._read(before.text))
            try:
                outcome = self._read(text)
            except CatalogInvalid:
                outcome = Contents({}, {})
            if (outcome.sources, _unordered(outcome)) != (wanted.sources, _unordered(wanted)):
                raise CatalogInvalid(
                    f"{self.path} is written in a way that only a person can change; edit the file itself: "
                    "one [tables.NAME] and one [tables.NAME.columns] for each table can be changed here"
                )
            self._file.replace(text, before)
            self._take(Snapshot(text, self._file.version()), outcome)

    def _read(self, text: str) -> Contents:
        return _contents(self._file, text)

    def _take(self, snapshot: Snapshot, contents: Contents) -> None:
        self._snapshot, self._contents, self._schema = snapshot, contents, Schema(contents.tables.values())


def _contents(file: CatalogFile, text: str) -> Contents:
    return read(text, folder=file.folder, file=file.path)


def _writable(table: Table) -> Table:
    """Return a table with its facts in the form of their kinds; refuse what could not be written down."""
    texts.name("the name of a table", table.name)
    texts.name("the name of a dataset", table.dataset)
    if not table.is_private and table.limits != Limits():
        raise InvalidInput(f"{table.name} is public: no unit in it can be limited; leave the limits out")
    columns = (with_changes(one, facts=fit_facts(one.name, one.kind, one.facts)) for one in table.columns)
    return with_changes(table, columns=tuple(columns))


def _moved(family: Iterable[Table], table: Table, *, with_linked: bool) -> dict[str, Table]:
    """Return linked tables in the data set of one of them; refuse to leave the others behind."""
    if not with_linked:
        others = [one.name for one in family if one.name != table.name and one.dataset != table.dataset]
        if not others or (through(table) and table.dataset == table.name):  # nothing is stated: it joins the others
            return {}
        raise CatalogInvalid(
            f"{table.name} is linked to {', '.join(others)} by foreign keys, so they have one budget; move them "
            f"together: tacit table edit {shlex.quote(table.name)} --dataset {shlex.quote(table.dataset)}",
            name="dataset",
            value=table.dataset,
        )
    return {one.name.lower(): with_changes(one, dataset=table.dataset) for one in family}


def _unordered(contents: Contents) -> dict[str, Table]:
    """Return tables whose columns stand in one order, for in a file that people edit they stand in theirs."""
    return {
        name: with_changes(table, columns=tuple(sorted(table.columns, key=lambda column: column.name)))
        for name, table in contents.tables.items()
    }


def _without(named: Mapping[str, T], key: str) -> dict[str, T]:
    return {name: value for name, value in named.items() if name != key}
