"""TPC-H with differential privacy: which of the 22 queries are answered, with which error and speed, on each engine.

Once the customers are protected and once the suppliers (`schema`). Each query is asked at three epsilons; the figure is
the median, over all groups and numbers of some answers, of the error relative to the exact answer, which the same
engine gives without privacy. What the limits on each unit leave out is a figure of its own: the same question, almost
without noise. What the files say about being accepted or refused is held against tacit on every run.

On DuckDB everything is measured; on PostgreSQL and Spark every epsilon at small scales, and at scale 1 epsilon 1. With
limits so wide that nobody is cut, the whole numbers before the noise are compared between the engines.

TACIT_TPCH_SCALES and TACIT_TPCH_ENGINES choose among scales (0.01, 0.1, 1) and engines, with commas.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from bench.queries.exact_results import exact
from bench.results import Result
from bench.tpch import data
from bench.tpch.engines import ENGINES, Opened, Rows, opened, public
from bench.tpch.errors import Distance, agree, distance
from bench.tpch.questions import Query, judged, planned, queries
from bench.tpch.schema import UNITS, schema
from tacit import TacitError
from tacit.accounting.conversions import Cost
from tacit.engines import Columns
from tacit.engines.protocol import SALT
from tacit.privacy import Limits, Schema
from tacit.query import Plan, PlanSettings, Release, ask
from tacit.query.run import add_noise

EPSILONS: Final = (0.1, 1.0, 10.0)
USUAL: Final = 1.0
DRAWS: Final = 15
QUICK_DRAWS: Final = 3
"""Noise draws per measurement: most answers have few groups."""
ANSWERED_GOAL: Final = 12
NO_NOISE: Final = 1e13
UNLIMITED: Final = Limits(groups_per_unit=1_000_000, rows_per_group=2_000)
"""More than any unit has: a customer has about 60 lines, and a supplier 600, at any scale."""
QUICK_SCALE: Final = 0.01


@dataclass(slots=True)
class Measured:
    """Measurements of one query on one engine."""

    exact_s: float
    exact: Rows
    limited: Distance
    seconds: dict[float, float] = field(default_factory=dict)
    errors: dict[float, Distance] = field(default_factory=dict)
    agrees: bool = False
    whole: Any = None


def measure(quick: bool) -> Iterator[Result]:
    """Measure each scale with each unit."""
    scales = [str(QUICK_SCALE)] if quick else _chosen("TACIT_TPCH_SCALES", ("0.1", "1"))
    names = ["duckdb"] if quick else _chosen("TACIT_TPCH_ENGINES", ENGINES)
    if quick:
        sys.stderr.write("skipped postgres and spark: left out of a quick run\n")
    asked = queries()
    for unit in UNITS:
        yield _coverage(unit, asked)
    try:
        data.folder(float(scales[0]))
    except data.Missing as missing:
        sys.stderr.write(f"skipped all figures: {missing}\n")
        scales = []
    for scale in map(float, scales):
        for unit in UNITS:
            with tempfile.TemporaryDirectory(prefix="tacit-bench-") as place:
                yield from _unit(unit, scale, names, asked, Path(place))
    for unit in UNITS:
        sys.stderr.write(f"\nunit {unit}\n")
        for query in asked:
            verdict = query.asked.verdicts[unit]
            sys.stderr.write(f"{query.name}  {verdict.kind:<10}  {verdict.reason}\n")


def _chosen(variable: str, usual: Sequence[str]) -> Sequence[str]:
    return [one.strip() for one in os.environ.get(variable, ",".join(usual)).split(",")]


def _coverage(unit: str, asked: Sequence[Query]) -> Result:
    """Compare every file with the current behaviour of tacit, and count the queries that are answered."""
    tables, answered = schema(unit), 0
    for query in asked:
        expected = query.asked.verdicts[unit]
        found = judged(query.asked, tables, query.settings(unit, lambda _sql: ["Supplier#000000001"]))
        if found.is_answered != expected.is_answered or (found.kind == "refused" and found != expected):
            raise AssertionError(f"{query.name} for {unit}: {found} instead of {expected}")
        answered += expected.is_answered
    goal = ANSWERED_GOAL if unit == "customer" else None
    return Result(f"{unit}: queries answered of 22", answered, "queries", goal=goal, better="higher")


def _unit(unit: str, scale: float, names: Sequence[str], asked: Sequence[Query], place: Path) -> Iterator[Result]:
    """Run all answered queries on every engine in turn."""
    with ExitStack() as stack:
        started_s = time.perf_counter()
        engines = []
        for name in names:
            engine = stack.enter_context(opened(name, unit, scale, place))
            if engine is not None:
                engines.append(engine)
                taken_s = time.perf_counter() - started_s
                yield Result(f"scale {scale:g}, {unit}, {name}: tables registered", taken_s, "s")
            started_s = time.perf_counter()
        agreed: dict[str, int] = {}
        counted = 0
        for query in (one for one in asked if one.asked.verdicts[unit].is_answered):
            found = dict(_found(query, unit, scale, engines))
            counted += 1
            for name, figures in found.items():
                same = figures.agrees and figures.whole == next(iter(found.values())).whole
                agreed[name] = agreed.get(name, 0) + same
                if not same:
                    sys.stderr.write(f"{query.name}, scale {scale:g}, {unit}: {name} gives other numbers\n")
            yield from _lines(f"scale {scale:g}, {unit}, {query.name}", found)
        for name, number in agreed.items():
            metric = (
                f"scale {scale:g}, {unit}, {name}: queries whose numbers, noise and limits aside, are the exact ones"
            )
            yield Result(metric, number, "queries", goal=counted, better="higher")


def _found(query: Query, unit: str, scale: float, engines: Sequence[Opened]) -> Iterator[tuple[str, Measured]]:
    """Run one query on every engine; an engine that cannot run it is skipped with a message."""
    for one in engines:
        try:
            yield one.name, _measured(query, unit, scale, one)
        except TacitError as error:
            sys.stderr.write(f"{query.name}, scale {scale:g}, {unit}: {one.name} fails: {error}\n")


def _measured(query: Query, unit: str, scale: float, engine: Opened) -> Measured:
    """Run one query on one engine, exactly and privately."""
    sql, settings, tables = query.asked.sql, query.settings(unit, public(scale)), schema(unit, scale)
    keys = _keys(sql, unit, scale)
    started_s = time.perf_counter()
    true = engine.plain(sql)
    figures = Measured(time.perf_counter() - started_s, true, Distance(None, 0.0))
    spared = engine.name != "duckdb" and scale >= 1
    limited = _plan(sql, tables, settings, NO_NOISE)
    columns = _run(engine, limited)
    figures.limited = distance([_answer(limited, columns)], true, keys)
    for epsilon in (USUAL,) if spared else EPSILONS:
        started_s = time.perf_counter()
        answers = [engine.curator.sql(sql, epsilon, limits=settings.limits, keys=settings.keys).rows]
        figures.seconds[epsilon] = time.perf_counter() - started_s
        plan = _plan(sql, tables, settings, epsilon)
        draws = DRAWS if scale > QUICK_SCALE else QUICK_DRAWS
        answers += [_answer(plan, columns) for _ in range(draws - 1)]
        figures.errors[epsilon] = distance(answers, true, keys)
    wide = _plan(sql, tables, PlanSettings(UNLIMITED, settings.keys), NO_NOISE)
    columns = _run(engine, wide)
    figures.agrees, figures.whole = agree(_answer(wide, columns), true, keys), exact(wide, columns)
    return figures


def _plan(sql: str, tables: Schema, settings: PlanSettings, epsilon: float) -> Plan:
    plan = planned(sql, tables, settings, epsilon)
    assert isinstance(plan, Plan), plan
    return plan


def _run(engine: Opened, plan: Plan) -> list[Columns]:
    """Run the statements of a plan, for numbers that are only compared."""
    database = engine.engine(plan.tables)
    return [database.run(one.sql(database.write), {SALT: 7} if one.is_salted else None) for one in plan.statements]


def _answer(plan: Plan, columns: Sequence[Columns]) -> Rows:
    """Draw the noise of a plan once more; its statements are the same at every epsilon."""
    return Release(plan, add_noise(plan, columns), Cost(0.0, 0.0, 0.0), ()).rows


def _keys(sql: str, unit: str, scale: float) -> list[str]:
    outputs = ask(sql, schema(unit, scale)).outputs
    return [one.name for one in outputs if one.column is not None and one.column.startswith("k")]


def _lines(metric: str, found: Mapping[str, Measured]) -> Iterator[Result]:
    """Return the measurements: the value of the first engine, with those of the others as peers."""
    if not found:
        return
    first, *others = found
    for epsilon in found[first].errors:
        errors = {name: one.errors[epsilon] for name, one in found.items() if epsilon in one.errors}
        beside = {name: errors[name].error for name in others if name in errors}
        if errors[first].error is not None:
            yield Result(
                f"{metric}, epsilon {epsilon:g}: median relative error", errors[first].error or 0.0, "", beside
            )
        shown = {name: errors[name].shown for name in others if name in errors}
        yield Result(f"{metric}, epsilon {epsilon:g}: groups shown", errors[first].shown, "share", shown)
    if found[first].limited.error is not None:
        yield Result(f"{metric}: error by limits alone", found[first].limited.error or 0.0, "")
    seconds: dict[str, float | None] = {f"{first}, plain": found[first].exact_s}
    for name in others:
        seconds |= {name: found[name].seconds[USUAL], f"{name}, plain": found[name].exact_s}
    yield Result(f"{metric}: seconds", found[first].seconds[USUAL], "s", seconds)
