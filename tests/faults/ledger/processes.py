"""Real processes that share a ledger: forked quickly, killed at random, or left to spend a budget to its end.

Run as a program (`python -m tests.faults.ledger.processes kill|spend FOLDER ...`): it imports tacit once and forks,
which a test process with threads of its own must not do. It prints what the children said as one JSON object.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import select
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from tacit.ledger import Ledger
from tacit.privacy import events
from tacit.privacy.errors import BudgetExceeded

CHILDREN_AT_ONCE = 2


def forked(work: Callable[[int], None]) -> tuple[int, int]:
    """Start a child that does `work` with the writing end of a pipe; return its id and the reading end."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _do_and_exit(work, writing)
    os.close(writing)
    return child, reading


def _do_and_exit(work: Callable[[int], None], writing: int) -> NoReturn:
    status = 1
    try:
        work(writing)
        status = 0
    finally:
        os._exit(status)


def reserve_and_commit(folder: Path, number: int) -> Callable[[int], None]:
    """Reserve and commit without end, saying what is done when, and only when, the ledger has said so."""

    def work(writing: int) -> None:
        with Ledger.open(folder) as ledger:
            for turn in range(1_000_000):
                permit = ledger.reserve("visits", events.Laplace(0.001), analyst="ana")
                os.write(writing, f"reserved {permit.id}\n".encode())
                ledger.commit(permit, b"answer", plan=f"{number} {turn}", data_version="1")
                os.write(writing, f"committed {permit.id}\n".encode())

    return work


def kill(folder: Path, seed: int, kills: int) -> dict[str, list[str]]:
    """Start children and kill each after a random time; return what they said.

    The time is up to one and a half times what a child takes to open, reserve and commit: as measured at first, then
    longer after each child that died without a word and shorter after the others, so that on a busy machine, too, about
    half of them are killed in the middle of their work.
    """
    chance, once_s = random.Random(seed), _seconds_of_one(folder)
    said: dict[str, list[str]] = {"reserved": [], "committed": [], "killed": []}
    running: list[tuple[int, int, float]] = []
    for number in range(kills):
        child, reading = forked(reserve_and_commit(folder, number))
        running.append((child, reading, time.monotonic() + chance.uniform(0.1, 1.5) * once_s))
        while len(running) >= CHILDREN_AT_ONCE or (number == kills - 1 and running):
            child, reading, end_s = min(running, key=lambda one: one[2])
            running.remove((child, reading, end_s))
            time.sleep(max(0.0, end_s - time.monotonic()))
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            if os.WIFSIGNALED(status):
                said["killed"].append(str(child))
            lines = _read(reading).splitlines()
            once_s *= 1 / 1.1 if lines else 1.1
            for line in lines:
                what, _, permit = line.partition(" ")
                said[what].append(permit)
    return said


def _seconds_of_one(folder: Path) -> float:
    """Return how long a child takes with a ledger of its own until it has committed."""
    with Ledger.open(folder / "own") as ledger:
        ledger.create_budget("visits", epsilon=1.0)

    def work(writing: int) -> None:
        with Ledger.open(folder / "own") as ledger:
            ledger.commit(ledger.reserve("visits", events.Laplace(0.001)), b"answer")
        os.write(writing, b"done")

    started_s = time.monotonic()
    child, reading = forked(work)
    assert _read(reading) == "done"
    os.waitpid(child, 0)
    return time.monotonic() - started_s


def charge_to_the_end(folder: Path, epsilon: float) -> Callable[[int], None]:
    """Charge until nothing fits, and say how often it did."""

    def work(writing: int) -> None:
        count = 0
        with Ledger.open(folder) as ledger, contextlib.suppress(BudgetExceeded):
            while True:
                ledger.reserve("visits", events.Laplace(epsilon), analyst="ana")
                count += 1
        os.write(writing, f"{count}\n".encode())

    return work


def spend(folder: Path, children: int, epsilon: float) -> dict[str, list[int]]:
    """Let several children charge one budget to its end; return how often each of them did."""
    started = [forked(charge_to_the_end(folder, epsilon)) for _ in range(children)]
    counts = [int(_read(reading) or "-1") for _, reading in started]
    statuses = [os.waitpid(child, 0)[1] for child, _ in started]
    return {"counts": counts, "statuses": statuses}


def _read(reading: int) -> str:
    """Read a pipe to its end and close it."""
    parts = []
    while select.select([reading], [], [], 60)[0] and (part := os.read(reading, 65536)):
        parts.append(part)
    os.close(reading)
    return b"".join(parts).decode()


if __name__ == "__main__":
    name, folder_name, *numbers = sys.argv[1:]
    chosen = {
        "kill": lambda: kill(Path(folder_name), int(numbers[0]), int(numbers[1])),
        "spend": lambda: spend(Path(folder_name), int(numbers[0]), float(numbers[1])),
    }[name]
    sys.stdout.write(json.dumps(chosen()))
