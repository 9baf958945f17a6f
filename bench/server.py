"""The server over real connections: throughput and latency, compared with a bare FastAPI application.

Clients keep their connections open on this machine and ask one request after another, as one person. Three kinds of
request: an answer that was released before (`cached`), a preview, and a small question that is new each time, about
10,000 rows. New answers are held back until their time class ends, which is by design, so they are measured with the
class as it is by default and with one of a millisecond. Beside each stand a bare FastAPI application that returns the
same bytes under the same uvicorn, and the curator called directly in one thread. Then memory after ten times as many
requests, and what killed workers lose. Clients run on the same machine and take their part of its cores.
"""

from __future__ import annotations

import json
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import tacit
from bench.results import Result
from bench.servers import places
from bench.servers.kills import killed
from bench.servers.load import Caller, Load
from bench.servers.places import SQL, Running

CLIENTS: Final = (1, 8, 64)
CACHED: Final[dict[str, Any]] = {"sql": SQL, "epsilon": 0.5}
MEMORY_GOAL: Final = 1.05
STEP: Final = 1e-9


def run(quick: bool) -> Iterator[Result]:
    """Measure requests, memory and kills."""
    seconds = 0.4 if quick else 5.0
    with tempfile.TemporaryDirectory(prefix="tacit-bench-") as name:
        folder = Path(name) / "folder"
        token = places.make(folder)
        direct = _direct(folder, seconds)
        with places.served(folder) as running:
            body = _first_answer(running, token, Path(name) / "body.json")
            with places.bare(body) as plain:
                bares = {clients: _load(plain, token, "new", clients, seconds) for clients in CLIENTS}
            for kind in ("cached", "preview", "new"):
                title = "new, class of 0.1 s" if kind == "new" else kind
                for clients in CLIENTS:
                    load = _load(running, token, kind, clients, seconds)
                    yield from _lines(f"{title}, {clients} clients", load, bares[clients], direct[kind])
        with places.served(folder, "--timing-class", "0.001") as running:
            for clients in CLIENTS:
                load = _load(running, token, "new", clients, seconds)
                yield from _lines(f"new, class of 1 ms, {clients} clients", load, bares[clients], direct["new"])
        yield from _memory(folder, token, quick)
        yield from _kills(folder, token, quick)


def _body(kind: str) -> Callable[[int], dict[str, Any]]:
    started = time.time() % 1000
    if kind != "new":
        return lambda _number: CACHED
    return lambda number: {"sql": SQL, "epsilon": 0.01 + (started * 1e6 + number) * STEP}


def _load(running: Running, token: str, kind: str, clients: int, seconds: float) -> Load:
    path = "/v1/preview" if kind == "preview" else "/v1/queries"
    caller = Caller(running.port, token)
    caller.measure(path, _body(kind), min(clients, 4), requests=4)
    return caller.measure(path, _body(kind), clients, seconds=seconds)


def _lines(metric: str, load: Load, bare: Load, direct_per_s: float) -> Iterator[Result]:
    others = {"bare FastAPI": bare.per_second, "curator": direct_per_s}
    yield Result(f"{metric}: requests", load.per_second, "1/s", others)
    for name, share in (("p50", 0.5), ("p99", 0.99)):
        peers = {"bare FastAPI": bare.quantile_ms(share)}
        yield Result(f"{metric}: {name}", load.quantile_ms(share), "ms", peers)
    yield Result(f"{metric}: share of bare FastAPI", load.per_second / bare.per_second, "×")


def _direct(folder: Path, seconds: float) -> dict[str, float]:
    """Return the answers per second of the curator without a server."""
    found = {}
    with tacit.Curator(folder) as curator:
        asks: dict[str, Callable[[int], object]] = {
            "cached": lambda _number: curator.sql(SQL, 0.5).intervals(0.95),
            "preview": lambda _number: curator.preview(SQL, 0.5),
            "new": lambda number: curator.sql(SQL, 0.001 + number * STEP).intervals(0.95),
        }
        for kind, ask in asks.items():
            ask(0)
            started_s, count = time.perf_counter(), 0
            while time.perf_counter() - started_s < seconds:
                count += 1
                ask(count)
            found[kind] = count / (time.perf_counter() - started_s)
    return found


def _first_answer(running: Running, token: str, path: Path) -> Path:
    """Send the query once, so that it is cached, and keep its bytes for the bare application."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    url = f"http://127.0.0.1:{running.port}/v1/queries"
    for _ in range(2):  # the second answer is the cached one
        request = urllib.request.Request(url, json.dumps(CACHED).encode(), headers)
        with urllib.request.urlopen(request) as answer:
            path.write_bytes(answer.read())
    return path


def _memory(folder: Path, token: str, quick: bool) -> Iterator[Result]:
    """Compare the memory of a server after many requests with that after a tenth of them."""
    few, many = (300, 1_500) if quick else (10_000, 100_000)
    with places.served(folder) as running:
        caller = Caller(running.port, token)
        caller.measure("/v1/queries", _body("cached"), 8, requests=few)
        first_kib = running.memory_kib
        caller.measure("/v1/queries", _body("cached"), 8, requests=many - few)
        last_kib = running.memory_kib
    yield Result(f"memory after {many:,} requests", last_kib / 1024, "MB")
    yield Result(f"memory after {many:,} over {few:,} requests", last_kib / first_kib, "×", goal=MEMORY_GOAL)


def _kills(folder: Path, token: str, quick: bool) -> Iterator[Result]:
    found = killed(folder, token, 2 if quick else 10)
    yield Result("killed workers: questions asked", found["asked"], "")
    for name, words in (("lost", "lost"), ("twice", "answered twice"), ("mischarged", "charged other than once")):
        yield Result(f"killed workers: questions {words}", found[name], "", goal=0)
