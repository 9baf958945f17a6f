"""Every answer can be drawn, with its intervals, as a picture that is drawn without a warning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tacit
from tacit import stats

VALUES = np.random.default_rng(1).normal(50, 10, 200)
SEX = np.random.default_rng(2).choice(["F", "M"], 200)
DAYS = np.datetime64("2024-01-01") + np.arange(200)
YEAR = ("2024-01-01", "2024-12-31")
ASKED: Any = {"epsilon": 1.0, "budget": tacit.Budget(epsilon=10_000.0, delta=1e-3)}
GROUPS: Any = {"by": SEX, "keys": ["F", "M"]}

ANSWERS = {
    "points": lambda: stats.mean(VALUES, bounds=(0, 100), **GROUPS, **ASKED),
    "one point": lambda: stats.mean(VALUES, bounds=(0, 100), **ASKED),
    "dates": lambda: stats.median(DAYS, bounds=YEAR, **ASKED),
    "bars": lambda: stats.histogram(VALUES, bounds=(0, 100), **ASKED),
    "categories": lambda: stats.histogram(SEX, keys=["F", "M", None], **ASKED),
    "bars by group": lambda: stats.histogram(DAYS, bins=5, bounds=YEAR, by=SEX, by_keys=["F", "M"], **ASKED),
    "heat": lambda: stats.contingency(SEX, VALUES > 50, keys=["F", "M"], **ASKED),
    "steps": lambda: stats.cdf(VALUES, bounds=(0, 100), **ASKED),
    "steps by group": lambda: stats.cdf(DAYS, bounds=YEAR, **GROUPS, **ASKED),
    "boxes": lambda: stats.box_plot(VALUES, bounds=(0, 100), **GROUPS, **ASKED),
    "word": lambda: stats.mode(SEX, keys=["F", "M"], **ASKED),
    "no word": lambda: stats.mode(VALUES, **ASKED),
    "top": lambda: stats.top_k(SEX, 1, keys=["F", "M"], **ASKED),
    "empty top": lambda: stats.top_k(VALUES, 1, **ASKED),
    "bounds": lambda: stats.bounds(VALUES, **ASKED),
    "learnt": lambda: stats.histogram(VALUES, bounds="learn", **ASKED),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_every_answer_can_be_drawn_and_shown(name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    answer = ANSWERS[name]()
    plot = answer.plot()
    plot.save(tmp_path / "plot.svg")
    assert (tmp_path / "plot.svg").stat().st_size > 500
    assert "NaN" not in (tmp_path / "plot.svg").read_text()
    assert "WARN" not in capfd.readouterr().err
    assert plot.spec["description"] == answer.card
    assert "<table>" in answer._repr_html_()
    assert answer.label in repr(answer)
