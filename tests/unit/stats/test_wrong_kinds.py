"""Keys and edges that are not of a column's kind are refused whatever the rows hold, before anything is charged.

An engine would cast them row by row, and fail for some rows and not for others: an error that tells of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date
from typing import Any

import pandas as pd
import pytest

import tacit
from tacit import stats

SIZE = 300
FRAME = pd.DataFrame(
    {
        "unit": range(SIZE),
        "age": [row % 90 for row in range(SIZE)],
        "sex": ["F" if row % 2 else "M" for row in range(SIZE)],
        "weight": [row / 2 for row in range(SIZE)],
        "day": pd.to_datetime(["2024-01-01"] * SIZE),
        "smokes": [bool(row % 2) for row in range(SIZE)],
    }
)
DAYS = [date(2024, 1, 1), date(2025, 1, 1)]

REFUSED: dict[str, tuple[str, Callable[..., Any]]] = {
    "whole keys of texts": ("T104", lambda rows, **asked: stats.histogram(rows["sex"], keys=[1, 2], **asked)),
    "text keys of whole": ("T104", lambda rows, **asked: stats.histogram(rows["age"], keys=["a"], **asked)),
    "day keys of whole": ("T104", lambda rows, **asked: stats.histogram(rows["age"], keys=DAYS, **asked)),
    "true keys of whole": (
        "T104",
        lambda rows, **asked: stats.count(rows["age"], by=rows["age"], keys=[True], **asked),
    ),
    "whole keys of truths": (
        "T104",
        lambda rows, **asked: stats.count(rows["age"], by=rows["smokes"], keys=[0, 1], **asked),
    ),
    "too large a key": ("T106", lambda rows, **asked: stats.count(rows["age"], by=rows["age"], keys=[2**70], **asked)),
    "groups": (
        "T104",
        lambda rows, **asked: stats.mean(rows["age"], bounds=(0, 90), by=rows["sex"], keys=[1], **asked),
    ),
    "mode": ("T104", lambda rows, **asked: stats.mode(rows["sex"], keys=[1, 2], **asked)),
    "top": ("T104", lambda rows, **asked: stats.top_k(rows["sex"], 1, keys=[1, 2], **asked)),
    "contingency": ("T104", lambda rows, **asked: stats.contingency(rows["sex"], rows["smokes"], keys=[1], **asked)),
    "chi-squared": ("T104", lambda rows, **asked: stats.chi_squared(rows["sex"], keys=[1, 2], **asked)),
    "t-test": (
        "T104",
        lambda rows, **asked: stats.t_test(rows["age"], bounds=(0, 90), by=rows["sex"], keys=[1, 2], **asked),
    ),
    "edges of texts": ("T132", lambda rows, **asked: stats.histogram(rows["sex"], edges=[0, 1, 2], **asked)),
    "numbers as edges of times": ("T132", lambda rows, **asked: stats.histogram(rows["day"], edges=[0, 1, 2], **asked)),
    "days as edges of numbers": ("T132", lambda rows, **asked: stats.histogram(rows["weight"], edges=DAYS, **asked)),
    "ranges of texts": ("T132", lambda rows, **asked: stats.ranges(rows["sex"], edges=[0, 1, 2], **asked)),
    "ranges of times": ("T132", lambda rows, **asked: stats.ranges(rows["day"], edges=[0, 1, 2], **asked)),
    "tables": (
        "T132",
        lambda rows, **asked: stats.marginals(
            {"sex": rows["sex"], "smokes": rows["smokes"]}, domain={"sex": [1, 2], "smokes": [True, False]}, **asked
        ),
    ),
}


@pytest.fixture(scope="module")
def curator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tacit.Curator]:
    with tacit.Curator(tmp_path_factory.mktemp("clinic")) as curator:
        curator.add_table("visits", FRAME, unit="unit", columns={}, limits=tacit.Limits(rows_per_unit=1))
        curator.set_budget("visits", 10.0, 1e-6)
        yield curator


@pytest.mark.parametrize("name", REFUSED)
def test_of_a_table(name: str, curator: tacit.Curator) -> None:
    code, ask = REFUSED[name]
    with pytest.raises(tacit.TacitError) as caught:
        ask(curator.table("visits"), epsilon=1)
    assert caught.value.code == code
    assert curator.budget("visits").spent().epsilon == 0


@pytest.mark.parametrize("name", REFUSED)
def test_of_a_frame(name: str) -> None:
    code, ask = REFUSED[name]
    budget = tacit.Budget(10.0, 1e-6)
    with pytest.raises(tacit.TacitError) as caught:
        ask(FRAME, epsilon=1, budget=budget)
    assert caught.value.code == code
    assert budget.spent().epsilon == 0


def test_truths_are_binned_as_zero_and_one(curator: tacit.Curator) -> None:
    found = stats.histogram(curator.table("visits")["smokes"], edges=[0, 1, 2], epsilon=9)
    assert found.value == pytest.approx([SIZE / 2, SIZE / 2], abs=20)
