"""The measurements of a model's plan: the exact arrays to which noise was added, by which mechanism, and what came out.

`record` measures a plan with a seeded source; `replay` measures it again over other rows and gives out the same noisy
arrays, so that later rounds, which depend on earlier results, ask for the same sums of both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit import Budget
from tacit.ledger.accounts import steps
from tacit.mechanisms.additive import Additive
from tacit.mechanisms.simulation import SeededSource
from tacit.privacy.events import Event
from tacit.privacy.tables import Kind
from tacit.privacy.units import Relation
from tacit.stats.array_sums import ArrayRows, read_arrays
from tacit.stats.rows import Rows
from tacit.stats.statistic import StatisticPlan
from tests.support.estimators import EXAMPLES, LABELS


@dataclass(frozen=True)
class Measured:
    """One array with noise."""

    mechanism: Any
    exact: NDArray[Any]
    noisy: Any


def record(plan: StatisticPlan, rows: Rows, seed: int) -> tuple[list[Measured], Any]:
    """Measure a plan; return its measurements in their order, and what it returned."""
    found: list[Measured] = []
    release = Additive.release

    def recorded(self: Any, value: Any, *, source: Any) -> Any:
        exact = np.array(value)
        found.append(Measured(self, exact, release(self, value, source=source)))
        return found[-1].noisy

    return found, _measured(plan, rows, recorded, seed)


def replay(plan: StatisticPlan, rows: Rows, noisy: Sequence[Any], seed: int = 0) -> tuple[list[Measured], Any]:
    """Measure a plan over rows, and give out noisy arrays in their order in the place of its own."""
    found: list[Measured] = []

    def replayed(self: Any, value: Any, *, source: Any) -> Any:
        found.append(Measured(self, np.array(value), noisy[len(found)]))
        return found[-1].noisy

    return found, _measured(plan, rows, replayed, seed)


def _measured(plan: StatisticPlan, rows: Rows, release: Any, seed: int) -> Any:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Additive, "release", release)
        return plan.measure(rows, SeededSource(seed))


def charged(plan: StatisticPlan) -> Counter[Event]:
    """Return the events of all noises that a plan is charged for, and how often."""
    return Counter(dict(_flat(plan.event)))


def _flat(event: Event) -> Iterator[tuple[Event, int]]:
    for one, count in steps(event).items():
        inner = getattr(one, "event", None)
        if inner is None:
            yield one, count
        else:
            yield from ((part, count * times) for part, times in _flat(inner))


@cache
def plan_of(
    name: str, relation: Relation, rows_per_unit: int, delta: float, epsilon: float = 0.5, **changed: Any
) -> StatisticPlan:
    """Return the plan of an example; it was made for other rows than it is measured on."""
    example = EXAMPLES[name]
    stated: dict[str, Any] = {
        "rows_per_unit": rows_per_unit,
        "budget": Budget(100.0, delta, relation=relation),
        **changed,
    }
    model = example.estimator(epsilon=epsilon, **stated)
    y = None if example.y is None else example.y[:2]
    found: StatisticPlan = model.prepare(example.X.head(2), y, unit=[1, 2]).plan
    return found


Row = tuple[float | None, float | None, str | None, str | None, float | None]
"""Values of the columns a, b and group, a label and a cost."""

_KINDS = {"a": Kind.REAL, "b": Kind.REAL, "group": Kind.TEXT}


def rows_of(name: str, units: Sequence[Sequence[Row]], rows_per_unit: int) -> ArrayRows:
    """Return the rows of units for an example; they may hold any values, as those of a registered table may."""
    example = EXAMPLES[name]
    listed = [(owner, *row) for owner, unit in enumerate(units) for row in unit]
    places = {"a": 1, "b": 2, "group": 3} | ({} if example.y is None else {"target": 4 if example.y is LABELS else 5})
    kinds = {**_KINDS, "target": Kind.TEXT if example.y is LABELS else Kind.REAL}
    columns = {one: [row[at] for row in listed] for one, at in places.items() if one in (*example.X.columns, "target")}
    read = read_arrays(columns, [row[0] for row in listed], {one: kinds[one] for one in columns})
    return ArrayRows(*read, rows_per_unit, source=SeededSource(1))
