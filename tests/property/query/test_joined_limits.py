"""Limits on joined rows that are reached: two rows of a unit at most, so that the choice of rows is put to the test.

Questions and worlds are those of the other parts; the answer is still a function of the rows, whatever their order, and
neighbours are no further apart than was charged for.
"""

from __future__ import annotations

import pytest

from tacit.query import row_limits
from tests.property.query.neighbours import Tally, Violated, trial
from tests.property.query.parts import database

PAIRS = 250


def tried(seeds: range) -> Tally:
    connection, tally = database(), Tally()
    for seed in seeds:
        tally += trial(seed, connection, neighbours=4)
        if tally.pairs > PAIRS:
            break
    return tally


@pytest.mark.parametrize("rows", [pytest.param(1, marks=pytest.mark.soak), 2])
def test_with_few_joined_rows_neighbours_are_no_further_apart_than_was_charged(
    monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    monkeypatch.setattr(row_limits, "JOINED_ROWS_PER_UNIT", rows)
    tally = tried(range(5_000 * rows, 5_000 * rows + 24))
    assert tally.features["unit join"] >= 5


def test_a_choice_of_rows_that_looks_at_other_units_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    ranked = row_limits.first_by_salted_hash
    monkeypatch.setattr(row_limits, "JOINED_ROWS_PER_UNIT", 2)
    monkeypatch.setattr(
        row_limits,
        "first_by_salted_hash",
        lambda tree, name, within, *rest, **more: ranked(tree, name, [] if name == "place" else within, *rest, **more),
    )
    with pytest.raises(Violated):
        tried(range(4, 60))  # the first world that shows it
