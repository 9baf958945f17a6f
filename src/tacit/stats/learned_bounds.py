"""Statistics whose bounds are learnt first, within the same one charge.

Promise: each row is counted in one of 128 bins (64 of each sign, each twice as wide as the one before), so a unit with
at most `per_unit` rows moves the counts by that in L1 (twice that where a unit is replaced). Bounds are released from
them with Laplace noise (`mechanisms.ApproximateBounds`: Wilson et al. 2020), and are then public: the statistic is
planned with them. Its event is known before, because it depends on shares of the budget and not on bounds. The charge
is the composition of both.

Each column whose bounds are learnt has the weight `LEARNING_WEIGHT` in the budget, beside 1 for the statistic.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from tacit.measuring.allocation import Allocation
from tacit.mechanisms.approximate_bounds import (
    LEARNING_BINS,
    LEARNING_SCALE,
    LEARNING_WEIGHT,
    UNLEARNED,
    ApproximateBounds,
)
from tacit.mechanisms.mechanism import Interval
from tacit.mechanisms.randomness import SYSTEM, RandomSource
from tacit.mechanisms.simulation import mark_simulated
from tacit.privacy.bounds import Bounds
from tacit.privacy.events import Composed, Event
from tacit.privacy.figures import grouped
from tacit.privacy.tables import Kind
from tacit.stats.rows import Cut, Rows, Term
from tacit.stats.statistic import Noisy, StatisticPlan

PLACEHOLDER: Final = Bounds(*UNLEARNED)
"""The bounds in a plan until they are learnt."""


def learning_parts(allocation: Allocation, columns: int) -> tuple[Allocation, ...]:
    """Return the allocation that learns the bounds of each column, and last that of the statistic."""
    return allocation.divided(*[LEARNING_WEIGHT] * columns, 1) if columns else (allocation,)


@dataclass(frozen=True)
class Learning:
    """How the bounds of one column are learnt."""

    column: str
    kind: Kind
    mechanism: ApproximateBounds

    @classmethod
    def of(cls, column: str, kind: Kind, part: Allocation) -> Learning:
        """Return the learning of a column with an allocation."""
        mechanism = ApproximateBounds.for_unknown_values(part.row_sensitivity, float(part.pure_epsilon), part.relation)
        return cls(column, kind, mechanism)

    @property
    def cut(self) -> Cut:
        """The bins between powers of two; those of positive values include their upper edges."""
        powers = [float(LEARNING_SCALE * 2**place) for place in range(LEARNING_BINS)]
        above = [math.nextafter(power, math.inf) for power in powers]
        return Cut(self.column, edges=(*(-power for power in reversed(powers)), 0.0, *above))

    @property
    def line(self) -> str:
        """The counts and their noise in words."""
        scale, limit = grouped(float(self.mechanism.noise.scale), 4), self.mechanism.limit_in_words()
        counted = f"from rows in {2 * LEARNING_BINS} bins with Laplace noise of scale {scale}"
        return f"bounds of {self.column}: {counted}, which may miss {limit} of a bin"

    def warnings(self, released: NDArray[Any]) -> tuple[str, ...]:
        """Return a warning about values beyond the bounds, or that they are a guess (a third released number of 0)."""
        lower, upper, *stands_out = map(float, released)
        return (self.mechanism.warning(self.column, lower, upper, is_guess=not all(stands_out)),)

    def release(self, rows: Rows, source: RandomSource) -> tuple[float, float, bool]:
        """Return the bounds, integers for integers, and whether they are more than a guess."""
        (counts,) = rows.sums([Term()], (self.cut,), [self.column])
        found, is_guess = self.mechanism.learn(counts, source)
        if self.kind is Kind.INTEGER:
            low, high = math.ceil(found.lower), math.floor(found.upper)
            return float(min(low, high)), float(max(low, high)), not is_guess
        return float(found.lower), float(found.upper), not is_guess


@dataclass(frozen=True)
class StatisticWithLearntBounds(StatisticPlan):  # its name is a part of digests that ledgers hold: do not rename it
    """A statistic whose bounds are learnt first; until then its plan has placeholders."""

    parts: tuple[Learning, ...]
    plan: StatisticPlan
    then: Callable[[Mapping[str, Bounds]], StatisticPlan] | None = field(repr=False, compare=False)
    """Returns the plan within learnt bounds; None in an answer, as it holds the inputs."""
    found: tuple[tuple[float, float], ...] = ()

    @classmethod
    def of(
        cls,
        plan: StatisticPlan,
        columns: Mapping[str, Kind],
        allocation: Allocation,
        then: Callable[[Mapping[str, Bounds]], StatisticPlan],
    ) -> StatisticWithLearntBounds:
        """Return a plan that learns the bounds of columns before another plan."""
        parts = learning_parts(allocation, len(columns))[:-1]
        learning = (Learning.of(name, kind, part) for (name, kind), part in zip(columns.items(), parts, strict=True))
        return cls(plan.label, tuple(learning), plan, then)

    @property
    def learned_bounds(self) -> dict[str, list[float]]:
        return {part.column: list(span) for part, span in zip(self.parts, self.found, strict=True)}

    @property
    def clamped(self) -> dict[str, Bounds]:
        learned = {part.column for part in self.parts}  # of which a warning says it
        return {name: bounds for name, bounds in self.plan.clamped.items() if name not in learned}

    @property
    def event(self) -> Event:
        return Composed((*(part.mechanism.event for part in self.parts), self.plan.event))

    @property
    def lines(self) -> tuple[str, ...]:
        learned = [f"; found: {low:g} to {high:g}" for low, high in self.found] or [""] * len(self.parts)
        parts = [f"{part.line}{found}" for part, found in zip(self.parts, learned, strict=True)]
        return (*parts, *self.plan.lines)

    @property
    def numbers(self) -> int:
        return self.plan.numbers

    @property
    def row_steps(self) -> int:
        return self.plan.row_steps

    @property
    def keys(self) -> list[tuple[Any, ...]] | None:
        return self.plan.keys

    @property
    def key_names(self) -> tuple[str, ...]:
        return self.plan.key_names

    @property
    def picture(self) -> str:
        return self.plan.picture

    def known(self, noisy: Noisy) -> StatisticPlan:
        bounds = np.asarray(noisy[0], dtype=np.float64)
        found = tuple((float(one[0]), float(one[1])) for one in bounds)
        return replace(self, plan=self._plan_within(found).known(noisy[1:]), found=found)

    def released(self) -> Self:
        return replace(super().released(), then=None)

    def _plan_within(self, found: tuple[tuple[float, float], ...]) -> StatisticPlan:
        """Return the plan within learnt bounds, which has the event that was charged."""
        assert self.then is not None, "the plan is not that of an answer"
        plan = self.then({part.column: Bounds(*span) for part, span in zip(self.parts, found, strict=True)})
        assert plan.event == self.plan.event, "the event of a statistic does not depend on its bounds"
        return plan

    def measure(self, rows: Rows, source: RandomSource = SYSTEM) -> Noisy:
        released = [part.release(rows, source) for part in self.parts]
        found = tuple(_wide((low, high)) for low, high, _ in released)
        bounds = np.array([(*span, one[2]) for span, one in zip(found, released, strict=True)], dtype=np.float64)
        return (mark_simulated(bounds) if source.simulated else bounds, *self._plan_within(found).measure(rows, source))

    def rehearse(self, per_unit: int) -> Noisy:
        bounds, *_ = super().rehearse(per_unit)
        return bounds, *self.plan.rehearse(per_unit)

    def value(self, noisy: Noisy) -> Any:
        return self.plan.value(noisy[1:])

    def interval(self, noisy: Noisy, level: float) -> Interval | None:
        """Return the interval within learnt bounds; None if they are a guess, which may have moved most values."""
        if not np.asarray(noisy[0])[:, 2:].all():
            return None
        return self.plan.interval(noisy[1:], level)

    def warnings(self, noisy: Noisy) -> tuple[str, ...]:
        learned = zip(self.parts, np.asarray(noisy[0]), strict=True)
        return (*(warning for part, one in learned for warning in part.warnings(one)), *self.plan.warnings(noisy[1:]))


def _wide(span: tuple[float, float]) -> tuple[float, float]:
    """Return bounds that differ, as partitions require."""
    low, high = span
    return (low, high) if low < high else (low - 1, high + 1)
