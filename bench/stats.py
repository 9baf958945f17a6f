"""Statistics: errors beside OpenDP and diffprivlib, coverage of intervals, and how good the choice of estimators is.

Data are normal, skewed, heavy-tailed and whole numbers, 10^2 to 10^6 of them, within public bounds, at epsilon 1 and
0.1; with --quick 10^2 and 10^4 of them. A figure over all data is a geometric mean. What peers do differently stands in
statistics/errors.py and at the top of their scripts (peers/stats_*.py).
"""

from __future__ import annotations

from collections.abc import Iterator

from bench.results import Result
from bench.statistics import choices, coverage, errors

EPSILONS = (1.0, 0.1)


def run(quick: bool) -> Iterator[Result]:
    """Measure errors, then intervals, then choices."""
    sizes = (100, 10_000) if quick else (100, 1_000, 10_000, 100_000, 1_000_000)
    yield from errors.measured(sizes, EPSILONS, 60 if quick else 1_000, quick)
    yield from coverage.measured(sizes, EPSILONS, 40 if quick else 1_000, 18.0 if quick else 3_000.0)
    yield from choices.measured(sizes[-1:] if quick else sizes, EPSILONS, 20 if quick else 200)
