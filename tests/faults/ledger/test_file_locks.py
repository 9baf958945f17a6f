"""POSIX locks on the database belong to the process: closing any descriptor of the file ends all of them.

SQLite keeps its own descriptors open for that reason (sqlite.org/howtocorrupt.html, section 2.2); nothing else in the
process may open and close the file while it is in use. Otherwise another process that closes believes to be the last
one and removes the log, and what the first process charges then is in a file without a name.
"""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tacit.ledger import Ledger
from tacit.privacy import events
from tacit.privacy.errors import BudgetExceeded, NotALedger
from tests.style.rules import ROOT

LOOK = """
import sys
from tacit.ledger import Ledger
with Ledger.open(sys.argv[1]) as ledger:
    ledger.head()
"""

CHARGE = """
import sys
from tacit.ledger import Ledger
from tacit.privacy import events
from tacit.privacy.errors import BudgetExceeded
with Ledger.open(sys.argv[1]) as ledger:
    print("opened", flush=True)
    sys.stdin.readline()
    charges = 0
    try:
        while True:
            ledger.budget("visits").charge(events.Laplace(0.1))
            charges += 1
    except BudgetExceeded:
        print(charges, flush=True)
"""

OPENED = """
import json, sys
from pathlib import Path
folder = Path(sys.argv[1]).resolve()
found = []

def noted(name, arguments):
    if name == "open" and isinstance(arguments[0], (str, bytes)):
        path = Path(str(arguments[0]))
        if path.name.startswith(("ledger.sqlite", "server.sqlite")):
            found.append(path.name)

import tacit
from tacit.ledger import Ledger
from tacit.privacy import events
from tacit.server.database import open_database
sys.addaudithook(noted)
first, second = Ledger.open(folder), Ledger.open(folder)
first.create_budget("visits", epsilon=1.0)
second.commit(second.reserve("visits", events.Laplace(0.1)), b"17", plan="SELECT 1", data_version="1")
first.verify(full=True)
first.backup(folder / "backup")
second.export(folder / "export")
with tacit.Curator(folder) as curator:
    curator.budget("visits").spent()
Ledger.rebuild(folder, by="carl", reason="a test").close()
first.close(), second.close()
for _ in range(2):
    open_database(folder).close()
print(json.dumps(found))
"""


@contextmanager
def other_process(script: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", script, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            yield process
        finally:
            process.kill()


def finished(script: str, folder: Path) -> str:
    command = [sys.executable, "-c", script, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def spend(ledger: Ledger) -> int:
    """Charge until nothing more fits, and return how often."""
    for charges in range(100):
        try:
            ledger.budget("visits").charge(events.Laplace(0.1))
        except BudgetExceeded:
            return charges
    raise AssertionError("the cap does not hold")


@pytest.mark.skipif(sys.platform == "win32", reason="locks of Windows belong to the descriptor")
def test_a_ledger_opened_twice_in_one_process_shares_its_budget_with_other_processes(tmp_path: Path) -> None:
    first = Ledger.open(tmp_path)
    first.create_budget("visits", epsilon=1.0)
    with Ledger.open(tmp_path) as second:
        first.close()
        finished(LOOK, tmp_path)
        with other_process(CHARGE, tmp_path) as other:
            assert other.stdin is not None
            assert other.stdout is not None
            assert other.stdout.readline() == "opened\n"
            charges = spend(second)
            other.stdin.write("\n")
            other.stdin.flush()
            assert charges + int(other.stdout.readline()) == 10
    with Ledger.open(tmp_path) as ledger:
        ledger.verify(full=True)
        assert [record.kind for record in ledger.history()].count("reserved") == 10


def test_a_database_of_something_else_with_a_log_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE things (name TEXT)")
    before = path.read_bytes()
    with pytest.raises(NotALedger, match="another program"):
        Ledger.open(tmp_path)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["ledger.sqlite"]


def test_nothing_but_sqlite_opens_the_database(tmp_path: Path) -> None:
    assert json.loads(finished(OPENED, tmp_path)) == []
