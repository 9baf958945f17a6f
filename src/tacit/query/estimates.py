"""From noisy measures to the rows of an answer; post-processing, so nothing here costs privacy.

Counts and sums are shown as they come, also below 0: they are unbiased, and so are their totals. All other aggregates
are functions of noisy sums (`measuring.moments`). Totals of grouping sets are added up here; arithmetic, HAVING, ORDER
BY, LIMIT and windows are evaluated by the scratch database (`postprocess`). Intervals are left to `answer_intervals`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.measuring.moments import FUNCTIONS
from tacit.privacy.tables import Kind
from tacit.query.allocation import group_counts
from tacit.query.measures import Estimate
from tacit.query.plan import Plan
from tacit.query.postprocess import evaluate_select
from tacit.query.run import Noisy
from tacit.query.scratch_database import array_of, evaluate
from tacit.query.whole_numbers import add_exact, axis_sums, scale_exact


def estimate_values(estimate: Estimate, measures: Sequence[NDArray[Any]], kind: Kind) -> NDArray[Any]:
    """Return the values of an aggregate for each group (or each simulated draw), from arrays of all measures."""
    if is_ratio(estimate):
        return FUNCTIONS[estimate.function](estimate.grids, ratio_sums(estimate, measures))
    chosen = [measures[place] for place in estimate.measures]
    if estimate.function != "sum":
        return chosen[0]
    grid, total = estimate.grids[0], chosen[-1]
    if len(chosen) == 2:  # shared with a mean: the sum around the centre, and the rows, each of them a centre more
        total = add_exact(total, scale_exact(chosen[0], grid.shift))
    if kind is Kind.INTEGER:
        return scale_exact(total, int(grid.step)) if grid.step >= 1 else _halve_to_even(total)
    return np.asarray(total * float(grid.step), dtype=np.float64)


def is_ratio(estimate: Estimate) -> bool:
    """Whether an aggregate is divided by a noisy count."""
    return estimate.function in FUNCTIONS


def ratio_sums(estimate: Estimate, measures: Sequence[NDArray[Any]]) -> list[NDArray[np.float64]]:
    """Return the sums of a ratio, from arrays of all measures."""
    return [measures[place].astype(np.float64) for place in estimate.measures]


def _halve_to_even(total: NDArray[Any]) -> NDArray[Any]:
    """Return a sum that was counted in halves as whole numbers, halves rounded to even."""
    half = total >> 1
    return np.asarray(half + (total & half & 1))


@dataclass(frozen=True, slots=True)
class AnswerGroups:
    """The groups of an answer, with those of grouping sets: keys, noisy measures, and how many were added up."""

    keys: tuple[list[Any], ...]
    measures: tuple[NDArray[np.int64], ...]
    choices: tuple[list[Any], ...]
    added: NDArray[np.int64]
    totals: tuple[NDArray[np.int64], ...] = ()
    """For each key, 1 where the group is a total over it, as GROUPING says; only where there are grouping sets."""


def answer_groups(plan: Plan, noisy: Noisy) -> AnswerGroups:
    """Return the groups of the answer; totals of grouping sets are sums of what was released, or released as such."""
    sets = plan.question.sets
    if not sets:
        return AnswerGroups(noisy.keys, noisy.measures, noisy.choices, np.ones(noisy.groups, dtype=np.int64))
    if plan.sets_apart:
        cells = group_counts(plan.domains or (), sets)
        totals_of = tuple(
            np.repeat(np.array([axis not in kept for kept in sets], dtype=np.int64), cells)
            for axis in range(len(plan.question.keys))
        )
        return AnswerGroups(noisy.keys, noisy.measures, (), np.ones(noisy.groups, dtype=np.int64), totals_of)
    shape = tuple(len(domain.values) for domain in plan.domains or ())
    keys: list[list[Any]] = [[] for _ in shape]
    measures: list[list[NDArray[np.int64]]] = [[] for _ in noisy.measures]
    added, totals = [], [list[NDArray[np.int64]]() for _ in shape]
    for kept in sets:
        dropped = tuple(axis for axis in range(len(shape)) if axis not in kept)
        for index, column in enumerate(noisy.measures):
            measures[index].append(axis_sums(column.reshape(shape), dropped).ravel())
        size = int(np.prod([shape[axis] for axis in kept], dtype=np.int64))
        places = np.indices([shape[axis] if axis in kept else 1 for axis in range(len(shape))]).reshape(len(shape), -1)
        for axis, domain in enumerate(plan.domains or ()):
            keys[axis] += [domain.values[at] if axis in kept else None for at in places[axis]]
            totals[axis].append(np.full(size, int(axis not in kept), dtype=np.int64))
        added.append(np.full(size, int(np.prod(shape, dtype=np.int64)) // size, dtype=np.int64))
    joined = tuple(np.concatenate(column) for column in measures)
    return AnswerGroups(tuple(keys), joined, (), np.concatenate(added), tuple(map(np.concatenate, totals)))


def answer_rows(plan: Plan, noisy: Noisy) -> tuple[list[dict[str, Any]], list[int]]:
    """Return the rows of the answer, and from which group each was made (none, where several were merged)."""
    rows, places = _of_groups(plan, noisy)
    fields = [output.name for output in plan.question.outputs]
    for step in plan.question.after:
        columns = {f"o{index}": array_of([row[name] for row in rows]) for index, name in enumerate(fields)}
        fields, places = [field.name for field in step.fields], []
        rows = [dict(zip(fields, row, strict=True)) for row in evaluate(step.sql, columns)]
    return rows, places


def _of_groups(plan: Plan, noisy: Noisy) -> tuple[list[dict[str, Any]], list[int]]:
    """Return the rows of the question itself, one a group, before any SELECT over them."""
    groups = answer_groups(plan, noisy)
    question = plan.question
    columns = _columns(plan, groups)
    if question.shows_all:
        shown = [columns[output.column or ""] for output in question.outputs]
        names = [output.name for output in question.outputs]
        lists = [one.tolist() if isinstance(one, np.ndarray) else one for one in shown]
        rows = [dict(zip(names, values, strict=True)) for values in zip(*lists, strict=True)]
        return rows, list(range(len(rows)))
    return evaluate_select(question, columns, len(groups.added))


def _columns(plan: Plan, groups: AnswerGroups) -> dict[str, Any]:
    columns: dict[str, Any] = {f"k{index}": column for index, column in enumerate(groups.keys)}
    columns |= {f"g{index}": column for index, column in enumerate(groups.totals)}
    for index, (answer, aggregate) in enumerate(zip(plan.answers, plan.question.aggregates, strict=True)):
        if answer.choice is not None:
            columns[f"a{index}"] = groups.choices[answer.choice]
        elif answer.estimate is not None:
            columns[f"a{index}"] = estimate_values(answer.estimate, groups.measures, aggregate.kind)
    return columns
