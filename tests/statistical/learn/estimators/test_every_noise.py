"""Every estimator adds the noise that its event states, to each array that it measures, and its event is the price.

The false-alarm rate of each check is 1e-6 over the choice of seeds, which are fixed (`evidence`): sums of squares of
Gaussian noise, and of absolute values of Laplace noise, have a chi-square law. That sensitivities are right, and that
nothing leaves without noise, is tested with neighbouring rows (`tests/property/learn`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats as laws

from tacit import Budget
from tacit.learn import PrivateSearch
from tacit.learn.estimators.selection import BestOfRuns
from tacit.privacy.units import Relation
from tacit.stats.statistic import StatisticPlan
from tests.statistical.evidence import Refuted, accept
from tests.support.estimators import EXAMPLES
from tests.support.transcripts import Measured, Row, charged, plan_of, record, rows_of

RUNS = 100
NAMES = sorted(EXAMPLES)
SMALL: dict[str, dict[str, Any]] = {
    "LogisticRegression": {"max_iter": 3},
    "HistGradientBoostingClassifier": {"max_iter": 2},
    "RandomForestClassifier": {"n_estimators": 2},
    "KMeans": {"max_iter": 2},
}
ROWS: list[list[Row]] = [
    [(1.0, 2.0, "x", "high", 3.0)],
    [(-4.0, None, "y", "low", 0.0)],
    [(0.0, 5.0, "z", "low", -9.0)],
]
LAWS = pytest.mark.parametrize("delta", [0.0, 1e-3], ids=["without delta", "with delta"])


def planned(name: str, delta: float) -> StatisticPlan:
    """Return a plan with noise of many steps, so that its law is nearly a continuous one."""
    return plan_of(name, Relation.ADD_REMOVE, 2, delta, 0.02, **SMALL.get(name, {}))


def seen(plan: StatisticPlan, name: str) -> list[list[Measured]]:
    """Return the measurements of many seeded fits."""
    rows = rows_of(name, ROWS, 2)
    return [record(plan, rows, seed)[0] for seed in range(RUNS)]


def check(plan: StatisticPlan, fits: Sequence[Sequence[Measured]]) -> None:
    """Refute noises that are not those of the plan's event, one after another."""
    for fit in fits:
        if Counter(one.mechanism.event for one in fit) != charged(plan):
            raise Refuted("the noises that were added are not those that were charged")
    p = [law_p(place) for place in zip(*fits, strict=True)]
    accept(min(1.0, min(p) * len(p)), "the noise that was charged")


def law_p(fits: Sequence[Measured]) -> float:
    """Return how likely noises of one measurement are that deviate this much from those that its event states."""
    mechanism = fits[0].mechanism
    noise: NDArray[np.float64] = np.concatenate([(one.noisy - one.exact).ravel() for one in fits]).astype(np.float64)
    noise /= float(mechanism.sensitivity)
    if hasattr(mechanism.event, "sigma"):
        total, freedom = float(np.square(noise / mechanism.event.sigma).sum()), len(noise)
    else:
        total, freedom = 2 * mechanism.event.epsilon * float(np.abs(noise).sum()), 2 * len(noise)
    below = float(laws.chi2.cdf(total, freedom))
    return min(1.0, 2 * min(below, float(laws.chi2.sf(total, freedom))))


@LAWS
@pytest.mark.parametrize("name", NAMES)
def test_each_measurement_has_the_noise_that_was_charged_and_half_of_it_is_noticed(name: str, delta: float) -> None:
    plan = planned(name, delta)
    fits = seen(plan, name)
    check(plan, fits)
    for place in {0, len(fits[0]) - 1}:
        halved = [[*fit[:place], half(fit[place]), *fit[place + 1 :]] for fit in fits]
        with pytest.raises(Refuted):
            check(plan, halved)
        with pytest.raises(Refuted):
            check(plan, [[*fit[:place], *fit[place + 1 :]] for fit in fits])  # one that was forgotten


def half(one: Measured) -> Measured:
    return Measured(one.mechanism, one.exact, one.exact + np.asarray(one.noisy - one.exact) // 2)


@LAWS
@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("name", NAMES)
def test_the_event_of_a_fit_costs_what_was_stated(name: str, relation: Relation, delta: float) -> None:
    plan = plan_of(name, relation, 3, delta, 0.7, **SMALL.get(name, {}))
    cost = Budget(1.0, delta, relation=relation).preview(plan.event)
    assert 0.7 * (1 - 1e-6) < cost.epsilon <= 0.7
    assert cost.delta <= delta / 10


@LAWS
def test_each_run_of_a_search_has_the_noise_of_its_fit_and_of_its_score(delta: float) -> None:
    """Runs are found in the record by their scores, the last measurement of each; half of any noise is noticed."""
    example = EXAMPLES["DecisionTreeClassifier"]
    search = PrivateSearch(example.make(**example.stated, rows_per_unit=2), {"max_depth": [1, 2]}, mean_runs=8)
    search.set_params(epsilon=0.1, delta=delta or None)
    plan = search.prepare(example.X.head(2), example.y[:2], unit=[1, 2]).plan
    assert isinstance(plan, BestOfRuns)
    rows = rows_of("DecisionTreeClassifier", ROWS, 2)
    measured = [one for seed in range(RUNS // 4) for one in record(plan, rows, seed)[0]]
    places = [place for place, one in enumerate(measured) if one.mechanism == plan.noise]
    runs = [measured[start:end] for start, end in zip([0, *(at + 1 for at in places)], places, strict=False)]
    stated = [charged(one) for one in plan.plans]
    assert len(runs) > RUNS // 2
    assert all(Counter(one.mechanism.event for one in run) in stated for run in runs)
    kinds = {one.mechanism: [other for other in measured if other.mechanism == one.mechanism] for one in measured}
    assert len(kinds) == 4  # of the levels of either tree, of the leaves of both, and of the score
    for same in kinds.values():
        accept(min(1.0, law_p(same) * len(kinds)), "the noise that was charged")
        with pytest.raises(Refuted):
            accept(min(1.0, law_p([half(one) for one in same]) * len(kinds)))
