"""Statistics of distributions are the same of a registered table as of arrays, and are answered again at no cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit import stats
from tacit.privacy.errors import NotAllowed

GENERATOR = np.random.default_rng(8)
SIZE = 2000
FRAME = pd.DataFrame(
    {
        "patient": np.arange(SIZE),
        "age": np.where(np.arange(SIZE) % 50 == 0, np.nan, GENERATOR.normal(50, 10, SIZE)),
        "visits": GENERATOR.integers(0, 200, SIZE),
        "sex": GENERATOR.choice(["F", "M"], SIZE),
        "smokes": GENERATOR.random(SIZE) > 0.7,
        "day": (np.datetime64("2024-01-01") + GENERATOR.integers(0, 366, SIZE)).astype("datetime64[s]"),
        "code": GENERATOR.choice(["a", "b", "c"], SIZE, p=[0.6, 0.3, 0.1]),
    }
)
FRAME["day"] = FRAME["day"].dt.date
EXACT = 5000.0
YEAR = ("2024-01-01", "2024-12-31")

QUESTIONS: dict[str, Callable[..., stats.Answer]] = {
    "median": lambda c, **asked: stats.median(c("age"), bounds=(0, 100), **asked),
    "whole median": lambda c, **asked: stats.median(c("visits"), bounds=(0, 199), **asked),
    "median of dates": lambda c, **asked: stats.median(c("day"), bounds=YEAR, **asked),
    "median of truths": lambda c, **asked: stats.median(c("smokes"), **asked),
    "histogram": lambda c, **asked: stats.histogram(c("age"), bounds=(0, 100), **asked),
    "dates": lambda c, **asked: stats.histogram(c("day"), edges=["2024-01-01", "2024-05-05", "2025-01-01"], **asked),
    "categories": lambda c, **asked: stats.histogram(c("sex"), keys=["F", "M", None], **asked),
    "groups": lambda c, **asked: stats.histogram(c("code"), keys=["a", "b"], by=c("sex"), by_keys=["F", "M"], **asked),
    "table": lambda c, **asked: stats.contingency(c("sex"), c("smokes"), keys=["F", "M"], **asked),
    "cdf": lambda c, **asked: stats.cdf(c("age"), bounds=(0, 100), bins=100, **asked),
    "mode": lambda c, **asked: stats.mode(c("code"), keys=["a", "b", "c"], **asked),
    "leading mode": lambda c, **asked: stats.mode(c("code"), **asked),
    "top": lambda c, **asked: stats.top_k(c("code"), 2, keys=["a", "b", "c"], **asked),
    "selected top": lambda c, **asked: stats.top_k(c("code"), 2, **asked),
    "bounds": lambda c, **asked: stats.bounds(c("visits"), **asked),
    "learnt": lambda c, **asked: stats.mean(c("visits"), bounds="learn", **asked),
}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    place = tmp_path_factory.mktemp("registered")
    FRAME.to_parquet(place / "visits.parquet")
    with tacit.Curator(place / "clinic") as curator:
        curator.add_table("visits", Path(place / "visits.parquet"), unit="patient", columns={})
        with pytest.warns(UserWarning, match="epsilon"):
            curator.set_budget("visits", epsilon=1e6, delta=9e-4)
        yield curator.table("visits")


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_table_is_answered_as_an_array_is(name: str, table: Any) -> None:
    ask = QUESTIONS[name]
    paying = tacit.Budget(epsilon=1e6, delta=9e-4)
    ours = ask(lambda column: FRAME[column], epsilon=EXACT, budget=paying)
    theirs = ask(lambda column: table[column], epsilon=EXACT, rows_per_unit=1)
    assert theirs.keys == ours.keys
    if isinstance(np.asarray(ours.value).ravel()[0], float):
        assert theirs.value == pytest.approx(ours.value, abs=0.02)
    else:
        assert np.array_equal(theirs.value, ours.value)
    again = ask(lambda column: table[column], epsilon=EXACT, rows_per_unit=1)
    assert again.cost.epsilon == 0
    assert again.rows == theirs.rows


def test_smooth_sensitivity_is_not_for_tables(table: Any) -> None:
    before = table.budget.spent().epsilon
    with pytest.raises(NotAllowed, match="array"):
        stats.median(table["age"], bounds=(0, 100), method="smooth", epsilon=1, rows_per_unit=1)
    assert table.budget.spent().epsilon == before
