"""The data versions of the tables of a folder, in `versions.json`.

Promise: a version changes only by an act of the owner (`Curator.add_table`, `Curator.refresh`, or the refresh interval
of a server) that finds other rows or another catalog entry than the last one, and no version ever recurs: rows that are
restored after others were seen get a new one. Previews and queries read versions and no source, so neither their
answers nor their cost or duration reveal whether the rows have changed since.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from tacit.curator.locked_file import LockedFile
from tacit.engines.protocol import Source
from tacit.privacy import strict_json
from tacit.privacy.errors import CatalogInvalid, InvalidInput
from tacit.privacy.tables import Table

FILE_NAME: Final = "versions.json"


@dataclass(frozen=True, slots=True)
class DataVersion:
    """A version of a table's rows: its id, a digest of the catalog entry, and the fingerprint of the source."""

    id: str
    stated: str
    fingerprint: str

    def is_of(self, table: Table, source: Source) -> bool:
        """Return whether the version was made for this catalog entry."""
        return self.stated == _digest(table, source)


class DataVersions:
    """The versions of the tables of one folder, by name in lower case."""

    def __init__(self, folder: Path) -> None:
        self._file: Final = LockedFile(folder, FILE_NAME)
        self._snapshot = self._file.read()
        self._known = self._read(self._snapshot.text)

    def current(self) -> Mapping[str, DataVersion]:
        """Return the present versions."""
        if self._file.version() != self._snapshot.version:
            self._snapshot = self._file.read()
            self._known = self._read(self._snapshot.text)
        return self._known

    def advance(self, seen: Iterable[tuple[Table, Source, str]]) -> list[str]:
        """Give a new version to each table whose rows or catalog entry have changed, and return their names.

        `seen` holds tables with their sources and present fingerprints.
        """
        with self._file.locked():
            before = self._file.read()
            known = self._read(before.text)
            changed = {}
            for table, source, fingerprint in seen:
                name = table.name.lower()
                last = known.get(name)
                is_same = last is not None and last.fingerprint == fingerprint and last.is_of(table, source)
                if not is_same:
                    changed[name] = _next_version(last, table, source, fingerprint)
            if changed:
                self._file.replace(_text({**known, **changed}), before)
        self.current()
        return list(changed)

    def _read(self, text: str) -> dict[str, DataVersion]:
        try:
            found: Any = strict_json.loads(text) if text else {}
            return {
                str(name): DataVersion(_checked_id(one["id"]), str(one["stated"]), str(one["fingerprint"]))
                for name, one in found.items()
            }
        except (AttributeError, InvalidInput, KeyError, TypeError):
            raise CatalogInvalid(
                f"{self._file.path} is damaged; remove it and refresh every table (tacit table refresh)"
            ) from None


def _checked_id(version: str) -> str:
    if not re.fullmatch(r"[0-9]{1,15}-[0-9a-f]{16}", version):
        raise InvalidInput("invalid data version id")
    return version


def _digest(table: Table, source: Source) -> str:
    return hashlib.sha256(repr((replace(table, rows=None), source)).encode()).hexdigest()


def _next_version(before: DataVersion | None, table: Table, source: Source, fingerprint: str) -> DataVersion:
    """Return a version that never existed: numbered for people, with a part that is unique in copies of a folder."""
    number = 1 if before is None else int(before.id.partition("-")[0]) + 1
    return DataVersion(f"{number}-{secrets.token_hex(8)}", _digest(table, source), fingerprint)


def _text(versions: Mapping[str, DataVersion]) -> str:
    return json.dumps({name: asdict(one) for name, one in sorted(versions.items())}, indent=1) + "\n"
