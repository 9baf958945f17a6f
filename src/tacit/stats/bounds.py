"""The statistic `bounds`: a range in which most values lie, learnt from the data.

Promise and mechanism are those of `learned_bounds`; here the bounds are the answer, and take the whole budget.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from tacit.mechanisms.mechanism import Interval
from tacit.mechanisms.randomness import SYSTEM, RandomSource
from tacit.mechanisms.simulation import mark_simulated
from tacit.privacy.errors import WrongKind
from tacit.privacy.events import Event
from tacit.privacy.tables import Kind
from tacit.stats.answer import Answer
from tacit.stats.learned_bounds import Learning
from tacit.stats.preparation import CommonOptions, StatisticInputs
from tacit.stats.rows import Rows
from tacit.stats.statistic import Noisy, StatisticPlan


@dataclass(frozen=True)
class BoundsAnswer(StatisticPlan):
    """The plan of learnt bounds: a range between powers of two in which most values lie."""

    learning: Learning

    @property
    def event(self) -> Event:
        return self.learning.mechanism.event

    @property
    def lines(self) -> tuple[str, ...]:
        return (self.learning.line,)

    @property
    def keys(self) -> list[tuple[Any, ...]] | None:
        return [("low",), ("high",)]

    @property
    def key_names(self) -> tuple[str, ...]:
        return ("bound",)

    def measure(self, rows: Rows, source: RandomSource = SYSTEM) -> Noisy:
        found = np.array(self.learning.release(rows, source), dtype=np.float64)
        return (mark_simulated(found) if source.simulated else found,)

    def value(self, noisy: Noisy) -> tuple[Any, Any]:
        low, high = np.asarray(noisy[0]).tolist()[:2]
        return (int(low), int(high)) if self.learning.kind is Kind.INTEGER else (low, high)

    def interval(self, noisy: Noisy, level: float) -> Interval | None:
        return None

    def warnings(self, noisy: Noisy) -> tuple[str, ...]:
        released = np.asarray(noisy[0])
        return () if all(released[2:]) else self.learning.warnings(released)  # the learnt bounds are the answer itself


def bounds(values: Any, **options: Unpack[CommonOptions]) -> Answer:
    """Return the range in which most values lie, as a pair that other statistics take as their bounds.

    Its ends are powers of two or 0. A few dozen values at each end (more for a small epsilon) are included; a handful
    of outliers may lie outside.
    """
    inputs = StatisticInputs({"value": values}, options, {"value": Kind.REAL})
    kind = inputs.kind("value")
    if not kind.is_number:
        raise WrongKind(f"bounds are learnt for numbers, and {inputs.name('value')} holds {kind} values")
    learning = Learning.of(inputs.name("value"), kind, inputs.allocation)
    return inputs.release(BoundsAnswer(f"bounds of {inputs.name('value')}", learning))
