"""A unit moves what a running total measures by no more than was charged, whatever steps it is in.

Noise is left out: for each measured vector the distance between neighbouring streams is held against its noise, L1 over
the scale for Laplace noise, L2 over the deviation for Gaussian noise, and the sum against the event that is charged.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit import Budget, Relation
from tacit.accounting.measures import approximate_zcdp, pure_epsilon
from tacit.measuring.allocation import Allocation
from tacit.stats import prefix_sums, streams
from tacit.stats.prefix_sums import SquareRootSums

HORIZON = 30


def choice(delta: float, steps: int, per_step: int, relation: Relation) -> Any:
    budget = Budget(1.0, delta, relation=relation)
    allocation = Allocation.of(budget, rho=0.01) if delta else Allocation.of(budget, 0.5)
    return streams._RunningPlan.of("running count", allocation, HORIZON, steps, per_step)


def measured(chosen: Any, values: list[int]) -> list[Any]:
    """All numbers that are measured of a stream, before noise, vector by vector."""
    if chosen.header["law"] == "Gaussian":
        counter = SquareRootSums(HORIZON, np.zeros(HORIZON, dtype=np.int64), 1.0)
        return [np.array([counter.measure(value) for value in values], dtype=float)]
    branch = chosen.header["branch"]
    sizes = [branch**level for level in range(len(chosen.noises))]
    return [
        np.array([sum(values[at : at + size]) for at in range(0, HORIZON - size + 1, size)], dtype=float)
        for size in sizes
    ]


def lost(chosen: Any, one: list[int], other: list[int]) -> float:
    """How much of the price the two streams use up: at most 1."""
    total = 0.0
    for noise, before, after in zip(chosen.noises, measured(chosen, one), measured(chosen, other), strict=True):
        if chosen.header["law"] == "Gaussian":
            total += float(((after - before) ** 2).sum()) / (2 * float(noise.scale) ** 2)
        else:
            total += float(np.abs(after - before).sum() / noise.scale)
    charged = approximate_zcdp(chosen.event)[0] if chosen.header["law"] == "Gaussian" else pure_epsilon(chosen.event)
    return total / charged


def moved(values: list[int], steps: list[int], by: int, sign: int = 1) -> list[int]:
    return [value + sign * by * (at in steps) for at, value in enumerate(values)]


STREAM = st.lists(st.integers(0, 50), min_size=HORIZON, max_size=HORIZON)
STEPS = st.lists(st.integers(0, HORIZON - 1), max_size=3, unique=True)


@pytest.mark.parametrize("delta", [0.0, 1e-6], ids=["Laplace", "Gaussian"])
@given(STREAM, STEPS, STEPS)
@settings(max_examples=40, deadline=None)
def test_a_unit_moves_no_more_than_is_charged(
    delta: float, values: list[int], mine: list[int], theirs: list[int]
) -> None:
    added = choice(delta, 3, 2, Relation.ADD_REMOVE)
    assert lost(added, values, moved(values, mine, 2)) <= 1 + 1e-9
    replaced = choice(delta, 3, 2, Relation.REPLACE_ONE)
    assert lost(replaced, moved(values, mine, 2), moved(values, theirs, 2)) <= 1 + 1e-9


@pytest.mark.parametrize("delta", [0.0, 1e-6], ids=["Laplace", "Gaussian"])
def test_the_worst_unit_uses_up_nearly_all_of_the_price_and_a_worse_one_more(delta: float) -> None:
    values = [5] * HORIZON
    stated = choice(delta, 3, 2, Relation.ADD_REMOVE)
    assert 0.7 < lost(stated, values, moved(values, [0, 1, 2], 2)) <= 1 + 1e-9
    assert lost(stated, values, moved(values, [0, 1, 2, 3], 2)) > 1
    assert lost(stated, values, moved(values, [0, 1, 2], 3)) > 1


@pytest.mark.parametrize("delta", [0.0, 1e-6], ids=["Laplace", "Gaussian"])
def test_steps_that_are_not_paid_for_would_be_noticed(delta: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "root_length", lambda horizon, steps: prefix_sums.root_length(horizon, 1))
    monkeypatch.setattr(streams, "Fraction", lambda number: 1)
    values = [5] * HORIZON
    assert lost(choice(delta, 3, 1, Relation.ADD_REMOVE), values, moved(values, [0, 1, 2], 1)) > 1
