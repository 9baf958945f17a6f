"""Whether a question is answered, fails or takes long does not tell whether one unit is there.

Hostile questions (`hostile_questions`) are put to worlds with a victim and to their neighbours without it
(`outcomes`). Then holes are made on purpose, each of which the same search must find.
"""

from __future__ import annotations

import pytest

from tacit.query import plan as planning
from tacit.query import rewrite
from tacit.query.scalars import trees
from tests.property.query import hostile_worlds
from tests.property.query.neighbours import Violated
from tests.property.query.outcomes import fuzz

WORLDS = range(8)
QUESTIONS = range(20)
SHAPES = ("table", "join", "public", "union", "chain", "per unit", "window", "of one unit")
AGGREGATES = ("rows", "present", "values", "sum", "avg", "var", "corr", "median", "quantile", "max", "mode")


def test_how_a_run_ends_and_how_long_it_takes_does_not_tell_who_is_there() -> None:
    tally = fuzz(WORLDS, QUESTIONS)
    assert tally.answered >= 0.4 * tally.asked, tally
    assert tally.failed == 0, tally
    for feature in (*SHAPES, *AGGREGATES):
        assert tally.features[feature] > 0, (feature, tally)


def noticed(*seeds: int) -> str:
    """Return what the search says first about the questions of some seeds, and fail if it says nothing."""
    for seed in seeds:
        try:
            fuzz(range(seed // 1_000, seed // 1_000 + 1), [seed % 1_000])
        except Violated as error:
            return str(error)
    pytest.fail("nothing was noticed")


def test_a_cast_that_fails_for_a_value_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees, "try_cast", trees.cast)
    assert "ends with ConversionException" in noticed(1_000, 1_002)


def test_counts_that_are_multiplied_in_64_bits_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "require_exact", lambda *_: None)
    monkeypatch.setattr(rewrite, "_huge", lambda tree: tree)
    monkeypatch.setattr(hostile_worlds, "ROWS_MAX", 512)  # times 16,384 public rows
    assert "ends with OutOfRangeException" in noticed(91_003)
