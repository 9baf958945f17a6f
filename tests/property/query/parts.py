"""The generated questions in two parts, so that they can be put at once; what each of them must have tried."""

from __future__ import annotations

import os
from typing import Final

import duckdb

from tacit.privacy.tables import Kind
from tests.property.query.neighbours import Tally, trial

PARTS: Final = 2
CASES: Final = int(os.environ.get("TACIT_CASES", "1000"))
"""How many pairs of neighbours a question is put to, over all parts."""

ANSWERED: Final = 0.6
"""How many of the questions must be allowed."""

OFTEN: Final = (
    *("add-remove", "replace-one", "where", "filter", "subquery", "per unit", "window", "union", "having", "zeros"),
    *("unit join", "left join", "public join", "gaussian", "selection", "whole rows", "learnt bounds", "limits", "rho"),
    *("rows", "present", "units", "values", "sum", "avg", "var", "stddev", "covar", "corr"),
    *("median", "quantile", "min", "max", "mode", "count_if", *(f"key {kind}" for kind in Kind)),
)
SELDOM: Final = ("in units", "in public", "grouping sets")
ENOUGH: Final = 200
"""From how many answered questions on one may ask for what is seldom; a shorter run has it by chance."""


def database() -> duckdb.DuckDBPyConnection:
    """Return a database for worlds."""
    connection = duckdb.connect(":memory:", config={"threads": 1})
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def part(number: int) -> Tally:
    """Try one of the parts; the worlds of different parts, and of longer runs, are different ones."""
    connection, tally, seed = database(), Tally(), number
    while tally.pairs < CASES // PARTS:
        tally += trial(seed, connection)
        seed += PARTS
    return tally


def everything_was_tried(tally: Tally) -> None:
    """Require that enough questions were allowed, that every feature was among them, and that limits were reached."""
    assert tally.questions - tally.refused >= ANSWERED * tally.questions, tally
    answered = tally.questions - tally.refused
    for feature in OFTEN:
        assert tally.features[feature] >= answered // 100, (feature, tally)
    for feature in SELDOM if answered >= ENOUGH else ():
        assert tally.features[feature] >= answered // 1000 + 1, (feature, tally)
    assert 0.999 < tally.tight <= 1.0000001, tally
