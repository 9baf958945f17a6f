"""Histograms, two-way tables and distribution functions: what they count, and what is refused before any charge."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit import stats
from tacit.privacy.errors import TacitError
from tacit.privacy.units import Relation
from tacit.stats.histograms import Counts
from tacit.stats.statistic import from_bytes, to_bytes

EXACT = 10_000.0
GENERATOR = np.random.default_rng(11)
AGES = GENERATOR.normal(50, 10, 1000)
SEX = GENERATOR.choice(["F", "M"], 1000)
DAYS = np.datetime64("2024-01-01") + GENERATOR.integers(0, 366, 1000)


def budget(**settings: Any) -> tacit.Budget:
    return tacit.Budget(**{"epsilon": 1e6, **settings})


def test_bins_of_equal_width_count_as_numpy_does() -> None:
    answer = stats.histogram(AGES, bins=20, bounds=(0, 100), epsilon=EXACT, budget=budget())
    expected, edges = np.histogram(AGES, bins=20, range=(0, 100))
    assert answer.value.tolist() == expected.tolist()
    assert answer.key_names == ("value from", "value to")
    assert [key[0] for key in answer.keys or []] == edges[:-1].tolist()


def test_values_beyond_the_edges_are_in_the_outer_bins() -> None:
    answer = stats.histogram([-100, 0, 1, 2, 100], edges=[0, 1, 2], epsilon=EXACT, budget=budget())
    assert answer.value.tolist() == [2, 3]


def test_listed_values_count_others_do_not_and_missing_ones_if_listed() -> None:
    values = ["a", "b", "b", None, "zebra"]
    answer = stats.histogram(values, keys=["b", "a", "c"], epsilon=EXACT, budget=budget())
    assert answer.value.tolist() == [2, 1, 0]
    answer = stats.histogram(values, keys=["b", "a", None], epsilon=EXACT, budget=budget())
    assert answer.value.tolist() == [2, 1, 1]
    assert answer.keys == [("b",), ("a",), (None,)]


@pytest.mark.parametrize(
    "edges",
    [
        ["2024-01-01", "2024-04-01", "2025-01-01"],
        [date(2024, 1, 1), date(2024, 4, 1), date(2025, 1, 1)],
        [datetime(2024, 1, 1), datetime(2024, 4, 1), datetime(2025, 1, 1)],
    ],
)
@pytest.mark.parametrize("dtype", ["datetime64[D]", "datetime64[s]"])
def test_edges_may_be_dates(edges: list[Any], dtype: str) -> None:
    answer = stats.histogram(DAYS.astype(dtype), edges=edges, epsilon=EXACT, budget=budget())
    early = int((np.datetime64("2024-04-01") > DAYS).sum())
    assert answer.value.tolist() == [early, 1000 - early]
    assert isinstance(answer.keys[0][0], datetime) == (dtype == "datetime64[s]")  # type: ignore[index]


def test_bins_of_dates_end_where_the_bounds_end() -> None:
    answer = stats.histogram(DAYS, bins=12, bounds=("2024-01-01", "2024-12-31"), epsilon=EXACT, budget=budget())
    assert answer.keys is not None
    assert len(answer.keys) == 12
    assert answer.keys[-1][1] == date(2025, 1, 1)
    assert answer.value.sum() == 1000


def test_groups_come_first() -> None:
    answer = stats.histogram(AGES, bins=4, bounds=(0, 100), by=SEX, by_keys=["F", "M"], epsilon=EXACT, budget=budget())
    assert answer.value.shape == (2, 4)
    assert answer.value[1].tolist() == np.histogram(AGES[SEX == "M"], bins=4, range=(0, 100))[0].tolist()
    assert answer.keys is not None
    assert answer.keys[4] == ("M", 0.0, 25.0)
    assert answer.rows[4]["value"] == answer.value[1, 0]


def test_counts_below_zero_are_shown_as_zero_unless_asked_otherwise() -> None:
    shown = stats.histogram([1], bins=500, bounds=(0, 1), epsilon=0.1, budget=budget())
    raw = stats.histogram([1], bins=500, bounds=(0, 1), nonnegative=False, epsilon=0.1, budget=budget())
    assert shown.value.min() == 0
    assert shown.interval().low.min() == 0  # type: ignore[union-attr]
    assert raw.value.min() < 0


def test_noise_is_for_all_rows_of_a_unit() -> None:
    def scale(**asked: Any) -> float:
        paying = budget(relation=asked.pop("relation", Relation.ADD_REMOVE))
        answer = stats.histogram(AGES, bins=10, bounds=(0, 100), epsilon=1, budget=paying, **asked)
        assert isinstance(answer.plan, Counts)
        return float(answer.plan.part.noise.scale)

    assert scale() == 1
    assert scale(unit=np.arange(1000) // 10, rows_per_unit=4) == 4
    assert scale(relation=Relation.REPLACE_ONE) == 2


def test_units_are_cut_to_their_rows() -> None:
    answer = stats.histogram(
        np.zeros(100), edges=[0, 1], unit=[1] * 100, rows_per_unit=3, epsilon=EXACT, budget=budget()
    )
    assert answer.value.tolist() == [3]


def test_a_two_way_table_is_pandas_crosstab() -> None:
    old = AGES > 50
    answer = stats.contingency(SEX, old, keys=["F", "M"], epsilon=EXACT, budget=budget())
    assert answer.value.tolist() == pd.crosstab(SEX, old).to_numpy().tolist()
    assert answer.keys == [("F", False), ("F", True), ("M", False), ("M", True)]
    span = answer.interval()
    assert span is not None
    assert span.low.shape == (2, 2)


def test_a_distribution_function_rises_to_one() -> None:
    answer = stats.cdf(AGES, bounds=(0, 100), bins=50, epsilon=EXACT, budget=budget())
    at = np.array([key[0] for key in answer.keys or []])
    assert answer.value == pytest.approx([(at_ > AGES).mean() for at_ in at], abs=1e-9)
    for level in (0.5, 0.99):
        noisy = stats.cdf(AGES[:50], bounds=(0, 100), bins=200, epsilon=0.1, budget=budget())
        span = noisy.interval(level)
        assert span is not None
        for curve in (noisy.value, *span):
            assert np.all(np.diff(curve) >= 0)
            assert curve[0] >= 0
            assert curve[-1] == 1


def test_whole_numbers_have_a_share_each() -> None:
    answer = stats.cdf([0, 0, 1, 3], bounds=(0, 3), kind="integer", epsilon=EXACT, budget=budget())
    assert answer.keys == [(0.0,), (1.0,), (2.0,), (3.0,)]
    assert answer.value == pytest.approx([0.5, 0.75, 0.75, 1])


def test_groups_have_distribution_functions_of_their_own() -> None:
    answer = stats.cdf(AGES, bounds=(0, 100), bins=4, by=SEX, keys=["F", "M"], epsilon=EXACT, budget=budget())
    assert answer.value.shape == (2, 4)
    assert answer.value[0, 1] == pytest.approx((AGES[SEX == "F"] < 50).mean())


def test_kept_answers_read_the_same() -> None:
    for answer in (
        stats.histogram(AGES, bounds=(0, 100), epsilon=1, budget=budget()),
        stats.cdf(AGES, bounds=(0, 100), epsilon=1, budget=budget()),
        stats.contingency(SEX, AGES > 50, keys=["F", "M"], epsilon=1, budget=budget()),
    ):
        again = stats.Answer(answer.plan, from_bytes(to_bytes(answer.noisy)), answer.cost, None, "")
        assert np.array_equal(again.value, answer.value)
        assert again.rows == answer.rows
        assert "<table>" in again._repr_html_()


REFUSED: list[tuple[str, Callable[[tacit.Budget], object]]] = [
    ("T100", lambda b: stats.histogram(AGES, bins=3, edges=[0, 1], epsilon=1, budget=b)),
    ("T103", lambda b: stats.histogram(AGES, edges=[0, 2, 1], epsilon=1, budget=b)),
    ("T103", lambda b: stats.histogram(AGES, bins=3, bounds=(1, 1), epsilon=1, budget=b)),
    ("T104", lambda b: stats.histogram(AGES, edges="0,1", epsilon=1, budget=b)),
    ("T104", lambda b: stats.histogram(AGES, edges=7, epsilon=1, budget=b)),
    ("T105", lambda b: stats.histogram(AGES, edges=[0], epsilon=1, budget=b)),
    ("T106", lambda b: stats.histogram(AGES, bins=10**6, bounds=(0, 1), epsilon=1, budget=b)),
    ("T132", lambda b: stats.histogram(AGES, edges=["2024-01-01", "2025-01-01"], epsilon=1, budget=b)),
    ("T132", lambda b: stats.histogram(DAYS, edges=[0, 1], epsilon=1, budget=b)),
    ("T132", lambda b: stats.histogram(SEX, edges=[0, 1], epsilon=1, budget=b)),
    ("T204", lambda b: stats.histogram(AGES, bins=10, epsilon=1, budget=b)),
    ("T204", lambda b: stats.histogram(SEX, epsilon=1, budget=b)),
    ("T204", lambda b: stats.contingency(SEX, SEX, keys=["F"], epsilon=1, budget=b)),
    (
        "T207",
        lambda b: stats.cdf(AGES, bounds=(0, 1), bins=9999, by=AGES.round(), keys=range(999), epsilon=1, budget=b),
    ),
    ("T207", lambda b: stats.histogram(DAYS, edges=pd.date_range("2000", periods=5000), epsilon=1, budget=b)),
]


@pytest.mark.parametrize(("code", "ask"), REFUSED)
def test_what_cannot_be_counted_is_refused_and_costs_nothing(code: str, ask: Callable[[tacit.Budget], object]) -> None:
    paying = budget()
    with pytest.raises(TacitError) as refused:
        ask(paying)
    assert refused.value.code == code
    assert paying.spent().epsilon == 0
