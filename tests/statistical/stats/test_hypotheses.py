"""P-values are (nearly) uniform or larger where nothing is there, the noise included; naive ones are not.

Every check counts rejections at the level 0.05 over seeded data, seeded noise and three settings (50 and 5,000 rows
with epsilon 1, 500 with epsilon 0.1), in `make soak` also the other three. It raises a false alarm with a probability
below one in a million if the true rate is 0.05; a true rate of 0.18 is noticed with a probability above 0.99.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats as classical

from tacit import Budget, stats
from tacit.mechanisms.simulation import SeededSource
from tacit.stats.array_sums import ArrayRows, read_arrays
from tacit.stats.null_distributions import Hypothesis
from tests.statistical.evidence import Refuted, accept

LEVEL: Final = 0.05
SIZES: Final = (50, 500, 5_000)
SETTINGS: Final = ((50, 1.0), (500, 0.1), (5_000, 1.0))
OTHERS: Final = ((50, 0.1), (500, 1.0), (5_000, 0.1))
REPEATS: Final = 100
DRAWS: Final = 99
"""So many make p-values of whole hundredths: a test of the level 0.05 keeps it exactly."""

Columns = Mapping[str, NDArray[Any]]


def plan_of(ask: Callable[..., Any], *columns: Any, epsilon: float, delta: float = 0.0, **options: Any) -> Hypothesis:
    budget = Budget(epsilon=10 * epsilon, delta=delta) if delta else Budget(epsilon=10 * epsilon)
    plan = ask(*columns, epsilon=epsilon, budget=budget, **options).plan
    assert isinstance(plan, Hypothesis)
    return replace(plan, draws=DRAWS)


def mean_plan(epsilon: float, delta: float = 0.0, popmean: float = 40.0) -> Hypothesis:
    return plan_of(stats.t_test, [1.0, 2.0], bounds=(0, 100), popmean=popmean, epsilon=epsilon, delta=delta)


def difference_plan(epsilon: float, delta: float = 0.0) -> Hypothesis:
    groups = {"by": ["a", "b"], "keys": ["a", "b"]}
    return plan_of(stats.t_test, [1.0, 2.0], bounds=(0, 100), epsilon=epsilon, delta=delta, **groups)


def relation_plan(epsilon: float, delta: float = 0.0) -> Hypothesis:
    bounds = {"bounds": (0, 100), "other_bounds": (0, 100)}
    return plan_of(stats.correlation_test, [1.0, 2.0], [1.0, 2.0], epsilon=epsilon, delta=delta, **bounds)


def trend_plan(epsilon: float, delta: float = 0.0) -> Hypothesis:
    bounds = {"bounds": (0, 100), "time_bounds": (0, 100)}
    return plan_of(stats.trend_test, [1.0, 2.0], [1.0, 2.0], epsilon=epsilon, delta=delta, **bounds)


def table_plan(epsilon: float, delta: float = 0.0) -> Hypothesis:
    keys = {"keys": [0, 1], "other_keys": [0, 1, 2]}
    return plan_of(stats.chi_squared, [0, 1], [0, 1], epsilon=epsilon, delta=delta, **keys)


def shares_plan(epsilon: float, delta: float = 0.0) -> Hypothesis:
    keys = {"keys": [0, 1, 2], "expected": [6, 3, 1]}
    return plan_of(stats.chi_squared, [0, 1], epsilon=epsilon, delta=delta, **keys)


def normal(generator: np.random.Generator, rows: int, mean: float = 40.0) -> NDArray[np.float64]:
    return np.clip(generator.normal(mean, 12, rows), 0, 100)


def one_column(generator: np.random.Generator, rows: int, effect: float = 0.0) -> Columns:
    return {"value": normal(generator, rows, 40 + effect)}


def two_groups(generator: np.random.Generator, rows: int, effect: float = 0.0) -> Columns:
    group = np.where(generator.random(rows) < 0.35, "a", "b")
    return {"value": normal(generator, rows) + effect * (group == "a"), "group": group}


def two_columns(generator: np.random.Generator, rows: int, effect: float = 0.0) -> Columns:
    value = normal(generator, rows)
    return {"value": value, "other": np.clip(normal(generator, rows, 25) + effect * (value - 40), 0, 100)}


def two_labels(generator: np.random.Generator, rows: int, effect: float = 0.0) -> Columns:
    value = (generator.random(rows) < 0.3).astype(np.int64)
    other = generator.choice(3, rows, p=[0.2, 0.5, 0.3])
    return {"value": value, "other": np.where((generator.random(rows) < effect) & (value == 1), 2, other)}


def one_label(generator: np.random.Generator, rows: int, effect: float = 0.0) -> Columns:
    return {"value": generator.choice(3, rows, p=[0.6 - effect, 0.3 + effect, 0.1])}


CASES: Final[dict[str, Any]] = {
    "one mean": (mean_plan, one_column, 4.0),
    "two means": (difference_plan, two_groups, 8.0),
    "correlation": (relation_plan, two_columns, 0.8),
    "slope": (trend_plan, two_columns, 0.8),
    "table": (table_plan, two_labels, 0.3),
    "shares": (shares_plan, one_label, 0.1),
}


def released(plan: Hypothesis, columns: Columns, seed: int) -> Any:
    return plan.measure(ArrayRows(read_arrays(columns)[0]), SeededSource(seed))


def pvalues(plan: Hypothesis, draw: Any, rows: int, pvalue: Any = None, effect: float = 0.0) -> list[float]:
    """Return the p-values of data sets of their own."""
    generator = np.random.default_rng(rows)
    found = pvalue or (lambda noisy: plan.outcome(noisy).pvalue)
    return [found(released(plan, draw(generator, rows, effect), seed)) for seed in range(REPEATS)]


def accept_rejections(rejected: int, trials: int) -> None:
    """Accept that a test rejects in at most LEVEL of all trials."""
    accept(float(classical.binom.sf(rejected - 1, trials, LEVEL)), f"a test of the level {LEVEL}")


@pytest.mark.parametrize("case", [case for case in CASES if case != "slope"])  # its p-value is that of correlation
@pytest.mark.parametrize("settings", [SETTINGS, pytest.param(OTHERS, marks=pytest.mark.soak)], ids=["some", "others"])
def test_a_true_hypothesis_is_rejected_no_more_often_than_stated(case: str, settings: Any) -> None:
    make, draw, _ = CASES[case]
    found = np.array([pvalues(make(epsilon), draw, rows) for rows, epsilon in settings])
    accept_rejections(int((found <= LEVEL).sum()), found.size)
    for setting in found:
        accept_rejections(int((setting <= LEVEL).sum()), len(setting))
    assert (found <= 0.5).mean() > 0.3, "cautious, but not blind"


@pytest.mark.parametrize("case", ["one mean", "table"])
def test_gaussian_noise_is_counted_as_well(case: str) -> None:
    make, draw, _ = CASES[case]
    plan = make(0.1, delta=0.01)
    plan = replace(plan, parts=tuple(replace(part, noise=_gaussian(part.noise)) for part in plan.parts))
    found = np.array([pvalues(plan, draw, rows) for rows in SIZES])
    accept_rejections(int((found <= LEVEL).sum()), found.size)


def _gaussian(noise: Any) -> Any:
    from tacit.mechanisms import Gaussian

    return Gaussian(noise.sensitivity, sigma=float(noise.scale) / float(noise.sensitivity))


def naive_mean(noisy: Any) -> float:
    rows, total, squares = (max(float(one), 2.0) if index != 1 else float(one) for index, one in enumerate(noisy[:3]))
    variance = max((squares - total**2 / rows) / (rows - 1), 1.0)
    return float(2 * classical.t.sf(abs(total) / np.sqrt(rows * variance), rows - 1))


def naive_table(noisy: Any) -> float:
    return float(classical.chi2_contingency(np.maximum(noisy[0], 1), correction=False).pvalue)


def naive_shares(noisy: Any) -> float:
    counts = np.maximum(noisy[0], 0)
    return float(classical.chisquare(counts, np.array([0.6, 0.3, 0.1]) * max(counts.sum(), 1)).pvalue)


@pytest.mark.parametrize(
    ("case", "naive"), [("one mean", naive_mean), ("table", naive_table), ("shares", naive_shares)]
)
def test_the_classical_formula_on_noisy_sums_is_refuted_by_the_same_check(case: str, naive: Any) -> None:
    make, draw, _ = CASES[case]
    found = np.array([pvalues(make(0.1), draw, rows, naive) for rows in SIZES])
    with pytest.raises(Refuted):
        accept_rejections(int((found <= LEVEL).sum()), found.size)


@pytest.mark.parametrize("case", ["one mean", "two means", "correlation", "table"])
def test_noise_that_is_not_counted_is_refuted_by_the_same_check(case: str) -> None:
    make, draw, _ = CASES[case]
    plan = make(0.1)
    quiet = tuple(replace(part, noise=replace(part.noise, epsilon=1000)) for part in plan.parts)
    unaware = replace(plan, parts=quiet)
    found = np.array([pvalues(plan, draw, rows, lambda noisy: unaware.outcome(noisy).pvalue) for rows in SIZES[1:]])
    with pytest.raises(Refuted):
        accept_rejections(int((found <= LEVEL).sum()), found.size)


@pytest.mark.parametrize("case", [case for case in CASES if case != "slope"])
def test_an_effect_is_found_more_often_in_more_data(case: str) -> None:
    make, draw, effect = CASES[case]
    plan = make(1.0)
    few, many = (np.mean(np.array(pvalues(plan, draw, rows, effect=effect)) <= LEVEL) for rows in (50, 5_000))
    assert few < many - 0.2
    assert many > 0.95


@pytest.mark.sampled(4, each="case")
@pytest.mark.parametrize("case", ["one mean", "two means", "correlation", "slope"])
@pytest.mark.parametrize(("rows", "epsilon"), [(200, 1.0), (5_000, 0.1)])
def test_the_interval_of_an_estimate_counts_chance_and_noise(case: str, rows: int, epsilon: float) -> None:
    make, draw, _ = CASES[case]
    plan, generator = make(epsilon), np.random.default_rng(7)
    true = 40.0 if case == "one mean" else 0.0
    spans = [plan.interval(released(plan, draw(generator, rows), seed), 0.9) for seed in range(REPEATS)]
    missed = sum(not span.low <= true <= span.high for span in spans if span is not None)
    accept(float(classical.binom.sf(missed - 1, REPEATS, 0.1)), "an interval of the level 0.9")


@pytest.mark.parametrize("make", [relation_plan, trend_plan])
def test_intervals_of_relations_hold_for_normal_values_and_not_for_skewed_ones_as_is_said(make: Any) -> None:
    """Lognormal values have the correlation (e^0.6 - 1) / (e - 1), and the same slope. False alarms: one in 10^6."""
    plan, generator, missed = replace(make(1000.0), draws=499), np.random.default_rng(8), {"normal": 0, "lognormal": 0}
    for seed in range(200):
        one, other = generator.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], 1000).T
        for shape, columns, true in (
            ("normal", (50 + 10 * one, 50 + 10 * other), 0.6),
            ("lognormal", (np.exp(one), np.exp(other)), np.expm1(0.6) / np.expm1(1)),
        ):
            span = plan.interval(released(plan, dict(zip(("value", "other"), columns, strict=True)), seed), 0.95)
            assert span is not None
            missed[shape] += not span.low <= true <= span.high
    accept(float(classical.binom.sf(missed["normal"] - 1, 200, 0.05)), "an interval of the level 0.95")
    assert "nearly bivariate normal" in plan.warnings(())[0]
    with pytest.raises(Refuted):
        accept(float(classical.binom.sf(missed["lognormal"] - 1, 200, 0.05)), "an interval of the level 0.95")
