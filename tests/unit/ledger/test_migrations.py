"""Migrations: every version leads to the next, applied once, and a newer one is refused."""

import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tacit.ledger import Ledger
from tacit.ledger.stores import SqliteStore
from tacit.ledger.stores.sql import MIGRATIONS
from tacit.privacy import events
from tacit.privacy.errors import AlreadySettled, LedgerCorrupt, LedgerTooNew, LedgerUnavailable
from tacit.storage import migrations

FIRST_VERSION = Path(__file__).parent / "version_0001.sql"
SQLITE = MIGRATIONS / "sqlite"
VERSIONS = [step.version for step in migrations.load(SQLITE)]


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


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A folder with a ledger that the first version wrote."""
    folder = tmp_path / "old"
    folder.mkdir()
    connection = sqlite3.connect(folder / "ledger.sqlite")
    connection.executescript(FIRST_VERSION.read_text())
    connection.close()
    return folder


def rows_of(folder: Path, statement: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(folder / "ledger.sqlite")
    rows = connection.execute(statement).fetchall()
    connection.close()
    return rows


CACHED = (
    "SELECT key, definition, totals, record FROM scopes ORDER BY key",
    "SELECT id, dataset, key, record, state, is_refunded, answer_sha256, note FROM permits ORDER BY id",
    "SELECT id, dataset, analyst, record, state, decision FROM requests ORDER BY id",
    "SELECT plan_sha256, data_version, permit, sha256 FROM answers ORDER BY plan_sha256",
)


def test_a_ledger_of_the_first_version_is_brought_to_the_newest_and_says_the_same(old: Path) -> None:
    before = [rows_of(old, statement) for statement in CACHED]
    assert all(before)
    with Ledger.open(old) as ledger:
        assert [rows_of(old, statement) for statement in CACHED] == before
        assert ledger.verify(full=True).head.number == 22
        assert ledger.released("SELECT 1", "1") == b"answer one"
        assert ledger.reserve("labs", events.Laplace(0.25), key="k2").id == "12-0000000000000002"
        with pytest.raises(AlreadySettled):
            ledger.refund("10-0000000000000001", events.Repeated(events.Gaussian(90), 4))
        ledger.reserve("visits", events.Laplace(0.1), epochs=["2024"])
        ledger.verify(full=True)
    assert [version for (version,) in rows_of(old, "SELECT version FROM migrations")] == VERSIONS


def test_tables_that_a_migration_left_empty_are_written_before_anything_is_admitted(old: Path) -> None:
    before = [rows_of(old, statement) for statement in CACHED]
    store = SqliteStore(old)
    store.open()
    store.close()  # a crash comes right after the migration
    assert not any(rows_of(old, statement) for statement in CACHED)
    with Ledger.open(old) as ledger:
        assert [rows_of(old, statement) for statement in CACHED] == before
        ledger.verify(full=True)


def test_a_ledger_of_the_version_before_findings_is_brought_to_the_newest_and_takes_some(old: Path) -> None:
    Ledger.open(old).close()
    connection = sqlite3.connect(old / "ledger.sqlite", isolation_level=None)
    connection.execute("DROP TABLE findings")
    connection.execute("DELETE FROM migrations WHERE version > 2")
    connection.close()
    before = [rows_of(old, statement) for statement in CACHED]
    with Ledger.open(old) as ledger:
        assert [rows_of(old, statement) for statement in CACHED] == before
        assert ledger.findings() == []
        kept = ledger.keep_finding("labs", {"verdict": "consistent"}, permit="12-0000000000000002", by="olga")
        ledger.verify(full=True)
    with Ledger.open(old) as ledger:
        assert ledger.findings() == [kept]
    assert [version for (version,) in rows_of(old, "SELECT version FROM migrations")] == VERSIONS


def test_an_old_ledger_whose_totals_were_edited_gets_them_from_its_journal(old: Path) -> None:
    right = rows_of(old, CACHED[0])
    connection = sqlite3.connect(old / "ledger.sqlite")
    connection.execute('UPDATE scopes SET totals = \'[["0","0"]]\'')
    connection.execute("UPDATE permits SET is_refunded = 0, state = 'reserved'")
    connection.commit()
    connection.close()
    with Ledger.open(old) as ledger:
        ledger.verify(full=True)
    assert rows_of(old, CACHED[0]) == right


@pytest.mark.parametrize("number", [1, 11, 22])
def test_an_old_ledger_with_a_damaged_journal_is_refused(old: Path, number: int) -> None:
    connection = sqlite3.connect(old / "ledger.sqlite")
    connection.execute("UPDATE journal SET body = replace(body, '1', '2') WHERE number = ?", (number,))
    connection.commit()
    connection.close()
    for _ in range(2):
        with pytest.raises(LedgerCorrupt, match=f"record {number}"):
            Ledger.open(old)
    assert rows_of(old, CACHED[0]) == [], "nothing is admitted from tables that were not written"


def test_a_ledger_is_brought_to_a_version_that_comes_later(tmp_path: Path, planted: Path) -> None:
    with Ledger.open(tmp_path / "clinic") as ledger:
        ledger.create_budget("visits", epsilon=1.0)
        ledger.reserve("visits", events.Laplace(0.1))
    with Ledger.open(SqliteStore(tmp_path / "clinic", migrations=planted)) as ledger:
        assert ledger.verify(full=True).head.number == 2
        ledger.reserve("visits", events.Laplace(0.1))
    assert rows_of(tmp_path / "clinic", "SELECT name FROM migrations ORDER BY version")[-1] == ("planted",)


def test_a_ledger_of_a_newer_version_is_refused(tmp_path: Path, planted: Path) -> None:
    Ledger.open(SqliteStore(tmp_path / "clinic", migrations=planted)).close()
    known = len(VERSIONS)
    with pytest.raises(LedgerTooNew, match=rf"has version {known + 1} and this tacit knows versions up to {known};"):
        Ledger.open(tmp_path / "clinic")


def test_a_migration_that_was_changed_after_it_was_applied_is_noticed(tmp_path: Path, planted: Path) -> None:
    Ledger.open(SqliteStore(tmp_path / "clinic", migrations=planted)).close()
    changed = next(planted.glob("*_planted.sql"))
    changed.write_text(changed.read_text() + "\n-- changed\n")
    with pytest.raises(LedgerCorrupt, match=f"another migration {len(VERSIONS) + 1:04}"):
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
        store: [path.name for path in sorted((MIGRATIONS / store).glob("*.sql"))] for store in ("sqlite", "postgres")
    }
    assert named["sqlite"] == named["postgres"]
