"""Audit records of catalog changes.

The action of a record is `catalog.add`, `catalog.replace`, `catalog.move` (to another data set), `catalog.remove`, or
`catalog.refresh` if only the version of the rows changed, followed by two digests of the table's catalog entry and row
version, before and after, as BEFORE>AFTER; `none` stands for no table. `catalog.warn` follows a change after which two
budgets cover the same rows.

The catalog is a file and the audit a database: the record is written after the change, so a process that is killed in
between leaves a change without a record.
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
class _TableState:
    """A table's catalog entry and the version of its rows, at a moment."""

    resource: Resource
    statement: str
    version: str

    @property
    def digest(self) -> str:
        return hashlib.sha256(f"{self.version}\n{self.statement}".encode()).hexdigest()[:DIGITS]


@contextmanager
def record_changes(
    access: Access, curator: Curator, names: Iterable[str] | None = None, *, by: str = "", address: str = ""
) -> Iterator[list[str]]:
    """Record what the block changes in the catalog entries of the named tables, or of all.

    Yield a list to which the block appends warnings. Naming the tables keeps changes of others out of the record.
    """
    before, warnings = _states(curator), list[str]()
    try:
        yield warnings
    finally:
        _write_records(access, curator, before, names, warnings, by, address)


def _write_records(
    access: Access,
    curator: Curator,
    before: Mapping[str, _TableState],
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
            access.audit.record(by, action, resource, DONE, address)
            if warnings:
                access.audit.record(by, "catalog.warn", resource, DONE, address)


def _states(curator: Curator) -> dict[str, _TableState]:
    try:
        catalog, versions = curator.catalog, curator.engines.versions()
    except CatalogInvalid:  # it is being repaired
        return {}
    return {
        key: _TableState(Resource(table.dataset, table.name), catalog.table_text(table.name), versions.get(key, NONE))
        for key, table in catalog.tables.items()
    }


def _action(old: _TableState | None, new: _TableState | None) -> str:
    if old is None or new is None:
        return "catalog.add" if old is None else "catalog.remove"
    if old.statement == new.statement:
        return "catalog.refresh"
    return "catalog.replace" if old.resource.dataset == new.resource.dataset else "catalog.move"
