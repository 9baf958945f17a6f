"""Response padding: an answer is returned at the end of the time class that its plan predicts.

How long a query runs depends on the rows, so its duration leaks information about them. Answers, and failures after the
charge, are therefore held back for a number of seconds that depends on the plan only: its time class. A run that takes
longer than its class is answered at the end of the next one, twice as long, and so on. Such late answers are counted
(`tacit_late_answers_total`); a server with many of them needs a longer first class (`--timing-class`). The outcome is
committed at that moment and not before (`server.jobs`). Answers that were released before depend on no row and are
returned at once.

Remaining leakage: the class of a late answer, at most one bit for each doubling.
"""

from __future__ import annotations

import asyncio
import math
import time
from dataclasses import dataclass
from typing import Final

from tacit.pipeline import Work

STEP_S: Final = 4e-8
"""An upper bound on the time of one step of `Plan.work`: measured up to 10 ns on DuckDB, 25 ns on Spark, where the code
of long expressions is interpreted, and 32 ns on PostgreSQL, where each comparison unpacks a stored text anew (20 of
them with texts of 4,096 characters of four bytes, behind a join; the texts are cut once, below it)."""


@dataclass(frozen=True, slots=True)
class ResponseClock:
    """When a query began, and the time class that its plan predicts."""

    started_s: float
    class_s: float

    @property
    def elapsed_s(self) -> float:
        """Seconds since the query began."""
        return time.monotonic() - self.started_s

    @property
    def wait_s(self) -> float:
        """Seconds until the answer may be returned."""
        return padded_s(self.elapsed_s, self.class_s) - self.elapsed_s

    async def wait(self) -> bool:
        """Wait until the answer may be returned; return whether it was late for its class."""
        late = self.elapsed_s > self.class_s
        await asyncio.sleep(max(0.0, self.wait_s))
        return late


def class_of(work: Work, first_s: float) -> float:
    """Return the time class of a release in seconds: the first class, doubled until it covers the predicted work.

    The prediction is one first class for each statement and each table that it reads, or twice the time that one unit
    may add, if that is longer; none of it depends on a row.
    """
    return doubled(max(work.statements, 2 * work.unit_steps * STEP_S / first_s), first_s)


def doubled(times: float, first_s: float) -> float:
    """Return `first_s`, doubled until it is at least `times` as long."""
    return first_s * 2.0 ** max(0, math.ceil(math.log2(max(1.0, times))))


def padded_s(elapsed_s: float, class_s: float) -> float:
    """Return the end of the class in which a run ended: the predicted class, or 2, 4, 8 ... times as long."""
    return doubled(elapsed_s / class_s, class_s)
