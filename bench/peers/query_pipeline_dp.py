# mypy: ignore-errors
"""PipelineDP on its local backend, with the mechanisms of PyDP: all statistics of a question in one aggregation."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import pipeline_dp
import pyarrow.parquet as parquet
from query_clock import answer, arguments, timed

by = arguments["by"]
table = parquet.read_table(arguments["folder"], columns=["user_id", by, "value"])
data = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
del table
METRICS = {
    "count": pipeline_dp.Metrics.COUNT,
    "sum": pipeline_dp.Metrics.SUM,
    "avg": pipeline_dp.Metrics.MEAN,
    "var": pipeline_dp.Metrics.VARIANCE,
}
FIELDS = {"count": "count", "sum": "sum", "avg": "mean", "var": "variance"}


def asked(wanted):
    """Ask once and return the answers by group."""
    accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=arguments["epsilon"], total_delta=arguments["delta"])
    lower, upper = arguments["bounds"]
    aggregated = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend()).aggregate(
        data,
        pipeline_dp.AggregateParams(
            metrics=[METRICS[name] for name in wanted],
            noise_kind=pipeline_dp.NoiseKind.LAPLACE,
            max_partitions_contributed=arguments["groups_per_unit"],
            max_contributions_per_partition=arguments["rows_per_group"],
            min_value=lower,
            max_value=upper,
        ),
        pipeline_dp.DataExtractors(
            privacy_id_extractor=lambda row: row[0],
            partition_extractor=lambda row: row[1],
            value_extractor=lambda row: row[2],
        ),
        public_partitions=list(range(arguments["keys"])),
    )
    accountant.compute_budgets()
    return {str(group): [getattr(found, FIELDS[name]) for name in wanted] for group, found in aggregated}


if arguments["task"] == "time":
    timed(lambda: asked(["count", "sum", "avg"]))
else:
    repeats = range(arguments["repeats"])
    answer({"answers": [[asked(wanted) for _ in repeats] for wanted in arguments["wanted"]]})
