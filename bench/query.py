"""Private SQL: time and memory of an answer compared with plain DuckDB and with peers, and its error.

The question is COUNT(*), SUM and AVG of a number by group, about data in which few users have many rows and many have
few. Four forms of it are timed, each in a process of its own that stays open, in turns:

- prepared: the table holds 20 rows a user since it was registered; beside it stands the same GROUP BY without privacy.
- exact: 10 groups a user and 10 rows in each of them, of all rows; beside it stands a bare GROUP BY (user, group) whose
  result is aggregated again, which is the least that any such bounding does, and the peers, which bound by the same.
- computed: as prepared, for a whole number and a real that are computed from columns, which are clamped once more.
- hidden: as exact, but the 100,000 keys are not public and small groups are left out.

What peers do differently stands at the top of their scripts (peers/query_*.py). Registration is a figure by itself, and
no part of the others. Seconds are the least of several, and their median; a peer's first answer counts among its own.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from bench.queries import accuracy, data, tables
from bench.queries.contest import NUMBERS, PEERS, Deadline, Figures, contest, peer, question
from bench.queries.contestant import EPSILON_STEP
from bench.results import Result

PREPARED: Final = {"rows_per_unit": 20}
EXACT: Final = {"groups_per_unit": 10, "rows_per_group": 10}

PREPARED_FACTOR: Final = 1.5
PREPARED_EXTRA_S: Final = 0.030
EXACT_FACTOR: Final = 2.0
PEER_FACTOR: Final = 10.0
COLD_GOAL_S: Final = 1.5
PEER_SECONDS_MAX: Final = 1_500.0
QUICK_TIMED_S: Final = 36.0
QUICK_ERRORS_S: Final = 52.0
"""Seconds of a quick run after which no further peer is measured."""
QUICK_PEER_S: Final = 12.0
QUICK_CONTEST_S: Final = 4.0
CONTEST_S: Final = 60.0
LARGE_ROWS: Final = 10**8


def run(quick: bool) -> Iterator[Result]:
    """Measure each size, the cold start, files that are not loaded (not with `quick`) and errors."""
    timed, asked = (Deadline.after(seconds) if quick else Deadline() for seconds in (QUICK_TIMED_S, QUICK_ERRORS_S))
    with tempfile.TemporaryDirectory(prefix="tacit-bench-") as name:
        place = Path(name)
        for rows in (200_000,) if quick else (10**6, 10**7):
            yield from _size(rows, place / str(rows), quick, timed)
        yield from _cold(200_000 if quick else 10**6, place / "cold", 2 if quick else 7)
        if not quick:
            yield from _large(LARGE_ROWS, place / "large")
        yield from accuracy.errors(place / "errors", quick, asked)


def _size(rows: int, place: Path, quick: bool, deadline: Deadline) -> Iterator[Result]:
    """Measure all forms of the query on one table; with `quick` the exact form has few groups only."""
    forms = {"prepared": PREPARED, "exact": EXACT}
    for by, groups in (("grp", data.GROUPS), ("grp_fine", data.FINE_GROUPS)):
        if quick and by == "grp_fine":
            del forms["exact"]
        name, source = f"{rows:,} rows, {groups:,} groups", f"{data.events(rows)}/*.parquet"
        for form, limits in forms.items():
            options = {"source": source, "limits": limits, "fine_keys": by == "grp_fine", "delta": 0.0}
            yield from _registered(f"{name}, {form}: registration", place / by / form, options)
        found = _contest(rows, by, {form: place / by / form for form in forms}, quick)
        plains = {key: found[key] for key in ("duckdb", "duckdb, Parquet")}
        goal_s = PREPARED_FACTOR * found["duckdb"].wall_s + PREPARED_EXTRA_S
        yield from _lines(f"{name}, prepared", found["prepared"], plains, goal_s)
        if by == "grp":
            peer_s = found["duckdb, computed"].wall_s
            others: dict[str, Figures | None] = {"duckdb": found["duckdb, computed"]}
            yield from _lines(
                f"{name}, computed", found["computed"], others, PREPARED_FACTOR * peer_s + PREPARED_EXTRA_S
            )
        if "exact" in forms:
            others = {"duckdb, bare": found["duckdb, bare"]}
            if by == "grp":
                others |= {peer_name: _peer(peer_name, rows, by, groups, deadline) for peer_name in PEERS}
            yield from _lines(f"{name}, exact", found["exact"], others, EXACT_FACTOR * found["duckdb, bare"].wall_s)
            yield from _times_as_fast(f"{name}, exact", found["exact"], others)
    yield from _hidden(rows, place / "hidden", quick, deadline)


def _contest(rows: int, by: str, folders: Mapping[str, Path], quick: bool) -> dict[str, Figures]:
    """Time plain DuckDB and each form of tacit in turn."""
    database, source, repeats = str(data.database(rows)), f"'{data.events(rows)}/*.parquet'", 5 if quick else 15
    contestants: dict[str, dict[str, Any]] = {
        "duckdb": {"kind": "duckdb", "database": database, "sql": plain(by, "events")},
        "duckdb, Parquet": {"kind": "duckdb", "database": "", "sql": plain(by, source)},
    }
    if "exact" in folders:
        contestants["duckdb, bare"] = {"kind": "duckdb", "database": database, "sql": bare(by, "events")}
    if by == "grp":
        contestants["duckdb, computed"] = {"kind": "duckdb", "database": database, "sql": computed("events")}
        contestants["computed"] = {"kind": "tacit", "folder": str(folders["prepared"]), "sql": computed("events")}
    for form, folder in folders.items():
        contestants[form] = {"kind": "tacit", "folder": str(folder), "sql": plain(by, "events")}
    return contest(contestants, repeats, most_s=QUICK_CONTEST_S if quick else CONTEST_S)


def _hidden(rows: int, folder: Path, quick: bool, deadline: Deadline) -> Iterator[Result]:
    """Measure keys that are not public; with `quick` the peer is left out, since it alone takes seconds."""
    name = f"{rows:,} rows, {data.FINE_GROUPS:,} groups, hidden"
    options = {"source": f"{data.events(rows)}/*.parquet", "limits": EXACT}
    yield from _registered(f"{name}: registration", folder, options)
    asked = {"kind": "tacit", "folder": str(folder), "sql": plain("grp_fine", "events"), "delta": tables.DELTA}
    found = contest({"hidden": asked}, 5, most_s=QUICK_CONTEST_S if quick else CONTEST_S)["hidden"]
    others: dict[str, Figures | None] = {}
    if not quick:
        others["opendp"] = _peer("opendp", rows, "grp_fine", data.FINE_GROUPS, deadline, public=False)
    yield from _lines(name, found, others)
    yield from _times_as_fast(name, found, others)


def _registered(metric: str, folder: Path, options: Mapping[str, Any]) -> Iterator[Result]:
    """Measure the registration of a table in a separate process."""
    arguments = {"kind": "registration", "folder": str(folder), "name": "events", **options}
    figures = contest({"registration": arguments}, 1, warm=False)["registration"]
    yield Result(f"{metric}, wall", figures.wall_s, "s")
    yield Result(f"{metric}, peak memory", figures.peak_mb, "MB")


def _peer(name: str, rows: int, by: str, groups: int, deadline: Deadline, *, public: bool = True) -> Figures | None:
    return peer(
        name,
        timeout_s=deadline.left_s(PEER_SECONDS_MAX if rows >= 10**6 else QUICK_PEER_S),
        repeats=2 if rows == 10**6 else 1,
        folder=str(data.events(rows)),
        **question(by=by, groups=groups, public=public, **EXACT),
    )


def _cold(rows: int, folder: Path, repeats: int) -> Iterator[Result]:
    """Time the command line in a fresh process, from its start to its end, over a registered CSV file."""
    source = str(data.csv(rows))
    for form, limits in (("prepared", PREPARED), ("exact", EXACT)):
        tables.register(folder / form, name="events", source=source, limits=limits, delta=0.0).close()
        taken_s = []
        for _ in range(repeats):
            epsilon = f"{1 + next(NUMBERS) * EPSILON_STEP:.6f}"
            command = [sys.executable, "-m", "tacit", "sql", plain("grp", "events"), "--epsilon", epsilon]
            started_s = time.perf_counter()
            subprocess.run([*command, "--folder", str(folder / form)], check=True, stdout=subprocess.DEVNULL)
            taken_s.append(time.perf_counter() - started_s)
        yield Result(f"tacit sql in a fresh process, CSV of {rows:,} rows, {form}", min(taken_s), "s", goal=COLD_GOAL_S)


def _large(rows: int, folder: Path) -> Iterator[Result]:
    """Query Parquet files that are read for every query and never loaded."""
    if not data.has_room(rows):
        sys.stderr.write(f"skipped {rows:,} rows: the disk has no room for them in {data.CACHE}\n")
        return
    source = f"{data.events(rows)}/*.parquet"
    name = f"{rows:,} rows in Parquet files, 100 groups, exact"
    yield from _registered(f"{name}: registration", folder, {"source": source, "limits": EXACT, "delta": 0.0})
    # one after another and once each: they take minutes, and may take most of the memory
    duckdbs = {
        peer_name: contest({peer_name: {"kind": "duckdb", "database": "", "sql": sql}}, 1, warm=False)[peer_name]
        for peer_name, sql in (("duckdb", plain("grp", f"'{source}'")), ("duckdb, bare", bare("grp", f"'{source}'")))
    }
    asked = {"kind": "tacit", "folder": str(folder), "sql": plain("grp", "events")}
    tacits = contest({"tacit": asked}, 1, warm=False)["tacit"]
    yield from _lines(name, tacits, duckdbs, EXACT_FACTOR * duckdbs["duckdb, bare"].wall_s)
    for peer_name, figures in duckdbs.items():
        yield Result(f"{name}: peak memory over {peer_name}", tacits.peak_mb / figures.peak_mb, "×")


def plain(by: str, source: str) -> str:
    """Return the query in SQL that DuckDB and tacit both accept."""
    return f"SELECT {by}, COUNT(*) AS n, SUM(value) AS s, AVG(value) AS m FROM {source} GROUP BY {by}"


def computed(source: str) -> str:
    """Return a query that adds up what is computed from columns."""
    whole = "CAST(value AS BIGINT)"
    values = f"SUM({whole} * 3 - 100) AS whole, SUM(value * 1.5 - 7) AS real, AVG(ABS({whole} - 50)) AS far"
    return f"SELECT grp, {values} FROM {source} GROUP BY grp"


def bare(by: str, source: str) -> str:
    """Return a query with the same answers, computed from one row per user and group."""
    inner = f"SELECT user_id, {by}, COUNT(*) AS n, SUM(value) AS s FROM {source} GROUP BY user_id, {by}"
    return f"SELECT {by}, SUM(n) AS n, SUM(s) AS s, SUM(s) / SUM(n) AS m FROM ({inner}) GROUP BY {by}"


def _lines(
    metric: str, ours: Figures, others: Mapping[str, Figures | None], goal_s: float | None = None
) -> Iterator[Result]:
    """Yield the measurements as four results, the first of which has the goal."""
    for name, unit, goal, field in (
        ("wall, least", "s", goal_s, "wall_s"),
        ("wall, median", "s", None, "median_s"),
        ("CPU", "s", None, "cpu_s"),
        ("peak memory", "MB", None, "peak_mb"),
    ):
        figures = {peer_name: None if other is None else getattr(other, field) for peer_name, other in others.items()}
        yield Result(f"{metric}: {name}", getattr(ours, field), unit, figures, goal=goal)


def _times_as_fast(metric: str, ours: Figures, others: Mapping[str, Figures | None]) -> Iterator[Result]:
    for name in PEERS:
        figures = others.get(name)
        if figures is not None:
            speed = figures.wall_s / ours.wall_s
            yield Result(f"{metric}: times as fast as {name}", speed, "×", goal=PEER_FACTOR, better="higher")
