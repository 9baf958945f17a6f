"""Neighbours move what a workload measures by no more than is charged, whatever is asked.

Noise is left out; for each measured vector the distance between neighbours is held against its noise, as the mechanisms
do it: L1 over epsilon for Laplace noise, L2 over the deviation for Gaussian noise, and all of them together against the
event that was charged.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tacit
from tacit.accounting.measures import approximate_zcdp, pure_epsilon
from tacit.measuring.allocation import Allocation
from tacit.mechanisms import Laplace
from tacit.mechanisms.simulation import SeededSource
from tacit.privacy.units import Relation
from tacit.stats.array_sums import ArrayRows, read_arrays
from tacit.stats.rows import Cut
from tacit.stats.workloads import Cells, Hierarchy, Marginals, Prefixes, Ranges, Workload
from tacit.stats.workloads.centred_gaussian import CentredGaussian
from tacit.stats.workloads.interactions import centre
from tacit.stats.workloads.parts import ColumnPart, Crossed, Part, Tables
from tacit.stats.workloads.workload_plan import WorkloadPlan, flatten, plan_workload

CUTS = {
    "a": Cut("a", edges=tuple(float(edge) for edge in range(25))),
    "b": Cut("b", values=("x", "y", "z")),
    "c": Cut("c", values=(1, 2)),
}
PLACES = {"x": "left", "y": "left", "z": "right"}
ASKED: list[Workload] = [
    Ranges("a"),
    Prefixes("a"),
    Cells("b"),
    Hierarchy("b", PLACES),
    Marginals(("a", "b", "c"), (1, 2)),
    Marginals(("b", "c"), (2,)),
    Ranges("a") * Cells("b"),
    Ranges("a") + Marginals(("b", "c"), (1,)),
]
ROW = st.tuples(st.floats(-5, 30), st.sampled_from("xyzw"), st.integers(1, 3), st.integers(0, 4))


class Silent:
    """A stand-in for noise that keeps what it was given."""

    def __init__(self, noise: Any, kept: list[tuple[Any, Any]]) -> None:
        self.noise, self.kept = noise, kept

    def release(self, exact: Any, source: Any = None) -> Any:
        self.kept.append((self.noise, np.array(exact)))
        return exact


def measured(plan: WorkloadPlan, rows: list[Any], per_unit: int, units: bool) -> list[tuple[Any, Any]]:
    """Return all exact sums of a plan, each with its noise."""
    kept: list[tuple[Any, Any]] = []
    listed = list(zip(*rows, strict=True)) if rows else [(), (), (), ()]
    columns, owner = read_arrays(
        {
            "a": np.array(listed[0], dtype=float),
            "b": np.array(listed[1], dtype=object),
            "c": np.array(listed[2], dtype=int),
        },
        np.array(listed[3], dtype=int) if units else None,
    )
    # the same numbers for the rows that both data sets have: a coupling of the choice of rows
    source = ArrayRows(columns, owner, per_unit, source=SeededSource(1))
    for part in plan.parts:
        silent(part, kept).measure(source, plan.columns, None)  # type: ignore[arg-type]
    return kept


def silent(part: Part, kept: list[tuple[Any, Any]]) -> Part:
    fields = dict(vars(part))
    if isinstance(part, ColumnPart):
        fields["noises"] = tuple(Silent(noise, kept) for noise in part.noises)
    elif isinstance(part, Crossed):
        fields["noises"] = tuple(tuple(Silent(noise, kept) for noise in row) for row in part.noises)
    elif isinstance(part, Tables):
        fields["measured"] = tuple((one, Silent(noise, kept)) for one, noise in part.measured)
    return type(part)(**fields)


def check(plan: WorkloadPlan, before: list[tuple[Any, Any]], after: list[tuple[Any, Any]]) -> None:
    """Hold what moved against what is charged."""
    epsilon, rho = 0.0, 0.0
    for (noise, one), (_, other) in zip(before, after, strict=True):
        moved = np.asarray(other - one, dtype=float)
        if isinstance(noise, CentredGaussian):
            left = centre(moved.reshape(noise.shape))
            rho += float((left**2).sum()) / (2 * noise.deviation**2)
        elif isinstance(noise, Laplace):
            epsilon += float(np.abs(moved).sum() / noise.scale)
        else:
            rho += float((moved**2).sum()) / (2 * float(noise.scale) ** 2)
    if epsilon:
        assert epsilon <= pure_epsilon(plan.event) * (1 + 1e-9)
    if rho:
        assert rho <= approximate_zcdp(plan.event)[0] * (1 + 1e-9)


@lru_cache(maxsize=100)
def plan_of(asked: Workload, delta: float, per_unit: int, relation: Relation) -> WorkloadPlan:
    budget = tacit.Budget(1.0, delta, relation=relation)
    epsilon, rho = (None, 0.01) if delta else (0.5, None)
    return plan_workload(flatten([asked]), CUTS, Allocation.of(budget, epsilon, rho, per_unit))


@pytest.mark.parametrize("delta", [0.0, 1e-6], ids=["Laplace", "Gaussian"])
@pytest.mark.parametrize("asked", ASKED, ids=lambda one: repr(one)[:40])
@given(st.lists(ROW, max_size=12), st.lists(ROW, min_size=1, max_size=3), st.lists(ROW, min_size=1, max_size=3))
@settings(max_examples=6, deadline=None)
def test_neighbours_move_the_measured_sums_by_no_more_than_is_charged(
    asked: Workload, delta: float, rows: list[Any], mine: list[Any], theirs: list[Any]
) -> None:
    others = [row for row in rows if row[3] != 9]
    own, new = ([(*row[:3], 9) for row in some] for some in (mine, theirs))
    added = plan_of(asked, delta, 3, Relation.ADD_REMOVE)
    check(added, measured(added, others, 3, True), measured(added, others + own, 3, True))
    replaced = plan_of(asked, delta, 3, Relation.REPLACE_ONE)
    check(replaced, measured(replaced, others + own, 3, True), measured(replaced, others + new, 3, True))


def worst(asked: Workload, delta: float) -> tuple[WorkloadPlan, list[Any], list[Any]]:
    """A unit whose three rows are all in one cell moves sums as far as any can."""
    plan = plan_of(asked, delta, 3, Relation.ADD_REMOVE)
    return plan, measured(plan, [], 3, True), measured(plan, [(12.0, "y", 2, 9)] * 3, 3, True)


@pytest.mark.parametrize("delta", [0.0, 1e-6], ids=["Laplace", "Gaussian"])
@pytest.mark.parametrize("asked", ASKED, ids=lambda one: repr(one)[:40])
def test_the_price_is_not_above_what_the_worst_unit_moves_by_much(asked: Workload, delta: float) -> None:
    plan, before, after = worst(asked, delta)
    halved = [(noise, one // 1) for noise, one in before]
    doubled = [(noise, np.asarray(one) * 2) for noise, one in after]
    check(plan, before, after)
    with pytest.raises(AssertionError):
        check(plan, halved, doubled)


BUGS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "a matrix is taken to be shorter than it is": lambda patch: patch.setattr(
        "tacit.stats.workloads.strategy_matrices.Matrix.length", lambda self, law: 2**15
    ),
    "a unit is taken to have one row": lambda patch: patch.setattr(
        "tacit.measuring.allocation.Allocation.row_sensitivity", 1
    ),
    "every table gets the whole price": lambda patch: patch.setattr(
        "tacit.measuring.allocation.Allocation.divided", lambda self, *weights: (self,) * len(weights)
    ),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_noticed(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    BUGS[bug](monkeypatch)
    plan_of.cache_clear()
    found = []
    for asked in ASKED:
        plan, before, after = worst(asked, 0.0)
        charged = min(pure_epsilon(plan.event), 0.5)
        total = sum(
            float(np.abs(other - one).sum() / noise.scale)
            for (noise, one), (_, other) in zip(before, after, strict=True)
        )
        found.append(total > charged * (1 + 1e-9))
    plan_of.cache_clear()
    assert any(found)


def test_more_of_a_table_than_its_centred_part_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    plan, before, after = worst(Marginals(("b", "c"), (2,)), 1e-6)
    check(plan, before, after)
    monkeypatch.setitem(globals(), "centre", lambda table: table)
    with pytest.raises(AssertionError):
        check(plan, before, after)
