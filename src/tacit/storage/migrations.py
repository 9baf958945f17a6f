"""Numbered migrations, each of which changes a database's tables to the next version.

A migration is a file NNNN_name.sql, applied in one transaction and recorded with its checksum in the table
`migrations`. Files that were applied never change. A database with more migrations than this program knows is refused.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tacit.storage.connections import ErrorProfile

TABLE: Final = (
    "CREATE TABLE IF NOT EXISTS migrations "
    "(version INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at_us BIGINT NOT NULL)"
)
APPLIED: Final = "SELECT version, checksum FROM migrations"
NOTE: Final = "INSERT INTO migrations (version, name, checksum, applied_at_us) VALUES (?, ?, ?, ?)"
_FILE: Final = re.compile(r"(?P<version>\d{4})_(?P<name>\w+)\.sql")


@dataclass(frozen=True, slots=True)
class Migration:
    """One step to the next version."""

    version: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        """The SHA-256 of its SQL."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


def load(folder: Path) -> tuple[Migration, ...]:
    """Read every migration of a folder, in order."""
    found = []
    for path in sorted(folder.glob("*.sql")):
        match = _FILE.fullmatch(path.name)
        assert match, f"{path.name} is not named like 0001_initial.sql"
        found.append(Migration(int(match["version"]), match["name"], path.read_text(encoding="utf-8")))
    assert [step.version for step in found] == list(range(1, len(found) + 1)), "migrations are numbered without gaps"
    return tuple(found)


def pending(
    known: tuple[Migration, ...], applied: Mapping[int, str], where: str, profile: ErrorProfile
) -> tuple[Migration, ...]:
    """Return the migrations to apply; raise if the database is newer, or its applied migrations differ."""
    newest = max(applied, default=0)
    if newest > len(known):
        raise profile.too_new(
            f"{where} has version {newest} and this tacit knows versions up to {len(known)}; use a newer tacit"
        )
    for step in known[:newest]:
        if applied.get(step.version) != step.checksum:
            raise profile.corrupt(
                f"{where} was made by another migration {step.version:04} than the one known here", differs="migrations"
            )
    return known[newest:]
