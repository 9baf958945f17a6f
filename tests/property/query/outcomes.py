"""What somebody sees of a run beside its answer: whether it ends, how it fails, and how long it takes.

`compared` runs the statements of one plan on a world and on its neighbour without the victim. Both must end in the same
way; the victim may add so much processor time and no more; and the results must be no further apart than was charged
for (`neighbours`). Time is that of the processor, with one thread, so that other work on the machine does not count.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import duckdb

from tacit.engines.protocol import SCHEMA
from tacit.privacy.errors import InvalidInput, QueryRefused
from tacit.query import Plan
from tacit.query.rewrite import Statement
from tests.property.query.hostile_questions import hostile_question
from tests.property.query.hostile_worlds import WITHOUT, database, hostile_world, load
from tests.property.query.neighbours import Pair, Violated, check_bins, check_price, executed, ranges_of
from tests.property.query.questions import Asked
from tests.support.plans import plan_sql

EXTRA_S: Final = 3.0
"""How much processor time the rows of one unit may add to all statements of a plan."""

LONGEST_S: Final = 30.0
"""When a run without the victim is ended: what takes so long for ordinary rows tells nothing of one unit."""

Results = list[dict[str, list[Any]]]


@dataclass
class Outcomes:
    """What was tried, and how it ended."""

    pairs: int = 0
    refused: int = 0
    answered: int = 0
    failed: int = 0
    """How many failed in the same way on both sides."""
    features: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    tight: float = 0.0
    extra_s: float = 0.0

    @property
    def asked(self) -> int:
        """How many questions were asked."""
        return self.refused + self.answered + self.failed


class Stopwatch:
    """Measures the processor time of statements on one connection, and ends those that take too much."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection, self._lock, self._until = connection, threading.Lock(), float("inf")
        self._watching = True
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while self._watching:
            time.sleep(0.02)
            with self._lock:
                if time.process_time() > self._until:
                    self._connection.interrupt()

    @contextmanager
    def limit(self, seconds: float) -> Iterator[None]:
        """End what runs inside after so much processor time."""
        with self._lock:
            self._until = time.process_time() + seconds
        try:
            yield
        finally:
            with self._lock:
                self._until = float("inf")

    def close(self) -> None:
        """Stop watching."""
        self._watching = False
        self._thread.join()


@dataclass
class Run:
    """One side of a pair: how its statements ended so far, and their processor time."""

    schema: str
    connection: duckdb.DuckDBPyConnection
    watch: Stopwatch
    ended: str = "answered"
    seconds: float = 0.0

    def results(self, statements: Sequence[Statement], limit_s: float) -> Results:
        """Run statements; none are returned if one of them fails."""
        found: Results = []
        texts = [one.sql() for one in statements]
        started = time.process_time()
        with self.watch.limit(limit_s - self.seconds):
            for text in texts:
                try:
                    found.append(executed(self.connection, text, self.schema))
                except Violated as error:
                    if not isinstance(error.__cause__, duckdb.Error):
                        raise
                    self.ended = type(error.__cause__).__name__
                    break
        self.seconds += time.process_time() - started
        return found


def compared(plan: Plan, connection: duckdb.DuckDBPyConnection, watch: Stopwatch) -> tuple[str, float, float]:
    """Return how both sides ended, the time that the victim added, and how near the results came to the limit.

    Raises `Violated` if the sides differ in more than the noise hides.
    """
    whole, without = Run(SCHEMA, connection, watch), Run(WITHOUT, connection, watch)
    bins = _both(plan.learning, whole, without)
    if whole.ended != "answered":
        return whole.ended, whole.seconds - without.seconds, 0.0
    check_bins(plan, *bins)
    ranged = plan.ranged(ranges_of(plan, bins[0])) if plan.missing else plan
    found = _both(ranged.statements, whole, without)
    extra_s = whole.seconds - without.seconds
    if whole.ended != "answered":
        return whole.ended, extra_s, 0.0
    return whole.ended, extra_s, Pair(ranged, *found, *bins).check()


def _both(statements: Sequence[Statement], whole: Run, without: Run) -> tuple[Results, Results]:
    one = without.results(statements, LONGEST_S)
    other = whole.results(statements, without.seconds + EXTRA_S)
    if whole.ended != without.ended:
        late = whole.ended == duckdb.InterruptException.__name__
        ended = f"takes {EXTRA_S} s of processor time more" if late else f"ends with {whole.ended}"
        raise Violated(f"a run with the victim {ended}; without it the run {without.ended} in {without.seconds:.2f} s")
    return other, one


def asked_of(asked: Asked, number: int, connection: duckdb.DuckDBPyConnection, watch: Stopwatch) -> Outcomes:
    """Put one question to the world that is loaded, and say what came of it."""
    schema = hostile_world(number).schema
    try:
        plan = plan_sql(asked.sql, schema, asked.target, asked.terms, asked.settings)
    except (QueryRefused, InvalidInput) as error:
        return Outcomes(refused=1, codes=Counter([error.code]))
    check_price(asked, plan)
    try:
        ended, extra_s, tight = compared(plan, connection, watch)
    except Violated as error:
        raise Violated(f"{error}\nworld {number}\n{asked.sql}\n{plan.bounding}") from error
    if ended != "answered":
        return Outcomes(1, failed=1, codes=Counter([ended]))
    return Outcomes(1, answered=1, features=Counter(asked.features), tight=tight, extra_s=extra_s)


def added(one: Outcomes, other: Outcomes) -> Outcomes:
    """Return two tallies as one."""
    return Outcomes(
        one.pairs + other.pairs,
        one.refused + other.refused,
        one.answered + other.answered,
        one.failed + other.failed,
        one.features + other.features,
        one.codes + other.codes,
        max(one.tight, other.tight),
        max(one.extra_s, other.extra_s),
    )


def fuzz(worlds: Iterable[int], places: Sequence[int], sql_max: int = 50_000) -> Outcomes:
    """Put the questions of some places, unless they are longer, to each of some worlds."""
    used = database()
    watch, tally = Stopwatch(used), Outcomes()
    try:
        for number in worlds:
            load(hostile_world(number), used)
            for place in places:
                seed = number * 1_000 + place
                asked = hostile_question(seed)
                if len(asked.sql) > sql_max:
                    continue
                try:
                    tally = added(tally, asked_of(asked, number, used, watch))
                except Violated as error:
                    raise Violated(f"{error}\nseed {seed}") from error
    finally:
        watch.close()
        used.close()
    return tally
