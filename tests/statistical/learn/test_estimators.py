"""Estimators release the noise that was charged, and no more of a unit than was charged.

False alarms: each `accept` at most 1e-6 over the choice of seeds, which are fixed. An audit claims a violation with
probability at most 0.05; its seed is fixed. Half of the noise, bounds that are not clamped, and units of which all rows
are counted, are noticed by the same checks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy import stats as laws

from tacit import attack, learn
from tacit.attack.finding import Finding, Verdict
from tacit.learn.estimators.base import PrivateEstimator
from tacit.ledger import Budget
from tacit.mechanisms.simulation import SeededSource
from tacit.privacy.units import Relation
from tacit.stats.array_sums import ArrayColumn, ArrayRows, read_arrays
from tacit.stats.rows import ColumnSteps, Term
from tacit.stats.statistic import StatisticPlan
from tests.statistical.evidence import Refuted, accept

DRAWS = 4000
REACH = 4096
"""The steps of half of the bounds (-1, 1)."""


SCALES = (6, 6 * REACH, 6 * REACH, 3 * REACH**2, 6 * (REACH**2 // 2))
"""Of the noise of rows, x, y, x y and centred squares of x in a regression of epsilon 1: the products weigh 2 of 6."""


class ManyTimes:
    """The rows of a statistic, with each exact sum repeated, so that one measurement draws its noise many times."""

    def __init__(self, rows: ArrayRows, times: int) -> None:
        self.rows, self.times, self.per_unit = rows, times, rows.per_unit

    def sums(self, terms: Sequence[Term], by: Any = (), needs: Sequence[str] = ()) -> np.ndarray:
        return np.repeat(self.rows.sums(terms, by, needs)[..., None], self.times, axis=-1)


def regression(**stated: Any) -> learn.LinearRegression:
    return learn.LinearRegression(bounds=(-1, 1), target_bounds=(-1, 1), **stated)


def bayes(**stated: Any) -> learn.GaussianNB:
    return learn.GaussianNB(bounds=(-1, 1), classes=[0, 1], **stated)


def plan(model: PrivateEstimator) -> StatisticPlan:
    unit = None if model.rows_per_unit is None else [1, 2]
    return model.prepare(np.array([[0.5], [0.1]]), np.array([0, 1]), unit=unit).plan


def drawn(of: StatisticPlan, x: Any, y: Any, unit: Any = None, *, times: int = DRAWS, seed: int = 1) -> list[Any]:
    """Return released arrays of shape (..., times)."""
    rows = ArrayRows(*read_arrays({"x0": np.asarray(x), "target": np.asarray(y)}, unit), 1, source=SeededSource(0))
    return [np.asarray(one) for one in of.measure(ManyTimes(rows, times), SeededSource(seed))]  # type: ignore[arg-type]


def check_noise(model: PrivateEstimator, scales: Sequence[float]) -> None:
    """Accept the noise of each released array as Laplace noise of a scale."""
    released = drawn(plan(model), [np.nan], [0])
    assert len(released) == len(scales)
    p = [
        laws.kstest(one.ravel(), laws.laplace(scale=scale).cdf).pvalue
        for one, scale in zip(released, scales, strict=True)
    ]
    accept(min(1.0, min(p) * len(p)))


@pytest.mark.parametrize(
    ("stated", "factor"),
    [({}, 1), ({"rows_per_unit": 3}, 3), ({"budget": Budget(1.0, relation=Relation.REPLACE_ONE)}, 2)],
    ids=["one row", "three rows", "replaced"],
)
def test_moments_of_a_regression_have_the_noise_of_their_share(stated: dict[str, Any], factor: int) -> None:
    check_noise(regression(epsilon=0.01, **stated), [factor / 0.01 * scale for scale in SCALES])


def test_tables_of_naive_bayes_have_the_noise_of_their_share() -> None:
    check_noise(bayes(epsilon=0.01), [3 / 0.01 * reach for reach in (1, REACH, REACH**2 // 2)])


def test_half_the_noise_is_noticed() -> None:
    with pytest.raises(Refuted):
        check_noise(regression(epsilon=0.02), [scale / 0.01 for scale in SCALES])
    with pytest.raises(Refuted):
        check_noise(bayes(epsilon=0.02), [3 / 0.01 * reach for reach in (1, REACH, REACH**2 // 2)])


def audited(model: PrivateEstimator, rows: Any, labels: Any, units: Any = None) -> Finding:
    """Audit the released arrays with and without the rows of the last unit."""
    made = plan(model)
    kept = slice(None) if units is None else np.asarray(units) != units[-1]
    whole, without = (rows, labels, units), (rows[:-1], labels[:-1], None)
    if units is not None:
        without = (np.asarray(rows)[kept], np.asarray(labels)[kept], np.asarray(units)[kept])
    state = iter(range(10_000))

    def release(given: Any, count: int) -> np.ndarray:
        found = drawn(made, *given, times=count, seed=next(state))
        return np.concatenate([one.reshape(-1, count) for one in found]).T.astype(np.float64)

    return attack.audit(release, whole, without, 1.0, samples=4000, seed=3, many=True)


ROWS, LABELS = [0.3, -0.2, 0.9, 1.0], [0, 1, 1, 1]
BEYOND = [0.3, -0.2, 0.9, 40.0]
OWNERS = [1, 2, 3, *[4] * 12]
OWNED, OWNED_LABELS = [0.3, -0.2, 0.9, *[1.0] * 12], [0, 1, 1, *[1] * 12]
MODELS = pytest.mark.parametrize("make", [regression, bayes])


@MODELS
def test_an_audit_finds_no_more_than_was_charged(make: Any) -> None:
    for rows in (ROWS, BEYOND):
        found = audited(make(epsilon=1.0), rows, LABELS)
        assert found.verdict is not Verdict.VIOLATES
        assert found.lower_bound is not None
    assert audited(make(epsilon=1.0, rows_per_unit=1), OWNED, OWNED_LABELS, OWNERS).verdict is not Verdict.VIOLATES


@MODELS
def test_a_quarter_of_the_noise_is_found_by_the_audit(make: Any) -> None:
    assert audited(make(epsilon=4.0), ROWS, LABELS).verdict is Verdict.VIOLATES


@MODELS
def test_values_that_are_not_clamped_are_found_by_the_audit(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def unclamped(self: ArrayColumn, scale: ColumnSteps) -> Any:
        return np.rint(np.where(self.missing, 0.0, self.values) * float(1 / scale.step)).astype(np.int64) - scale.shift

    monkeypatch.setattr(ArrayColumn, "steps", unclamped)
    assert audited(make(epsilon=1.0), BEYOND, LABELS).verdict is Verdict.VIOLATES


@MODELS
def test_units_of_which_all_rows_are_counted_are_found_by_the_audit(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ArrayRows, "kept_rows", lambda self, needs: np.ones(self._length, dtype=bool))
    assert audited(make(epsilon=1.0, rows_per_unit=1), OWNED, OWNED_LABELS, OWNERS).verdict is Verdict.VIOLATES
