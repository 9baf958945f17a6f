"""One private question on a standalone cluster with two workers; `TACIT_CLUSTER=1` runs it, and it takes a minute."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from tests.support.spark_servers import HOST, cluster

QUESTION = """
import sys
from tacit.engines import SparkEngine, Source
from tacit.privacy.bounds import Bounds
from tacit.privacy.tables import Column, Kind, Limits, Schema, Table
from tacit.privacy.units import Unit
from tacit.query import PlanSettings, Target, BudgetTerms, ask, plan_of, run

place, files = sys.argv[1:]
columns = (Column("u", Kind.INTEGER), Column("k", Kind.TEXT), Column("n", Kind.INTEGER, Bounds(0, 9)))
table = Table("visits", columns, Unit("u"), Limits(rows_per_unit=3))
engine = SparkEngine(place, salt=7)
engine.register(table, Source("spark", place, f"parquet:{files}"), {})
first = engine.refresh("visits")
settings = PlanSettings(Limits(groups_per_unit=3, rows_per_group=3), {"k": ["a", "b"]})
sql = "SELECT k, COUNT(*), SUM(n) FROM visits GROUP BY k"
schema = Schema([table])
plan = plan_of(ask(sql, schema), schema, Target(epsilon=1e9), BudgetTerms(), settings)
noisy = run(plan, engine, 7)
tracker = engine._session.sparkContext.statusTracker()
executors = {(one.host, one.port) for one in tracker.getExecutorInfos()}
assert engine.refresh("visits") == first
engine.close()
print(len(executors) - 1, noisy.keys[0], [int(one) for one in noisy.measures[0]])
"""


@pytest.mark.skipif(os.environ.get("TACIT_CLUSTER") != "1", reason="TACIT_CLUSTER=1 is not set")
def test_a_private_question_is_answered_by_a_cluster_of_two_workers(tmp_path: Path) -> None:
    for part in range(4):
        items = "i % 50 AS u, CASE WHEN i % 100 < 50 THEN 'a' ELSE 'b' END AS k, i % 10 AS n"
        rows = f"SELECT {items} FROM range({part}, 4000, 4) AS t(i)"
        duckdb.sql(f"COPY ({rows}) TO '{tmp_path}/{part}.parquet' (FORMAT parquet)")
    with cluster(tmp_path / "cluster") as place:
        said = subprocess.run(
            [sys.executable, "-c", QUESTION, place, f"{tmp_path}/*.parquet"],
            env={**os.environ, "SPARK_LOCAL_IP": HOST},
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
        )
    executors, _, answer = said.stdout.strip().partition(" ")
    assert int(executors or 0) >= 2, said.stderr
    keys, _, counts = answer.partition("] ")
    assert keys == "['a', 'b'"
    assert sum(json.loads(counts)) == 150  # three rows of each of fifty
