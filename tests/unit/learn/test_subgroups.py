"""Reports about groups: their figures, warnings that noise does not set off, and what is refused."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import stats

import tacit
from tacit.learn import SubgroupWarning, subgroup_report
from tacit.learn.subgroups import ALARM
from tacit.privacy.errors import EmptyInput, InvalidInput, ShowsUnits, TacitError, TooLarge, WrongType

Labels = NDArray[np.int64]


def constant(labels: Any) -> Callable[[Any], Any]:
    """Return a model that predicts these labels."""
    return lambda _: labels


def flipped(labels: Labels, rate: Any, random: np.random.Generator) -> Labels:
    return np.where(random.random(len(labels)) < rate, 1 - labels, labels)


def test_a_report_counts_what_both_models_predict_right_in_each_group() -> None:
    y = np.array([0, 1, 1, 0, 1, 1])
    report = subgroup_report(
        constant(1 - y[:3].repeat(2)),
        constant(np.array([0, 1, 1, 0, 0, 1])),
        np.zeros((6, 1)),
        y,
        np.array(list("aabbbb")),
    )
    first, second = report.subgroups
    assert (first.name, first.rows, first.baseline, first.accuracy) == ("group: a", 2, 1.0, 0.5)
    assert (second.rows, second.baseline, second.accuracy) == (4, 0.75, 0.25)
    assert second.loss == 0.5
    assert second.loss_low < second.loss < second.loss_high
    assert report.warnings == ()
    written = json.loads(json.dumps(report.to_dict()))
    assert written["subgroups"][0]["loss"] == 0.5
    assert written["rows"] == 6


def test_a_small_group_that_loses_more_is_warned_about_and_a_large_one_is_not(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    y = random.integers(0, 2, 6000)
    frame = pd.DataFrame({"race": np.where(np.arange(6000) < 400, "few", "many"), "sex": random.integers(0, 2, 6000)})
    before = flipped(y, 0.1, random)
    after = flipped(before, np.where(frame["race"] == "few", 0.15, 0.01), random)
    with pytest.warns(SubgroupWarning, match=r"^race: few \(400 of 6,000 rows\) loses \d+\.\d points") as caught:
        report = subgroup_report(constant(after), constant(before), frame, y, frame)
    assert len(caught) == len(report.warnings) == 1
    assert [one.name for one in report.subgroups if one.is_warned] == ["race: few"]
    report.plot(tmp_path / "losses.svg")
    shown = (tmp_path / "losses.svg").read_text(encoding="utf-8")
    assert "race: few, 400 rows" in shown
    assert "Warning: race: few" in report._repr_html_()
    lines = str(report).splitlines()
    assert [line.split(":")[0] for line in lines] == ["race", "race", "sex", "sex", "warning"]
    assert "400 rows  accuracy" in lines[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        turned = np.where(frame["race"] == "few", "many", "few")  # the large group loses
        after = flipped(before, np.where(frame["race"] == "few", 0.0, 0.15), random)
        assert subgroup_report(constant(after), constant(before), frame, y, turned).warnings == ()


def test_equal_losses_set_off_a_warning_in_at_most_one_report_of_twenty() -> None:
    """False alarm 1e-6: the number of reports with a warning is at most binomial(300, ALARM)."""
    random, reports, alarms = np.random.default_rng(2), 300, 0
    for _ in range(reports):
        y = random.integers(0, 2, 600)
        before = flipped(y, 0.15, random)
        after = flipped(before, 0.1, random)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SubgroupWarning)
            report = subgroup_report(constant(after), constant(before), y[:, None], y, random.integers(0, 8, 600))
        alarms += bool(report.warnings)
    assert alarms <= stats.binom.ppf(1 - 1e-6, reports, ALARM)


def test_intervals_hold_the_loss_of_the_population_in_95_of_100_reports() -> None:
    """False alarm 1e-6."""
    random, runs, missed = np.random.default_rng(3), 400, 0
    for _ in range(runs):
        y = random.integers(0, 2, 80)
        before = flipped(y, 0.2, random)
        (one,) = subgroup_report(constant(flipped(y, 0.3, random)), constant(before), y, y, np.zeros(80)).subgroups
        missed += not one.loss_low <= 0.1 <= one.loss_high
    assert missed <= stats.binom.ppf(1 - 1e-6, runs, 0.05)


def test_objects_with_predict_and_rows_without_a_prediction_are_counted() -> None:
    class Model:
        def predict(self, X: Any) -> Any:  # noqa: N803
            return np.ma.masked_array(np.ones(len(X)), mask=[False, True, False, False])

    (one,) = subgroup_report(Model(), Model(), np.zeros((4, 1)), np.array([1, 1, 1, 0]), np.zeros(4)).subgroups
    assert one.accuracy == 0.5


def test_a_model_that_finds_nobody_of_a_class_has_recall_0() -> None:
    ones, zeros = np.ones(4, dtype=int), np.zeros(4, dtype=int)
    half = constant(np.array([0, 1, 0, 1]))
    (one,) = subgroup_report(constant(zeros), half, np.zeros((4, 1)), ones, zeros).subgroups
    assert (one.accuracy, one.baseline) == (0, 0.5)


Y = np.array([0, 1, 0, 1])
RIGHT = constant(Y)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ((RIGHT, RIGHT, Y, [], []), EmptyInput),
        ((RIGHT, RIGHT, Y, Y[:, None], Y), WrongType),
        ((None, RIGHT, Y, Y, Y), WrongType),
        ((RIGHT, constant(Y[:2]), Y, Y, Y), WrongType),
        ((RIGHT, constant(Y + 7), Y, Y, Y), InvalidInput),
        ((RIGHT, RIGHT, Y, Y, {}), EmptyInput),
        ((RIGHT, RIGHT, Y, Y, {"sex": Y[:2]}), WrongType),
        ((constant(np.zeros(999)),) * 2 + (None, np.zeros(999), np.arange(999)), TooLarge),
    ],
)
def test_what_cannot_be_used_is_refused_with_a_code(given: tuple[Any, ...], error: type[TacitError]) -> None:
    with pytest.raises(error) as caught:
        subgroup_report(*given)
    assert type(caught.value) is error


def test_registered_tables_are_refused(tmp_path: Path) -> None:
    with tacit.Curator(tmp_path / "clinic") as curator:
        curator.add_table("visits", pd.DataFrame({"patient": range(4), "sex": list("FMFM")}), unit="patient")
        table = curator.table("visits")
        for groups in (table, table["sex"], {"sex": table["sex"]}):
            with pytest.raises(ShowsUnits, match="not made over registered tables"):
                subgroup_report(RIGHT, RIGHT, Y, Y, groups)
