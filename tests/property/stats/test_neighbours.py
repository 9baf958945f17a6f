"""For neighbouring data the exact sums of every plan differ by no more than its noise was made for.

Planted bugs are noticed: noise for fewer rows than a unit brings, and a centre that is forgotten when rows are added.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings

from tacit.privacy.units import Relation
from tacit.stats.array_sums import ArrayRows
from tacit.stats.rows import Term
from tests.property.stats.neighbouring import ROW, WORDS, check, plans, seen
from tests.support.worlds import Moved, World, worlds

NAMES = sorted(plans(1, Relation.ADD_REMOVE))


def put(name: str, world: World) -> World:
    """Return a world whose column of values holds what a plan is about."""
    if name not in WORDS:
        return world

    def turned(unit: list) -> list:
        return [(row[2], row[1], row[2]) for row in unit]

    return replace(
        world,
        others=[turned(unit) for unit in world.others],
        differs=turned(world.differs),
        instead=turned(world.instead),
    )


def compare(name: str, world: World, relation: Relation, *, counted: int | None = None) -> None:
    """Hold one plan to its noise, with `counted` rows of a unit in the place of those that it was made for."""
    plan = plans(world.per_unit, relation)[name]
    there = [*world.others, world.instead] if relation is Relation.REPLACE_ONE else world.others
    one, other = (seen(plan, units, counted or world.per_unit) for units in ([*world.others, world.differs], there))
    check(plan, one, other, relation)


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=15)
@given(world=worlds(ROW))
@example(world=World([], [(20.0, -20.0, "a")], [(20.0, -20.0, "b")], 1))
@example(world=World([], [(20.0, 5.0, "a")] * 3, [(-10.0, -20.0, "b")] * 3, 3))
def test_one_unit_moves_the_sums_by_no_more_than_the_noise_is_for(name: str, relation: Relation, world: World) -> None:
    compare(name, put(name, world), relation)


LARGEST = World([], [(20.0, -20.0, "a"), (20.0, -20.0, "b"), (20.0, -20.0, "c")], [], 1)
"""Rows that move every sum by as much as one row can."""


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("leading mode", "mode")])
def test_noise_for_fewer_rows_than_a_unit_brings_is_noticed(name: str) -> None:
    with pytest.raises(Moved):
        compare(name, put(name, LARGEST), Relation.ADD_REMOVE, counted=3)


def test_a_forgotten_centre_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    centred = ArrayRows._numbers

    def forgetful(self: ArrayRows, term: Term) -> np.ndarray:
        return centred(self, term) + term.offset

    monkeypatch.setattr(ArrayRows, "_numbers", forgetful)
    with pytest.raises(Moved, match="squares"):
        compare("variance", LARGEST, Relation.ADD_REMOVE)


@pytest.mark.parametrize("name", ["count", "histogram", "bounds", "median by group"])
def test_a_replaced_unit_that_is_counted_once_is_noticed(name: str) -> None:
    world = World([], [(20.0, 0.0, "a")], [(-10.0, 0.0, "b")], 1)
    alone = plans(1, Relation.ADD_REMOVE)[name]
    one, other = (seen(alone, units, 1) for units in ([world.differs], [world.instead]))
    if name == "count":
        check(alone, one, other, Relation.ADD_REMOVE)  # a count stays the same when a unit is replaced
    else:
        with pytest.raises(Moved):
            check(alone, one, other, Relation.ADD_REMOVE)
