"""The catalog of a folder: its tables, the public facts about them, and the sources of their rows.

    catalog = Catalog.open(Path("clinic"))          # clinic/catalog.toml, a file that people read and edit
    catalog.add(table, source)
    catalog.schema.table("visits"), catalog.source("visits")

Promise: an invalid file raises CatalogInvalid with the line; a change is atomic, keeps comments, and is compared with
what was intended before it is written. Besides names and kinds of columns, nothing is derived from the data.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace as with_changes
from pathlib import Path
from typing import Final, TypeVar

from tacit.curator.catalog_reader import Contents, read
from tacit.curator.catalog_writer import HEADER, table_text, with_table, without_table
from tacit.curator.locked_file import LockedFile, Snapshot
from tacit.curator.table_links import (
    check_foreign_keys,
    check_unit_kinds,
    linked_tables,
    parents_first,
    unit_keys,
    with_dataset,
)
from tacit.engines.protocol import Source
from tacit.privacy import texts
from tacit.privacy.errors import CatalogInvalid, InvalidInput, NameTaken
from tacit.privacy.tables import Limits, Schema, Table, fit_facts

FILE_NAME: Final = "catalog.toml"

T = TypeVar("T")


class Catalog:
    """The tables of one folder, as the file was when this object last read or wrote it."""

    def __init__(self, file: LockedFile, snapshot: Snapshot) -> None:
        self._file: Final = file
        self._set(snapshot, self._read(snapshot.text))

    @classmethod
    def open(cls, folder: Path | str) -> Catalog:
        """Read the catalog of a folder; without a file it is empty."""
        file = LockedFile(Path(folder), FILE_NAME)
        return cls(file, file.read())

    @classmethod
    def create(cls, folder: Path | str) -> Catalog:
        """Write a catalog without tables, with a comment that explains the format; raise NameTaken if there is one."""
        file = LockedFile(Path(folder), FILE_NAME)
        with file.locked():
            snapshot = file.read()
            if snapshot.version is not None:
                raise NameTaken(f"{file.path} exists already", name="folder", value=str(folder))
            file.replace(HEADER, snapshot)
        return cls.open(folder)

    @property
    def folder(self) -> Path:
        """The folder of the catalog."""
        return self._file.folder

    @property
    def path(self) -> Path:
        """The path of the file."""
        return self._file.path

    @property
    def text(self) -> str:
        """The text of the file as it was last read."""
        return self._snapshot.text

    @property
    def tables(self) -> Mapping[str, Table]:
        """Tables by name in lower case, in the order of the file."""
        return self._contents.tables

    @property
    def schema(self) -> Schema:
        """The tables as the schema of queries."""
        return self._schema

    def source(self, name: str) -> Source:
        """Return the source of a table's rows, with an absolute path."""
        return self._contents.sources[self.schema.table(name).name.lower()]

    def parents_first(self) -> list[Table]:
        """Return the tables sorted so that each follows those through which it leads to its unit."""
        return parents_first(self.tables)

    def table_text(self, name: str) -> str:
        """Return a table as TOML."""
        return table_text(self.schema.table(name), self.source(name), self.folder)

    def add(self, table: Table, source: Source, *, replace: bool = False, with_linked: bool = False) -> None:
        """Add a table, or `replace` an existing one.

        Tables that foreign keys link to it share its data set: a table with another data set is refused or, with
        `with_linked`, moved along in the same change.
        """
        table = _normalized(table)

        def change(text: str, contents: Contents) -> tuple[str, Contents]:
            key = table.name.lower()
            known = contents.tables.get(key)
            if known is not None and not replace:
                raise NameTaken(
                    f"there is a table {known.name} in {self.path} already; replace it with replace=True, or choose "
                    "another name",
                    name="table",
                    value=table.name,
                )
            tables = {**contents.tables, key: table}
            for other in tables.values():
                check_foreign_keys(other, tables)
            if known is not None and known.dataset != table.dataset:
                tables |= _move_linked(linked_tables(table, tables), table, with_linked=with_linked)
            for other in parents_first(tables):
                tables[other.name.lower()] = with_dataset(other, tables)
            check_unit_kinds(tables)
            wanted = Contents(tables, {**contents.sources, key: source})
            text = with_table(text, tables[key], source, self.folder, known.name if known else None)
            for one in contents.tables.values():
                now = tables[one.name.lower()]
                if one.name.lower() != key and now != one:
                    text = with_table(text, now, contents.sources[one.name.lower()], self.folder, one.name)
            return text, wanted

        self._change(change)

    def remove(self, name: str) -> None:
        """Remove a table from the catalog; its rows and its budget stay."""

        def change(text: str, contents: Contents) -> tuple[str, Contents]:
            known = Schema(contents.tables.values()).table(name)
            key = known.name.lower()
            for other in contents.tables.values():
                if any(step.target_table.lower() == key for step in unit_keys(other)):
                    raise InvalidInput(
                        f"{other.name} leads to its unit through {known.name}; remove {other.name} first", name="table"
                    )
            wanted = Contents(_without(contents.tables, key), _without(contents.sources, key))
            return without_table(text, known.name), wanted

        self._change(change)

    @classmethod
    def rewrite(cls, folder: Path | str, text: str, since: str) -> Catalog:
        """Replace the text of the file by a valid one, unless the file, valid or not, no longer holds `since`."""
        file = LockedFile(Path(folder), FILE_NAME)
        _contents(file, text)
        with file.locked():
            before = file.read()
            if before.text != since:
                raise NameTaken(f"{file.path} was changed meanwhile; read it again", name="catalog")
            file.replace(text, before)
        return cls.open(folder)

    def reload(self) -> bool:
        """Read the file again if it has changed, and return whether it has; an invalid file changes nothing here."""
        if self._file.version() == self._snapshot.version:
            return False
        snapshot = self._file.read()
        self._set(snapshot, self._read(snapshot.text))
        return True

    def _change(self, change: Callable[[str, Contents], tuple[str, Contents]]) -> None:
        with self._file.locked():
            before = self._file.read()
            text, wanted = change(before.text, self._read(before.text))
            try:
                outcome = self._read(text)
            except CatalogInvalid:
                outcome = Contents({}, {})
            if (outcome.sources, _sorted_columns(outcome)) != (wanted.sources, _sorted_columns(wanted)):
                raise CatalogInvalid(
                    f"{self.path} has a layout that cannot be edited automatically; edit the file itself, or give each "
                    "table one [tables.NAME] and one [tables.NAME.columns]"
                )
            self._file.replace(text, before)
            self._set(Snapshot(text, self._file.version()), outcome)

    def _read(self, text: str) -> Contents:
        return _contents(self._file, text)

    def _set(self, snapshot: Snapshot, contents: Contents) -> None:
        self._snapshot, self._contents, self._schema = snapshot, contents, Schema(contents.tables.values())


def _contents(file: LockedFile, text: str) -> Contents:
    return read(text, folder=file.folder, file=file.path)


def _normalized(table: Table) -> Table:
    """Return a table with its facts converted to the kinds of their columns; raise for what is not writable."""
    texts.name("the name of a table", table.name)
    texts.name("the name of a dataset", table.dataset)
    if not table.is_private and table.limits != Limits():
        raise InvalidInput(f"{table.name} is public and has no units to limit; leave the limits out")
    columns = (with_changes(one, facts=fit_facts(one.name, one.kind, one.facts)) for one in table.columns)
    return with_changes(table, columns=tuple(columns))


def _move_linked(family: Iterable[Table], table: Table, *, with_linked: bool) -> dict[str, Table]:
    """Return linked tables moved to the data set of `table`; raise if they would have to be moved and may not."""
    if not with_linked:
        others = [one.name for one in family if one.name != table.name and one.dataset != table.dataset]
        if not others or (
            unit_keys(table) and table.dataset == table.name
        ):  # no data set is stated: it joins the others
            return {}
        raise CatalogInvalid(
            f"{table.name} is linked to {', '.join(others)} by foreign keys, so they share one budget; move them "
            f"together: tacit table edit {shlex.quote(table.name)} --dataset {shlex.quote(table.dataset)}",
            name="dataset",
            value=table.dataset,
        )
    return {one.name.lower(): with_changes(one, dataset=table.dataset) for one in family}


def _sorted_columns(contents: Contents) -> dict[str, Table]:
    """Return tables with sorted columns, for comparisons regardless of their order in the file."""
    return {
        name: with_changes(table, columns=tuple(sorted(table.columns, key=lambda column: column.name)))
        for name, table in contents.tables.items()
    }


def _without(named: Mapping[str, T], key: str) -> dict[str, T]:
    return {name: value for name, value in named.items() if name != key}
