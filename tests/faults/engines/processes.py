"""A process that uses an engine, to be killed, or to run beside others.

`python -m tests.faults.engines.processes register|ask|hold FOLDER SOURCE`: registers the table `events` of a Parquet
file (with a limit on the rows of a unit, so that they are stored) and prints what it finds as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import duckdb

from tacit.engines import DuckDBEngine, Source
from tacit.privacy.tables import Column, Kind, Limits, Table
from tacit.privacy.units import Unit

EVENTS = Table("events", (Column("u", Kind.INTEGER), Column("n", Kind.INTEGER)), Unit("u"), Limits(rows_per_unit=3))
SQL = "SELECT COUNT(*) AS rows, SUM(n) AS total, COUNT(DISTINCT _unit) AS units FROM tacit_data.events"


def found(folder: Path, source: Path, times: int = 1) -> dict[str, int]:
    """Register the table and ask about it."""
    engine = DuckDBEngine(folder, salt=1, threads=1)
    engine.register(EVENTS, Source("parquet", str(source)), {})
    for _ in range(times):
        engine.refresh("events")
        answer = engine.run(SQL)
    engine.close()
    return {name: int(values[0]) for name, values in answer.items()}


def hold(path: Path) -> None:
    """Keep a database open for writing until the standard input ends."""
    with duckdb.connect(str(path)):
        sys.stdout.write("open\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    what, *places = sys.argv[1:]
    if what == "hold":
        hold(Path(places[0]))
    else:
        sys.stdout.write(json.dumps(found(Path(places[0]), Path(places[1]), 5 if what == "ask" else 1)))
