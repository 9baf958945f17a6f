"""A seeded simulator: a ledger at work on a disk that can be looked at, or fail, before and after every statement.

`Disk` hands out SQLite connections that have a boundary before and after every statement. There it can copy the files
as they are, which is what a power cut at that moment leaves behind, or raise, which is what a failing disk does.
`Client` does random work and remembers what it was told; `check` holds what is found on disk against that memory.
Everything follows from the seed.
"""

from __future__ import annotations

import contextlib
import random
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tacit.accounting import Cost
from tacit.ledger import HEAD_FILE, KeptFinding, Ledger, Permit
from tacit.ledger.amounts import add_amounts
from tacit.ledger.filters import filter_of
from tacit.ledger.stores import SqliteStore
from tacit.privacy import events
from tacit.privacy.errors import AlreadySettled, BudgetExceeded

FILES = ("ledger.sqlite", "ledger.sqlite-wal")
ANALYSTS = ("ana", "bob")
EPOCHS = ("old", "new")


class Crash(BaseException):
    """The disk is gone."""


class Disk:
    """Where a simulated ledger lies."""

    def __init__(self, folder: Path, at_boundary: Callable[[str], None] | None = None) -> None:
        self.folder = folder
        self.at_boundary = at_boundary or (lambda statement: None)
        self.is_watched = False

    def store(self) -> SqliteStore:
        return SqliteStore(self.folder, connect=self._connect)

    def image(self, target: Path, *, with_head: bool = False) -> Path:
        """Copy the files as they are now: what is left when the power goes."""
        target.mkdir(parents=True)
        for name in (*FILES, HEAD_FILE) if with_head else FILES:
            if (self.folder / name).exists():
                shutil.copyfile(self.folder / name, target / name)
        return target

    def _connect(self, *arguments: Any, **settings: Any) -> Connection:
        return Connection(self, sqlite3.connect(*arguments, **settings))


class Connection:
    """A connection with a boundary before and after every statement."""

    def __init__(self, disk: Disk, real: sqlite3.Connection) -> None:
        self.disk = disk
        self.real = real

    def execute(self, statement: str, values: Any = ()) -> sqlite3.Cursor:
        if statement == "PRAGMA synchronous = FULL":
            statement = (
                "PRAGMA synchronous = OFF"  # the copies show what was written; waiting for the disk adds nothing
            )
        self._boundary(f"before {statement}")
        cursor = self.real.execute(statement, values)
        self._boundary(f"after {statement}")
        return cursor

    @property
    def in_transaction(self) -> bool:
        return self.real.in_transaction

    def close(self) -> None:
        self.real.close()

    def _boundary(self, statement: str) -> None:
        if self.disk.is_watched:
            self.disk.at_boundary(statement)


@dataclass
class Client:
    """Somebody who works with a ledger and remembers what it was told."""

    ledger: Ledger
    random: random.Random
    permits: dict[str, Permit] = field(default_factory=dict)
    """Reservations that were acknowledged."""
    committed: dict[str, bytes] = field(default_factory=dict)
    """Commits that were acknowledged, with the answer."""
    refunded: set[str] = field(default_factory=set)
    requests: list[str] = field(default_factory=list)
    findings: dict[str, KeptFinding] = field(default_factory=dict)
    asked: int = 0

    def work(self, steps: int) -> None:
        """Do so many things, chosen at random."""
        for _ in range(steps):
            self.step()

    def step(self) -> None:
        """Do one thing."""
        doing = self.random.choices(
            (self.reserve, self.commit, self.refund, self.annotate, self.request, self.decide, self.keep_finding),
            (6, 4, 1, 1, 1, 1, 1),
        )[0]
        with contextlib.suppress(AlreadySettled):  # it was done, and a failure kept the word of it from arriving
            doing()

    def reserve(self) -> None:
        self.asked += 1
        plan = self.random.random() < 0.3
        step: events.Event = self.random.choice((events.Laplace(0.01), events.Gaussian(90), events.Exponential(0.02)))
        try:
            permit = self.ledger.reserve(
                "visits",
                events.Repeated(step, 10) if plan else step,
                analyst=self.random.choice((None, *ANALYSTS)),
                epochs=self.random.sample(EPOCHS, self.random.randint(1, 2)),
                purpose=f"question {self.asked}",
                key=f"key {self.asked}" if self.random.random() < 0.5 else None,
                refundable=plan,
            )
        except BudgetExceeded:
            return
        self.permits[permit.id] = permit

    def commit(self) -> None:
        if permit := self._open():
            answer = f"answer of {permit.id}".encode()
            self.ledger.commit(permit, answer, plan=f"plan {permit.purpose}", data_version="1")
            self.committed[permit.id] = answer

    def refund(self) -> None:
        permit = self._open()
        if permit and permit.is_refundable and permit.id not in self.refunded:
            assert isinstance(permit.event, events.Repeated)
            self.ledger.refund(permit, events.Repeated(permit.event.event, 4))
            self.refunded.add(permit.id)

    def annotate(self) -> None:
        if permit := self._open():
            self.ledger.annotate(permit, "still running")

    def request(self) -> None:
        request = self.ledger.file_request(self.random.choice(ANALYSTS), "visits", Cost(0.1, 0, 0), "more, please")
        self.requests.append(request.id)

    def decide(self) -> None:
        if self.requests:
            granted = self.random.random() < 0.5
            self.ledger.decide(self.requests.pop(), granted, by="carl")

    def keep_finding(self) -> None:
        permit = self.random.choice((None, *self.permits))
        found = self.ledger.keep_finding("visits", {"asked": self.asked}, permit=permit, by="olga")
        self.findings[found.id] = found

    def _open(self) -> Permit | None:
        waiting = sorted(set(self.permits) - set(self.committed))
        return self.permits[self.random.choice(waiting)] if waiting else None


def begin(store: SqliteStore, seed: int) -> Client:
    """Open a ledger with a clock and names that follow from the seed, set it up, and return somebody who uses it."""
    chance = random.Random(seed)
    now_us = 0

    def clock() -> int:
        nonlocal now_us
        now_us += chance.randint(-50, 1000)  # clocks are set back now and then
        return now_us

    ledger = Ledger.open(store, clock=clock, token=lambda: f"{chance.getrandbits(64):016x}")
    ledger.create_budget("visits", epsilon=3.0, delta=1e-6)
    for analyst in ANALYSTS:
        ledger.create_cap("visits", analyst, epsilon=0.5, delta=1e-7)
    for epoch in EPOCHS:
        ledger.add_epoch("visits", epoch, epsilon=2.0)
    return Client(ledger, chance)


def check(ledger: Ledger, client: Client, unacknowledged_max: int = 1) -> None:
    """Assert that a recovered ledger holds everything that was acknowledged, and at most the one thing under way."""
    ledger.verify(full=True)
    records = list(ledger.history())
    reserved = {record.contents["permit"]: record for record in records if record.kind == "reserved"}
    committed = {record.contents["permit"] for record in records if record.kind == "committed"}
    released = {record.contents["permit"] for record in records if record.kind == "answer-released"}
    assert set(client.permits) <= set(reserved), "no charge is lost"
    assert len(set(reserved) - set(client.permits)) <= unacknowledged_max, "nothing is charged twice"
    assert set(client.committed) <= committed <= set(reserved)
    assert released <= committed, "no answer without its charge"
    kept = {one.id: one for one in ledger.findings("visits")}
    assert client.findings.items() <= kept.items(), "no finding is lost"
    assert len(kept.keys() - client.findings.keys()) <= unacknowledged_max
    for permit_id, answer in client.committed.items():
        assert ledger.released(f"plan {client.permits[permit_id].purpose}", "1") == answer
    assert {one.permit.id for one in ledger.reservations()} == set(reserved) - committed
    _check_totals(ledger)


def _check_totals(ledger: Ledger) -> None:
    """Add up every scope from what its permits say, without the ledger's own replay."""
    for scope in ledger.scopes():
        row = ledger.row_of(scope)
        totals = filter_of(row.cap).nothing
        for record in ledger.history():
            charged = record.contents.get("charged", {}).get(scope.key)
            returned = record.contents.get("returned", {}).get(scope.key)
            for amounts, sign in ((charged, 1), (returned, -1)):
                if amounts is not None:
                    units = tuple(tuple(sign * int(number) for number in amount) for amount in amounts)
                    totals = add_amounts(totals, units)
        assert row.totals == totals
