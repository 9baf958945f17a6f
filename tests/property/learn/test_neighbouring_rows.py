"""Neighbouring rows move what every estimator measures by no more than its noise is made for, and nothing else leaves.

Rounds that depend on earlier results are given the same results for both neighbours. All units but the one that differs
have no more rows than are counted, so that no chance decides which of theirs are. Planted bugs are noticed: rows of a
unit that are all counted, values that are not clamped, and results that do not come from noisy numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tacit.learn.estimators import boosting, exact_gradients
from tacit.learn.estimators.model_plan import SumsPlan
from tacit.mechanisms import Laplace
from tacit.privacy.units import Relation
from tacit.stats.array_sums import ArrayColumn
from tests.support.estimators import EXAMPLES
from tests.support.transcripts import Row, plan_of, record, replay, rows_of
from tests.support.worlds import Moved, World, worlds

NAMES = sorted(EXAMPLES)
ADD, REPLACE = Relation.ADD_REMOVE, Relation.REPLACE_ONE
NUMBER = st.one_of(st.none(), st.floats(-8, 8), st.sampled_from([-5.0, 0.0, 5.0, 1e300, float("inf"), float("nan")]))
ROW = st.tuples(
    NUMBER,
    NUMBER,
    st.sampled_from(["x", "y", "z", "unlisted", None]),
    st.sampled_from(["high", "low", "unlisted", None]),
    NUMBER,
)


def greatest(label: str = "high", group: str = "x", end: float = 5.0) -> Row:
    """Return a row that moves sums by as much as one row can."""
    return end, end, group, label, 4 * end


LARGE = World([], [greatest()] * 6, [greatest("low", "y", -5.0)] * 6, 1)
MANY = World([[greatest("low", "z", -5.0)] * 3], [greatest()] * 6, [greatest("low", "y", -5.0)] * 6, 3)


def compare(name: str, world: World, relation: Relation, delta: float, *, counted: int = 0, **stated: Any) -> None:
    """Raise Moved if neighbours differ by more than the noises of a plan are made for.

    `counted` is the number of rows of a unit that are counted, in the place of that of the plan.
    """
    plan = plan_of(name, relation, world.per_unit, delta, **stated)
    there = [*world.others, world.instead] if relation is REPLACE else world.others
    per_unit = counted or world.per_unit
    one, other = (rows_of(name, units, per_unit) for units in ([*world.others, world.differs], there))
    measured, left = record(plan, one, seed=3)
    again, left_again = replay(plan, other, [each.noisy for each in measured])
    assert len(measured) == len(again)
    for here, elsewhere in zip(measured, again, strict=True):
        assert here.mechanism == elsewhere.mechanism
        moved = (here.exact - elsewhere.exact).astype(np.float64)
        size = np.abs(moved).sum() if isinstance(here.mechanism, Laplace) else np.sqrt((moved**2).sum())
        if size > float(here.mechanism.sensitivity) * (1 + 1e-12):
            raise Moved(f"{name} moved by {size:g}, and the noise is for {float(here.mechanism.sensitivity):g}")
    for mine, its in zip(left, left_again, strict=True):
        if not np.array_equal(np.asarray(mine), np.asarray(its)):
            raise Moved(f"{name} returns numbers that do not follow from the noisy ones")


@pytest.mark.parametrize(("relation", "delta"), [(ADD, 0.0), (ADD, 1e-3), (REPLACE, 0.0)])
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=5)
@given(world=worlds(ROW))
@example(world=LARGE)
@example(world=MANY)
def test_one_unit_moves_what_is_measured_by_no_more_than_the_noise_is_for(
    name: str, relation: Relation, delta: float, world: World
) -> None:
    compare(name, world, relation, delta)


@pytest.mark.parametrize("name", NAMES)
def test_rows_of_a_unit_that_are_all_counted_are_noticed(name: str) -> None:
    with pytest.raises(Moved):
        compare(name, LARGE, ADD, 0.0, counted=6)


@pytest.mark.parametrize("name", ["GaussianNB", "KMeans", "LinearRegression", "PCA", "StandardScaler"])
def test_values_that_are_not_clamped_are_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the estimators that sum values; the others count cells."""

    def unclamped(self: Any, scale: Any) -> Any:
        return np.rint(np.where(self.missing, 0.0, self.values) * float(1 / scale.step)).astype(np.int64) - scale.shift

    monkeypatch.setattr(ArrayColumn, "steps", unclamped)
    with pytest.raises(Moved):
        compare(name, World([], [(50.0, 50.0, "x", "high", 200.0)], [], 1), ADD, 0.0)


@pytest.mark.parametrize("delta", [0.0, 1e-3])
def test_gradients_that_are_not_clipped_are_noticed(delta: float, monkeypatch: pytest.MonkeyPatch) -> None:
    compare("LogisticRegression", LARGE, ADD, delta, clip=0.1)
    monkeypatch.setattr(exact_gradients, "clipped", lambda residuals, lengths, limit, order: residuals)
    with pytest.raises(Moved):
        compare("LogisticRegression", LARGE, ADD, delta, clip=0.1)


def test_gradients_that_are_twice_as_large_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    residuals = boosting.residuals_of
    monkeypatch.setattr(boosting, "residuals_of", lambda logits, labels: 3 * residuals(logits, labels))
    with pytest.raises(Moved):
        compare("HistGradientBoostingClassifier", LARGE, ADD, 0.0)


def test_sums_that_leave_without_noise_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def exact(self: Any, rows: Any, source: Any) -> Any:
        return (rows.sums([self.parts[0].term], self.parts[0].by, self.needs)[0], *measure(self, rows, source)[1:])

    measure = SumsPlan.measure
    monkeypatch.setattr(SumsPlan, "measure", exact)
    with pytest.raises(Moved, match="do not follow"):
        compare("GaussianNB", LARGE, ADD, 0.0)
