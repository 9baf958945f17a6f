"""`tacit serve`: refused before anything is made, and answering once it says where."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from tacit.cli.app import run


@pytest.fixture
def folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert run(["init", str(tmp_path / "clinic")]) == 0
    capsys.readouterr()
    return tmp_path / "clinic"


@pytest.mark.parametrize(
    ("options", "exit_code", "code"),
    [
        (["--host", "0.0.0.0"], 3, "T404"),
        (["--host", "0.0.0.0", "--without-tls"], 3, "T404"),
        (["--certificate", "nowhere.pem"], 2, "T100"),
        (["--certificate", "nowhere.pem", "--key", "nowhere.pem"], 2, "T100"),
    ],
)
def test_what_is_not_safe_is_refused_and_nobody_is_made(
    options: list[str], exit_code: int, code: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["serve", str(folder), *options]) == exit_code
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert code in err
    assert not (folder / "server.sqlite").exists()


def test_a_folder_that_nobody_set_up_is_not_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["serve", str(tmp_path / "nowhere")]) == 2
    assert "tacit init" in capsys.readouterr().err
    assert not (tmp_path / "nowhere").exists()


def test_the_owners_token_is_shown_once_and_opens_the_server(folder: Path) -> None:
    for turn in range(2):
        command = [sys.executable, "-m", "tacit", "serve", str(folder), "--port", "0", "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            said = json.loads(process.stdout.readline())
            try:
                assert alive(said["url"])
                if turn == 0:
                    token = said["token"]
                assert ("token" in said) == (turn == 0)
                found = httpx.get(f"{said['url']}/v1/me", headers={"Authorization": f"Bearer {token}"})
                assert found.json()["grants"] == [{"role": "owner", "dataset": None, "table": None}]
            finally:
                process.send_signal(signal.SIGTERM)
                _, log = process.communicate(timeout=60)
        assert '"event": "stopped"' in log
        assert token not in log


def alive(url: str) -> bool:
    for _ in range(300):
        try:
            return httpx.get(f"{url}/healthz").json()["status"] == "alive"
        except httpx.TransportError:
            time.sleep(0.1)
    return False
