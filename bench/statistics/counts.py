"""Coverage of 95 % intervals of counts that share noise: running counts, tables, hierarchies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from bench.results import Result
from tacit import Budget, Categories, stats
from tacit.mechanisms.simulation import SeededSource
from tacit.stats.array_sums import ArrayRows, read_arrays
from tacit.stats.statistic import StatisticPlan

EPSILONS: Final = (0.1, 1.0, 3.0, 10.0, 50.0)
LOWEST: Final = 94.0
STEPS: Final = 24
ROWS: Final = 5_000
QUIET: Final = 10_000.0
LEVEL: Final = 0.95

_GENERATOR = np.random.default_rng(5)
DATA: Final = {name: _GENERATOR.integers(0, size, ROWS) for name, size in (("a", 3), ("b", 4), ("c", 2))}
DOMAIN: Final = {name: Categories(list(range(size))) for name, size in (("a", 3), ("b", 4), ("c", 2))}

Ask = Callable[[dict[str, Any]], Any]
ASKED: Final[dict[str, Ask]] = {
    "tables by two columns": lambda how: stats.marginals(DATA, domain=DOMAIN, **how),
    "hierarchy": lambda how: stats.hierarchy(DATA["a"], levels={0: "few", 1: "few", 2: "many"}, name="a", **how),
    "contingency": lambda how: stats.contingency(DATA["a"], DATA["b"], keys=[0, 1, 2], other_keys=[0, 1, 2, 3], **how),
}


def measured(repeats: int) -> Iterator[Result]:
    """Yield the coverage for each epsilon."""
    for epsilon in EPSILONS:
        yield _result("running count", epsilon, _running(epsilon, 4 * repeats))
    for name, ask in ASKED.items():
        quiet = ask({"epsilon": QUIET, "budget": Budget(QUIET)})
        for epsilon in EPSILONS:
            plan = ask({"epsilon": epsilon, "budget": Budget(epsilon)}).plan
            yield _result(name, epsilon, _held(plan, np.asarray(quiet.value), repeats))


def _result(name: str, epsilon: float, held: float) -> Result:
    label = f"{name}, epsilon {epsilon:g}: 95 % intervals that hold"
    return Result(label, 100 * held, "%", goal=LOWEST, better="higher")


def _held(plan: StatisticPlan, true: Any, repeats: int) -> float:
    names = ("value", "other") if plan.label.startswith("table of") else tuple(DATA)
    rows = ArrayRows(read_arrays(dict(zip(names, DATA.values(), strict=False)))[0])
    found = []
    for repeat in range(repeats):
        noisy = plan.measure(rows, SeededSource(repeat))
        span: Any = plan.interval(noisy, LEVEL)
        found.append((np.ravel(span.low) <= true.ravel()) & (true.ravel() <= np.ravel(span.high)))
    return float(np.mean(found))


def _running(epsilon: float, repeats: int) -> float:
    held = []
    for repeat in range(repeats):
        running = stats.RunningCount(STEPS, epsilon=epsilon, budget=Budget(epsilon), source=SeededSource(repeat))
        spans = [running.add(1_000).interval(LEVEL) for _ in range(STEPS)]
        held += [low <= 1_000 * (at + 1) <= high for at, (low, high) in enumerate(spans)]
    return float(np.mean(held))
