"""Tests keep their level where classical ones lose it: unequal groups, skewed values, rare events, sparse tables.

Every check counts rejections at the level 0.05 over 200 seeded data sets with seeded noise. It raises a false alarm
with a probability below one in a million if the true rate is 0.05; a true rate of 0.2 is noticed with a probability
above 0.98. Epsilon 1,000 is all but no noise: what is left is chance alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats as classical

from tacit import Budget, stats
from tacit.mechanisms.simulation import SeededSource
from tacit.stats import null_distributions
from tacit.stats.array_sums import ArrayRows, read_arrays
from tacit.stats.null_distributions import Hypothesis
from tests.statistical.evidence import Refuted, accept

LEVEL: Final = 0.05
REPEATS: Final = 200
DRAWS: Final = 99
"""So many make p-values of whole hundredths: a test of the level 0.05 keeps it exactly."""

Values = NDArray[Any]
Draw = Callable[[np.random.Generator, int], Values]

SHAPES: Final[dict[str, tuple[float, Draw]]] = {
    "normal": (40.0, lambda generator, rows: np.clip(generator.normal(40, 12, rows), 0, 100)),
    "far from the middle": (12.0, lambda generator, rows: np.clip(generator.normal(12, 4, rows), 0, 100)),
    "lognormal": (8.232, lambda generator, rows: np.clip(5 * generator.lognormal(0, 1, rows), 0, 100)),
    "rare": (5.0, lambda generator, rows: 100.0 * (generator.random(rows) < 0.05)),
}


def planned(ask: Callable[..., Any], *columns: Any, epsilon: float, **options: Any) -> Hypothesis:
    plan = ask(*columns, epsilon=epsilon, budget=Budget(epsilon=epsilon), **options).plan
    assert isinstance(plan, Hypothesis)
    return replace(plan, draws=DRAWS)


def rejections(plan: Hypothesis, draw: Callable[[np.random.Generator], dict[str, Values]], seed: int = 1) -> int:
    generator = np.random.default_rng(seed)
    return sum(
        plan.outcome(plan.measure(ArrayRows(read_arrays(draw(generator))[0]), SeededSource(1000 * seed + one))).pvalue
        <= LEVEL
        for one in range(REPEATS)
    )


def accept_level(rejected: int) -> None:
    accept(float(classical.binom.sf(rejected - 1, REPEATS, LEVEL)), f"a test of the level {LEVEL}")


def one_mean(shape: str, rows: int, epsilon: float) -> int:
    mean, draw = SHAPES[shape]
    plan = planned(stats.t_test, [1.0, 2.0], bounds=(0, 100), popmean=mean, epsilon=epsilon)
    return rejections(plan, lambda generator: {"value": draw(generator, rows)})


def two_means(shape: str, sizes: tuple[int, int], epsilon: float, *, shift: float = 0.0, narrow: float = 1.0) -> int:
    mean, draw = SHAPES[shape]
    groups = {"by": ["a", "b"], "keys": ["a", "b"]}
    plan = planned(stats.t_test, [1.0, 2.0], bounds=(0, 100), epsilon=epsilon, **groups)

    def drawn(generator: np.random.Generator) -> dict[str, Values]:
        one, other = (draw(generator, size) for size in sizes)
        values = np.concatenate([one + shift, mean + narrow * (other - mean)])
        return {"value": values, "group": np.repeat(["a", "b"], sizes)}

    return rejections(plan, drawn)


def correlated(draw: Draw, rows: int, epsilon: float) -> int:
    bounds = {"bounds": (0, 100), "other_bounds": (0, 100)}
    plan = planned(stats.correlation_test, [1.0, 2.0], [1.0, 2.0], epsilon=epsilon, **bounds)
    return rejections(plan, lambda generator: {"value": draw(generator, rows), "other": draw(generator, rows)})


def table(shares: tuple[list[float], list[float]], rows: int, epsilon: float) -> int:
    keys = {"keys": list(range(len(shares[0]))), "other_keys": list(range(len(shares[1])))}
    plan = planned(stats.chi_squared, [0, 1], [0, 1], epsilon=epsilon, **keys)

    def drawn(generator: np.random.Generator) -> dict[str, Values]:
        one, other = (generator.choice(len(each), rows, p=each) for each in shares)
        return {"value": one, "other": other}

    return rejections(plan, drawn)


@pytest.mark.sampled(7, each="shape")
@pytest.mark.parametrize("epsilon", [10.0, 1000.0])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("rows", [10, 30])
def test_a_true_mean_of_few_or_skewed_values_is_rejected_no_more_often_than_stated(
    shape: str, rows: int, epsilon: float
) -> None:
    accept_level(one_mean(shape, rows, epsilon))


@pytest.mark.sampled(6, each="shape")
@pytest.mark.parametrize(("shape", "epsilon"), [*((shape, 1000.0) for shape in SHAPES), ("rare", 10.0)])
@pytest.mark.parametrize(("sizes", "narrow"), [((10, 100), 1.0), ((30, 600), 1.0), ((600, 30), 0.4)])
def test_equal_means_of_unequal_groups_are_rejected_no_more_often_than_stated(
    shape: str, sizes: tuple[int, int], narrow: float, epsilon: float
) -> None:
    accept_level(two_means(shape, sizes, epsilon, narrow=narrow))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("rows", "epsilon"), [(10, 10.0), (30, 10.0), (30, 1000.0), (100, 1.0)])
def test_independence_in_a_sparse_table_is_rejected_no_more_often_than_stated(rows: int, epsilon: float) -> None:
    accept_level(table(([0.1] * 10, [0.1] * 10), rows, epsilon))


@pytest.mark.parametrize(("rows", "epsilon"), [(30, 0.1), (30, 1000.0), (100, 1.0)])
def test_independence_of_rare_events_is_rejected_no_more_often_than_stated(rows: int, epsilon: float) -> None:
    accept_level(table(([0.95, 0.05], [0.95, 0.05]), rows, epsilon))


def test_a_difference_of_means_is_found_nearly_as_often_as_by_welch() -> None:
    """At epsilon 10 with 300 rows each, Welch's test finds 3.2 in 91 % of data sets, and this one in 91 % (1,000)."""
    assert two_means("normal", (300, 300), 10.0, shift=3.2) > 0.8 * REPEATS
    assert two_means("far from the middle", (600, 600), 10.0, shift=4.0) > 0.8 * REPEATS


def test_a_difference_between_unequal_groups_is_found_as_often_as_by_welch_where_noise_is_small() -> None:
    """Welch's test finds 6 between groups of 30 and 600 in 73 % of data sets; fewer than half once in 10^10 tests.

    A test that allows for rows at the end of the bounds, whatever the data look like, finds it in 29 %.
    """
    assert two_means("normal", (30, 600), 1000.0, shift=6.0) > 0.5 * REPEATS


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("shape", "rows", "epsilon"),
    [("rare", 30, 1.0), ("rare", 30, 1000.0), ("lognormal", 30, 1.0), ("normal", 10, 1000.0)],
)
def test_independent_columns_are_called_related_no_more_often_than_stated(
    shape: str, rows: int, epsilon: float
) -> None:
    accept_level(correlated(SHAPES[shape][1], rows, epsilon))


@pytest.mark.soak
def test_independent_skewed_columns_are_called_related_no_more_often_than_stated() -> None:
    """In 2 % of 600 data sets, 12 of them; at a rate of 2.5 %, 42 or more come up once in 10^7 tests.

    A null hypothesis that takes products for normal is rejected in 9 %, 52 of them.
    """
    draws: list[tuple[Draw, int]] = [
        (lambda generator, rows: 100.0 * (generator.random(rows) < 0.1), 20),
        (lambda generator, rows: np.clip(generator.lognormal(0, 2, rows), 0, 100), 100),
        (lambda generator, rows: np.clip(generator.lognormal(0, 1.5, rows), 0, 100), 30),
    ]
    found = sum(correlated(draw, rows, 1000.0) for draw, rows in draws)
    assert found < 42, f"{found} of {len(draws) * REPEATS} true hypotheses are rejected"


def test_a_variance_around_the_mean_of_both_without_its_cross_term_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def centred(mean: Any, count: Any, total: Any, squares: Any, cubes: Any) -> Any:
        return squares - count * mean**2, np.zeros_like(cubes)

    monkeypatch.setattr(null_distributions, "_centred", centred)
    monkeypatch.setattr(null_distributions, "UNSEEN", 0.0)
    with pytest.raises(Refuted):
        accept_level(two_means("far from the middle", (30, 600), 1000.0))


def test_trusting_the_variance_of_values_that_were_seen_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(null_distributions, "UNSEEN", 0.0)
    with pytest.raises(Refuted):
        accept_level(one_mean("rare", 10, 1000.0))
