"""The kinds of releases, each as the pipeline sees it; a new kind is one more line in KINDS."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd

import tacit
from tacit import pipeline
from tacit.learn import LinearRegression, PrivateSearch
from tacit.ledger import Budget
from tacit.pipeline import Released, ReleaseOptions, ReleasePlan
from tacit.query import PlanSettings, QuerySpec, Target

EPSILON = 0.5
BUDGET = 4.0


@dataclass(frozen=True)
class Prepared:
    """A plan with the budget that pays for it."""

    plan: ReleasePlan[Any]
    budget: Budget

    def release(self, options: ReleaseOptions | None = None) -> Released[Any]:
        return pipeline.release(self.plan, self.budget, options or ReleaseOptions())

    def encoded(self, options: ReleaseOptions | None = None) -> bytes:
        return self.plan.encode(self.release(options).answer)


Prepare = Callable[[tacit.Curator, str | None], Prepared]


def _query(sql: str) -> Prepare:
    def prepare(curator: tacit.Curator, analyst: str | None = None) -> Prepared:
        asked = QuerySpec(sql, Target(epsilon=EPSILON), PlanSettings())
        return Prepared(curator.queries().bind(asked), curator.ledger.payer("visits", analyst))

    return prepare


@cache
def worked_example() -> ModuleType:
    """Return the kind of release of ARCHITECTURE.md, as a module."""
    page = Path(__file__).parents[3] / "ARCHITECTURE.md"
    (code,) = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    example = ModuleType("worked_example")
    sys.modules[example.__name__] = example  # where dataclasses look for it
    exec(compile(code, str(page), "exec"), vars(example))
    return example


def row_count(curator: tacit.Curator, analyst: str | None = None) -> Prepared:
    table = curator.catalog.schema.table("visits")
    plan = worked_example().RowCount(curator.engines.bind([table]), table.name, EPSILON)
    return Prepared(plan, curator.ledger.payer(table.dataset, analyst))


def _statistic(function: Callable[..., Any], *columns: str, **arguments: Any) -> Prepare:
    def prepare(curator: tacit.Curator, analyst: str | None = None) -> Prepared:
        table = curator.table("visits")
        named = {} if analyst is None else {"analyst": analyst}
        columns_ = [table[name] for name in columns]
        found = tacit.stats.prepare(function, *columns_, epsilon=EPSILON, **arguments, **named)
        return Prepared(found.statistic, found.budget)

    return prepare


def workload(curator: tacit.Curator, analyst: str | None = None) -> Prepared:
    table = curator.table("visits")
    named = {} if analyst is None else {"analyst": analyst}
    found = tacit.stats.prepare(tacit.stats.marginals, {"sex": table["sex"]}, ways=1, epsilon=EPSILON, **named)
    return Prepared(found.statistic, found.budget)


def training(curator: tacit.Curator, analyst: str | None = None) -> Prepared:
    made = curator.prepare_training("visits", LinearRegression(), ["sex"], "age", EPSILON, analyst=analyst)
    return Prepared(made.prepared.statistic, made.prepared.budget)


def search(curator: tacit.Curator, analyst: str | None = None) -> Prepared:
    asked = PrivateSearch(LinearRegression(), {"fit_intercept": [True, False]}, mean_runs=2)
    made = curator.prepare_training("visits", asked, ["sex"], "age", EPSILON, analyst=analyst)
    return Prepared(made.prepared.statistic, made.prepared.budget)


KINDS: dict[str, Prepare] = {
    "query": _query("SELECT sex, COUNT(*) AS n FROM visits GROUP BY sex"),
    "query with selected keys": _query("SELECT town, COUNT(*) AS n FROM visits GROUP BY town"),
    "query with learned bounds": _query("SELECT sex, SUM(income) AS total FROM visits GROUP BY sex"),
    "mean": _statistic(tacit.stats.mean, "age"),
    "quantile": _statistic(tacit.stats.median, "age"),
    "learned bounds": _statistic(tacit.stats.sum, "age", bounds="learn"),
    "top k": _statistic(tacit.stats.top_k, "town", k=2),
    "workload": workload,
    "training": training,
    "search": search,
    "row count": row_count,
}


def clinic(folder: Path) -> tacit.Curator:
    """Return a curator with one private table, a budget and two analysts."""
    curator = tacit.Curator(folder)
    register(curator)
    curator.set_budget("visits", epsilon=BUDGET, delta=1e-6)
    for name in ("ana", "bob"):
        curator.add_analyst(name, {"visits": tacit.Budget(2.0, 1e-7)})
    return curator


def register(curator: tacit.Curator, *, age_max: int = 120, replace: bool = False) -> None:
    """Register the table; with another bound, as another record."""
    rows = pd.DataFrame({"patient": range(300), "age": [one % 90 for one in range(300)], "sex": ["F", "M", "F"] * 100})
    rows = rows.assign(town=["Bern", "Basel"] * 150, income=[1_000.0 + one for one in range(300)])
    curator.add_table(
        "visits",
        rows,
        unit="patient",
        limits=tacit.Limits(rows_per_unit=1),
        columns={"age": tacit.Bounds(0, age_max), "sex": tacit.Categories(["F", "M"])},
        replace=replace,
    )


def spent(curator: tacit.Curator, analyst: str | None = None) -> float:
    return curator.budget("visits", analyst).spent().epsilon
