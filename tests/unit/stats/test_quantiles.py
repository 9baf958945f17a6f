"""Quantiles in three ways: what they are without noise, and what is refused before any charge."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from typing import Any

import numpy as np
import pytest

import tacit
from tacit import stats
from tacit.privacy.errors import TacitError
from tacit.privacy.units import Relation
from tacit.stats.quantiles import ChosenQuantiles, TreeQuantiles, scores, sensitivity
from tacit.stats.statistic import from_bytes, to_bytes

EXACT = 100_000.0
GENERATOR = np.random.default_rng(5)
AGES = GENERATOR.normal(50, 10, 1001)
WARDS = GENERATOR.choice(["north", "south"], 1001)


def budget(**settings: Any) -> tacit.Budget:
    return tacit.Budget(**{"epsilon": 1e6, **settings})


@pytest.mark.parametrize("q", [0.01, 0.25, 0.5, 0.9, 0.99])
def test_without_noise_a_quantile_is_what_numpy_says(q: float) -> None:
    answer = stats.quantile(AGES, q, bounds=(0, 100), epsilon=EXACT, budget=budget())
    assert answer.value == pytest.approx(np.quantile(AGES, q, method="inverted_cdf"), abs=100 / 4096)
    span = answer.interval()
    assert span is not None
    assert span.low <= answer.value <= span.high


@pytest.mark.parametrize("method", ["auto", "exponential", "tree"])
def test_every_method_finds_the_median(method: str) -> None:
    answer = stats.median(AGES, bounds=(0, 100), method=method, epsilon=EXACT, budget=budget())
    assert answer.value == pytest.approx(np.median(AGES), abs=100 / 4096)


def test_the_smooth_median_is_for_a_public_number_of_rows() -> None:
    paying = budget(relation=Relation.REPLACE_ONE)
    answer = stats.median(AGES, bounds=(0, 100), method="smooth", epsilon=1000, budget=paying)
    assert answer.value == pytest.approx(np.median(AGES), abs=0.1)
    assert answer.interval() is None


def test_missing_values_lie_on_both_sides_of_a_smooth_median() -> None:
    paying = budget(relation=Relation.REPLACE_ONE)
    values = np.concatenate([AGES, np.full(400, np.nan), [np.inf, -np.inf]])
    answer = stats.median(values, bounds=(0, 100), method="smooth", epsilon=1000, budget=paying)
    assert answer.value == pytest.approx(np.median(AGES), abs=4)


def test_up_to_two_shares_are_chosen_and_more_are_read_from_a_tree() -> None:
    two = stats.quantiles(AGES, [0.1, 0.9], bounds=(0, 100), epsilon=EXACT, budget=budget())
    nine = stats.quantiles(AGES, np.arange(1, 10) / 10, bounds=(0, 100), epsilon=EXACT, budget=budget())
    whole = stats.quantiles(AGES.astype(int), [0.1, 0.9], bounds=(0, 100), epsilon=EXACT, budget=budget())
    assert isinstance(two.plan, ChosenQuantiles)
    assert isinstance(whole.plan, TreeQuantiles)
    assert isinstance(nine.plan, TreeQuantiles)
    assert nine.keys is not None
    assert nine.keys[0] == (0.1,)
    assert nine.value == pytest.approx(np.quantile(AGES, np.arange(1, 10) / 10), abs=0.2)


def test_a_larger_share_never_has_a_smaller_quantile() -> None:
    for _ in range(5):
        two = stats.quantiles(AGES[:30], [0.6, 0.5], bounds=(0, 100), epsilon=0.1, budget=budget())
        many = stats.quantiles(AGES[:30], [0.1, 0.2, 0.5, 0.8], bounds=(0, 100), epsilon=0.1, budget=budget())
        assert two.value[0] >= two.value[1]
        assert np.all(np.diff(many.value) >= 0)


def test_whole_numbers_have_whole_quantiles() -> None:
    values = np.repeat([1, 2, 3], [51, 30, 20])
    for method in ("exponential", "tree"):
        answer = stats.median(values, bounds=(0, 10), method=method, epsilon=EXACT, budget=budget())
        assert answer.value == 1
        assert answer.interval() == (1, 1)


def test_dates_have_quantiles() -> None:
    days = np.datetime64("2024-01-01") + np.arange(0, 101)
    asked = {"bounds": ("2024-01-01", "2024-12-31"), "epsilon": EXACT}
    assert stats.median(days, **asked, budget=budget()).value == date(2024, 2, 20)
    times = days.astype("datetime64[s]")
    found = stats.median(times, **asked, budget=budget()).value
    assert abs(found - datetime(2024, 2, 20)).total_seconds() < 86_400


def test_a_box_plot_has_five_numbers_for_each_group() -> None:
    answer = stats.box_plot(AGES, bounds=(0, 100), by=WARDS, keys=["north", "south"], epsilon=EXACT, budget=budget())
    assert answer.key_names == ("group", "share")
    assert answer.keys is not None
    assert answer.keys[5] == ("south", 0.05)
    expected = [np.quantile(AGES[ward == WARDS], [0.05, 0.25, 0.5, 0.75, 0.95]) for ward in ("north", "south")]
    assert answer.value == pytest.approx(np.concatenate(expected), abs=0.5)


def test_groups_have_medians_of_their_own() -> None:
    answer = stats.median(AGES, bounds=(0, 100), by=WARDS, keys=["north", "south"], epsilon=EXACT, budget=budget())
    assert answer.keys == [("north",), ("south",)]
    expected = [np.median(AGES[ward == WARDS]) for ward in ("north", "south")]
    assert answer.value == pytest.approx(expected, abs=0.1)


@pytest.mark.parametrize("values", [[], [float("nan")] * 5, [1e300, -1e300]])
@pytest.mark.parametrize("method", ["exponential", "tree"])
def test_no_data_are_answered_like_any_other(values: list[float], method: str) -> None:
    answer = stats.median(values, bounds=(0, 100), method=method, epsilon=1, budget=budget())
    assert 0 <= answer.value <= 100
    assert answer.interval() is not None


def test_scores_are_the_rows_by_which_a_cell_misses_its_share() -> None:
    counts = np.array([0, 3, 0, 5, 2])
    assert (scores(counts, 0.5) / 10_000).tolist() == [-5, -2, -2, 0, -3]


@pytest.mark.parametrize(
    ("share", "relation", "is_grouped", "rows"),
    [
        (0.5, Relation.ADD_REMOVE, False, 0.5),
        (0.9, Relation.ADD_REMOVE, True, 0.9),
        (0.1, Relation.REPLACE_ONE, False, 1.0),
        (0.1, Relation.REPLACE_ONE, True, 1.8),
    ],
)
def test_sensitivities_of_scores(share: float, relation: Relation, is_grouped: bool, rows: float) -> None:
    assert sensitivity(share, 3, relation, is_grouped=is_grouped) == pytest.approx(3 * rows * 10_000)


@pytest.mark.parametrize("epsilon", [0.1, 2.0])
def test_what_is_asked_is_what_is_charged(epsilon: float) -> None:
    for ask in (stats.median, stats.box_plot):
        paying = budget()
        answer = ask(AGES, bounds=(0, 100), epsilon=epsilon, budget=paying)
        assert answer.cost.epsilon == pytest.approx(epsilon)
        assert paying.spent().epsilon <= epsilon * (1 + 1e-12)


@pytest.mark.parametrize("rho", [0.01, 1.0])
def test_a_rho_is_not_exceeded(rho: float) -> None:
    for relation in Relation:
        paying = tacit.Budget(epsilon=50.0, delta=1e-6, filter="zcdp", relation=relation)
        for ask in (stats.median, stats.box_plot):
            answer = ask(AGES, bounds=(0, 100), rho=rho, budget=paying)
            assert 0.9 * rho < answer.cost.rho <= rho


def test_kept_answers_read_the_same() -> None:
    for ask in (stats.median, stats.box_plot):
        answer = ask(AGES, bounds=(0, 100), epsilon=1, budget=budget())
        again = stats.Answer(answer.plan, from_bytes(to_bytes(answer.noisy)), answer.cost, None, "")
        assert again.rows == answer.rows


SMOOTH: dict[str, Any] = {"bounds": (0, 100), "method": "smooth", "epsilon": 1}
REFUSED: list[tuple[str, Callable[[tacit.Budget], object]]] = [
    ("T103", lambda b: stats.quantile(AGES, 0, bounds=(0, 1), epsilon=1, budget=b)),
    ("T103", lambda b: stats.quantile(AGES, 1.5, bounds=(0, 1), epsilon=1, budget=b)),
    ("T103", lambda b: stats.quantile(AGES, 0.00001, bounds=(0, 1), epsilon=1, budget=b)),
    ("T103", lambda b: stats.median(AGES, bounds=(1, 1), epsilon=1, budget=b)),
    ("T104", lambda b: stats.quantiles(AGES, 0.5, bounds=(0, 1), epsilon=1, budget=b)),  # type: ignore[arg-type]
    ("T104", lambda b: stats.quantiles(AGES, ["x"], bounds=(0, 1), epsilon=1, budget=b)),  # type: ignore[list-item]
    ("T105", lambda b: stats.quantiles(AGES, [], bounds=(0, 1), epsilon=1, budget=b)),
    ("T100", lambda b: stats.median(AGES, bounds=(0, 1), method="best", epsilon=1, budget=b)),
    ("T132", lambda b: stats.median(WARDS, bounds=(0, 1), epsilon=1, budget=b)),
    ("T132", lambda b: stats.median(AGES, bounds=("2024-01-01", "2025-01-01"), epsilon=1, budget=b)),
    ("T204", lambda b: stats.median(AGES, epsilon=1, budget=b)),
    ("T207", lambda b: stats.median(AGES, bounds=(0, 1), by=AGES.round(), keys=range(5000), epsilon=1, budget=b)),
    ("T202", lambda b: stats.median(AGES, **SMOOTH, budget=b)),
]


@pytest.mark.parametrize(("code", "ask"), REFUSED)
def test_what_cannot_be_answered_is_refused_and_costs_nothing(code: str, ask: Callable[[tacit.Budget], object]) -> None:
    paying = budget()
    with pytest.raises(TacitError) as refused:
        ask(paying)
    assert refused.value.code == code
    assert paying.spent().epsilon == 0


@pytest.mark.parametrize(
    ("code", "values", "asked"),
    [
        ("T202", AGES, {"unit": np.arange(1001), "rows_per_unit": 1}),
        ("T202", AGES, {"by": WARDS}),
        ("T105", [], {}),
        ("T132", WARDS, {}),
    ],
)
def test_smooth_sensitivity_says_why_it_is_refused(code: str, values: Any, asked: dict[str, Any]) -> None:
    paying = budget(relation=Relation.REPLACE_ONE)
    with pytest.raises(TacitError) as refused:
        stats.median(values, **SMOOTH, **asked, budget=paying)
    assert refused.value.code == code
    assert paying.spent().epsilon == 0
