"""Neighbouring sources read by a curator: a file is registered, questions are planned, and one unit leaves the file.

The same plans run before and after, with the same salt, against what the engine makes of each version of the file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

import tacit
from tacit.curator.salt import salt_of
from tacit.ledger import Budget
from tacit.privacy.errors import InvalidInput, QueryRefused
from tacit.query import Plan, PlanSettings, Target
from tacit.query.rewrite import UNITS, Statement
from tests.property.query.neighbours import Pair, Tally, Violated, check_bins, ranges_of
from tests.property.query.questions import Asked, question
from tests.support.plans import plan_sql

Results = list[dict[str, list[Any]]]


def results(curator: tacit.Curator, plan: Plan, statements: Sequence[Statement]) -> Results:
    """Return what statements of a plan give on the rows that the curator shows."""
    engine = curator.engines.bind(map(curator.catalog.schema.table, plan.tables)).engine
    found = []
    for one in statements:
        columns = engine.run(one.sql(engine.write), {"salt": salt_of(curator.folder)} if one.is_salted else None)
        found.append(
            {name: np.asarray(held).tolist() if _is_whole(name) else list(held) for name, held in columns.items()}
        )
    return found


def check_removal(
    curator: tacit.Curator, removed: Callable[[], None], seeds: range, written: Sequence[str] = ()
) -> Tally:
    """Raise `Violated` if removing one unit moves the results of questions by more than was charged.

    Questions are those of the seeds, and those that are written out.
    """
    schema, tally = curator.catalog.schema, Tally()
    asked: list[tuple[str, Plan, Results, Results]] = []
    cap, target = Budget(epsilon=1e4, delta=1e-6).cap, Target(epsilon=1.0)
    for one in (
        *(question(seed, schema) for seed in seeds),
        *(Asked(sql, PlanSettings(), cap, target) for sql in written),
    ):
        tally.questions += 1
        try:
            plan = plan_sql(one.sql, schema, one.target, one.terms, one.settings)
        except (QueryRefused, InvalidInput):
            tally.refused += 1
            continue
        bins = results(curator, plan, plan.learning)
        plan = plan.ranged(ranges_of(plan, bins)) if plan.missing else plan
        asked.append((one.sql, plan, bins, results(curator, plan, plan.statements)))
    removed()
    for sql, plan, bins, whole in asked:
        other_bins = results(curator, plan, plan.learning)
        try:
            check_bins(plan, bins, other_bins)
            near = Pair(plan, whole, results(curator, plan, plan.statements), bins, other_bins).check()
        except Violated as error:
            raise Violated(f"{error}\n{sql}") from error
        tally.tight, tally.pairs = max(tally.tight, near), tally.pairs + 1
    return tally


def write_table(path: Path, columns: str, rows: Sequence[Sequence[Any]]) -> None:
    """Write a DuckDB file with one table `t`, anew if it is there."""
    path.unlink(missing_ok=True)
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE TABLE t ({columns})")
        if rows:
            connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(rows[0]))})", rows)


def _is_whole(name: str) -> bool:
    return name[0] in "mw" or name in ("cell", UNITS)
