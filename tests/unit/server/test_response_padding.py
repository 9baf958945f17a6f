"""When an answer is given is decided by its plan, and by how often its class had to be doubled."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from sqlglot import parse_one

import tacit
from tacit.pipeline import CallerData, Work
from tacit.privacy.tables import Column, Kind, Table
from tacit.privacy.units import Unit
from tacit.query import PlanSettings, QueryRelease, QuerySpec, Target
from tacit.query.row_limits import STORED_ROWS, limiting_steps
from tacit.query.scalars import trees
from tacit.server.jobs import ResponseClock, class_of, doubled, padded_s
from tacit.stats.table_sums import work_of as work_of_statistic

SQL = "SELECT COUNT(*) AS n FROM visits"


@pytest.mark.parametrize(
    ("elapsed_s", "given_s"),
    [(0.0, 0.1), (0.001, 0.1), (0.0999, 0.1), (0.1, 0.1), (0.1001, 0.2), (0.19, 0.2), (0.5, 0.8), (100.0, 102.4)],
)
def test_answers_are_given_at_the_ends_of_classes(elapsed_s: float, given_s: float) -> None:
    assert padded_s(elapsed_s, 0.1) == pytest.approx(given_s)


@pytest.mark.parametrize(("work", "class_s"), [(0, 0.1), (1, 0.1), (2, 0.2), (3, 0.4), (4, 0.4), (5, 0.8)])
def test_classes_double_with_the_work(work: int, class_s: float) -> None:
    assert doubled(work, 0.1) == pytest.approx(class_s)


def work_of(folder: Path, rows: int, sql: str) -> Work:
    with tacit.Curator(folder) as curator:
        frame = pd.DataFrame({"patient": range(rows), "age": [row % 90 for row in range(rows)]})
        for name in ("visits", "stays"):
            curator.add_table(name, frame, unit="patient", columns={"age": tacit.Bounds(0, 90)}, dataset="clinic")
        curator.set_budget("clinic", epsilon=1.0)
        return curator.queries().bind(QuerySpec(sql, Target(epsilon=0.1), PlanSettings())).work


def test_the_class_depends_on_the_question_and_not_on_the_rows(tmp_path: Path) -> None:
    joined = "SELECT COUNT(*) AS n FROM visits JOIN stays USING (patient)"
    for number, sql in enumerate((SQL, joined)):
        classes = {class_of(work_of(tmp_path / f"{number}-{rows}", rows, sql), 0.1) for rows in (0, 3, 3_000)}
        assert len(classes) == 1
    assert class_of(work_of(tmp_path / "a", 3, joined), 0.1) > class_of(work_of(tmp_path / "b", 3, SQL), 0.1)


@pytest.mark.parametrize(
    ("work", "class_s"),
    [
        (Work(1, 0), 0.1),
        (Work(2, 0), 0.2),
        (Work(3, 0), 0.4),
        (Work(1, 1_250_000), 0.1),
        (Work(1, 1_250_001), 0.2),
        (Work(2, 2_500_001), 0.4),
    ],
)
def test_a_class_holds_all_statements_and_twice_the_work_of_a_unit(work: Work, class_s: float) -> None:
    assert class_of(work, 0.1) == pytest.approx(class_s)


def test_each_statement_of_a_question_counts_once_for_each_table() -> None:
    statement = SimpleNamespace(tree=parse_one("SELECT 1"))
    for learning, statements, tables, counted in ((0, 1, 1, 1), (1, 1, 1, 2), (0, 2, 2, 4), (1, 2, 0, 3)):
        plan: Any = SimpleNamespace(
            learning=[statement] * learning, statements=[statement] * statements, tables=[None] * tables, work=7
        )
        engine: Any = None
        assert QueryRelease(plan, "", engine, 0, CallerData()).work == Work(counted, 7)


@pytest.mark.parametrize(("declared", "rows"), [(1, 1), (63, 63), (65, 64), (None, 64)])
def test_the_work_of_a_statistic_counts_the_texts_of_each_row_of_a_unit(
    monkeypatch: pytest.MonkeyPatch, declared: int | None, rows: int
) -> None:
    """A column takes 64 steps for its characters, and a statement of two columns takes 5 more."""
    tree = parse_one("SELECT a, b")
    assert trees.work(tree) == 5
    monkeypatch.setattr("tacit.stats.table_sums.statements_of", lambda *_: [tree, tree.copy()])
    table: Any = SimpleNamespace(limits=tacit.Limits(rows_per_unit=declared), columns=())
    for row_steps in (0, 7):  # what this process does with the one row that it reads
        plan: Any = SimpleNamespace(row_steps=row_steps)
        assert work_of_statistic(plan, table, 1) == Work(2, rows * 2 * (5 + 2 * 64) + row_steps)


@pytest.mark.parametrize(
    ("elapsed_s", "slept_s", "is_late"), [(0.0, 0.5, False), (0.5, 0.0, False), (0.6, 0.4, True), (1.5, 0.5, True)]
)
def test_a_clock_holds_answers_back_and_tells_which_were_late(
    monkeypatch: pytest.MonkeyPatch, elapsed_s: float, slept_s: float, is_late: bool
) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr("tacit.server.jobs.time.monotonic", lambda: 100.0 + elapsed_s)
    monkeypatch.setattr("tacit.server.jobs.asyncio.sleep", sleep)
    assert asyncio.run(ResponseClock(100.0, 0.5).wait()) is is_late
    assert slept == [pytest.approx(slept_s)]


def test_choosing_the_rows_of_a_unit_counts_every_column_of_its_stored_rows() -> None:
    columns = (Column("uid", Kind.INTEGER), Column("n", Kind.INTEGER), Column("s", Kind.TEXT))
    limited = Table("t", columns, Unit("uid"), tacit.Limits(rows_per_unit=1))
    assert limiting_steps(limited) == STORED_ROWS * (3 + 64)
    assert limiting_steps(Table("t", columns, Unit("uid"))) == 0
