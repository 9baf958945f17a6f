"""`tacit demo` with its server: what is printed can be pasted, and nothing of it is left afterwards."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tacit.cli.commands.demo import create_people, settings_with_free_port
from tacit.privacy.errors import NotPermitted
from tacit.server.access import Action, Resource
from tacit.server.process import check_bind, open_access

START_S = 60


@dataclass
class Running:
    """A demo that serves, and what it printed."""

    process: subprocess.Popen[str]
    text: str
    place: Path

    @property
    def url(self) -> str:
        return re.findall(r"served at (\S+)", self.text)[0]

    def account(self, name: str) -> tuple[str, str]:
        found = re.search(rf"^   {name}\S*.*? password (\S+)\n   token (\S+)$", self.text, re.MULTILINE)
        assert found
        return found[1], found[2]

    def client(self, name: str) -> httpx.Client:
        return httpx.Client(base_url=self.url, headers={"Authorization": f"Bearer {self.account(name)[1]}"}, timeout=60)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    place = tmp_path_factory.mktemp("demo")
    words = [sys.executable, "-m", "tacit", "demo", "--port", str(free_port())]
    environment = {**os.environ, "TMPDIR": str(place), "NO_COLOR": "1"}
    with (
        (place / "errors").open("w") as errors,
        subprocess.Popen(words, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment) as process,
    ):
        try:
            assert process.stdout is not None
            lines = []
            for line in process.stdout:
                lines.append(line)
                if "Ctrl-C stops the server" in line:
                    break
            running = Running(process, "".join(lines), place)
            assert process.poll() is None, (place / "errors").read_text()
            until_ready(running.url)
            yield running
        finally:
            process.kill()


def until_ready(url: str) -> None:
    deadline_s = time.monotonic() + START_S
    while time.monotonic() < deadline_s:
        try:
            httpx.get(f"{url}/healthz").raise_for_status()
            return
        except httpx.HTTPError:
            time.sleep(0.05)
    pytest.fail("the server of the demo did not start")


def test_the_curl_that_is_printed_gets_the_answer_again_for_nothing(demo: Running) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed here")
    lines = re.findall(r"^   (TOKEN=.*?-d [^\n]*)$", demo.text, re.MULTILINE | re.DOTALL)[0]
    done = subprocess.run(["sh", "-c", lines], capture_output=True, text=True, check=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    assert answer["cost"]["epsilon"] == 0
    shown = re.findall(r"^   (\w+) +(\d+) +\d+ to \d+ ", demo.text, re.MULTILINE)
    assert [(row["ward"], str(row["patients"])) for row in answer["rows"]] == shown
    assert answer["remaining"]["visits"]["epsilon"] == pytest.approx(0.5)


def test_the_python_that_is_printed_runs_while_the_clinic_is_served(demo: Running, tmp_path: Path) -> None:
    program = re.findall(r"^   (import tacit\n.*?release\.cost\))$", demo.text, re.MULTILINE | re.DOTALL)[0]
    lines = "\n".join(line.removeprefix("   ") for line in program.splitlines())
    done = subprocess.run([sys.executable, "-c", lines], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "'ward': 'eyes'" in done.stdout


@pytest.mark.parametrize("name", ["owner", "ana", "auditor"])
def test_everybody_who_is_named_can_log_in_and_use_the_token(demo: Running, name: str) -> None:
    password, _ = demo.account(name)
    answer = httpx.post(f"{demo.url}/v1/login", json={"name": name, "password": password}, timeout=60)
    assert answer.status_code == 200
    with demo.client(name) as client:
        assert client.get("/v1/me").json()["name"] == name


def test_each_may_do_what_the_role_allows_and_no_more(demo: Running) -> None:
    question = {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": 0.1}
    with demo.client("auditor") as auditor, demo.client("ana") as ana:
        assert auditor.post("/v1/queries", json=question).status_code == 403
        assert auditor.get("/v1/audit").status_code == 200
        assert ana.get("/v1/audit").status_code == 403
        assert ana.post("/v1/preview", json=question).status_code == 200
        assert ana.post("/v1/queries", json={**question, "epsilon": 2}).status_code == 402


def test_a_made_up_token_is_not_let_in(demo: Running) -> None:
    token = f"tacit_{'0' * 12}_{'A' * 43}"
    question = {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": 0.1}
    proof = {"Authorization": f"Bearer {token}"}
    answer = httpx.post(f"{demo.url}/v1/queries", json=question, headers=proof, timeout=60)
    assert answer.status_code == 401


def test_the_tour_fits_80_columns_with_its_server(demo: Running) -> None:
    lines = [line for line in demo.text.splitlines() if str(demo.place) not in line]
    assert max(map(len, lines)) <= 80


def test_nothing_is_left_when_it_is_told_to_end(demo: Running) -> None:
    """The last test of this module: afterwards there is no server."""
    assert [path.name for path in demo.place.iterdir() if path.name.startswith("tacit-demo-")]
    demo.process.send_signal(signal.SIGTERM)
    assert demo.process.wait(30) == 128 + signal.SIGTERM
    assert [path.name for path in demo.place.iterdir() if path.name.startswith("tacit-demo-")] == []


def test_a_taken_port_makes_way_for_the_next(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        settings = settings_with_free_port(tmp_path, port)
        assert settings.port != port
        assert settings.is_local


def test_the_accounts_are_new_in_each_run_and_good_on_this_machine_only(tmp_path: Path) -> None:
    settings = settings_with_free_port(tmp_path, free_port())
    first = create_people(settings)
    (tmp_path / "other").mkdir()
    second = create_people(settings.model_copy(update={"folder": tmp_path / "other"}))
    assert not {one.password for one in first} & {one.password for one in second}
    assert not {one.token for one in first} & {one.token for one in second}
    with pytest.raises(NotPermitted):
        check_bind(settings.model_copy(update={"host": "0.0.0.0", "without_tls": 2}))
    with open_access(settings) as access:
        ana = access.actor_of_token(first[1].token)
        with pytest.raises(NotPermitted):
            access.require(ana, Action.LEDGER_READ, Resource())
