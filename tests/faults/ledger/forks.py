"""Forks of a process that has a ledger open, and what parent and child find in it afterwards.

Run as a program (`python -m tests.faults.ledger.forks NAME FOLDER`), as a test process with threads of its own must
not fork. It prints what happened as one JSON object.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tacit.ledger import Ledger, accounts
from tacit.privacy import events
from tacit.privacy.errors import TacitError

CHARGE = events.Pure(1.0)


class Child:
    """A forked child that takes one step of `work` each time its parent asks for one."""

    def __init__(self, *work: Callable[[], Any]) -> None:
        from_parent, self._to_child = os.pipe()
        self._from_child, to_parent = os.pipe()
        self._id = os.fork()
        if self._id:
            os.close(from_parent)
            os.close(to_parent)
            return
        try:
            for step in work:
                os.read(from_parent, 1)
                os.write(to_parent, json.dumps(said_by(step)).encode())
        finally:
            os._exit(0)

    def step(self, timeout_s: float = 100) -> Any:
        """Let the child take its next step, and return what came of it; kill a child that hangs."""
        os.write(self._to_child, b"x")
        if not select.select([self._from_child], [], [], timeout_s)[0]:
            os.kill(self._id, signal.SIGKILL)
            return "the child hangs"
        return json.loads(os.read(self._from_child, 65536))

    def end(self) -> None:
        """Wait until the child has ended."""
        os.close(self._to_child)
        os.close(self._from_child)
        os.waitpid(self._id, 0)


def said_by(step: Callable[[], Any]) -> Any:
    """Return what a step returns, or the code and the sentence of its refusal."""
    try:
        return step()
    except TacitError as error:
        return [error.code, str(error)]


def charge(ledger: Ledger) -> float:
    """Charge epsilon 1 and return what is spent then."""
    ledger.budget("visits").charge(CHARGE)
    return ledger.budget("visits").spent().epsilon


def parent_closes_first(folder: Path) -> dict[str, Any]:
    """Charge in the parent, in its child, in the child after the parent has closed, and by a third who opens then."""
    ledger = Ledger.open(folder)
    said = {"parent": charge(ledger)}
    child = Child(lambda: charge(ledger), lambda: charge(ledger), lambda: ledger.close())
    said["child"] = child.step()
    ledger.close()
    said["child again"] = child.step()
    with Ledger.open(folder) as third:
        said["third"] = charge(third)
        child.step()
        child.end()
    return said


def fork_inside_a_transaction(folder: Path) -> dict[str, Any]:
    """Fork in the thread that holds the write lock; the child charges by the same ledger, and by one that it opens."""
    with Ledger.open(folder) as ledger:
        with ledger._store.transaction():
            child = Child(lambda: charge(ledger), lambda: charge(Ledger.open(folder)))
            said = {"same": child.step(), "opened": child.step()}
            child.end()
        return {**said, "parent": charge(ledger)}


def fork_beside_a_transaction(folder: Path) -> dict[str, Any]:
    """Fork while another thread charges without a pause; each child charges once."""
    end = threading.Event()
    counts = {"thread": 0, "children": 0}
    with Ledger.open(folder) as ledger:

        def charging() -> None:
            while not end.is_set():
                charge(ledger)
                counts["thread"] += 1

        thread = threading.Thread(target=charging)
        thread.start()
        for _ in range(20):
            child = Child(lambda: charge(ledger))
            counts["children"] += isinstance(child.step(), float)
            child.end()
        end.set()
        thread.join()
        return {**counts, "spent": ledger.budget("visits").spent().epsilon}


def fork_beside_a_price(folder: Path) -> dict[str, Any]:
    """Fork while another thread is in the middle of a price; the child charges, and the parent after it."""
    inside, end, real = threading.Event(), threading.Event(), accounts.approximate_zcdp

    def slow(event: events.Event) -> tuple[float, float]:
        inside.set()
        end.wait(30)
        return real(event)

    with Ledger.open(folder) as ledger:
        accounts.approximate_zcdp = slow
        thread = threading.Thread(target=lambda: ledger.preview("visits", events.Laplace(3.0)))
        thread.start()
        inside.wait(30)
        accounts.approximate_zcdp = real
        child = Child(lambda: charge(ledger))
        said = {"child": child.step(timeout_s=20)}
        end.set()
        thread.join()
        child.end()
        return {**said, "parent": charge(ledger)}


def threads_of_a_child(folder: Path) -> dict[str, Any]:
    """Fork, and let eight threads of each child make its first changes at once."""
    ended = 0

    def together() -> int:
        sys.setswitchinterval(1e-6)
        barrier = threading.Barrier(8)

        def run() -> None:
            barrier.wait()
            ledger.reserve("visits", CHARGE)

        threads = [threading.Thread(target=run, daemon=True) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
        return sum(not thread.is_alive() for thread in threads)

    with Ledger.open(folder) as ledger:
        for _ in range(10):
            child = Child(together)
            ended += child.step(timeout_s=100)
            child.end()
        return {"ended": ended, "spent": ledger.budget("visits").spent().epsilon}


if __name__ == "__main__":
    name, folder_name = sys.argv[1:]
    chosen = {
        "closes-first": parent_closes_first,
        "inside": fork_inside_a_transaction,
        "beside": fork_beside_a_transaction,
        "beside-price": fork_beside_a_price,
        "threads": threads_of_a_child,
    }[name]
    sys.stdout.write(json.dumps(chosen(Path(folder_name))))
