# mypy: ignore-errors
"""Tumult Analytics on a local Spark: counts, sums and means by group, each unit bounded in groups and in rows a group.

It asks three questions, one an aggregate, with a third of the epsilon each; it has no way to ask for several at once.
The rows are cached in memory before the clock starts. It needs Java 17.
"""

import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable

from pyspark.sql import SparkSession
from query_clock import arguments, timed
from tmlt.analytics import (
    AddRowsWithID,
    ApproxDPBudget,
    KeySet,
    MaxGroupsPerID,
    MaxRowsPerGroupPerID,
    QueryBuilder,
    Session,
)

epsilon, delta, by = arguments["epsilon"], arguments["delta"] or 1e-6, arguments["by"]
lower, upper = arguments["bounds"]
warehouse = tempfile.TemporaryDirectory(prefix="tacit-bench-")
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.driver.memory", "8g")
    .config("spark.sql.shuffle.partitions", "8")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.warehouse.dir", warehouse.name)
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")
data = spark.read.parquet(arguments["folder"]).select("user_id", by, "value").cache()
data.count()


def ask():
    """Ask for the three aggregates."""
    session = Session.from_dataframe(
        ApproxDPBudget(epsilon, delta), "data", data, protected_change=AddRowsWithID("user_id")
    )
    keys = KeySet.from_dict({by: list(range(arguments["keys"]))})
    query = (
        QueryBuilder("data")
        .enforce(MaxGroupsPerID(by, arguments["groups_per_unit"]))
        .enforce(MaxRowsPerGroupPerID(by, arguments["rows_per_group"]))
    )
    for aggregate in ("count", "sum", "average"):
        grouped = query.groupby(keys)
        asked = grouped.count() if aggregate == "count" else getattr(grouped, aggregate)("value", low=lower, high=upper)
        session.evaluate(asked, ApproxDPBudget(epsilon / 3, delta / 3)).toPandas()


timed(ask)
