"""The check of neighbours is itself put to the test: it must notice bugs that were planted on purpose.

Each of them is one that an engine like this could have, and some of them are ones that it had.
"""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from sqlglot import exp

from tacit.mechanisms import Laplace
from tacit.query import contribution, disjoint_conditions, measures, relations, rewrite
from tacit.query.scalars import casts, facts, numbers, value_ranges
from tests.property.query.neighbours import Violated, trial
from tests.property.query.parts import database

WORLDS = 12
"""In how many worlds at most a planted bug must show itself."""


def noticed(first: int = 0, worlds: int = WORLDS) -> str:
    """Return the first line of what the check says; `first` is a world in which it is known to say something."""
    connection = database()
    for seed in (first, *range(worlds)):
        try:
            trial(seed, connection, neighbours=3)
        except Violated as error:
            return str(error).partition("\n")[0]
    pytest.fail("nothing was noticed")


def test_a_forgotten_clamp_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewrite, "_least", lambda tree, _number: tree)
    assert "moves" in noticed()


def test_a_forgotten_limit_on_groups_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewrite, "keep_groups", lambda _grouping, tree, **_options: tree)
    assert "moves" in noticed()


def test_one_column_for_two_limits_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    first = rewrite.first_by_salted_hash

    def one_name(tree: exp.Select, _name: str, *rest: Any, **more: Any) -> exp.Select:
        return first(tree, "place", *rest, **more)

    monkeypatch.setattr(rewrite, "first_by_salted_hash", one_name)
    assert "COUNT(DISTINCT" in noticed(first=11)


def test_a_bound_that_outlives_its_column_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(value_ranges, "add", lambda one, _other: one)
    monkeypatch.setattr(value_ranges, "multiply", lambda one, _other: one)
    monkeypatch.setattr(facts, "_is_clamped", lambda _expression: True)  # or sums are clamped
    assert "moves" in noticed()


def test_rows_counted_as_one_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    contribution = measures.Measure.contribution

    def wrong(self: measures.Measure, rows: int) -> int:
        return contribution(self, 1)

    monkeypatch.setattr(measures.Measure, "contribution", wrong)
    assert "moves" in noticed()


def test_a_euclidean_distance_without_its_root_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contribution, "root_up", lambda _number: 1)
    assert "L2" in noticed(first=4)


def test_an_exchange_that_is_charged_as_a_removal_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contribution.Bounding, "_sides", property(lambda _self: 1))
    assert any(word in noticed() for word in ("moves", "is charged for"))


def test_whatever_comes_of_the_unit_taken_for_the_unit_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relations.FromScope, "is_unit", lambda _self, value: value.unit)
    assert "moves" in noticed(first=7, worlds=3 * WORLDS)


def test_conditions_wrongly_held_apart_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disjoint_conditions, "_are_apart", lambda _one, _other: True)
    assert "was spent" in noticed(first=1)


def test_a_choice_that_is_too_sharp_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contribution.Bounding, "per_group", lambda _self, contribution: max(1, contribution // 2))
    assert re.search("score|weights|more than", noticed())


def test_units_with_few_rows_that_are_not_few_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def unlimited(grouping: Any, values: Any, parts: Any, whole: Any, *, by_unit: bool) -> exp.Query:
        wide = replace(grouping, bounding=replace(grouping.bounding, rows=10**6))
        return original(wide, values, parts, whole, by_unit=by_unit)

    original = rewrite._unit_contributions
    monkeypatch.setattr(rewrite, "_unit_contributions", unlimited)
    assert "moves" in noticed()


@pytest.mark.parametrize(("told_by", "first"), [(casts, 4), (numbers, 50)])
def test_zeros_that_can_be_told_apart_are_noticed(monkeypatch: pytest.MonkeyPatch, told_by: Any, first: int) -> None:
    monkeypatch.setattr(told_by, "one_zero", lambda value: value.tree)
    assert "depends on the order of rows" in noticed(first)


def test_noise_for_half_the_distance_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Laplace.__post_init__

    def halved(self: Laplace) -> None:
        made(self)
        object.__setattr__(self, "sensitivity", Fraction(self.sensitivity) / 2)

    monkeypatch.setattr(Laplace, "__post_init__", halved)
    assert "the noise is for" in noticed()
