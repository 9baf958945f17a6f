# mypy: ignore-errors
"""OpenDP's Context over polars: counts, sums and means by group, each unit bounded in groups and in rows a group.

Two things differ from the others. Groups of a unit are not sampled, since that fails in this version, but taken in
their order, and one fewer than is paid for (the rank of the first group is 1, and groups of a rank below the limit are
kept). Where errors are measured, the data keep the bounds and OpenDP is told so instead, so that it loses nothing by
this. It has no variance and no powers over data frames: squares are a column of the data, and the variance is made
by hand from a count, a sum and a sum of squares, as are all four statistics at once, which costs less than asking for
each.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import opendp.prelude as dp
import polars as pl
from query_clock import answer, arguments, timed

dp.enable_features("contrib")
groups, rows = arguments["groups_per_unit"], arguments["rows_per_group"]
lower, upper = arguments["bounds"]
by, keys, bounded_already = arguments["by"], arguments["keys"], arguments["task"] == "errors"
data = pl.read_parquet(f"{arguments['folder']}/*.parquet", columns=["user_id", by, "value"])
if bounded_already:
    data = data.with_columns(square=pl.col.value**2)


def query(*columns):
    """Return a bounded question with these columns, ready to be released."""
    loss = {"epsilon": arguments["epsilon"]} | ({} if keys else {"delta": arguments["delta"]})
    unit = (
        {"contributions": [dp.polars.Bound(by=[by], num_groups=groups, per_group=rows)]}
        if bounded_already
        else {"contributions": 1, "identifier": "user_id"}
    )
    asked = dp.Context.compositor(
        data=data.lazy(),
        privacy_unit=dp.unit_of(**unit),
        privacy_loss=dp.loss_of(**loss),
        split_evenly_over=1,
        margins=[
            dp.polars.Margin(by=[], max_length=data.height),
            dp.polars.Margin(by=[by], max_length=data.height, max_groups=arguments["groups"]),
        ],
    ).query()
    if not bounded_already:
        asked = asked.truncate_per_group(rows, by=[by]).truncate_num_groups(groups, by=[by], keep="first")
    asked = asked.group_by(by).agg(*columns)
    return asked.with_keys(pl.LazyFrame({by: range(keys)}, schema={by: pl.Int64})) if keys else asked


def filled(name):
    """Return a column without missing values, which OpenDP asks for."""
    return pl.col(name).fill_null(0.0).fill_nan(0.0)


COUNT = dp.len(signed=True).alias("count")
SUM = filled("value").dp.sum((lower, upper)).alias("sum")
AVG = filled("value").dp.mean((lower, upper)).alias("avg")
SQUARES = filled("square").dp.sum((lower**2, upper**2)).alias("squares")


def answers(wanted):
    """Ask several times and return the answers by group."""
    columns = [COUNT, SUM, SQUARES] if "var" in wanted else [{"count": COUNT, "sum": SUM, "avg": AVG}[wanted[0]]]
    release = query(*columns).resolve()
    found = []
    for _ in range(arguments["repeats"]):
        frame = release(data.lazy()).collect()
        if "var" in wanted:
            avg = pl.col("sum") / pl.col("count")
            var = (pl.col("squares") - pl.col("sum") * avg) / (pl.col("count") - 1)
            frame = frame.with_columns(avg=avg, var=var)
        found.append({str(row[0]): list(row[1:]) for row in frame.select(by, *wanted).iter_rows()})
    return found


if bounded_already:
    answer({"answers": [answers(wanted) for wanted in arguments["wanted"]]})
else:
    timed(lambda: query(COUNT, SUM, AVG).release().collect().rows())
