"""`tacit completion`: scripts that a shell accepts, and that complete what is there."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from tacit.cli.app import run


@pytest.mark.parametrize("shell", ["bash", "fish", "zsh"])
def test_a_script_asks_tacit_what_can_follow(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", shell]) == 0
    assert f"_TACIT_COMPLETE={shell}_complete" in capsys.readouterr().out


def test_with_json_the_script_is_a_field(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", "fish", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["shell"] == "fish"
    assert "complete" in answer["script"]


@pytest.mark.parametrize(
    ("typed", "expected"),
    [("tacit de", "demo"), ("tacit completion z", "zsh"), ("tacit demo --no", "--no-serve"), ("tacit --j", "--json")],
)
def test_what_was_begun_is_completed(typed: str, expected: str) -> None:
    words = typed.split(" ")
    environment = {
        **os.environ,
        "_TACIT_COMPLETE": "bash_complete",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(words) - 1),
    }
    done = subprocess.run([sys.executable, "-m", "tacit"], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.split() == [f"plain,{expected}"]


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_bash_accepts_its_script(capsys: pytest.CaptureFixture[str]) -> None:
    run(["completion", "bash"])
    script = capsys.readouterr().out
    assert subprocess.run(["bash", "-n"], input=script, text=True, check=False).returncode == 0
