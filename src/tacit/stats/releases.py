"""A statistic as a kind of release: planned, previewed, charged and run by the pipeline.

    prepared = tacit.stats.prepare(tacit.stats.mean, visits["age"], epsilon=0.1)    # reads no data, charges nothing
    prepared.preview().epsilon, prepared.preview().is_released
    answer = prepared.release()

`tacit.stats.mean(...)` is `prepare(...)` and `release()` in one call.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

import numpy as np

from tacit import pipeline
from tacit.ledger import Budget
from tacit.ledger.answer_storage import require_storable
from tacit.pipeline import CallerData, Data, Quote, ReleaseOptions, Work
from tacit.privacy.errors import InvalidInput
from tacit.privacy.events import Event
from tacit.stats.answer import Answer
from tacit.stats.array_sums import ArrayRows
from tacit.stats.rows import Rows
from tacit.stats.statistic import Noisy, StatisticPlan, from_bytes, to_bytes

_IS_PREPARING: Final[ContextVar[bool]] = ContextVar("tacit_stats_is_preparing", default=False)


class BoundRows(ABC):
    """The rows of a statistic, bound to one version of the data."""

    name: str
    """The name of the table in a digest."""
    data: Data

    @abstractmethod
    def rows(self, per_unit: int, options: ReleaseOptions) -> Rows:
        """Return the rows for a plan, at most `per_unit` of each unit."""

    def work(self, plan: StatisticPlan, per_unit: int) -> Work:
        """Return the work of the engine for a plan."""
        return Work()

    def check(self, plan: StatisticPlan, per_unit: int) -> None:
        """Raise what `measure` would raise for any rows; for a table, also for a statement that its engine lacks."""
        plan.rehearse(per_unit)


class BoundArrays(BoundRows):
    """Arrays of the caller, read before the charge."""

    name = ""

    def __init__(self, read: ArrayRows) -> None:
        self.data = CallerData()
        self._read = read

    def rows(self, per_unit: int, options: ReleaseOptions) -> Rows:
        return self._read


@dataclass(frozen=True)
class StatisticRelease:
    """The release plan of a statistic (`pipeline.ReleasePlan`)."""

    plan: StatisticPlan
    per_unit: int
    bound: BoundRows

    @property
    def event(self) -> Event:
        """The event of all that the plan measures."""
        return self.plan.event

    @property
    def label(self) -> str:
        """The purpose in the ledger."""
        return self.plan.label

    @property
    def data(self) -> Data:
        """The table or the arrays."""
        return self.bound.data

    @cached_property
    def digest(self) -> str:
        """Equal for the same statistic of the same table with the same rows of a unit."""
        return hashlib.sha256(f"{self.bound.name.lower()}\n{self.per_unit}\n{self.plan.canonical}".encode()).hexdigest()

    @cached_property
    def answer_bytes(self) -> int | None:
        """The greatest size of the stored answer, from a rehearsal."""
        return self.plan.answer_bytes(self.per_unit)

    @cached_property
    def work(self) -> Work:
        """The statements of the plan."""
        return self.bound.work(self.plan, self.per_unit)

    def check(self) -> None:
        """Rehearse the plan; raise for an answer that cannot be stored, and for a statement that cannot be written."""
        if self.data.version is not None:
            require_storable(self.answer_bytes)
        self.bound.check(self.plan, self.per_unit)

    def run(self, options: ReleaseOptions) -> Noisy:
        """Return the noisy sums of the rows, without warnings of floating point, which would depend on rows."""
        with np.errstate(all="ignore"):
            return self.plan.measure(self.bound.rows(self.per_unit, options), options.source)

    def encode(self, answer: Noisy) -> bytes:
        """Return the noisy numbers as JSON."""
        return to_bytes(answer)

    def decode(self, kept: bytes) -> Noisy:
        """Read noisy numbers back."""
        return from_bytes(kept)


@dataclass(frozen=True, slots=True, eq=False)
class StatisticPreview(Quote):
    """The exact cost of a statistic, before anything is charged."""

    lines: tuple[str, ...] = ()
    """The released numbers and their noise, in words."""


@dataclass(frozen=True)
class PreparedStatistic:
    """A planned statistic; no row of a table was read and nothing was charged."""

    plan: StatisticPlan
    """What will be measured."""
    per_unit: int
    bind: Callable[[], BoundRows]
    """Returns the rows in their present version."""
    budget: Budget
    options: ReleaseOptions
    protected: str
    answer_type: type[Answer] = Answer
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Further attributes of the answer."""
    clamped: str = ""
    """Which columns were clamped before, by their registered bounds, further than the plan says."""
    counted: str = ""
    """How the release is counted, where that differs from what was stated; a line of the preview."""

    @property
    def statistic(self) -> StatisticRelease:
        """The plan for the pipeline, bound to the rows as they are now."""
        return StatisticRelease(self.plan, self.per_unit, self.bind())

    @property
    def is_released(self) -> bool:
        """Whether the same statistic of the same data was released before, so that `release` charges nothing."""
        return pipeline.find_released(self.statistic, self.budget) is not None

    def preview(self) -> StatisticPreview:
        """Return exactly what `release` would charge now."""
        quote = pipeline.preview(self.statistic, self.budget)
        lines = (*self.plan.lines, *self.plan.coverage, self.clamped, self.counted)
        return StatisticPreview(**quote.facts, lines=tuple(filter(None, lines)))

    def release(self) -> Answer:
        """Charge the statistic, compute it and return its answer, or raise."""
        found = pipeline.release(self.statistic, self.budget, self.options)
        answer = Answer(self.plan, found.answer, found.cost, found.permit, self.protected, self.clamped)
        if self.answer_type is Answer:
            return answer
        made = self.answer_type.of(answer)
        vars(made).update(self.facts)
        return made


class _Unanswered(Answer):
    """The result of a statistic inside `prepare`: an answer with the prepared statistic alone."""

    def __init__(self, prepared: PreparedStatistic) -> None:
        vars(self)["prepared"] = prepared


def release_or_prepare(prepared: PreparedStatistic) -> Answer:
    """Release a statistic; inside `prepare`, return an answer that holds the prepared statistic alone."""
    return _Unanswered(prepared) if _IS_PREPARING.get() else prepared.release()


def prepare(function: Callable[..., Answer], /, *arguments: Any, **named: Any) -> PreparedStatistic:
    """Plan a function of `tacit.stats` with its arguments; reads no row of a table and charges nothing."""
    if isinstance(function, type):  # running totals are charged when they are made
        raise InvalidInput(f"{function.__name__} is no statistic of tacit.stats", name="function")
    token = _IS_PREPARING.set(True)
    try:
        made = function(*arguments, **named)
    finally:
        _IS_PREPARING.reset(token)
    found: Mapping[str, Any] = getattr(made, "__dict__", {})
    if "prepared" not in found:
        raise InvalidInput(f"{getattr(function, '__name__', 'this')} is no statistic of tacit.stats", name="function")
    prepared: PreparedStatistic = found["prepared"]
    facts = {name: value for name, value in found.items() if name != "prepared"}
    return replace(prepared, answer_type=Answer if type(made) is _Unanswered else type(made), facts=facts)


def preview(function: Callable[..., Answer], /, *arguments: Any, **named: Any) -> StatisticPreview:
    """Return exactly what a function of `tacit.stats` would charge with these arguments; spends nothing."""
    return prepare(function, *arguments, **named).preview()
