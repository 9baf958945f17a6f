"""Previews and cards say what is clamped, left out and multiplied; all of it follows from the plan, not from rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit.curator import PrivacyWarning
from tacit.privacy.bounds import clamping_in_words

CLAMPED = "values of cost below 0 or above 1000 count as 0 or 1000; intervals do not include the effect of this"


def clinic(folder: Path, cost: float = 5.0, patient: object = 0) -> tacit.Curator:
    rows = pd.DataFrame({"patient": range(200), "cost": 5.0, "age": 30, "ward": ["a", "b"] * 100})
    rows["patient"] = rows["patient"].astype("Int64")
    rows.loc[0, ["cost", "patient"]] = [cost, patient]
    curator = tacit.Curator(folder)
    curator.add_table(
        "visits",
        rows,
        unit="patient",
        columns={"cost": tacit.Bounds(0, 1000), "age": tacit.Bounds(0, 40)},
        limits=tacit.Limits(rows_per_unit=2),
    )
    curator.set_budget("visits", 9, 1e-6)
    return curator


def test_clamping_is_named_for_every_column_in_one_sentence() -> None:
    columns = [("age", tacit.Bounds(0, 40)), ("day", tacit.Bounds("2024-01-01", "2024-12-31"))]
    assert clamping_in_words(columns) == (
        "values of age below 0 or above 40 count as 0 or 40, of day below 2024-01-01 or above 2024-12-31 as 2024-01-01 "
        "or 2024-12-31; intervals do not include the effect of this"
    )
    assert clamping_in_words([]) == ""


def test_a_query_says_on_preview_and_card_to_which_bounds_its_columns_are_clamped(tmp_path: Path) -> None:
    with clinic(tmp_path / "f") as curator:
        sql = "SELECT AVG(cost) AS c FROM visits"
        assert CLAMPED in [line.text for line in curator.preview(sql, 0.5).lines]
        assert CLAMPED[1:] in curator.sql(sql, 0.5).card
        assert not [line for line in curator.explain("SELECT COUNT(*) FROM visits", 0.5) if line.label == "clamped"]
        inner = "SELECT AVG(c) FROM (SELECT patient, SUM(cost) AS c FROM visits WHERE age > 3 GROUP BY patient) AS s"
        (line,) = [line for line in curator.explain(inner, 0.5) if line.label == "clamped"]
        assert "of age below 0 or above 40" in line.text
        assert "of cost below 0 or above 1000" in line.text


def test_a_statistic_says_to_which_bounds_its_columns_are_clamped(tmp_path: Path) -> None:
    with clinic(tmp_path / "f") as curator:
        table = curator.table("visits")
        for answer in (tacit.stats.mean(table["cost"], epsilon=0.5), tacit.stats.median(table["cost"], epsilon=0.5)):
            assert answer.coverage == (CLAMPED,)
            assert CLAMPED[1:] in answer.card
        assert CLAMPED in tacit.stats.preview(tacit.stats.sum, table["cost"], epsilon=0.5).lines
        assert tacit.stats.count(table["cost"], epsilon=0.5).coverage == ()


def test_bounds_beyond_the_registered_ones_do_not_hide_those(tmp_path: Path) -> None:
    with clinic(tmp_path / "f") as curator:
        column = curator.table("visits")["cost"]
        wide = tacit.stats.mean(column, bounds=(0, 5000), epsilon=0.5)
        narrow = tacit.stats.mean(column, bounds=(0, 10), epsilon=0.5)
    before = "as registered, values of cost below 0 or above 1000 count as 0 or 1000 before anything else"
    assert wide.coverage[1:] == (before,)
    assert before[1:] in wide.card
    assert len(narrow.coverage) == 1


def test_what_cannot_be_clamped_or_is_learned_has_no_such_note() -> None:
    budget = tacit.Budget(epsilon=90, delta=1e-6)
    assert tacit.stats.mean(np.arange(50) > 9, epsilon=1, budget=budget).coverage == ()
    assert tacit.stats.mean(np.arange(50.0), bounds="learn", epsilon=1, budget=budget).coverage == ()


def test_notes_do_not_depend_on_rows(tmp_path: Path) -> None:
    said = set()
    for place, (cost, patient) in enumerate([(5.0, 0), (1e9, 0), (5.0, None)]):
        with clinic(tmp_path / str(place), cost, patient) as curator:
            table = curator.table("visits")
            card = curator.sql("SELECT SUM(cost) FROM visits", 0.5).card
            said.add((card, tacit.stats.sum(table["cost"], epsilon=0.5).card))
    assert len(said) == 1
    assert all("Rows without a value of patient are left out." in card for card in said.pop())


def test_top_k_without_keys_says_that_rare_values_are_left_out(tmp_path: Path) -> None:
    with clinic(tmp_path / "f") as curator:
        ward = curator.table("visits")["ward"]
        (rule,) = tacit.stats.top_k(ward, 5, epsilon=1).coverage
        listed = tacit.stats.top_k(ward, 1, keys=["a", "b"], epsilon=1)
    assert rule.startswith("values that fewer than about ")
    assert rule.endswith(" units have are left out, so that fewer than 5 may be shown")
    assert not [one for one in listed.coverage if "are left out, so that" in one]


def test_a_join_with_an_unidentified_public_table_names_the_way_to_less_noise(tmp_path: Path) -> None:
    sql = "SELECT COUNT(*) FROM visits JOIN wards ON visits.ward = wards.ward"
    with clinic(tmp_path / "f") as curator:
        wards = pd.DataFrame({"ward": ["a", "b"]})
        curator.add_table("wards", wards, public=True)
        (hint,) = [line.text for line in curator.preview(sql, 0.5).lines if line.label == "joins"]
        assert "tacit table edit wards --identified-by COLUMN" in hint
        assert "categories" in hint
        curator.add_table("wards", wards, public=True, identified_by="ward", replace=True)
        assert not [line for line in curator.preview(sql, 0.5).lines if line.label == "joins"]


def test_a_preview_has_no_width_for_what_has_no_interval(tmp_path: Path) -> None:
    with clinic(tmp_path / "f") as curator:
        preview = curator.preview("SELECT MEDIAN(cost) AS m, AVG(cost) AS a, COUNT(*) AS n FROM visits", 0.5)
    assert list(preview.widths) == ["a", "n"]
    assert preview.widths["a"] is None
    assert "no interval for m: chosen at random near the right rank" in [line.text for line in preview.lines]


@pytest.mark.parametrize(("delta", "is_warned"), [(1e-3, True), (0.2, True), (9e-4, False), (0.0, False)])
def test_a_large_delta_is_warned_of(tmp_path: Path, delta: float, is_warned: bool) -> None:
    said = tacit.Budget(1, delta).warnings()
    assert bool(said) == is_warned
    if is_warned:
        with tacit.Curator(tmp_path) as curator, pytest.warns(PrivacyWarning, match="well below 1 / number of people"):
            curator.set_budget("t", 1, delta)


def test_a_delta_is_warned_of_once() -> None:
    assert len(tacit.Budget(1, 0.01).warnings(units=1000)) == 1


def test_a_taken_name_and_several_shares_name_the_way_out(tmp_path: Path) -> None:
    with clinic(tmp_path / "f") as curator:
        with pytest.raises(tacit.TacitError, match="replace=True"):
            curator.add_table("visits", pd.DataFrame({"a": [1]}), public=True)
        with pytest.raises(tacit.TacitError, match="for several use quantiles"):
            tacit.stats.quantile(curator.table("visits")["age"], [0.2, 0.5], epsilon=1)  # type: ignore[arg-type]
        tacit.stats.mean(curator.table("visits")["age"], epsilon=1).plot(tmp_path / "a.svg")
    assert (tmp_path / "a.svg").stat().st_size > 100
