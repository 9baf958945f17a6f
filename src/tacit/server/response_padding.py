"""Response padding: an answer is given at the end of the class of time that its plan predicts.

How long a question runs depends on the rows that it meets, and whoever measures it learns about them. So answers, and
failures after the charge, are held back until a moment that the plan alone decides: a class of so many seconds, by what
the engine is asked to do. A run that takes longer than its class is answered at the end of the next one, twice as long,
and so on; that it was late is counted (`tacit_late_answers_total`), and a server on which it happens often wants a
longer first class (`--timing-class`). The outcome is committed at that moment and not before (`server.jobs`). Answers
that were released before depend on no row and are given at once.

What is left: which class a late answer falls into, at most one bit for each doubling.
"""

from __future__ import annotations

import asyncio
import math
import time
from dataclasses import dataclass
from typing import Final

from tacit.pipeline import Work

STEP_S: Final = 4e-8
"""How long a step of `Plan.work` takes an engine at most: measured up to 10 ns on DuckDB, 25 ns on Spark, where the
code of long expressions is interpreted, and 32 ns on PostgreSQL, where each comparison unpacks a stored text anew (20
of them with texts of 4,096 characters of four bytes, behind a join; the texts are cut once, below it)."""


@dataclass(frozen=True, slots=True)
class ResponseClock:
    """The moment at which a question began, and the class that its plan predicts."""

    started_s: float
    class_s: float

    @property
    def elapsed_s(self) -> float:
        """How long ago it began."""
        return time.monotonic() - self.started_s

    @property
    def wait_s(self) -> float:
        """How long the answer is held back from now on."""
        return padded_s(self.elapsed_s, self.class_s) - self.elapsed_s

    async def wait(self) -> bool:
        """Wait until the answer may be given; whether the question was late for its class."""
        late = self.elapsed_s > self.class_s
        await asyncio.sleep(max(0.0, self.wait_s))
        return late


def class_of(work: Work, first_s: float) -> float:
    """Return the seconds of a release's class: the first one, doubled until it holds what the engine is asked to do.

    One class for each statement and each table that it reads, and twice the time that one unit may add; none of it
    depends on a row.
    """
    return doubled(max(work.statements, 2 * work.unit_steps * STEP_S / first_s), first_s)


def doubled(times: float, first_s: float) -> float:
    """Return the first class, doubled until it holds so many of itself."""
    return first_s * 2.0 ** max(0, math.ceil(math.log2(max(1.0, times))))


def padded_s(elapsed_s: float, class_s: float) -> float:
    """Return the end of the class in which a run ended: the predicted one, or twice, four times ... as long."""
    late = max(elapsed_s / class_s, 1.0)
    return class_s * 2.0 ** math.ceil(math.log2(late))
