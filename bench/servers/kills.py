"""Workers killed under load: how many queries are lost, and how many are answered twice."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import httpx

import tacit
from bench.servers.places import SQL, Running, served

CLIENTS: Final = 8
PATIENCE_S: Final = 60.0


def killed(folder: Path, token: str, kills: int) -> dict[str, int]:
    """Kill a worker every second, then count queries that were sent, lost, answered twice, or not charged once."""
    before = _charges(folder)
    with served(folder, "--workers", "2", "--timing-class", "0.02") as running:
        answers, asked = _asked(running, token, kills)
        with _client(running, token) as client:
            again = {number: _ask(client, number) for number in answers}
    charges = {key: count for key, count in _charges(folder).items() if key not in before}
    return {
        "asked": asked,
        "lost": asked - sum(one is not None for one in answers.values()),
        "twice": sum(again[number] != answers[number] for number in answers),
        "mischarged": sum(charges.get(f"owner/{number}", 0) != 1 for number in answers),
    }


def _asked(running: Running, token: str, kills: int) -> tuple[dict[int, Any], int]:
    numbers, over, answers = itertools.count(1), threading.Event(), dict[int, Any]()

    def client_thread() -> None:
        with _client(running, token) as client:
            while not over.is_set():
                number = next(numbers)
                answers[number] = _ask(client, number)

    with ThreadPoolExecutor(CLIENTS) as threads:
        tasks = [threads.submit(client_thread) for _ in range(CLIENTS)]
        for turn in range(kills):
            time.sleep(1.0)
            if workers := sorted(running.workers()):
                os.kill(workers[turn % len(workers)], signal.SIGKILL)
        over.set()
        for task in tasks:
            task.result()
    return answers, len(answers)


def _client(running: Running, token: str) -> httpx.Client:
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.Client(base_url=f"http://127.0.0.1:{running.port}", headers=headers, timeout=30.0, verify=False)


def _ask(client: httpx.Client, number: int) -> Any:
    """Retry a query with the same key until it is answered; return None after the time limit."""
    body, until_s = {"sql": SQL, "epsilon": 0.01 + number * 1e-7}, time.monotonic() + PATIENCE_S
    while time.monotonic() < until_s:
        try:
            response = client.post("/v1/queries", json=body, headers={"Idempotency-Key": str(number)})
            if response.status_code == 200:
                return response.json()["rows"]
        except httpx.TransportError:
            pass  # the worker has died: ask again
        time.sleep(0.05)
    return None


def _charges(folder: Path) -> dict[str, int]:
    """Count the charges in the ledger by their keys."""
    found: dict[str, int] = {}
    with tacit.Curator(folder) as curator:
        for record in curator.ledger.history():
            if record.kind == "reserved" and (key := record.contents.get("key")):
                found[key] = found.get(key, 0) + 1
    return found
