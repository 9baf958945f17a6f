"""A folder to serve, and servers for it as separate processes."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

import tacit
from tacit.server.access import Access, Grant, Role
from tacit.server.database import open_database

ROWS: Final = 10_000
SQL: Final = "SELECT sex, COUNT(*) AS n, AVG(age) AS m FROM visits GROUP BY sex"
START_S: Final = 60.0
LIMITS: Final = {"TACIT_LIMITS__WAITING_EACH": "1000", "TACIT_LIMITS__WAITING": "1000"}
"""Limits that let one person send all requests."""


@dataclass(frozen=True)
class Running:
    """A running server."""

    process: subprocess.Popen[bytes]
    port: int

    @property
    def memory_kib(self) -> int:
        """The current memory of the process."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmRSS")).split()[1])

    def workers(self) -> list[int]:
        """Return its worker processes, if there are several."""
        task = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        found = []
        for child in map(int, task.read_text().split()):
            try:
                if "spawn_main" in Path(f"/proc/{child}/cmdline").read_text():
                    found.append(child)
            except OSError:
                continue  # it has just ended
        return found


def make(folder: Path) -> str:
    """Make a folder with one table, and return the token of its owner."""
    number = np.arange(ROWS)
    frame = pd.DataFrame({"patient": number // 2, "age": number % 90, "sex": np.where(number % 2, "F", "M")})
    facts: dict[str, tacit.Bounds | tacit.Categories] = {
        "age": tacit.Bounds(0, 90),
        "sex": tacit.Categories(["F", "M"]),
    }
    with tacit.Curator(folder) as curator, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a budget that no number of questions exhausts
        curator.add_table("visits", frame, unit="patient", columns=dict(facts))
        curator.set_budget("visits", 10**6, 1e-6, epsilon_min=0)
    database = open_database(folder)
    access = Access(database)
    access.people.add("owner")
    access.people.grant("owner", Grant(Role.OWNER))
    token = access.tokens.create("owner").text
    database.close()
    return token


@contextmanager
def served(folder: Path, *flags: str) -> Iterator[Running]:
    """Run `tacit serve` over a folder."""
    with _running(["tacit", "serve", str(folder), *flags, "--port"]) as running:
        yield running


@contextmanager
def bare(body: Path) -> Iterator[Running]:
    """Run the bare application."""
    with _running(["bench.servers.bare", str(body)]) as running:
        yield running


@contextmanager
def _running(arguments: list[str]) -> Iterator[Running]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    command = [sys.executable, "-m", *arguments, str(port)]
    silent = subprocess.DEVNULL
    process = subprocess.Popen(command, stdout=silent, stderr=silent, env={**os.environ, **LIMITS})
    try:
        _wait(process, f"http://127.0.0.1:{port}/readyz")
        yield Running(process, port)
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(process: subprocess.Popen[bytes], url: str) -> None:
    until_s = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < until_s:
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except OSError:
            time.sleep(0.05)
    raise SystemExit(f"{url} does not answer")
