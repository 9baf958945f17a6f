"""Coverage of 95 % intervals over seeded releases of every statistic that has one.

The goal is between 94 and 97 %, over all data, sizes and epsilons together. Above it lie intervals whose ends are whole
numbers where the noise has a scale near 1: the next narrower one would hold the value too seldom.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from bench.results import Result
from bench.statistics.data import ASKED, SHAPES, TRUE, Data, made, planned, rows_of
from tacit.mechanisms.simulation import SeededSource

LEVEL: Final = 0.95
LOWEST: Final = 94.0
HIGHEST: Final = 97.0


def measured(sizes: Sequence[int], epsilons: Sequence[float], repeats: int, seconds: float) -> Iterator[Result]:
    """Yield the coverage over all data and on the worst data; no repetition starts after the time limit."""
    sets = [made(shape, rows) for rows in sizes for shape in SHAPES]
    for place, statistic in enumerate(ASKED):
        started_s = time.monotonic()
        cells: dict[str, list[float]] = {}
        pairs = [(data, epsilon) for data in sets for epsilon in epsilons]
        for index, (data, epsilon) in enumerate(pairs):
            until_s = started_s + seconds / len(ASKED) * (index + 1) / len(pairs)
            name = f"{data.shape}, {data.rows:,} rows, epsilon {epsilon:g}"
            cells[name] = _held(statistic, data, epsilon, repeats, until_s, seed=1_000 * (place * len(pairs) + index))
        shares = {name: 100 * float(np.mean(held)) for name, held in cells.items()}
        everything = float(np.mean(list(shares.values())))
        yield Result(f"{statistic}: 95 % intervals that hold", everything, "%", goal=LOWEST, better="higher")
        yield Result(f"{statistic}: 95 % intervals that hold, at most", everything, "%", goal=HIGHEST)
        worst, best = min(shares, key=lambda name: shares[name]), max(shares, key=lambda name: shares[name])
        yield Result(f"{statistic}: fewest hold ({worst})", shares[worst], "%")
        yield Result(f"{statistic}: most hold ({best})", shares[best], "%")


def _held(statistic: str, data: Data, epsilon: float, repeats: int, until_s: float, seed: int) -> list[float]:
    plan, rows, true = planned(statistic, data, epsilon), rows_of(statistic, data), TRUE[statistic](data)
    held: list[float] = []
    for repeat in range(repeats):
        if len(held) >= 3 and time.monotonic() > until_s:
            break
        noisy = tuple(map(np.asarray, plan.measure(rows, SeededSource(seed + repeat))))
        span: Any = plan.interval(noisy, LEVEL)
        slack = 1e-9 * np.maximum(np.abs(true), 1e-9)  # sums of the same numbers in another order
        held.append(float(np.mean((np.asarray(span.low) <= true + slack) & (true - slack <= np.asarray(span.high)))))
    return held
