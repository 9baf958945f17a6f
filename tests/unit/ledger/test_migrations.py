"""Migrations: every version leads to the next, applied once, and a newer one is refused."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tacit.ledger import Ledger
from tacit.ledger.stores import SqliteStore, migrate
from tacit.privacy import events
from tacit.privacy.errors import LedgerCorrupt, LedgerTooNew, LedgerUnavailable

SQLITE = migrate.FOLDER / "sqlite"
VERSIONS = [step.version for step in migrate.load(SQLITE)]


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A folder of migrations with one more than there is."""
    folder = tmp_path / "migrations"
    shutil.copytree(SQLITE, folder)
    number = len(VERSIONS) + 1
    (folder / f"{number:04}_planted.sql").write_text(
        "-- a column; and a semicolon in a comment\n"
        "ALTER TABLE requests ADD COLUMN planted TEXT NOT NULL DEFAULT 'a;b';\n"
        "CREATE TABLE planted (x INTEGER);\n"
    )
    return folder


@pytest.mark.parametrize("version", VERSIONS)
def test_a_ledger_of_every_version_is_brought_to_the_newest(tmp_path: Path, planted: Path, version: int) -> None:
    old = tmp_path / "old"
    shutil.copytree(SQLITE, old)
    for step in sorted(old.glob("*.sql"))[version:]:
        step.unlink()
    with Ledger.open(SqliteStore(tmp_path / "clinic", migrations=old)) as ledger:
        ledger.create_budget("visits", epsilon=1.0)
        ledger.reserve("visits", events.Laplace(0.1))
    with Ledger.open(SqliteStore(tmp_path / "clinic", migrations=planted)) as ledger:
        assert ledger.verify(full=True).head.number == 2
        ledger.reserve("visits", events.Laplace(0.1))
    with closing(sqlite3.connect(tmp_path / "clinic" / "ledger.sqlite")) as connection:
        applied = connection.execute("SELECT version, name FROM migrations").fetchall()
    assert [name for _, name in applied][-1] == "planted"


def test_a_ledger_of_a_newer_version_is_refused(tmp_path: Path, planted: Path) -> None:
    Ledger.open(SqliteStore(tmp_path / "clinic", migrations=planted)).close()
    with pytest.raises(LedgerTooNew, match=r"has version 2 and this tacit knows versions up to 1; use a newer tacit"):
        Ledger.open(tmp_path / "clinic")


def test_a_migration_that_was_changed_after_it_was_applied_is_noticed(tmp_path: Path, planted: Path) -> None:
    Ledger.open(SqliteStore(tmp_path / "clinic", migrations=planted)).close()
    changed = next(planted.glob("*_planted.sql"))
    changed.write_text(changed.read_text() + "\n-- changed\n")
    with pytest.raises(LedgerCorrupt, match="another migration 0002"):
        Ledger.open(SqliteStore(tmp_path / "clinic", migrations=planted))


def test_a_migration_that_fails_leaves_the_old_version_untouched(tmp_path: Path, planted: Path) -> None:
    with Ledger.open(tmp_path / "clinic") as ledger:
        ledger.create_budget("visits", epsilon=1.0)
    broken = next(planted.glob("*_planted.sql"))
    broken.write_text("CREATE TABLE planted (x INTEGER);\nSELECT nonsense FROM nowhere;\n")
    with pytest.raises(LedgerUnavailable):
        Ledger.open(SqliteStore(tmp_path / "clinic", migrations=planted))
    with Ledger.open(tmp_path / "clinic") as ledger:
        ledger.reserve("visits", events.Laplace(0.1))


def test_both_stores_have_the_same_migrations() -> None:
    named = {
        store: [path.name for path in sorted((migrate.FOLDER / store).glob("*.sql"))]
        for store in ("sqlite", "postgres")
    }
    assert named["sqlite"] == named["postgres"]
