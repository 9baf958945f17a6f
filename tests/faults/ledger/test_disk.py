"""A disk that is full, read-only or gone: one clear sentence, and nothing that was recorded is lost."""

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tacit.ledger import Ledger, SqliteStore
from tacit.privacy import events
from tacit.privacy.errors import LedgerFull, LedgerReadOnly, LedgerUnavailable, TacitError
from tests.style.rules import ROOT


def connecting(change: Callable[[sqlite3.Connection], None] | None = None, mode: str | None = None) -> Any:
    """Return a `connect` for a store that changes every connection, or opens the file in another mode."""

    def connect(address: str, **settings: Any) -> sqlite3.Connection:
        connection = sqlite3.connect(address.replace("mode=rw", f"mode={mode}") if mode else address, **settings)
        if change is not None:
            change(connection)
        return connection

    return connect


def test_a_full_disk_is_said_and_what_was_recorded_stays(tmp_path: Path) -> None:
    with Ledger.open(tmp_path) as ledger:
        ledger.create_budget("visits", epsilon=100.0)
        with closing(sqlite3.connect(tmp_path / "ledger.sqlite")) as connection:
            pages = connection.execute("PRAGMA page_count").fetchone()[0]

    def limit(connection: sqlite3.Connection) -> None:
        connection.execute(f"PRAGMA max_page_count = {pages + 3}")

    acknowledged = 0
    with Ledger.open(SqliteStore(tmp_path, connect=connecting(limit))) as ledger:
        try:
            while acknowledged < 1_000:
                ledger.reserve("visits", events.Laplace(0.01), purpose=f"question {acknowledged} " + "x" * 500)
                acknowledged += 1
        except LedgerFull as error:
            full = error
        assert "nothing was charged; free some and try again" in full.message
        assert acknowledged > 0
        assert len(ledger.reservations()) == acknowledged
        ledger.verify(full=True)
    with Ledger.open(tmp_path) as ledger:
        assert len(ledger.reservations()) == acknowledged
        ledger.reserve("visits", events.Laplace(0.01))


FILE_LIMIT = """
import resource, signal, sys
from tacit.ledger import Ledger
from tacit.privacy import events
from tacit.privacy.errors import LedgerUnavailable

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
ledger = Ledger.open(sys.argv[1])
ledger.create_budget("visits", epsilon=100.0)
resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))
count = 0
try:
    while True:
        ledger.reserve("visits", events.Laplace(0.01))
        count += 1
except LedgerUnavailable as error:
    print(count, error.code, error)
"""


def test_a_file_that_may_not_grow_is_said_and_what_was_recorded_stays(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FILE_LIMIT, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=60)
    assert done.returncode == 0, done.stderr
    count, code, sentence = done.stdout.strip().split(" ", 2)
    assert code in ("T510", "T511")
    assert "what was charged stays charged" in sentence or "nothing was charged" in sentence
    with Ledger.open(tmp_path) as ledger:
        ledger.verify(full=True)
        assert int(count) <= len(ledger.reservations()) <= int(count) + 1


def test_a_folder_that_cannot_be_written_is_said_and_can_still_be_read(tmp_path: Path) -> None:
    with Ledger.open(tmp_path) as keeper:
        keeper.create_budget("visits", epsilon=1.0)
        keeper.reserve("visits", events.Laplace(0.1))
        with Ledger.open(SqliteStore(tmp_path, connect=connecting(mode="ro"))) as ledger:
            with pytest.raises(LedgerReadOnly, match="cannot be written, so nothing is admitted"):
                ledger.reserve("visits", events.Laplace(0.1))
            assert ledger.budget("visits").spent().epsilon == 0.1


def test_a_folder_in_which_nothing_can_be_made_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*arguments: Any, **settings: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("os.open", denied)
    with pytest.raises(LedgerReadOnly, match="Permission denied; check who owns it"):
        Ledger.open(tmp_path / "clinic")


OTHER_ACCOUNT = """
import json, os, sys, tempfile
from pathlib import Path
from tacit.curator.salt import salt_of
from tacit.ledger import Ledger
from tacit.privacy import events
from tacit.privacy.errors import TacitError

def said(call):
    try:
        call()
    except TacitError as error:
        return [error.code, error.message]

found = []
with tempfile.TemporaryDirectory() as place:
    os.chmod(place, 0o755)
    places = {}
    for folder_mode, file_mode in ((0o555, 0o644), (0o777, 0o444), (0o777, 0o000), (0o000, 0o600)):
        folder = Path(place, f"{folder_mode}-{file_mode}")
        with Ledger.open(folder) as ledger:
            ledger.create_budget("visits", epsilon=1.0)
        salt_of(folder)
        os.chmod(folder / "salt", 0)
        os.chmod(folder / "ledger.head", 0o666)
        os.chmod(folder / "ledger.sqlite", file_mode)
        os.chmod(folder, folder_mode)
        places[folder] = folder if folder_mode != 0o777 else folder / "ledger.sqlite"
    child = os.fork()
    if not child:
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        for folder, named in places.items():
            spend = said(lambda: Ledger.open(folder).reserve("visits", events.Laplace(0.1)))
            found.append([str(named), str(folder), spend, said(lambda: salt_of(folder))])
        print(json.dumps(found), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
    for folder in places:
        os.chmod(folder, 0o700)
"""


def test_another_account_is_told_what_it_may_not_use() -> None:
    done = subprocess.run([sys.executable, "-c", OTHER_ACCOUNT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found) == 4
    for named, folder, (code, sentence), (salt_code, salt_sentence) in found:
        assert (code, salt_code) == ("T512", "T524")
        assert f"{named} cannot be" in sentence
        assert salt_sentence.endswith(f"run as the user that owns {folder}")


def test_a_folder_that_is_a_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "clinic").write_text("not a folder")
    with pytest.raises(LedgerUnavailable, match="cannot be used"):
        Ledger.open(tmp_path / "clinic")


def test_no_error_of_the_store_is_without_a_code(tmp_path: Path) -> None:
    class Broken:
        in_transaction = False

        def execute(self, statement: str, values: Any = ()) -> Any:
            raise sqlite3.OperationalError("something nobody foresaw")

        def close(self) -> None:
            pass

    with Ledger.open(tmp_path) as ledger:
        ledger.create_budget("visits", epsilon=1.0)
        slot = ledger._store._writer  # type: ignore[attr-defined]
        slot.disconnect()
        slot._open.append(Broken())
        with pytest.raises(TacitError, match="nothing was released") as found:
            ledger.reserve("visits", events.Laplace(0.1))
        assert found.value.code == "T510"
        ledger.reserve("visits", events.Laplace(0.1))
