"""Workers that are killed while they answer: every question is charged once, and has one answer."""

from __future__ import annotations

import itertools
import json
import os
import signal
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

import tacit
from tests.faults.server.processes import Served, make_folder, served

KILLS = 3
CLIENTS = 8
RETRIES_S = 40.0


def test_killed_workers_lose_nothing_and_answer_nothing_twice(tmp_path: Path) -> None:
    tokens = make_folder(tmp_path / "clinic")
    flags = ("--workers", "2", "--timing-class", "0.05")
    with served(tmp_path / "clinic", *flags, tokens=tokens) as server:
        asked, answers, failed = ask_while_workers_die(server)
        with server.client() as client:
            again = {number: ask(client, number) for number in answers}
    assert failed == []
    assert asked >= CLIENTS
    assert len(answers) == asked, "questions were lost"
    assert again == answers, "a question has two answers"
    charges = charges_by_purpose(tmp_path / "clinic")
    assert charges == {f"question {number}": 1 for number in answers}
    with tacit.Curator(tmp_path / "clinic") as curator:
        curator.ledger.verify(full=True)


def ask_while_workers_die(server: Served) -> tuple[int, dict[int, str], list[str]]:
    """Ask distinct questions from several threads while workers are killed; return the rows of each answer."""
    numbers, over = itertools.count(1), threading.Event()
    answers: dict[int, str] = {}
    failed: list[str] = []
    asked = Counter[str]()

    def client_thread() -> None:
        with server.client() as client:
            while not over.is_set():
                number = next(numbers)
                asked["all"] += 1
                try:
                    answers[number] = ask(client, number)
                except AssertionError as error:
                    failed.append(str(error))

    with ThreadPoolExecutor(CLIENTS) as threads:
        running = [threads.submit(client_thread) for _ in range(CLIENTS)]
        for turn in range(KILLS):
            time.sleep(1.0)
            workers = server.workers()
            if workers:
                os.kill(sorted(workers)[turn % len(workers)], signal.SIGKILL)
        time.sleep(0.5)
        over.set()
        for one in running:
            one.result()
    return asked["all"], answers, failed


def ask(client: httpx.Client, number: int) -> str:
    """Ask a question with its key until it is answered, as a client does when a connection breaks."""
    body = {
        "sql": "SELECT COUNT(*) AS n FROM visits",
        "epsilon": 0.001 + number * 1e-6,
        "purpose": f"question {number}",
    }
    until = time.monotonic() + RETRIES_S
    while time.monotonic() < until:
        try:
            response = client.post("/v1/queries", json=body, headers={"Idempotency-Key": f"key {number}"})
        except httpx.TransportError:
            time.sleep(0.05)
            continue
        if response.status_code == 200:
            return json.dumps(response.json()["rows"])
        assert response.status_code in (429, 503), response.text
        time.sleep(0.1)
    raise AssertionError(f"question {number} was not answered")


def charges_by_purpose(folder: Path) -> dict[str, int]:
    """Count the charges in the ledger, by what they were for."""
    with tacit.Curator(folder) as curator:
        found = Counter(record.contents["purpose"] for record in curator.ledger.history() if record.kind == "reserved")
    return dict(found)
