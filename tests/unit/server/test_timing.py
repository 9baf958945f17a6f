"""When an answer is given is decided by its plan, and by how often its class had to be doubled."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import tacit
from tacit.curator.road import Asked
from tacit.query import Plan, Settings, Target
from tacit.server.timing import class_of, doubled, padded_s

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


def plan(folder: Path, rows: int, sql: str) -> Plan:
    with tacit.Curator(folder) as curator:
        frame = pd.DataFrame({"patient": range(rows), "age": [row % 90 for row in range(rows)]})
        for name in ("visits", "stays"):
            curator.add_table(name, frame, unit="patient", columns={"age": tacit.Bounds(0, 90)}, dataset="clinic")
        curator.set_budget("clinic", epsilon=1.0)
        return curator.road().plan(Asked(sql, Target(epsilon=0.1), Settings()))


def test_the_class_depends_on_the_question_and_not_on_the_rows(tmp_path: Path) -> None:
    joined = "SELECT COUNT(*) AS n FROM visits JOIN stays USING (patient)"
    for number, sql in enumerate((SQL, joined)):
        classes = {class_of(plan(tmp_path / f"{number}-{rows}", rows, sql), 0.1) for rows in (0, 3, 3_000)}
        assert len(classes) == 1
    assert class_of(plan(tmp_path / "a", 3, joined), 0.1) > class_of(plan(tmp_path / "b", 3, SQL), 0.1)
