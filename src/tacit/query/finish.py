"""From what was released to the answer that was asked for: arithmetic, HAVING, ORDER BY, LIMIT, windows, totals.

All of it is post-processing: it reads released numbers alone, and repeating it costs nothing. Expressions over
aggregates are evaluated by a database of its own that holds nothing but the noisy columns.
Intervals: of a count or a sum they are those of the noise, exactly; of anything computed from several noisy numbers
they are the middle part of what the same computation gives when the noise is drawn again and taken off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from tacit.mechanisms.mechanism import Interval
from tacit.mechanisms.randomness import Source
from tacit.mechanisms.simulation import SeededSource
from tacit.query.estimates import estimated
from tacit.query.plan import Plan
from tacit.query.postprocess import ROW, selected, source
from tacit.query.run import Noisy
from tacit.query.scratch import array_of, evaluate
from tacit.query.sets import sizes
from tacit.query.whole_numbers import SATURATION, axis_sums, scaled

DRAWS: Final = 2000
SIMULATED_MAX: Final = 2_000_000
"""How many rows are computed at most to find the intervals of one answer."""


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups of an answer, with those of grouping sets: keys, noisy measures, and how many were added up."""

    keys: tuple[list[Any], ...]
    measures: tuple[NDArray[np.int64], ...]
    choices: tuple[list[Any], ...]
    added: NDArray[np.int64]
    totals: tuple[NDArray[np.int64], ...] = ()
    """For each key, 1 where the group is a total over it, as GROUPING says; only where there are grouping sets."""


def groups_of(plan: Plan, noisy: Noisy) -> Groups:
    """Return the groups of the answer; totals of grouping sets are sums of what was released, or released as such."""
    sets = plan.question.sets
    if not sets:
        return Groups(noisy.keys, noisy.measures, noisy.choices, np.ones(noisy.groups, dtype=np.int64))
    if plan.sets_apart:
        cells = sizes(plan.domains or (), sets)
        totals_of = tuple(
            np.repeat(np.array([axis not in kept for kept in sets], dtype=np.int64), cells)
            for axis in range(len(plan.question.keys))
        )
        return Groups(noisy.keys, noisy.measures, (), np.ones(noisy.groups, dtype=np.int64), totals_of)
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
    return Groups(tuple(keys), joined, (), np.concatenate(added), tuple(map(np.concatenate, totals)))


def finished(plan: Plan, noisy: Noisy) -> tuple[list[dict[str, Any]], list[int]]:
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
    groups = groups_of(plan, noisy)
    question = plan.question
    columns = _columns(plan, groups)
    if question.shows_all:
        shown = [columns[output.column or ""] for output in question.outputs]
        names = [output.name for output in question.outputs]
        lists = [one.tolist() if isinstance(one, np.ndarray) else one for one in shown]
        rows = [dict(zip(names, values, strict=True)) for values in zip(*lists, strict=True)]
        return rows, list(range(len(rows)))
    return selected(question, columns, len(groups.added))


def intervals(plan: Plan, noisy: Noisy, places: Sequence[int], level: float) -> list[dict[str, Interval | None]]:
    """Return, for each row that is shown and each noisy number in it, the interval of the number without noise."""
    groups = groups_of(plan, noisy)
    exact: dict[str, list[Interval | None]] = {}
    derived: list[str] = []
    for output in plan.question.outputs:
        names = {one.name for one in output.value.tree.find_all(exp.Column)}
        if not any(name.startswith("a") for name in names):
            continue
        found = _direct(plan, groups, output.column, level)
        if found is not None:
            exact[output.name] = found
        else:
            derived.append(output.name)
    if derived:
        exact |= _simulated(plan, groups, derived, level)
    return [{name: column[place] for name, column in exact.items()} for place in places]


def _columns(plan: Plan, groups: Groups) -> dict[str, Any]:
    columns: dict[str, Any] = {f"k{index}": column for index, column in enumerate(groups.keys)}
    columns |= {f"g{index}": column for index, column in enumerate(groups.totals)}
    for index, (answer, aggregate) in enumerate(zip(plan.answers, plan.question.aggregates, strict=True)):
        if answer.choice is not None:
            columns[f"a{index}"] = groups.choices[answer.choice]
        elif answer.estimate is not None:
            columns[f"a{index}"] = estimated(answer.estimate, groups.measures, aggregate.kind)
    return columns


def _direct(plan: Plan, groups: Groups, column: str | None, level: float) -> list[Interval | None] | None:
    """Return the intervals of a column that is one noisy measure, or nothing if it is not."""
    if column is None or not column.startswith("a"):
        return None
    answer = plan.answers[int(column[1:])]
    if answer.choice is not None:
        return [None] * len(groups.added)
    estimate = answer.estimate
    if estimate is None or len(estimate.measures) != 1 or int(groups.added.max(initial=1)) > 1:
        return None
    noise = plan.price.noises[estimate.measures[0]]
    found = noise.interval(level, np.clip(groups.measures[estimate.measures[0]], -SATURATION, SATURATION))
    step = estimate.grids[0].step if estimate.grids else 1
    whole = step == int(step)
    low, high = (scaled(end, int(step)) if whole else end * float(step) for end in (found.low, found.high))
    pairs = zip(low.tolist(), high.tolist(), strict=True)
    return [Interval(low, high) for low, high in pairs]


def _simulated(plan: Plan, groups: Groups, names: Sequence[str], level: float) -> dict[str, list[Interval | None]]:
    """Return the intervals of computed columns, by taking noise off again and computing anew."""
    count = len(groups.added)
    draws = min(DRAWS, SIMULATED_MAX // max(1, count))
    if draws < 50:
        return {name: [None] * count for name in names}
    redrawn = tuple(
        _without_noise(noise, column, groups.added, draws, SeededSource(index))  # the same answer, the same interval
        for index, (noise, column) in enumerate(zip(plan.price.noises, groups.measures, strict=True))
    )
    again = Groups(
        tuple(column * draws for column in groups.keys),
        redrawn,
        tuple(column * draws for column in groups.choices),
        np.tile(groups.added, draws),
        tuple(np.tile(column, draws) for column in groups.totals),
    )
    table = {name: array_of(column) for name, column in _columns(plan, again).items()}
    table[ROW] = np.tile(np.arange(count), draws)
    tail = (1 - level) / 2
    outputs = {output.name: output for output in plan.question.outputs}
    inner = source(plan.question, list(table)).select(
        ROW, *(exp.alias_(exp.cast(outputs[name].value.tree.copy(), "DOUBLE"), f"o{i}") for i, name in enumerate(names))
    )
    if any(outputs[name].value.tree.find(exp.Window) for name in names) or any(
        not outputs[name].value.kind.is_number for name in names
    ):
        return {name: [None] * count for name in names}
    shares = f"[{tail!r}, {1 - tail!r}]"
    parts = ", ".join(f"quantile_cont(o{index}, {shares})" for index in range(len(names)))
    sql = f"SELECT {parts} FROM ({inner.sql(dialect='duckdb')}) AS s GROUP BY {ROW} ORDER BY {ROW}"
    found = evaluate(sql, table)
    return {
        name: [Interval(*row[index]) if row[index] is not None else None for row in found]
        for index, name in enumerate(names)
    }


def _without_noise(
    noise: Any, column: NDArray[np.int64], added: NDArray[np.int64], draws: int, source: Source
) -> NDArray[np.int64]:
    """Return `draws` copies of a column, fresh noise taken off each; the same noise in every group of a copy."""
    found, column = np.empty((draws, len(column)), dtype=np.int64), np.clip(column, 1 - SATURATION, SATURATION - 1)
    for times in np.unique(added):
        fresh = np.asarray(noise.release(np.zeros(draws * int(times), dtype=np.int64), source=source))
        drawn = axis_sums(fresh.reshape(draws, -1), (1,))
        where = added == times
        found[:, where] = column[where][None, :] - drawn[:, None]
    return found.ravel()
