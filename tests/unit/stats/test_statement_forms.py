"""Statements of a plan that differ in the constants of a partition alone are written and checked once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sqlglot.expressions import Column, Query

import tacit
from tacit.learn import DecisionTreeClassifier, KMeans, RandomForestClassifier
from tacit.privacy.errors import WrongKind
from tacit.stats import table_sums
from tacit.stats.table_sums import distinct_statements, statements_of

NAMES = [f"x{place}" for place in range(6)]


@pytest.fixture
def curator(tmp_path: Path) -> Iterator[tacit.Curator]:
    rows = pd.DataFrame({name: np.arange(20) % 7 for name in NAMES}).assign(p=np.arange(20), ill=np.arange(20) % 2 == 0)
    with tacit.Curator(tmp_path / "c") as made:
        columns = {name: tacit.Bounds(0, 7) for name in NAMES}
        made.add_table("v", rows, unit="p", limits=tacit.Limits(rows_per_unit=1), columns=columns)
        made.set_budget("v", epsilon=10.0)
        yield made


def statements(curator: tacit.Curator, estimator: Any, target: str | None) -> list[Query]:
    prepared = curator.prepare_training("v", estimator, NAMES, target, 1.0).prepared
    return statements_of(prepared.plan, curator.table("v").table, prepared.per_unit)


@pytest.mark.parametrize(
    ("estimator", "target", "forms"),
    [
        (RandomForestClassifier(n_estimators=6, max_depth=4), "ill", 4 * 6 + 1),
        (DecisionTreeClassifier(max_depth=3), "ill", 3 * 6 + 1),
        (KMeans(4, max_iter=20), None, 1),
    ],
)
def test_statements_of_one_form_are_written_once_and_all_are_counted(
    curator: tacit.Curator, monkeypatch: pytest.MonkeyPatch, estimator: Any, target: str | None, forms: int
) -> None:
    found = statements(curator, estimator, target)
    prepared = curator.prepare_training("v", estimator, NAMES, target, 1.0).prepared
    work = prepared.statistic.work
    assert len(distinct_statements(found)) == forms
    monkeypatch.setattr(table_sums, "_form", lambda cut: cut)
    each = statements(curator, estimator, target)
    assert len(each) == len(found) == work.statements
    assert prepared.statistic.work.statements == work.statements
    assert prepared.statistic.work.unit_steps == pytest.approx(work.unit_steps, rel=0.25)


@pytest.mark.parametrize("refused", NAMES)
def test_a_column_that_the_engine_cannot_read_is_refused_whichever_tree_reads_it(
    curator: tacit.Curator, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    engine = type(curator.table("v").bind().data.engine)
    write = engine.write

    def writing(self: Any, tree: Query) -> Any:
        if any(column.name == refused for column in tree.find_all(Column)):
            raise WrongKind(f"{refused} cannot be read")
        return write(self, tree)

    monkeypatch.setattr(engine, "write", writing)
    with pytest.raises(WrongKind, match=refused):
        curator.train("v", RandomForestClassifier(n_estimators=12, max_depth=3), NAMES, "ill", 1.0)
    assert curator.budget("v").spent().epsilon == 0


def test_a_forest_is_checked_in_little_time(curator: tacit.Curator) -> None:
    prepared = curator.prepare_training("v", RandomForestClassifier(n_estimators=30, max_depth=8), NAMES, "ill", 1.0)
    before = time.process_time()
    assert prepared.prepared.statistic.work.statements == 30 * (8 * 3 + 1)
    assert time.process_time() - before < 6  # 11.5 s with every statement written, 1.2 s with one of each form
