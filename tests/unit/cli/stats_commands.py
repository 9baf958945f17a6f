"""The clinic whose statistics are computed in tests, what is typed after each statistic, and how commands are run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tacit.cli.app import run

CASES: dict[str, tuple[str, int]] = {
    "count": ("age --by ward --keys a,b,z", 3),
    "sum": ("age --bounds 0:120", 1),
    "mean": ("age --by sex --by ward --keys ward=a,b,c --keys sex=F,M --bounds 0:120", 6),
    "variance": ("age --bounds 0:120", 1),
    "std": ("age --bounds 0:120", 1),
    "covariance": ("age weight --bounds age=0:120 --bounds weight=20:200", 1),
    "correlation": ("age weight --bounds age=0:120 --bounds weight=20:200", 1),
    "trend": ("weight age --bounds age=0:120 --bounds weight=20:200", 1),
    "median": ("day --bounds 2024-01-01:2024-12-31", 1),
    "quantile": ("age --bounds 0:120 --q 0.25 --q 0.75 --by sex --keys F,M", 4),
    "box-plot": ("age --bounds age=0:120", 5),
    "cdf": ("age --bounds 0:120 --bins 6", 6),
    "bounds": ("weight", 2),
    "histogram": ("age --edges 0,18,65,120 --by sex --keys F,M", 6),
    "mode": ("ward --keys a,b,c", 1),
    "top-k": ("ward --keys a,b,c --k 2", 2),
    "contingency": ("sex ward --keys ward=a,b,c --keys sex=F,M", 6),
    "marginals": ("age sex --bins age=0:120:3 --keys sex=F,M", 11),
    "ranges": ("age --bounds 0:120 --range 20:60 --range 60:80", 2),
    "prefixes": ("age --bins 0:120:6", 6),
    "hierarchy": ("day --bounds 2024-01-01:2024-12-31 --levels year,quarter --bins month", 17),
    "t-test": ("age --bounds 0:120 --by sex --keys F,M", 1),
    "chi-squared": ("sex ward --keys ward=a,b,c --keys sex=F,M", 1),
    "correlation-test": ("age weight --bounds age=0:120 --bounds weight=20:200", 1),
    "trend-test": ("weight age --bounds age=0:120 --bounds weight=20:200", 1),
}
"""What is typed after each statistic, and how many numbers its answer has."""


def make_clinic(folder: Path, csv: str, epsilon: str = "60") -> str:
    for words in (
        f"init {folder}",
        f"table add visits {csv} --unit patient --bounds age=0:120 --categories sex=F,M --rows-per-unit 3 "
        f"--folder {folder}",
        f"budget set visits --epsilon {epsilon} --delta 1e-6 --folder {folder}",
    ):
        assert run(words.split()) == 0
    return str(folder)


def run_stats(capsys: pytest.CaptureFixture[str], words: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = run(["stats", *words.split()])
    out, err = capsys.readouterr()
    return code, out, err


def stats_object(capsys: pytest.CaptureFixture[str], words: str) -> dict[str, Any]:
    code, out, err = run_stats(capsys, f"{words} --json")
    assert code == 0, err
    found: dict[str, Any] = json.loads(out)
    return found


def epsilon_spent(capsys: pytest.CaptureFixture[str], folder: str) -> float:
    capsys.readouterr()
    assert run(["ledger", "show", "--folder", folder, "--json"]) == 0
    return float(json.loads(capsys.readouterr().out)["budgets"][0]["epsilon_spent"])
