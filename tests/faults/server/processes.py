"""Servers as processes of their own on this machine, over a folder of the clinic's."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

import tacit
from tacit.server.access import Access, Hasher
from tacit.server.database import open_database
from tests.unit.server import clinic

START_S = 40.0


@dataclass
class Served:
    """A running server."""

    process: subprocess.Popen[bytes]
    url: str
    folder: Path
    log: Path
    tokens: Mapping[str, str]

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def client(self, name: str = "analyst.visits", **options: Any) -> httpx.Client:
        headers = {} if name == clinic.NOBODY else {"Authorization": f"Bearer {self.tokens[name]}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=30.0, verify=False, **options)

    def connect(self) -> socket.socket:
        """Open a connection on which anything can be said."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=15.0)

    def workers(self) -> list[int]:
        """The processes that answer requests, of a server that has several."""
        found = []
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                text = path.read_text()
                command = (path.parent / "cmdline").read_text()
            except OSError:
                continue
            if int(text.rpartition(")")[2].split()[1]) == self.process.pid and "spawn_main" in command:
                found.append(int(path.parent.name))
        return found


def make_folder(folder: Path) -> dict[str, str]:
    """Make a clinic's folder, and return everybody's token."""
    folder.mkdir(parents=True)
    with tacit.Curator(folder) as curator:
        clinic.fill(curator)
    database = open_database(folder)
    try:
        return clinic.let_in(Access(database, hasher=Hasher(is_cheap=True)))
    finally:
        database.close()


@contextmanager
def served(
    folder: Path,
    *flags: str,
    tokens: Mapping[str, str],
    preexec: Callable[[], None] | None = None,
    **settings: str,
) -> Iterator[Served]:
    """Run `tacit serve` over a folder; what it writes to standard error is kept in a file beside it.

    `preexec` is called in the new process before the program starts, to limit what it may use.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = folder.parent / f"{folder.name}.log"
    command = [sys.executable, "-m", "tacit", "serve", str(folder), "--port", str(port), "--json", *flags]
    with log.open("wb") as err:
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=err, env={**os.environ, **settings}, preexec_fn=preexec
        )
    made = Served(process, f"http://127.0.0.1:{port}", folder, log, tokens)
    try:
        _wait(made)
        yield made
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(made: Served) -> None:
    until = time.monotonic() + START_S
    while time.monotonic() < until:
        try:
            with urllib.request.urlopen(f"{made.url}/readyz", timeout=2) as answer:
                assert json.load(answer)["status"] == "ready"
                return
        except OSError:
            assert made.process.poll() is None, made.log.read_text()[-2000:]
            time.sleep(0.1)
    raise AssertionError(f"no answer within {START_S} s: {made.log.read_text()[-2000:]}")
