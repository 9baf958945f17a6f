"""Learnt bounds: alone, and as the first part of another statistic, within one charge."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tacit
from tacit import stats
from tacit.mechanisms.simulation import SeededSource
from tacit.privacy.errors import NotBounded, WrongKind
from tacit.privacy.events import Composed
from tacit.privacy.units import Relation
from tacit.stats.array_sums import ArrayRows, read_arrays
from tacit.stats.learned_bounds import StatisticWithLearntBounds
from tacit.stats.preparation import StatisticInputs
from tacit.stats.statistic import from_bytes, to_bytes

GENERATOR = np.random.default_rng(3)
AGES = GENERATOR.normal(50, 10, 5000)


def budget(**settings: Any) -> tacit.Budget:
    return tacit.Budget(**{"epsilon": 1e6, **settings})


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([3.0] * 100, (2.0, 4.0)),
        ([4.0] * 100, (2.0, 4.0)),
        ([-3.0] * 100 + [100.0] * 100, (-4.0, 128.0)),
        (np.zeros(100, dtype=int), (0, 0)),
        (np.repeat([0, 1], 100), (0, 1)),
        ([0.0] * 100 + [7.5] * 100, (0.0, 8.0)),
        ([1e30] * 100, (2.0**42, 2.0**43)),
    ],
)
def test_bounds_are_powers_of_two_around_the_values(values: Any, expected: tuple[float, float]) -> None:
    answer = stats.bounds(values, epsilon=50, budget=budget())
    assert answer.value == expected
    assert answer.interval() is None
    assert answer.keys == [("low",), ("high",)]


def test_bounds_can_be_given_to_the_next_statistic() -> None:
    found = stats.bounds(AGES, epsilon=50, budget=budget())
    assert stats.mean(AGES, bounds=found.value, epsilon=50, budget=budget()).value == pytest.approx(AGES.mean(), abs=1)


def test_learning_and_the_statistic_are_one_charge() -> None:
    paying = budget()
    answer = stats.mean(AGES, bounds="learn", epsilon=50, budget=paying)
    assert isinstance(answer.plan.event, Composed)
    assert answer.cost.epsilon == pytest.approx(50)
    assert paying.spent().epsilon == pytest.approx(50)
    assert answer.value == pytest.approx(AGES.mean(), abs=1)
    assert "to 128" in answer.card


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("delta", [0.0, 1e-4])
def test_what_is_charged_does_not_depend_on_what_is_learned(relation: Relation, delta: float) -> None:
    whole = AGES.astype(int)
    for ask in (
        lambda x, b: stats.variance(x, bounds="learn", epsilon=1, budget=b),
        lambda x, b: stats.covariance(x, -x, bounds="learn", other_bounds="learn", epsilon=1, budget=b),
        lambda x, b: stats.box_plot(x, bounds="learn", epsilon=1, budget=b),
        lambda x, b: stats.median(x, bounds="learn", epsilon=1, budget=b),
        lambda x, b: stats.histogram(x, bounds="learn", epsilon=1, budget=b),
        lambda x, b: stats.cdf(x, bounds="learn", bins=200, epsilon=1, budget=b),
    ):
        events = [
            ask(values, budget(delta=delta, relation=relation)).plan.event
            for values in (whole, whole * 1000, np.zeros(10, dtype=int), whole / 1000)
        ]
        assert events.count(events[0]) == len(events)


def test_a_rho_pays_for_learning_too() -> None:
    paying = tacit.Budget(epsilon=10.0, delta=1e-6, filter="zcdp")
    answer = stats.mean(AGES, bounds="learn", rho=0.05, budget=paying)
    assert answer.cost.rho <= 0.05


def test_bounds_are_said_to_be_found_once_they_are() -> None:
    asked: dict[str, Any] = {"bounds": "learn", "other_bounds": "learn", "epsilon": 50}
    shown = stats.preview(stats.covariance, AGES, -AGES, **asked, budget=budget()).lines
    assert shown[0].startswith("bounds of ")
    assert not [line for line in shown if "found" in line]
    answer = stats.covariance(AGES, -AGES, **asked, budget=budget())
    assert sum("; found: " in line for line in answer.plan.lines) == 2


def test_a_kept_answer_reads_the_same() -> None:
    prepared = stats.prepare(stats.mean, AGES, bounds="learn", epsilon=1, budget=budget())
    answer = prepared.release()
    assert isinstance(answer.plan, StatisticWithLearntBounds)
    again = stats.Answer(prepared.plan, from_bytes(to_bytes(answer.noisy)), answer.cost, None, "")
    assert again.value == answer.value
    assert again.interval() == answer.interval()


def test_equal_questions_have_equal_digests_and_others_do_not() -> None:
    def digest(**asked: Any) -> str:
        return stats.mean(AGES[:50], **{"bounds": "learn", "epsilon": 1, "budget": budget(), **asked}).plan.canonical

    assert digest(bounds=(0, 100)) == digest(bounds=(0, 100))
    assert len({digest(bounds=(0, 100)), digest(bounds=(0, 101)), digest(bounds=(0, 100), epsilon=2)}) == 3


def test_a_statistic_that_does_not_learn_says_so_and_costs_nothing() -> None:
    paying = budget()
    inputs = StatisticInputs({"value": AGES}, {"epsilon": 1, "budget": paying})
    inputs.bounds("value", "learn")
    with pytest.raises(NotBounded, match=r"tacit\.stats\.bounds"):
        inputs.release(stats.count(AGES, epsilon=1, budget=budget()).plan)
    assert paying.spent().epsilon == 0


def test_texts_have_no_bounds() -> None:
    paying = budget()
    with pytest.raises(WrongKind):
        stats.bounds(np.array(["a"]), epsilon=1, budget=paying)
    assert paying.spent().epsilon == 0


def test_bounds_that_no_range_of_values_supports_are_called_a_guess() -> None:
    few, many = (stats.bounds(values, epsilon=0.1, budget=budget()) for values in ([3.0], np.full(10_000, 3.0)))
    assert "are a guess" in few.card
    assert "are a guess" not in many.card
    few, many = (
        stats.mean(values, bounds="learn", epsilon=0.1, budget=budget()) for values in ([3.0], np.full(10_000, 3.0))
    )
    assert "are a guess" in few.card
    assert "are a guess" not in many.card
    assert few.interval() is None
    assert many.interval() is not None


@pytest.mark.parametrize("kind", ["real", "integer"])
def test_bounds_that_zeros_alone_support_are_called_a_guess_and_state_their_limit(kind: str) -> None:
    """190 rows of a bin (of a mean 570) stand out: 20 do, or an empty bin does, in fewer than 3 of 10^6 seeds."""
    values = np.repeat([0.0, 10_000.0], [4980, 20]).astype(int if kind == "integer" else float)
    rows, source = ArrayRows(*read_arrays({"value": values})), SeededSource(1)
    asked: Any = {"epsilon": 0.1, "kind": kind, "budget": budget()}
    for ask, learns in ((stats.bounds, {}), (stats.mean, {"bounds": "learn"})):
        plan = stats.prepare(ask, [0.0], **learns, **asked).plan
        noisy = plan.measure(rows, source)
        (warning,) = plan.known(noisy).warnings(noisy)
        assert "are a guess: nearly all values are 0, or too few others were found" in warning
        assert "rows with similar values, within a factor of two)" in warning


def test_learned_bounds_state_how_many_rows_may_lie_beyond_them() -> None:
    """10,000 rows of one bin always stand out, and any other bin does in one of 10^6 runs."""
    values = np.full(10_000, 3.0)
    (warning,) = stats.mean(values, bounds="learn", epsilon=0.1, budget=budget()).warnings
    assert "2 to 4;" in warning
    limit = re.search(
        r"up to about (\d+) rows with similar values \(within a factor of two\) may lie beyond them", warning
    )
    assert limit is not None
    assert 500 < int(limit[1]) < 650
    alone = stats.bounds(values, epsilon=0.1, budget=budget())
    assert alone.warnings == ()
    assert re.search(r"which may miss about 1\d\d rows of a bin", alone.card)


def test_an_answer_kept_without_a_note_of_guesses_still_reads() -> None:
    prepared = stats.prepare(stats.mean, AGES, bounds="learn", epsilon=1, budget=budget())
    answer = prepared.release()
    older = (np.asarray(answer.noisy[0])[:, :2], *answer.noisy[1:])
    assert stats.Answer(prepared.plan, older, answer.cost, None, "").value == answer.value
