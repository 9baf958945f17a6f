"""Statistics: errors beside OpenDP and diffprivlib, coverage of intervals, levels of tests, choices of estimators.

Data are normal, skewed, heavy-tailed and whole numbers, 10^2 to 10^6 of them, within public bounds, at epsilon 1 and
0.1; with --quick 10^3 of them, and 10^2 and 10^4 for intervals. A figure over all data is a geometric mean. What peers
do differently stands in statistics/errors.py and at the top of their scripts (peers/stats_*.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from bench.results import Result
from bench.statistics import choices, counts, coverage, errors, levels

EPSILONS: Final = (1.0, 0.1)
QUICK_COVERAGE_S: Final = 10.0
COVERAGE_S: Final = 1_200.0


def run(quick: bool) -> Iterator[Result]:
    """Measure errors, then intervals, then levels of tests, then choices."""
    sizes = (100, 1_000, 10_000, 100_000, 1_000_000)
    if quick:
        yield from errors.measured((1_000,), EPSILONS, 100, errors.QUICK_PEER_S)
        yield from coverage.measured((100, 10_000), EPSILONS, 40, QUICK_COVERAGE_S)
        yield from counts.measured(15)
        yield from levels.measured(8)
        yield from choices.measured((1_000,), EPSILONS, 30)
        return
    yield from errors.measured(sizes, EPSILONS, 300, errors.PEER_SECONDS_MAX)
    yield from coverage.measured(sizes, EPSILONS, 400, COVERAGE_S)
    yield from counts.measured(400)
    yield from levels.measured(400)
    yield from choices.measured(sizes, EPSILONS, 100)
