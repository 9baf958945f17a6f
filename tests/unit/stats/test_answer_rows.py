"""Rows of an answer hold every part of their key, whatever columns are called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit import stats

TEXTS = np.array(["a", "b"])
ONES = np.ones(2)
ASKED: dict[str, Any] = {"epsilon": 9.0}
LOW = pd.Series(["a", "b"], name="low")

ASKS: dict[str, Callable[..., Any]] = {
    "unnamed values": lambda **a: stats.histogram(TEXTS, keys=["a", "b"], **a),
    "unnamed pair": lambda **a: stats.contingency(TEXTS, TEXTS, keys=["a", "b"], other_keys=["a", "b"], **a),
    "named like an end": lambda **a: stats.histogram(LOW, keys=["a", "b"], **a),
    "groups like ends": lambda **a: stats.count(ONES, by={"low": TEXTS, "value": TEXTS}, keys=[["a"], ["b"]], **a),
    "two unnamed groups": lambda **a: stats.count(ONES, by=[TEXTS, TEXTS], keys=[["a"], ["b"]], **a),
    "named like the value": lambda **a: stats.count(LOW, by=LOW, keys=["a"], **a),
    "named like a share": lambda **a: stats.quantiles(
        ONES, [0.2, 0.4], bounds=(0, 2), by={"share": TEXTS}, keys=["a"], **a
    ),
    "distribution": lambda **a: stats.cdf(ONES, bounds=(0, 2), bins=2, **a),
}


@pytest.mark.parametrize("name", ASKS)
def test_rows_hold_every_part_of_their_key(name: str) -> None:
    answer = ASKS[name](**ASKED, budget=tacit.Budget(1e6, 1e-6))
    assert answer.keys
    for key, row in zip(answer.keys, answer.rows, strict=True):
        assert tuple(row[part] for part in answer.key_names) == key
        assert len(row) == len(key) + 3
    assert answer.plot()


def test_rows_of_a_table_hold_every_part_of_their_key() -> None:
    named = {"value": TEXTS, "low": TEXTS}
    domain = {name: ["a", "b"] for name in named}
    found = stats.marginals(named, domain=domain, budget=tacit.Budget(1e6), **ASKED).table("value", "low")
    assert [(row["value (key)"], row["low (key)"]) for row in found.rows] == found.keys
