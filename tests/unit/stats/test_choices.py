"""Modes and the most frequent values, public or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tacit
from tacit import stats
from tacit.mechanisms import Exponential, PermuteAndFlip
from tacit.privacy.errors import TacitError
from tacit.privacy.events import Composed, Repeated
from tacit.privacy.units import Relation
from tacit.stats.modes import LeadingMode, ListedMode, SelectedTop
from tacit.stats.statistic import from_bytes, to_bytes

EXACT = 1000.0
FRUIT = np.repeat(["pear", "fig", "plum", "kiwi"], [300, 200, 100, 2])


def budget(**settings: Any) -> tacit.Budget:
    return tacit.Budget(**{"epsilon": 1e6, "delta": 1e-4, **settings})


@pytest.mark.parametrize("relation", list(Relation))
def test_the_mode_of_public_values_is_one_of_them(relation: Relation) -> None:
    paying = budget(relation=relation)
    answer = stats.mode(FRUIT, keys=["plum", "fig", "pear"], epsilon=EXACT, budget=paying)
    assert answer.value == "pear"
    assert isinstance(answer.plan, ListedMode)
    assert answer.plan.mechanism.monotonic == (relation is Relation.ADD_REMOVE)
    assert repr(answer) == "<mode of value: pear for epsilon 1000>"


def test_under_rho_a_mode_is_chosen_by_the_exponential_mechanism() -> None:
    paying = tacit.Budget(epsilon=50.0, delta=1e-4, filter="zcdp")
    answer = stats.mode(FRUIT, keys=["plum", "fig", "pear"], rho=1.0, budget=paying)
    assert isinstance(answer.plan, ListedMode)
    assert isinstance(answer.plan.mechanism, Exponential)
    assert 0.9 < answer.cost.rho <= 1.0
    assert not isinstance(answer.plan.mechanism, PermuteAndFlip)


@pytest.mark.parametrize("relation", list(Relation))
def test_a_mode_of_unknown_values_is_shown_if_it_leads(relation: Relation) -> None:
    assert stats.mode(FRUIT, epsilon=5, budget=budget(relation=relation)).value == "pear"
    assert stats.mode(["a", "b"], kind="text", epsilon=1, budget=budget(relation=relation)).value is None
    assert stats.mode([None, None], kind="real", epsilon=1, budget=budget(relation=relation)).value is None


def test_a_unit_counts_once_for_a_value_of_unknown_values() -> None:
    values, units = ["mine"] * 500 + ["ours"] * 60, [0] * 500 + list(range(1, 61))
    answer = stats.mode(values, kind="text", unit=units, rows_per_unit=500, epsilon=5, budget=budget())
    assert answer.value == "ours"


@pytest.mark.parametrize(
    "values",
    [
        np.array([7, 8]),
        np.array([True, False]),
        np.array([0.5, 1.5]),
        np.array(["2024-01-01", "2024-01-02"], dtype="datetime64[D]"),
        np.array(["2024-01-01T10:00:01", "2024-01-02"], dtype="datetime64[s]"),
        np.array(["x", "y"]),
    ],
)
def test_values_of_every_kind_come_back_as_they_were(values: Any) -> None:
    many = np.repeat(values, [200, 100])
    found = stats.mode(many, epsilon=10, budget=budget())
    assert found.value == values[0].item()
    top = stats.top_k(many, 2, epsilon=10, budget=budget())
    assert top.keys == [(values[0].item(),), (values[1].item(),)]
    for answer in (found, top):
        again = stats.Answer(answer.plan, from_bytes(to_bytes(answer.noisy)), answer.cost, None, "")
        assert again.rows == answer.rows


def test_the_greatest_of_public_values_come_with_their_counts() -> None:
    answer = stats.top_k(FRUIT, 2, keys=["plum", "fig", "pear", "kiwi"], epsilon=EXACT, budget=budget())
    assert answer.keys == [("pear",), ("fig",)]
    assert answer.value.tolist() == [300, 200]
    assert answer.key_names == ("value (key)",)
    assert [(row["value (key)"], row["value"]) for row in answer.rows] == [("pear", 300), ("fig", 200)]


def test_of_unknown_values_those_of_few_units_are_not_shown() -> None:
    answer = stats.top_k(FRUIT, 10, epsilon=1, budget=budget())
    assert answer.keys is not None
    assert [key for (key,) in answer.keys] == ["pear", "fig", "plum"]
    span = answer.interval()
    assert span is not None
    assert np.all((span.low <= answer.value) & (answer.value <= span.high))
    for nobody in (["a", "b"], [None], []):
        assert stats.top_k(nobody, 10, kind="text", epsilon=1, budget=budget()).keys == []


@pytest.mark.parametrize(("relation", "times"), [(Relation.ADD_REMOVE, 3), (Relation.REPLACE_ONE, 6)])
def test_a_unit_with_several_values_pays_for_each(relation: Relation, times: int) -> None:
    answer = stats.top_k(FRUIT, 2, unit=range(602), rows_per_unit=3, epsilon=1, budget=budget(relation=relation))
    assert isinstance(answer.plan, SelectedTop)
    event = answer.plan.event
    assert isinstance(event, Composed)
    counts, part = 1, event.events[0]
    while isinstance(part, Repeated):
        counts, part = counts * part.count, part.event
    assert counts == times
    assert answer.cost.epsilon == pytest.approx(1)


def test_intervals_are_wide_enough_for_all_counts_at_once() -> None:
    keys = [f"k{place}" for place in range(100)]
    one = stats.histogram(FRUIT, keys=keys, epsilon=1, budget=budget()).interval(0.95)
    top = stats.top_k(["k1"] * 500, 1, keys=keys, epsilon=1, budget=budget()).interval(0.95)
    assert one is not None
    assert top is not None
    assert top.high[0] - top.low[0] > 2 * (one.high - one.low).min()


def test_a_huge_lead_is_worked_out_without_a_list_of_all_rows() -> None:
    answer = stats.mode(np.zeros(300_000, dtype=int), epsilon=1, budget=budget())
    assert answer.value == 0
    assert isinstance(answer.plan, LeadingMode)


REFUSED: list[tuple[str, Callable[[tacit.Budget], object]]] = [
    ("T206", lambda b: stats.mode(FRUIT, epsilon=1, budget=b)),
    ("T206", lambda b: stats.top_k(FRUIT, 2, epsilon=1, budget=b)),
    ("T103", lambda b: stats.top_k(FRUIT, 3, keys=["fig"], epsilon=1, budget=b)),
    ("T103", lambda b: stats.top_k(FRUIT, 0, keys=["fig"], epsilon=1, budget=b)),
    ("T105", lambda b: stats.mode(FRUIT, keys=[], epsilon=1, budget=b)),
]


@pytest.mark.parametrize(("code", "ask"), REFUSED)
def test_what_cannot_be_chosen_is_refused_and_costs_nothing(code: str, ask: Callable[[tacit.Budget], object]) -> None:
    paying = tacit.Budget(epsilon=10.0)
    with pytest.raises(TacitError) as refused:
        ask(paying)
    assert refused.value.code == code
    assert paying.spent().epsilon == 0
