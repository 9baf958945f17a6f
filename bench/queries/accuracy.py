"""Errors of answers: mean absolute errors by group, each system at the same epsilon and bounds.

A question's epsilon is for all that it asks, and nobody spends a delta. The data keep the bounds, so that all the error
is noise, and the truth is that of the rows themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np

from bench.queries import data, tables
from bench.queries.contest import PEERS, Deadline, question, told
from bench.queries.contestant import EPSILON_STEP
from bench.results import Result

STATISTICS: Final = {"count": "COUNT(*)", "sum": "SUM(value)", "avg": "AVG(value)", "var": "VAR_SAMP(value)"}
EVERYTHING: Final = tuple(STATISTICS)
STANDARD_ERRORS: Final = 3
PEER_SECONDS_MAX: Final = 900.0
PEER_REPEATS_MAX: Final = 20

Answers = dict[str, list[float]]
"""The answers of one question by group, in the order in which the statistics were asked for."""
Distances = np.ndarray[Any, np.dtype[np.float64]]

_NOTHING: Final = [0.0] * len(STATISTICS)


def errors(folder: Path, quick: bool, deadline: Deadline) -> Iterator[Result]:
    """Measure each statistic alone and all of them at once, many times, for tacit and every installed peer.

    With `quick` all are asked for at once and no more, and OpenDP is left out, which takes seconds to scale its noise.
    """
    rows, repeats = (20_000, 3) if quick else (100_000, 40)
    wanted = [EVERYTHING] if quick else [*((name,) for name in STATISTICS), EVERYTHING]
    source = f"{data.visits(rows)}/*.parquet"
    truth = _asked(source, EVERYTHING)
    ours, delta = _ours(folder, source, wanted, repeats)
    theirs = _theirs(PEERS[1:] if quick else PEERS, rows, wanted, repeats, deadline)
    for index, names in enumerate(wanted):
        found = {peer: answers[index] for peer, answers in theirs.items() if answers is not None}
        alone = "alone" if len(names) == 1 else "of four at once"
        for column, name in enumerate(names):
            true = {group: values[EVERYTHING.index(name)] for group, values in truth.items()}
            mine = distances(ours[index], true, column)
            others = {peer: distances(answers, true, column) for peer, answers in found.items()}
            means = {peer: float(others[peer].mean()) if peer in others else None for peer in theirs}
            label = f"{name.upper()} {alone}, mean error"
            yield Result(label, float(mine.mean()), "", means)
            if others:
                best = min(others.values(), key=lambda distance: float(distance.mean()))
                # one count and one sum are noise of the same law everywhere: equal up to chance, and never better
                chance = STANDARD_ERRORS * _relative(mine, best) if names in (("count",), ("sum",)) else 0.0
                yield Result(f"{label}, over the best peer", float(mine.mean() / best.mean()), "×", goal=1 + chance)
    yield Result("delta charged for four statistics at once", delta, "", goal=0.0)


def distances(answers: Sequence[Answers], truth: dict[str, float], column: int) -> Distances:
    """Return the error of every answer; a group that was not shown or has no number counts as 0."""
    rows = [[(answer.get(group) or _NOTHING)[column] for group in truth] for answer in answers]
    values = np.nan_to_num(np.array(rows, dtype=float), nan=0.0, posinf=0.0, neginf=0.0)
    found: Distances = np.abs(values - np.array(list(truth.values())))
    return found


def _relative(*errors: Distances) -> float:
    """Return the standard error of the ratio of two means, as a share of it."""
    return float(np.sqrt(sum(error.var() / error.size / error.mean() ** 2 for error in errors)))


def _asked(source: str, names: Sequence[str]) -> Answers:
    columns = ", ".join(STATISTICS[name] for name in names)
    with duckdb.connect() as connection:
        rows = connection.execute(f"SELECT grp, {columns} FROM '{source}' GROUP BY grp").fetchall()
    return {str(group): [float(value) for value in values] for group, *values in rows}


def _ours(
    folder: Path, source: str, wanted: Sequence[Sequence[str]], repeats: int
) -> tuple[list[list[Answers]], float]:
    """Return tacit's answers, and the delta that the last question was charged."""
    limits = {"groups_per_unit": data.VISIT_GROUPS, "rows_per_group": data.VISIT_ROWS}
    found: list[list[Answers]] = []
    with tables.register(folder, name="visits", source=source, limits=limits, delta=0.0) as curator:
        for names in wanted:
            columns = ", ".join(f"{STATISTICS[name]} AS {name}_" for name in names)
            sql = f"SELECT grp, {columns} FROM visits GROUP BY grp"
            found.append([])
            for number in range(repeats):
                release = curator.sql(sql, epsilon=1 - number * EPSILON_STEP)
                found[-1].append({str(row["grp"]): [row[f"{name}_"] for name in names] for row in release.rows})
        return found, float(release.cost.delta)


def _theirs(
    names: Sequence[str], rows: int, wanted: Sequence[Sequence[str]], repeats: int, deadline: Deadline
) -> dict[str, list[list[Answers]] | None]:
    """Return the peers' answers; they run concurrently, since nothing is timed here."""

    def ask(name: str) -> list[list[Answers]] | None:
        found = told(
            name,
            timeout_s=deadline.left_s(PEER_SECONDS_MAX),
            task="errors",
            repeats=min(repeats, PEER_REPEATS_MAX),
            wanted=wanted,
            folder=str(data.visits(rows)),
            **question(by="grp", groups=data.GROUPS, groups_per_unit=data.VISIT_GROUPS, rows_per_group=data.VISIT_ROWS),
        )
        return None if found is None else found["answers"]

    with ThreadPoolExecutor(2) as threads:
        return dict(zip(names, threads.map(ask, names), strict=True))
