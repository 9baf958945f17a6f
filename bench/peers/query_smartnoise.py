# mypy: ignore-errors
"""SmartNoise SQL over SQLite in memory, which answers faster than its own reader of data frames.

It bounds the rows of a unit and nothing else: so many rows as groups times rows a group. Its epsilon is for each column
that it makes noise for; here it is set such that the whole question costs what the others' costs. It shows only keys
that occur, without a threshold, as if they were public.
"""

import sqlite3
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import pandas
import snsql
from query_clock import answer, arguments, timed

warnings.simplefilter("ignore")
by = arguments["by"]
lower, upper = arguments["bounds"]
frame = pandas.read_parquet(arguments["folder"], columns=["user_id", by, "value"])
metadata = {
    "": {
        "": {
            "events": {
                "max_ids": arguments["groups_per_unit"] * arguments["rows_per_group"],
                "row_privacy": False,
                "clamp_columns": True,
                "censor_dims": False,
                "rows": len(frame),
                "user_id": {"type": "int", "private_id": True},
                by: {"type": "int"},
                "value": {"type": "float", "lower": lower, "upper": upper},
            }
        }
    }
}
connection = sqlite3.connect(":memory:")
frame.to_sql("events", connection, index=False)
del frame
COLUMNS = {"count": "COUNT(*)", "sum": "SUM(value)", "avg": "AVG(value)", "var": "VAR(value)"}


def reader(epsilon):
    """Return a reader that gives so much to every column."""
    privacy = snsql.Privacy(epsilon=epsilon, delta=arguments["delta"])
    return snsql.from_connection(connection, engine="sqlite", privacy=privacy, metadata=metadata)


def asker(wanted):
    """Return a function that asks once; the whole question costs epsilon."""
    columns = ", ".join(f"{COLUMNS[name]} AS {name}_" for name in wanted)
    sql = f"SELECT {by}, {columns} FROM events GROUP BY {by}"
    each = arguments["epsilon"]
    while abs(cost := reader(each).get_privacy_cost(sql)[0] - arguments["epsilon"]) > 1e-6:
        each *= arguments["epsilon"] / (cost + arguments["epsilon"])

    def ask():
        rows = reader(each).execute(sql)[1:]
        return {str(row[0]): [float(value) for value in row[1:]] for row in rows}

    return ask


if arguments["task"] == "time":
    timed(asker(["count", "sum", "avg"]))
else:
    answers = []
    for wanted in arguments["wanted"]:
        ask = asker(wanted)
        answers.append([ask() for _ in range(arguments["repeats"])])
    answer({"answers": answers})
