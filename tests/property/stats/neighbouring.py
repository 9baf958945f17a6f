"""Random small data, one unit more or fewer or exchanged, and how far the exact sums of a plan then move.

All units but the one that differs have no more rows than are counted, so that no chance decides which of theirs are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

import tacit
from tacit import stats
from tacit.mechanisms import Laplace
from tacit.mechanisms.simulation import SeededSource
from tacit.privacy.tables import Kind
from tacit.privacy.units import Relation
from tacit.stats.array_sums import ArrayRows, read_arrays
from tacit.stats.bounds import BoundsAnswer
from tacit.stats.count_tree import level_counts
from tacit.stats.histograms import Counts, Distribution
from tacit.stats.learned_bounds import StatisticWithLearntBounds
from tacit.stats.modes import LeadingMode, ListedMode, ListedTop, SelectedTop
from tacit.stats.moments import Moments
from tacit.stats.quantiles import ChosenQuantiles, TreeQuantiles, scores
from tacit.stats.rows import Cut, Rows, Term
from tacit.stats.statistic import StatisticPlan
from tests.support.worlds import Moved

KEYS = ["a", "b", "c"]
ROW = st.tuples(
    st.one_of(st.none(), st.floats(-30, 30), st.sampled_from([-10.0, 0.0, 10.0, float("inf")])),
    st.one_of(st.none(), st.floats(-30, 30)),
    st.one_of(st.none(), st.sampled_from([*KEYS, "other"])),
)
Row = tuple[float | None, float | None, str | None]


@dataclass
class Recorded:
    """Rows that remember the exact sums and counts of units that were asked of them."""

    rows: Rows
    sums_seen: list[NDArray[np.int64]] = field(default_factory=list)
    units_seen: list[Mapping[Any, int]] = field(default_factory=list)

    @property
    def per_unit(self) -> int:
        return self.rows.per_unit

    def sums(self, terms: Sequence[Term], by: Sequence[Cut] = (), needs: Sequence[str] = ()) -> NDArray[np.int64]:
        self.sums_seen.append(self.rows.sums(terms, by, needs))
        return self.sums_seen[-1]

    def units(self, column: str) -> Mapping[Any, int]:
        self.units_seen.append(self.rows.units(column))
        return self.units_seen[-1]


def columns(units: Sequence[Sequence[Row]]) -> tuple[dict[str, list[Any]], list[int]]:
    """Return the columns of units, and whose row each row is."""
    rows = [(owner, *row) for owner, unit in enumerate(units) for row in unit]
    return {name: [row[place] for row in rows] for place, name in ((1, "value"), (2, "other"), (3, "group"))}, [
        row[0] for row in rows
    ]


def seen(plan: StatisticPlan, units: Sequence[Sequence[Row]], per_unit: int) -> Recorded:
    """Measure a plan, and return what it saw."""
    given, owners = columns(units)
    value = Kind.TEXT if isinstance(plan, LeadingMode | ListedMode | ListedTop | SelectedTop) else Kind.REAL
    read, owner = read_arrays(given, owners, {"value": value, "other": Kind.REAL, "group": Kind.TEXT})
    recorded = Recorded(ArrayRows(read, owner, per_unit, source=SeededSource(1)))
    plan.measure(recorded, SeededSource(2))
    return recorded


@lru_cache
def plans(per_unit: int, relation: Relation) -> dict[str, StatisticPlan]:
    """Return a plan of every kind, made for no data at all: plans do not depend on data."""
    number, text = np.zeros(0), np.array([], dtype=object).astype("U1")
    asked: Any = {"epsilon": 1.0, "unit": np.zeros(0, dtype=int), "rows_per_unit": per_unit}
    asked["budget"] = tacit.Budget(epsilon=1000.0, delta=1e-3, relation=relation)
    bounded: Any = {**asked, "bounds": (-10, 20)}
    pair: Any = {**bounded, "other_bounds": (-20, 5)}
    answers: dict[str, Any] = {
        "count": stats.count(number, **asked),
        "sum": stats.sum(number, **bounded),
        "mean by group": stats.mean(number, by=text, keys=KEYS, **bounded),
        "variance": stats.variance(number, **bounded),
        "correlation": stats.correlation(number, number, **pair),
        "trend": stats.trend(number, number, time_bounds=(-20, 5), **bounded),
        "gaussian": stats.mean(number, bounds=(-10, 20), **{**asked, "epsilon": None, "rho": 0.1}),
        "histogram": stats.histogram(number, bins=7, **bounded),
        "categories": stats.histogram(number, bins=3, by=text, by_keys=[*KEYS, None], **bounded),
        "cdf": stats.cdf(number, bins=200, **bounded),
        "median": stats.median(number, **bounded),
        "median by group": stats.median(number, by=text, keys=KEYS, **bounded),
        "quantile by group": stats.quantile(number, 0.9, by=text, keys=KEYS, **bounded),
        "quantiles": stats.quantiles(number, [0.1, 0.9], **bounded),
        "tree": stats.box_plot(number, by=text, keys=KEYS, **bounded),
        "bounds": stats.bounds(number, **asked),
        "learnt": stats.prepare(stats.mean, number, bounds="learn", **asked),
    }
    words = {
        "mode": stats.mode(text, keys=KEYS, **asked),
        "leading mode": stats.mode(text, **asked),
        "top": stats.top_k(text, 2, keys=KEYS, **asked),
        "selected top": stats.top_k(text, 2, **asked),
    }
    return {name: answer.plan for name, answer in (answers | words).items()}


WORDS = frozenset({"mode", "leading mode", "top", "selected top"})


def check(plan: StatisticPlan, one: Recorded, other: Recorded, relation: Relation) -> None:
    """Raise `Moved` if neighbours lie further apart than the noise of the plan was made for."""
    match plan:
        case Moments() | Counts() | ListedTop():
            parts = plan.parts if isinstance(plan, Moments) else (plan.part,)
            for index, part in enumerate(parts):
                _within(one.sums_seen[0][index] - other.sums_seen[0][index], part.noise, part.label)
        case Distribution() | TreeQuantiles():
            levels = (level_counts(recorded.sums_seen[0][0]) for recorded in (one, other))
            for noise, here, there in zip(plan.tree.noises, *levels, strict=True):
                _within(here - there, noise, "a level")
        case ChosenQuantiles():
            here, there = (recorded.sums_seen[0].reshape(-1, plan.cells.count) for recorded in (one, other))
            for choice, share in zip(plan.choices, plan.shares, strict=True):
                moved = [np.abs(scores(a, share) - scores(b, share)).max() for a, b in zip(here, there, strict=True)]
                _at_most(float(sum(moved)), float(choice.sensitivity), "scores of all groups")
            _within(here - there, plan.noise, "cells")
        case ListedMode():
            moved = one.sums_seen[0][0] - other.sums_seen[0][0]
            _at_most(float(np.abs(moved).max()), float(plan.mechanism.sensitivity), "a count")
            if plan.mechanism.monotonic and len({1, -1} & set(np.sign(moved).tolist())) > 1:
                raise Moved("counts moved in both directions")
        case LeadingMode() | SelectedTop():
            changed = _changes(one.units_seen[0], other.units_seen[0])
            sides = 1 if relation is Relation.ADD_REMOVE else 2
            times = sides * plan.per_unit if isinstance(plan, SelectedTop) else len(changed)
            _at_most(len(changed), times, "values")
            _at_most(max(map(abs, changed), default=0), 1, "units with a value")
            if isinstance(plan, LeadingMode):
                moved_lead = abs(_lead(one.units_seen[0]) - _lead(other.units_seen[0]))
                _at_most(moved_lead, 1 if relation is Relation.ADD_REMOVE else 2, "the lead")
        case BoundsAnswer() | StatisticWithLearntBounds():
            part = plan.learning if isinstance(plan, BoundsAnswer) else plan.parts[0]
            _within(one.sums_seen[0][0] - other.sums_seen[0][0], part.mechanism.noise, "bins")
        case _:
            raise NotImplementedError(type(plan))


def _within(moved: NDArray[Any], noise: Any, what: str) -> None:
    exact = moved.astype(np.float64)
    size = np.abs(exact).sum() if isinstance(noise, Laplace) else np.sqrt((exact**2).sum())
    _at_most(float(size), float(noise.sensitivity), what)


def _at_most(moved: float, stated: float, what: str) -> None:
    if moved > stated:
        raise Moved(f"{what} moved by {moved:g}, and the noise is for {stated:g}")


def _changes(one: Mapping[Any, int], other: Mapping[Any, int]) -> list[int]:
    keys = {*one, *other}
    return [change for key in keys if (change := one.get(key, 0) - other.get(key, 0))]


def _lead(units: Mapping[Any, int]) -> int:
    ranked = [*sorted(units.values(), reverse=True), 0, 0]
    return ranked[0] - ranked[1]
