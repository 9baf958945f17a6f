"""What a user forgets to close is closed without a word: in the collector, and when the interpreter exits."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.style.rules import ROOT
from tests.support import postgres_server


@pytest.mark.parametrize("when", ["collected", "exit"])
def test_nothing_is_said_of_what_was_forgotten(when: str, tmp_path: Path) -> None:
    program = [sys.executable, "-X", "dev", "-W", "error", "-m", "tests.faults.forgotten"]
    done = subprocess.run(
        [*program, when, str(tmp_path), postgres_server.address()],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "8"
