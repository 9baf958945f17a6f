"""The noise of an answer is the noise that was charged for: counts, sums and the selection of groups.

False alarms: one in a million for each check; seeds are fixed. Half the noise must be noticed in the same check.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from tacit.accounting.closed_forms import sigma_for_rho
from tacit.mechanisms import Gaussian, Laplace
from tacit.mechanisms.simulation import SeededSource
from tacit.privacy.bounds import Bounds
from tacit.privacy.tables import Column, Kind, Limits, Schema, Table
from tacit.privacy.units import Relation, Unit
from tacit.query import BudgetTerms, Plan, PlanSettings, Target
from tacit.query.run import add_noise
from tests.statistical.evidence import FALSE_ALARM, Refuted, accept, binomial_p, chi_square_p
from tests.statistical.exact_laws import laplace_mass
from tests.support.plans import plan_sql

GROUPS = 5_000
RELEASES = 8
TABLE = Table(
    "visits",
    (
        Column("uid", Kind.INTEGER),
        Column("ward", Kind.INTEGER, Bounds(1, GROUPS)),
        Column("age", Kind.INTEGER, Bounds(0, 30)),
        Column("kg", Kind.REAL, Bounds(-1.5, 2.0)),
        Column("s", Kind.TEXT),
    ),
    Unit("uid"),
)
SCHEMA = Schema([TABLE])
CASES = [
    ("COUNT(*)", 1, 2, Relation.ADD_REMOVE),
    ("COUNT(*)", 3, 4, Relation.REPLACE_ONE),
    ("COUNT(DISTINCT uid)", 2, 1, Relation.ADD_REMOVE),
    ("COUNT(DISTINCT s)", 1, 3, Relation.ADD_REMOVE),
    ("SUM(age)", 1, 1, Relation.ADD_REMOVE),
    ("SUM(age)", 2, 1, Relation.REPLACE_ONE),
]


def planned(value: str, groups: int, rows: int, relation: Relation, target: Target, delta: float = 0.0) -> Plan:
    settings = PlanSettings(Limits(groups_per_unit=groups, rows_per_group=rows))
    return plan_sql(
        f"SELECT ward, {value} FROM visits GROUP BY ward", SCHEMA, target, BudgetTerms(relation, delta), settings
    )


def drawn(plan: Plan, seed: int) -> NDArray[np.int64]:
    """Return what was added to the numbers of all groups, over several releases."""
    exact = np.arange(GROUPS, dtype=np.int64) * 3 - 1_000
    found: list[dict[str, Any]] = [{"k0": np.arange(1, GROUPS + 1), "m0": exact}]
    noise = [add_noise(plan, found, SeededSource(seed + one)).measures[0] - exact for one in range(RELEASES)]
    return np.concatenate(noise)


def sensitivity(value: str, groups: int, rows: int, relation: Relation) -> int:
    """Return the L1 sensitivity by hand: what a unit brings to a group, times its groups, twice for an exchange."""
    brought = {"COUNT(*)": rows, "COUNT(DISTINCT uid)": 1, "COUNT(DISTINCT s)": rows, "SUM(age)": 30 * rows}[value]
    return brought * groups * (1 if relation is Relation.ADD_REMOVE else 2)


def accept_laplace(noise: NDArray[np.int64], scale: Fraction) -> None:
    """Accept integers as discrete Laplace noise of a scale, by their counts and by their variance."""
    reach = int(12 * scale) + 1
    lattice = np.arange(-reach, reach + 1)
    masses = laplace_mass(lattice, scale)
    counts = np.bincount(np.clip(noise, -reach, reach) + reach, minlength=2 * reach + 1)
    masses[[0, -1]] += (1 - masses.sum()) / 2
    accept(chi_square_p(counts, masses))
    law = stats.laplace(scale=float(scale))
    _accept_variance(noise, law.var(), law.stats("k") + 3)


def accept_normal(noise: NDArray[np.int64], deviation: float) -> None:
    """Accept integers as rounded Gaussian noise, by their counts and by their variance."""
    reach = int(6 * deviation) + 1
    edges = np.arange(-reach, reach + 2) - 0.5
    masses = np.diff(stats.norm.cdf(edges / deviation))
    masses[[0, -1]] += (1 - masses.sum()) / 2
    counts = np.bincount(np.clip(noise, -reach, reach) + reach, minlength=2 * reach + 1)
    accept(chi_square_p(counts, masses))
    _accept_variance(noise, deviation**2 + 1 / 12, 3.0)


def _accept_variance(noise: NDArray[np.int64], variance: float, kurtosis: float) -> None:
    """Accept the variance of a sample, by the normal law that it nears; scales below 3 are left to the counts."""
    if variance < 9:
        return
    spread = variance * np.sqrt((float(kurtosis) - 1) / noise.size)
    accept(2 * float(stats.norm.sf(abs(float(np.mean(noise.astype(np.float64) ** 2)) - variance) / spread)))


@pytest.mark.parametrize(("value", "groups", "rows", "relation"), CASES)
@pytest.mark.parametrize("epsilon", [0.25, 2.0])
def test_laplace_noise_is_what_was_charged(
    value: str, groups: int, rows: int, relation: Relation, epsilon: float
) -> None:
    plan = planned(value, groups, rows, relation, Target(epsilon=epsilon))
    assert isinstance(plan.price.noises[0], Laplace)
    scale = Fraction(sensitivity(value, groups, rows, relation)) / Fraction(epsilon)
    accept_laplace(drawn(plan, 100), scale)
    half = replace(plan.price.noises[0], sensitivity=Fraction(plan.price.noises[0].sensitivity) / 2)
    with pytest.raises(Refuted):
        accept_laplace(drawn(replace(plan, price=replace(plan.price, noises=(half,))), 100), scale)


@pytest.mark.parametrize(("value", "groups", "rows", "relation"), CASES)
@pytest.mark.parametrize("rho", [0.01, 0.5])
def test_gaussian_noise_is_what_was_charged(value: str, groups: int, rows: int, relation: Relation, rho: float) -> None:
    plan = planned(value, groups, rows, relation, Target(rho=rho), delta=1e-6)
    noise = plan.price.noises[0]
    assert isinstance(noise, Gaussian)
    far = sensitivity(value, groups, rows, relation) / groups * np.sqrt(groups)
    accept_normal(drawn(plan, 200), float(sigma_for_rho(rho)) * far)
    half = replace(noise, sensitivity=Fraction(noise.sensitivity) / 2)
    with pytest.raises(Refuted):
        accept_normal(
            drawn(replace(plan, price=replace(plan.price, noises=(half,))), 200), float(sigma_for_rho(rho)) * far
        )


def test_a_sum_of_reals_has_noise_in_its_own_steps() -> None:
    plan = planned("SUM(kg)", 1, 1, Relation.ADD_REMOVE, Target(epsilon=1.0))
    measure = plan.measures[0]
    far = plan.bounding.l1(measure) * measure.step
    assert far >= 2
    assert far - 2 < Fraction(1, 10_000)
    noise = drawn(plan, 300).astype(np.float64) * float(measure.step)
    accept(stats.kstest(noise, stats.laplace(scale=2.0).cdf).pvalue)
    with pytest.raises(AssertionError):
        accept(stats.kstest(noise / 2, stats.laplace(scale=2.0).cdf).pvalue)


def test_several_aggregates_have_noise_that_is_independent() -> None:
    plan = planned("COUNT(*), SUM(age)", 1, 1, Relation.ADD_REMOVE, Target(epsilon=1.0))
    zeros = np.zeros(GROUPS, dtype=np.int64)
    found: list[dict[str, Any]] = [{"k0": np.arange(1, GROUPS + 1), "m0": zeros, "m1": zeros}]
    one, other = add_noise(plan, found, SeededSource(400)).measures
    assert abs(np.corrcoef(one, other)[0, 1]) < stats.norm.isf(FALSE_ALARM) / np.sqrt(GROUPS)
    assert abs(np.corrcoef(one[1:], one[:-1])[0, 1]) < stats.norm.isf(FALSE_ALARM) / np.sqrt(GROUPS)


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("delta", [1e-2, 1e-5])
def test_groups_are_shown_as_often_as_was_charged(groups: int, delta: float) -> None:
    settings = PlanSettings(Limits(groups_per_unit=groups, rows_per_group=1))
    sql = "SELECT s, COUNT(*) FROM visits GROUP BY s"
    plan = plan_sql(sql, SCHEMA, Target(epsilon=2.0), BudgetTerms(Relation.ADD_REMOVE, delta), settings)
    selection = plan.price.selection
    assert selection is not None
    assert float(selection.delta) == pytest.approx(delta / groups)
    most = 2 * selection.threshold
    for count in {1, 2, selection.threshold // 2 + 1, selection.threshold, selection.threshold + 2, most}:
        found: list[dict[str, Any]] = [
            {"k0": [str(one) for one in range(GROUPS)], "m0": [count] * GROUPS, "units": [count] * GROUPS}
        ]
        shown = add_noise(plan, found, SeededSource(500 + count)).groups
        accept(binomial_p(shown, GROUPS, selection.chance(count)))
    wrong = replace(selection, epsilon=float(selection.epsilon) * 2)
    assert wrong.chance(selection.threshold) != selection.chance(selection.threshold)
    found = [{"k0": [str(one) for one in range(GROUPS)], "m0": [3] * GROUPS, "units": [selection.threshold] * GROUPS}]
    shown = add_noise(replace(plan, price=replace(plan.price, selection=wrong)), found, SeededSource(600)).groups
    with pytest.raises(Refuted):
        accept(binomial_p(shown, GROUPS, selection.chance(selection.threshold)))
