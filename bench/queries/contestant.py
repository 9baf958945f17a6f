"""One contestant in a separate process: `python -m bench.queries.contestant ARGUMENTS`, a JSON object.

It opens what it is asked about, writes a line, and then answers the same question once for every number that it reads
from its standard input, writing what that took; at the end of the input it writes the most memory that it has held.
tacit gives a question that it has answered before the same answer at no cost, so every number stands for an epsilon
that differs in its sixth digit.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

EPSILON_STEP: Final = 1e-6

Ask = Callable[[int], None]


def main(arguments: dict[str, Any]) -> None:
    """Open, then answer until the input ends."""
    started_s = time.perf_counter()
    ask = OPENERS[arguments.pop("kind")](**arguments)
    _write(opened_s=time.perf_counter() - started_s)
    for line in sys.stdin:
        number, started_s, started_cpu_s = int(line), time.perf_counter(), time.process_time()
        ask(number)
        _write(wall_s=time.perf_counter() - started_s, cpu_s=time.process_time() - started_cpu_s)
    _write(peak_mb=peak_mb())


def duckdb_over(database: str, sql: str) -> Ask:
    """DuckDB alone, on tables of a database file, or without tables for an empty path."""
    import duckdb

    connection = duckdb.connect(database, read_only=True) if database else duckdb.connect()

    def ask(number: int) -> None:
        connection.execute(sql).fetchall()

    return ask


def tacit_over(folder: str, sql: str, delta: float | None = None) -> Ask:
    """The curator of a folder in which the table is already registered."""
    import tacit

    curator = tacit.Curator(folder)

    def ask(number: int) -> None:
        if not curator.sql(sql, epsilon=1 + number * EPSILON_STEP, delta=delta).rows:
            sys.exit(f"no rows came back for {sql}")

    return ask


def postgres_over(address: str, sql: str) -> Ask:
    """PostgreSQL alone."""
    import psycopg

    connection = psycopg.connect(address, autocommit=True)

    def ask(number: int) -> None:
        connection.execute(sql).fetchall()

    return ask


def spark_over(place: str, files: str, sql: str) -> Ask:
    """Spark alone, with the settings of tacit, over Parquet files that are read for every query."""
    from tacit.engines.spark import sessions

    session = sessions.open_session(place)
    sessions.apply_settings(session)
    session.read.parquet(files).createOrReplaceTempView("events")

    def ask(number: int) -> None:
        session.sql(sql).collect()

    return ask


def registration(folder: str, **table: Any) -> Ask:
    """The registration of a table in a folder, which can be done once."""
    from bench.queries import tables

    def ask(number: int) -> None:
        tables.register(Path(folder), **table).close()

    return ask


OPENERS: Final[dict[str, Callable[..., Ask]]] = {
    "duckdb": duckdb_over,
    "postgres": postgres_over,
    "spark": spark_over,
    "tacit": tacit_over,
    "registration": registration,
}


def peak_mb() -> float:
    """Return the most memory that this process has held; not `getrusage` on Linux, which counts the parent's in."""
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def _write(**record: float) -> None:
    sys.stdout.write(json.dumps(record) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
