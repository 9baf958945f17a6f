"""Coverage of the 95 % intervals of SQL answers over seeded releases.

Asked are all aggregates that have intervals, expressions of them, running sums, and rows that noisy numbers select, by
ward, over wards of very different sizes, at three epsilons. The goal is 94 % at least over all epsilons together, and
97 % at most where the noise is smooth. Numbers whose noise is mostly 0, joint ranges over several measures, and rows
selected where the noise hardly decides which, hold more often.

Private choices have no interval: shown is how often they keep within the rows that the preview states at 95 %, and how
far they lie from the truth.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import duckdb
import numpy as np
from numpy.typing import NDArray

from bench.queries.exact_results import exact
from bench.results import Result
from tacit.accounting.conversions import Cost
from tacit.engines.protocol import SCHEMA, Columns
from tacit.mechanisms.simulation import SeededSource
from tacit.privacy.bounds import Bounds
from tacit.privacy.tables import Column, Kind, Limits, Schema, Table
from tacit.privacy.units import Unit
from tacit.query import BudgetTerms, Noisy, Plan, PlanSettings, Release, Target, ask, plan_of
from tacit.query.estimates import answer_rows
from tacit.query.run import add_noise

LEVEL: Final = 0.95
LOWEST: Final = 94.0
HIGHEST: Final = 97.0
EPSILONS: Final = (0.1, 1.0, 10.0)
WARDS: Final = 16
ROWS: Final = 4_000
PEOPLE: Final = Table(
    "people",
    (
        Column("uid", Kind.INTEGER, nullable=False),
        Column("ward", Kind.INTEGER, Bounds(1, WARDS), nullable=False),
        Column("age", Kind.INTEGER, Bounds(0, 120), nullable=False),
        Column("cost", Kind.REAL, Bounds(0, 1000), nullable=False),
    ),
    Unit("uid"),
    Limits(rows_per_unit=1),
)
SHARE: Final = "COUNT(*) FILTER (WHERE age > 60) * 1.0 / COUNT(*)"
TWO: Final = "COUNT(*) FILTER (WHERE age > 60), COUNT(*) FILTER (WHERE age < 30)"
AGGREGATES: Final = {
    "COUNT": "COUNT(*) AS y",
    "COUNT DISTINCT": "COUNT(DISTINCT age) AS y",
    "SUM": "SUM(cost) AS y",
    "AVG": "AVG(cost) AS y",
    "VAR": "VARIANCE(cost) AS y",
    "STDDEV": "STDDEV(age) AS y",
    "CORR": "CORR(age, cost) AS y",
}
EXPRESSIONS: Final = {
    "ratio of counts": f"{SHARE} AS y",
    "sum over count": "SUM(cost) / COUNT(*) AS y",
    "rounded mean": "ROUND(AVG(age), 1) AS y",
    "|count - 250|": "ABS(COUNT(*) - 250) AS y",
    "CASE of counts": "CASE WHEN COUNT(*) > 200 THEN COUNT(*) FILTER (WHERE age > 60) ELSE 0 END AS y",
    "|difference of counts|": f"ABS({TWO.replace(', C', ' - C')}) AS y",
    "running count": "SUM(COUNT(*)) OVER (ORDER BY ward) AS y",
    "share of the total": "COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS y",
    "change": "COUNT(*) - LAG(COUNT(*)) OVER (ORDER BY ward) AS y",
}
SELECTED: Final = {
    "largest 3 of 16 counts": ("COUNT(*) AS y", "ORDER BY y DESC LIMIT 3"),
    "least of 16 means": ("AVG(age) AS y", "ORDER BY y LIMIT 1"),
    "largest 3 of 16 sums": ("SUM(cost) AS y", "ORDER BY y DESC LIMIT 3"),
    "counts above 250": ("COUNT(*) AS y", "HAVING COUNT(*) > 250"),
    "ratios above 0.2": (f"{SHARE} AS y", f"HAVING {SHARE} > 0.2"),
}
CHOICES: Final = {
    "MIN": ("MIN(age) AS y", 0.0),
    "MAX": ("MAX(age) AS y", 1.0),
    "MEDIAN": ("MEDIAN(age) AS y", 0.5),
    "QUANTILE 0.9": ("QUANTILE(age, 0.9) AS y", 0.9),
}


TIGHT: Final = ("SUM", "AVG", "VAR", "STDDEV", "ratio of counts", "sum over count")
"""Queries whose coverage should not exceed the stated level: smooth, without folds or selection."""

SUMS: Final = ("count", "sum", "units", "distinct")


def questions() -> dict[str, str]:
    """Return the questions whose answers have intervals, by name; each shows one noisy column, y."""
    plain = {name: f"SELECT ward, {y} FROM people GROUP BY ward" for name, y in (AGGREGATES | EXPRESSIONS).items()}
    chosen = {name: f"SELECT ward, {y} FROM people GROUP BY ward {rest}" for name, (y, rest) in SELECTED.items()}
    totals = {"totals of ROLLUP": "SELECT ward, COUNT(*) AS y FROM people GROUP BY ROLLUP(ward)"}
    return plain | totals | chosen


def run(quick: bool) -> Iterator[Result]:
    """Measure intervals, then choices."""
    world, repeats = World(), 12 if quick else 200
    for place, (name, sql) in enumerate(questions().items()):
        shares = {}
        for epsilon in EPSILONS:
            first = 10**6 * (place + 1) + round(10**4 * epsilon)
            shares[epsilon] = 100 * float(np.mean(world.asked(sql, epsilon).held(repeats, first)))
        everything = float(np.mean(list(shares.values())))
        yield Result(f"{name}: 95 % intervals that hold", everything, "%", goal=LOWEST, better="higher")
        if name in TIGHT:
            yield Result(f"{name}: 95 % intervals that hold, at most", everything, "%", goal=HIGHEST)
        worst = min(shares, key=lambda epsilon: shares[epsilon])
        yield Result(f"{name}: fewest hold (epsilon {worst:g})", shares[worst], "%")
    for name, (y, share) in CHOICES.items():
        for epsilon in EPSILONS:
            within, error = world.chosen(f"SELECT {y} FROM people", epsilon, share, 10 * repeats)
            yield Result(
                f"{name}, epsilon {epsilon:g}: within the stated rows", within, "%", goal=95.0, better="higher"
            )
            yield Result(f"{name}, epsilon {epsilon:g}: mean error", error, "years")


class World:
    """The rows of the benchmark in a database."""

    def __init__(self) -> None:
        rng = np.random.default_rng(3)
        ward = np.minimum(
            rng.geometric(0.15, ROWS), WARDS - 1
        )  # from hundreds of people to a few, and none in the last
        self.age: NDArray[np.int64] = np.clip(rng.normal(45, 18, ROWS), 17, 95).astype(np.int64)
        cost = np.where(rng.random(ROWS) < 0.4, 0.0, np.minimum(rng.lognormal(4, 1, ROWS), 1000.0))
        self._connection = duckdb.connect(":memory:", config={"threads": 1})
        columns = {"uid": np.arange(ROWS), "ward": ward, "age": self.age, "cost": cost, "_unit": np.arange(ROWS)}
        self._connection.register("columns", columns)
        self._connection.execute(f"CREATE SCHEMA {SCHEMA}; CREATE TABLE {SCHEMA}.people AS SELECT * FROM columns")

    def asked(self, sql: str, epsilon: float) -> Asked:
        """Return a query with the exact results of its statements."""
        schema = Schema([PEOPLE])
        plan = plan_of(ask(sql, schema), schema, Target(epsilon=epsilon), BudgetTerms(), PlanSettings())
        return Asked(plan, tuple(self._found(statement.sql()) for statement in plan.statements))

    def chosen(self, sql: str, epsilon: float, share: float, repeats: int) -> tuple[float, float]:
        """Return the percentage of choices within the stated rank error, and their mean error."""
        asked, ages = self.asked(sql, epsilon), np.sort(self.age)
        (choice,), (mechanism,) = asked.plan.choices, asked.plan.price.choices
        allowed = choice.rows_missed(mechanism, LEVEL)
        rank, held, errors = share * len(ages), [], []
        truth = ages[min(int(np.ceil(rank)) - 1, len(ages) - 1)] if share else ages[0]
        for seed in range(repeats):
            value = add_noise(asked.plan, asked.found, SeededSource(seed)).choices[0][0]
            below, upto = np.searchsorted(ages, value, "left"), np.searchsorted(ages, value, "right")
            held.append(max(rank - upto, below - rank, 0) <= allowed)
            errors.append(abs(float(value) - float(truth)))
        return 100 * float(np.mean(held)), float(np.mean(errors))

    def _found(self, sql: str) -> Columns:
        columns = self._connection.execute(sql).fetchnumpy()
        return {name: column.tolist() for name, column in columns.items()}


@dataclass(frozen=True)
class Asked:
    """A plan, and the exact results of its statements."""

    plan: Plan
    found: tuple[Columns, ...]

    @cached_property
    def truth(self) -> dict[int, Any]:
        """The column y without noise by group, before any selection."""
        groups = exact(self.plan, self.found)
        keys = [(value,) for value in self.plan.domains[0].values] if self.plan.domains else []
        values = [groups.get(key, [0] * len(self.plan.measures)) for key in keys]
        measures = tuple(np.array(column, dtype=np.int64) for column in zip(*values, strict=True))
        question = replace(self.plan.question, having=None, order=(), limit=None, offset=0)
        noisy = Noisy(([key[0] for key in keys],), measures, ())
        rows, places = answer_rows(replace(self.plan, question=question), noisy)
        is_sum = all(one.function in SUMS for one in question.aggregates)  # an empty group has no mean
        return {
            place: row["y"] if is_sum or (row["ward"],) in groups else None
            for row, place in zip(rows, places, strict=True)
        }

    def held(self, repeats: int, first: int, told: Plan | None = None) -> list[bool]:
        """Return for each interval that is shown whether it holds, over releases with seeds from `first` on.

        `told` is the plan that the intervals are made by.
        """
        found = []
        for seed in range(repeats):
            noisy = add_noise(self.plan, self.found, SeededSource(first + seed))
            shown = Release(told or self.plan, noisy, Cost(1.0, 0.0, 1.0), ())
            for span, place in zip(shown.intervals(LEVEL), shown._finished[1], strict=True):
                interval, truth = span["y"], self.truth[place]
                if interval is not None and truth is not None:
                    slack = 1e-9 * max(abs(truth), 1e-6)  # the same numbers, added up in another order
                    found.append(bool(interval.low - slack <= truth <= interval.high + slack))
        return found
