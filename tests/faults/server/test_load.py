"""A server with little memory and few file descriptors under a flood of everything; afterwards it is as before.

The short form holds 1,000 idle connections and floods for some seconds; the long form, for `make soak`, for minutes.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import socket
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from tests.faults.server.processes import Served, make_folder, served

IDLE = 1_000
FILES = 512
MEMORY_BYTES = 6 * 2**30
GROWTH_BYTES = 200 * 2**20
"""How much more memory a server may hold afterwards: plans and documents that it keeps, and what the allocator does."""
LIMITS = {"TACIT_LIMITS__BODY_S": "1.0", "TACIT_LIMITS__HEADERS_S": "60.0"}


def large_previews(number: int) -> str:
    branches = " ".join(f"WHEN age = {one} THEN {one % 7}" for one in range(400))
    texts = "||".join(["sex"] * 60)
    return random.Random(number).choice(
        (
            f"SELECT SUM(CASE {branches} ELSE 0 END) AS s FROM visits WHERE age > 0.{number}",
            f"SELECT COUNT(*) AS n FROM visits WHERE {texts} LIKE '%{number}%'",
            f"SELECT COUNT(*) AS n FROM visits WHERE age IN ({', '.join(map(str, range(1500)))}, 0.{number})",
        )
    )


def previews(made: Served, number: int) -> str:
    with made.client("analyst.visits") as client:
        body = {"sql": large_previews(number), "epsilon": 0.1}
        return str(client.post("/v1/preview", json=body).status_code)


def deep(made: Served, number: int) -> str:
    with made.client("analyst.visits") as client:
        return str(client.post("/v1/statistics", content=b'{"arguments":' + b"[" * 5_000 * (number % 9)).status_code)


def huge_headers(made: Served, number: int) -> str:
    with made.connect() as connection, contextlib.suppress(ConnectionResetError, BrokenPipeError):
        connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n")
        for _ in range(200):
            connection.sendall(b"a: " + b"x" * 50_000 + b"\r\n")
    return "headers"


def slow_body(made: Served, number: int) -> str:
    with made.connect() as connection, contextlib.suppress(OSError):
        connection.sendall(b"POST /v1/preview HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n")
        for _ in range(15):
            connection.sendall(b"x")
            time.sleep(0.1)
    return "slow"


def other_host(made: Served, number: int) -> str:
    with made.client("analyst.visits") as client:
        return str(client.get("/v1/me", headers={"Host": "evil.example"}).status_code)


ATTACKS: tuple[Callable[[Served, int], str], ...] = (
    previews,
    previews,
    previews,
    deep,
    huge_headers,
    slow_body,
    other_host,
)


def resident_bytes(made: Served) -> int:
    fields = Path(f"/proc/{made.process.pid}/statm").read_text().split()
    return int(fields[1]) * resource.getpagesize()


def files_of(made: Served) -> int:
    return len(os.listdir(f"/proc/{made.process.pid}/fd"))


def flood(made: Served, seconds: float) -> tuple[Counter[str], list[float]]:
    """Attack from 12 threads, and return what came of it and how long `/v1/me` of another took meanwhile."""
    seen, taken, until = Counter[str](), list[float](), time.monotonic() + seconds
    lock = threading.Lock()

    def attack(which: int) -> None:
        number = which * 1_000_000
        while time.monotonic() < until:
            number += 1
            try:
                said = ATTACKS[which % len(ATTACKS)](made, number)
            except httpx.TransportError as error:
                said = type(error).__name__
            with lock:
                seen[said] += 1

    threads = [threading.Thread(target=attack, args=(which,)) for which in range(12)]
    for one in threads:
        one.start()
    with made.client("analyst") as client:
        while time.monotonic() < until:
            begun = time.perf_counter()
            assert client.get("/v1/me").status_code == 200
            assert client.get("/healthz").status_code == 200
            taken.append(time.perf_counter() - begun)
            time.sleep(0.05)
    for one in threads:
        one.join()
    return seen, taken


def check(folder: Path, seconds: float) -> None:
    tokens = make_folder(folder)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))

    resource.setrlimit(resource.RLIMIT_NOFILE, (min(before[1], 4 * IDLE), before[1]))
    held: list[socket.socket] = []
    try:
        with served(folder, "--timing-class", "0.02", tokens=tokens, preexec=limited, **LIMITS) as made:
            question = {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": 0.01}
            with made.client() as client:
                first = client.post("/v1/queries", json=question).json()
                client.post("/v1/preview", json={"sql": large_previews(1), "epsilon": 0.1})
            memory, files = resident_bytes(made), files_of(made)
            held += [made.connect() for _ in range(IDLE)]
            with made.client("nobody") as client:
                assert client.get("/healthz", timeout=5.0).status_code == 200, "idle connections lock out health checks"
            seen, taken = flood(made, seconds)
            assert files_of(made) < FILES
            for one in held:
                one.close()
            until = time.monotonic() + 20
            while files_of(made) > files + 10 and time.monotonic() < until:
                time.sleep(0.1)
            assert files_of(made) <= files + 10, "file descriptors leak"
            assert resident_bytes(made) < memory + GROWTH_BYTES
            with made.client() as client:
                again = client.post("/v1/queries", json=question).json()
                assert (again["rows"], again["cost"]["epsilon"]) == (first["rows"], 0.0)
            assert "500" not in seen, seen
            assert seen["421"] > 0
            assert seen["400"] > 0
            assert statistics.median(taken) < 2.0, taken
            log = [json.loads(line) for line in made.log.read_text().splitlines()]
        assert not [line for line in log if line["event"] == "defect"]
        assert any(line["event"] == "connections limited by open files" for line in log)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        for one in held:
            one.close()


def test_a_server_under_a_flood_of_everything_is_as_before_afterwards(tmp_path: Path) -> None:
    check(tmp_path / "clinic", 4.0)


@pytest.mark.soak
def test_a_server_under_a_long_flood_of_everything_is_as_before_afterwards(tmp_path: Path) -> None:
    check(tmp_path / "clinic", 120.0)
