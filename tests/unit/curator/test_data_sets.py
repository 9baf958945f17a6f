"""Data sets: tables that foreign keys link to one unit move together, and what was spent before is said."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

import tacit
from tacit.cli.app import run
from tacit.curator import PrivacyWarning
from tacit.privacy.errors import CatalogInvalid, InvalidInput, NotAllowed

TOGETHER = "SELECT COUNT(*) AS n FROM stays WHERE patient NOT IN (SELECT patient FROM visits JOIN lines ON id = visit)"


@pytest.fixture
def curator(tmp_path: Path) -> Iterator[tacit.Curator]:
    """`lines` and `tests` lead to their patients through `visits`; `stays` name their patients themselves."""
    for name in ("visits.csv", "stays.csv"):
        pd.DataFrame({"id": range(60), "patient": range(60)}).to_csv(tmp_path / name, index=False)
    pd.DataFrame({"visit": range(60), "price": 1.5}).to_csv(tmp_path / "lines.csv", index=False)
    unit = tacit.Unit("patient", (tacit.ForeignKey("visit", "visits", "id"),))
    with tacit.Curator(tmp_path / "clinic") as made:
        made.add_table("visits", tmp_path / "visits.csv", unit="patient", limits=tacit.Limits(rows_per_unit=2))
        for name in ("lines", "tests"):
            made.add_table(name, tmp_path / "lines.csv", unit=unit, limits=tacit.Limits(rows_per_unit=2))
        made.add_table("stays", tmp_path / "stays.csv", unit="patient", dataset="hospital")
        made.set_budget("visits", epsilon=10.0)
        made.set_budget("hospital", epsilon=10.0)
        yield made


def data_sets(curator: tacit.Curator) -> dict[str, str]:
    return {table.name: table.dataset for table in curator.catalog.tables.values()}


@pytest.mark.parametrize("name", ["visits", "lines"])
def test_linked_tables_move_into_a_data_set_together(
    curator: tacit.Curator, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["table", "edit", name, "--dataset", "hospital", "--folder", str(curator.folder)]) == 0
    shown = capsys.readouterr()
    assert "; moved to the data set hospital: visits, lines, tests\ndata set: visits → hospital\n" in shown.out
    assert not shown.err
    assert set(data_sets(curator).values()) == {"hospital"}
    curator.preview(TOGETHER, epsilon=1.0)


def test_a_question_about_several_data_sets_names_the_commands_that_put_them_into_one(
    curator: tacit.Curator, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(NotAllowed) as refused:
        curator.preview(TOGETHER, epsilon=1.0)
    command = "tacit table edit lines --dataset hospital"
    assert refused.value.accepted == f"move them into one: {command}"
    assert run([*shlex.split(command)[1:], "--folder", str(curator.folder)]) == 0
    curator.preview(TOGETHER, epsilon=1.0)


def test_rows_that_are_refused_leave_every_table_in_its_data_set(curator: tacit.Curator, tmp_path: Path) -> None:
    text = (curator.folder / "catalog.toml").read_text()
    pd.DataFrame({"id": [1, 1], "patient": [1, 2]}).to_csv(tmp_path / "visits.csv", index=False)
    lines = replace(curator.catalog.schema.table("lines"), dataset="hospital")
    with pytest.raises(InvalidInput, match="not unique"):
        curator.register(lines, curator.catalog.source("lines"), replace=True, with_linked=True)
    assert (curator.folder / "catalog.toml").read_text() == text
    curator.preview("SELECT COUNT(*) FROM lines", epsilon=1.0)


def test_a_table_that_is_replaced_does_not_take_others_along_unasked(curator: tacit.Curator, tmp_path: Path) -> None:
    with pytest.raises(CatalogInvalid, match="tacit table edit visits --dataset hospital"):
        curator.add_table("visits", tmp_path / "visits.csv", unit="patient", dataset="hospital", replace=True)
    assert data_sets(curator)["visits"] == "visits"


def test_what_was_spent_from_the_old_budget_is_said_loudly(
    curator: tacit.Curator, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    curator.sql("SELECT COUNT(*) FROM stays", epsilon=0.5)
    with pytest.warns(PrivacyWarning, match=r"stays: .* budget of hospital \(epsilon 0\.5, .* against the budget of a"):
        curator.add_table("stays", tmp_path / "stays.csv", unit="patient", dataset="a", replace=True)
    curator.sql("SELECT COUNT(*) FROM lines", epsilon=0.25)
    assert run(["table", "edit", "visits", "--dataset", "a", "--folder", str(curator.folder)]) == 0
    assert "warning: visits, lines, tests: what was spent from the budget of visits (epsilon 0.25," in (
        capsys.readouterr().err
    )
    with pytest.warns(PrivacyWarning) as said:  # of a, nothing was spent; what was, from hospital, is not forgotten
        curator.add_table("stays", tmp_path / "stays.csv", unit="patient", dataset="b", replace=True)
    assert ["budget of hospital (epsilon 0.5" in str(one.message) for one in said] == [True]
