"""The rule that every connection is closed: it names who breaks it, and the ways to fail halfway keep it."""

import gc
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tacit.curator import Curator
from tacit.ledger import Ledger, SqliteStore
from tacit.privacy.errors import LedgerUnavailable, TacitError
from tacit.server.database import FILE_NAME, open_database
from tacit.server.process import open_app
from tacit.server.settings import Settings
from tests.support.open_connections import left_open


def test_a_connection_that_is_left_open_is_found_with_the_test_and_the_line(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "a.sqlite")
    (found,) = left_open()
    assert "test_a_connection_that_is_left_open_is_found_with_the_test_and_the_line" in found
    assert "tests/style/test_open_connections.py:" in found
    assert left_open() == [], "it is named once"
    connection.close()


def test_a_connection_that_nobody_holds_any_more_is_found(tmp_path: Path) -> None:
    sqlite3.connect(tmp_path / "a.sqlite").execute("SELECT 1")
    gc.collect()
    assert len(left_open()) == 1


def test_a_ledger_that_is_forgotten_is_found_before_and_after_it_was_collected(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path)
    assert len(left_open()) == 1
    ledger.close()
    Ledger.open(tmp_path)
    gc.collect()
    assert len(left_open()) == 1


def test_what_is_closed_is_not_found(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "a.sqlite")), Ledger.open(tmp_path) as ledger:
        thread = threading.Thread(target=ledger.head)
        thread.start()
        thread.join()
    assert left_open() == []


def test_a_backup_that_fails_closes_its_copy(tmp_path: Path) -> None:
    class Broken(sqlite3.Connection):
        def backup(self, *arguments: Any, **settings: Any) -> None:
            raise sqlite3.OperationalError("disk I/O error")

    def connect(*arguments: Any, **settings: Any) -> sqlite3.Connection:
        return sqlite3.connect(*arguments, factory=Broken, **settings)

    with Ledger.open(SqliteStore(tmp_path, connect=connect)) as ledger, pytest.raises(LedgerUnavailable):
        ledger.backup(tmp_path / "copy.sqlite")
    assert left_open() == []


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """A folder whose server's database was made by a newer version."""
    database = open_database(tmp_path)
    database.write(("INSERT INTO migrations VALUES (99, 'later', 'x', 0)", ()))
    database.close()
    return tmp_path


def test_a_database_that_does_not_open_is_closed(damaged: Path) -> None:
    with pytest.raises(TacitError):
        open_database(damaged)
    assert (damaged / FILE_NAME).exists()
    assert left_open() == []


def test_a_server_whose_database_does_not_open_closes_its_ledger(damaged: Path) -> None:
    with pytest.raises(TacitError):
        open_app(Settings(folder=damaged))
    assert left_open() == []


def test_a_curator_whose_folder_cannot_be_made_closes_its_ledger(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(NotADirectoryError):
        Curator(tmp_path / "file" / "clinic", store=SqliteStore(tmp_path / "ledger"))
    assert left_open() == []
