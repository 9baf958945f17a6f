"""Workloads of counts: errors compared with separate counts and with OpenDP.

Two workloads, at epsilon 1: all 524,800 ranges over 1,024 bins, and all 45 two-way tables of 10 columns with 8 to 10
values each, 100,000 rows. "One by one" gives every range, or every table, an equal share of epsilon and Laplace noise
(cells of a table share nothing: a row is in one of them). OpenDP releases the histogram, or every table, once; ranges
are sums of its bins. Tables are asked for twice: with epsilon alone, and from a budget with a delta of 10^-6 that is
spent on them wholly, where Gaussian noise does better; OpenDP is then given the same epsilon and delta, and Gaussian
noise.

Errors are of what is released, whole counts of at least 0, as the mean over queries and releases. Coverage is that of
the 95 % intervals, query by query. Running counts stand beside the binary tree with the same noise.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

import tacit
from bench import peers
from bench.results import Result
from tacit.mechanisms import Laplace
from tacit.stats.prefix_sums import digits, tree_levels

OPENDP_SCRIPT: Final = Path(__file__).parent / "peers" / "workload_opendp.py"
BINS: Final = 1024
ROWS: Final = 100_000
COLUMNS: Final = 10
EPSILON: Final = 1.0
DELTA: Final = 1e-6
GOAL: Final = 3.0
RANGES_CHECKED: Final = 400
HORIZON: Final = 1024

Counts = NDArray[np.int64]


class Errors(NamedTuple):
    """Mean squared and mean absolute error, and the share of intervals that hold the truth."""

    squared: float
    absolute: float
    coverage: float = float("nan")


def run(quick: bool) -> Iterator[Result]:
    """Measure ranges, tables without and with a delta, and running counts."""
    repeats, many = (2, 10) if quick else (10, 40)
    values, table = _values(), _table()
    histogram = np.histogram(values, bins=np.arange(BINS + 1))[0]
    tables = _true_tables(table)
    theirs = peers.run(
        "opendp",
        OPENDP_SCRIPT,
        epsilon=EPSILON,
        delta=DELTA,
        repeats=many,
        histogram=histogram.tolist(),
        tables=[one.ravel().tolist() for one in tables.values()],
    )
    name = f"all ranges over {BINS:,} bins"
    queries = BINS * (BINS + 1) // 2
    alone = Errors(2 * (queries / EPSILON) ** 2, queries / EPSILON)
    expected, measured = _ranges(values, histogram, many)
    yield from _lines(name, expected, measured, alone, _peer(theirs, "ranges"), goal=GOAL, over_peer=GOAL)
    one_by_one = _one_by_one(tables, repeats)
    name = f"all two-way tables of {COLUMNS} columns"
    for label, delta, key in (("", 0.0, "tables"), (f", delta {DELTA:g}", DELTA, "tables, delta")):
        expected, measured = _tables(table, tables, delta, repeats)
        goal = GOAL if delta else None
        yield from _lines(f"{name}{label}", expected, measured, one_by_one, _peer(theirs, key), goal=goal)
    yield from _running(repeats)


def _lines(
    name: str,
    expected: float,
    ours: Errors,
    alone: Errors,
    opendp: Errors | None,
    *,
    goal: float | None,
    over_peer: float | None = None,
) -> Iterator[Result]:
    squared = {"one by one": alone.squared, "opendp": opendp.squared if opendp else None}
    absolute = {"one by one": alone.absolute, "opendp": opendp.absolute if opendp else None}
    yield Result(f"{name}: mean squared error, expected", expected, "")
    yield Result(f"{name}: mean squared error", ours.squared, "", squared)
    yield Result(f"{name}: mean absolute error", ours.absolute, "", absolute)
    yield Result(
        f"{name}: squared error below one by one", alone.squared / ours.squared, "×", goal=goal, better="higher"
    )
    yield Result(f"{name}: absolute error below one by one", alone.absolute / ours.absolute, "×", better="higher")
    if opendp:
        lower = opendp.squared / ours.squared
        yield Result(f"{name}: squared error below opendp", lower, "×", goal=over_peer, better="higher")
        yield Result(f"{name}: absolute error below opendp", opendp.absolute / ours.absolute, "×", better="higher")
    yield Result(f"{name}: coverage of 95 % intervals", 100 * ours.coverage, "%", goal=94.0, better="higher")


def _ranges(values: Any, histogram: Counts, repeats: int) -> tuple[float, Errors]:
    true = np.r_[0, np.cumsum(histogram)]
    low, high = np.triu_indices(BINS + 1, 1)
    generator = np.random.default_rng(3)
    found = []
    for _ in range(repeats):
        budget = tacit.Budget(EPSILON)
        answer = tacit.stats.ranges(values, edges=list(range(BINS + 1)), epsilon=EPSILON, budget=budget)
        sums = np.r_[0, np.cumsum(answer.value)]
        off = (sums[high] - sums[low]) - (true[high] - true[low])
        hits = 0
        for at in generator.integers(0, len(low), RANGES_CHECKED // repeats):
            span = answer.range(int(low[at]), int(high[at])).interval(0.95)
            hits += span.low <= true[high[at]] - true[low[at]] <= span.high
        found.append(Errors(float(np.mean(off**2.0)), float(np.mean(np.abs(off))), hits / (RANGES_CHECKED // repeats)))
    return answer.expected_error, _mean(found)


def _tables(table: dict[str, Any], true: dict[Any, Counts], delta: float, repeats: int) -> tuple[float, Errors]:
    found = []
    domain = {name: tacit.Categories(range(int(_size(at)))) for at, name in enumerate(table)}
    for _ in range(repeats):
        budget = tacit.Budget(EPSILON, delta)
        price: Any = {"rho": budget.remaining().rho} if delta else {"epsilon": EPSILON}
        answer = tacit.stats.marginals(table, domain=domain, ways=(2,), budget=budget, **price)
        off, inside = [], []
        for names, counts in true.items():
            shown = answer.table(*names)
            low, high = shown.interval(0.95)
            off.append((shown.values - counts).ravel())
            inside.append(((low <= counts) & (counts <= high)).ravel())
        flat = np.concatenate(off).astype(float)
        found.append(
            Errors(float(np.mean(flat**2)), float(np.mean(np.abs(flat))), float(np.mean(np.concatenate(inside))))
        )
    return answer.expected_error, _mean(found)


def _one_by_one(tables: dict[Any, Counts], repeats: int) -> Errors:
    noise = Laplace(1, EPSILON / len(tables))
    cells = sum(one.size for one in tables.values())
    off = noise.release(np.zeros(cells * max(5, repeats), dtype=np.int64)).astype(float)
    return Errors(float(np.mean(off**2)), float(np.mean(np.abs(off))))


def _running(repeats: int) -> Iterator[Result]:
    """Yield errors of running counts, one person per step, compared with the binary tree mechanism."""
    levels = tree_levels(HORIZON, 2)
    nodes = float(np.mean([sum(digits(step, 2, levels)) for step in range(1, HORIZON + 1)]))
    true = 100 * np.arange(1, HORIZON + 1)
    for label, delta in (("", 0.0), (f", delta {DELTA:g}", DELTA)):
        squares = []
        for _ in range(repeats):
            budget = tacit.Budget(EPSILON, delta)
            rho = budget.remaining().rho
            price: Any = {"rho": rho} if delta else {"epsilon": EPSILON}
            counter = tacit.stats.RunningCount(HORIZON, budget=budget, **price)
            values = np.array([counter.add(100).value for _ in range(HORIZON)])
            squares.append(float(np.mean((values - true) ** 2.0)))
        binary = nodes * levels / (2 * rho) if delta else nodes * 2 * (levels / EPSILON) ** 2
        name = f"running counts over {HORIZON:,} steps{label}: mean squared error"
        yield Result(f"{name}, expected", counter.expected_error, "", {"binary tree": binary})
        yield Result(name, float(np.mean(squares)), "", {"binary tree": binary})


def _peer(theirs: dict[str, Any] | None, key: str) -> Errors | None:
    return None if theirs is None else Errors(*theirs[key])


def _mean(found: list[Errors]) -> Errors:
    return Errors(*(float(np.mean([one[place] for one in found])) for place in range(3)))


def _values() -> Any:
    """Return numbers between 0 and 1,024: two modes and a tail, with many almost empty bins."""
    generator = np.random.default_rng(1)
    parts = [generator.normal(300, 60, ROWS // 2), generator.normal(620, 25, ROWS // 4)]
    parts.append(generator.exponential(150, ROWS - ROWS // 2 - ROWS // 4))
    return np.clip(np.concatenate(parts), 0, BINS - 1e-6)


def _size(column: int) -> int:
    return 8 + column % 3


def _table() -> dict[str, Any]:
    """Return columns that depend on a latent class of person, with values of uneven frequency."""
    generator = np.random.default_rng(2)
    kind = generator.integers(0, 4, ROWS)
    found = {}
    for column in range(COLUMNS):
        size = _size(column)
        shares = np.array([np.roll(1.0 / np.arange(1, size + 1), which) for which in range(4)])
        limits = np.cumsum(shares / shares.sum(axis=1, keepdims=True), axis=1)
        found[f"c{column}"] = (generator.random(ROWS)[:, None] > limits[kind]).sum(axis=1).clip(0, size - 1)
    return found


def _true_tables(table: dict[str, Any]) -> dict[Any, Counts]:
    found = {}
    for (one, first), (other, second) in combinations(enumerate(table), 2):
        counts = np.zeros((_size(one), _size(other)), dtype=np.int64)
        np.add.at(counts, (table[first], table[second]), 1)
        found[(first, second)] = counts
    return found
