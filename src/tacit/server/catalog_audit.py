"""Changes of the catalog in the audit: who changed which table, from where, and what was stated before and after.

A record's action is `catalog.add`, `catalog.replace`, `catalog.move` (to another data set), `catalog.remove`, or
`catalog.refresh` where only the version of the rows is another, followed by two digests of what the catalog stated of
the table and of the version of its rows, with > between them. `none` stands for a table that was not there, or is no
longer. `catalog.warn` follows a change after which two budgets have the same rows.

The catalog is a file and the audit a database: a record is written after its change, and one who is killed in between
leaves a change without a record.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from tacit.curator import Curator
from tacit.privacy.errors import CatalogInvalid
from tacit.server.access import DONE, Access, Resource

NONE: Final = "none"
DIGITS: Final = 16


@dataclass(frozen=True, slots=True)
class _State:
    """A table at a moment: what the catalog states of it, and the version of its rows."""

    resource: Resource
    statement: str
    version: str

    @property
    def digest(self) -> str:
        return hashlib.sha256(f"{self.version}\n{self.statement}".encode()).hexdigest()[:DIGITS]


@contextmanager
def noted(
    access: Access, curator: Curator, names: Iterable[str] | None = None, *, by: str = "", address: str = ""
) -> Iterator[list[str]]:
    """Record what the block changes in the catalog: of the named tables, or, where nobody else is at work, of all.

    Yields the list to which the block adds what was warned of.
    """
    before, warnings = _states(curator), list[str]()
    try:
        yield warnings
    finally:
        _note_changes(access, curator, before, names, warnings, by, address)


def _note_changes(
    access: Access,
    curator: Curator,
    before: Mapping[str, _State],
    names: Iterable[str] | None,
    warnings: Sequence[str],
    by: str,
    address: str,
) -> None:
    after = _states(curator)
    keys = [*{**before, **after}] if names is None else [name.lower() for name in names]
    for key in keys:
        old, new = before.get(key), after.get(key)
        if old != new:
            action = f"{_action(old, new)} {old.digest if old else NONE}>{new.digest if new else NONE}"
            resource = (new or before[key]).resource
            access.note(by, action, resource, DONE, address)
            if warnings:
                access.note(by, "catalog.warn", resource, DONE, address)


def _states(curator: Curator) -> dict[str, _State]:
    try:
        catalog, versions = curator.catalog, curator.engines.versions()
    except CatalogInvalid:  # somebody is about to mend it
        return {}
    return {
        key: _State(Resource(table.dataset, table.name), catalog.statement(table.name), versions.get(key, NONE))
        for key, table in catalog.tables.items()
    }


def _action(old: _State | None, new: _State | None) -> str:
    if old is None or new is None:
        return "catalog.add" if old is None else "catalog.remove"
    if old.statement == new.statement:
        return "catalog.refresh"
    return "catalog.replace" if old.resource.dataset == new.resource.dataset else "catalog.move"
