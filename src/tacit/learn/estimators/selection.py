"""Private selection of hyper-parameters: the best of a random number of fits, for one charge.

    search = tacit.learn.PrivateSearch(LogisticRegression(bounds=(0, 1), classes=[0, 1]), {"clip": [1.0, 4.0]},
                                       epsilon=2.0, budget=budget).fit(X, y)
    search.best_estimator_, search.best_params_, search.best_score_, search.cost, search.card

Promise (neighbours: as the budget says): one run draws a candidate uniformly, measures its plan, and releases the noisy
score of the model; a row adds between 0 and 1 to the score, so a unit moves it by at most `rows_per_unit`. The number
of runs K is drawn from the logarithmic law P[K = k] ~ (1 - stop)^k / k, independently of the rows, and only the run
with the greatest noisy score is released (of equal ones the first, which is as likely to be any of them). Let R bound
the Rényi divergence of one run. By theorem 2 of Papernot, Steinke 2022 ("Hyperparameter Tuning with Renyi Differential
Privacy"; truncated negative binomial law of shape 0) that of the whole is, for every order b >= 1, at most

    R'(a) = R(a) + (1 - 1/b) R(b) + ln(1 / stop) / b + ln E[K] / (a - 1),

and so 2 epsilon for runs that are epsilon-differentially private (corollary 4 there). Runs without delta have Laplace
noise and cost half of the search's epsilon each; with `delta` they have Gaussian noise and the greatest rho for which
R' is (epsilon, delta). The event is `Selected`; that each run keeps to its part is checked before the charge.

K must stay secret, and with it how long the search took: its plan is for callers who may see the rows' running time,
and a server does not train it (`is_for_servers`). No padding hides K, whose law has no greatest value: stopping at one
would add the probability of more runs to delta.

A model's output for one row may depend on the other rows in its last bits, where a library for matrix products chooses
another order of additions for another number of rows; that moves the score only of rows on the boundary of two classes.

`sklearn.model_selection.GridSearchCV` over a private estimator pays for every fit in full from the estimator's budget,
and compares exact scores of private rows, which no budget counts; without a budget `fit` refuses to run inside of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils.validation import check_is_fitted

from tacit.accounting import epsilon as epsilon_at
from tacit.accounting.measures import approximate_zcdp, pure_epsilon
from tacit.accounting.numerics import bisect
from tacit.learn.estimators.base import PrivateClassifier, PrivateEstimator, PrivateRegressor
from tacit.learn.estimators.model_plan import ModelPlan, plan_of, unit_of
from tacit.ledger import Budget
from tacit.measuring.allocation import MARGIN, Allocation, Noise
from tacit.mechanisms.mechanism import Interval
from tacit.mechanisms.randomness import SYSTEM, RandomSource, bits
from tacit.mechanisms.simulation import SeededSource, mark_simulated
from tacit.privacy.errors import EmptyInput, InvalidInput, OutOfRange, TooLarge, WrongType
from tacit.privacy.events import Composed, Converted, Event, Pure, Selected, ZeroConcentrated
from tacit.privacy.numbers import inside_unit_interval, positive, rounded_down
from tacit.privacy.tables import Kind
from tacit.privacy.units import Relation
from tacit.stats.releases import PreparedStatistic
from tacit.stats.rows import ColumnSteps, Cut, NoRows, RowMatrix, Rows
from tacit.stats.statistic import Noisy, StatisticPlan, bytes_max, noise_in_words

CANDIDATES_MAX: Final = 1000
RUNS_MAX: Final = 10_000
"""The greatest expected number of runs."""
SHAPE: Final = 0.0
RHO_MIN: Final = 1e-9
"""The least rho of a run; noise of more than 20,000 times what a unit contributes."""
SCORE: Final = 2**10
"""The integer that stands for the score of 1 of a row."""


@dataclass(frozen=True)
class RunShares:
    """What each run of a search may cost, its fit and its score: an epsilon each, or a rho each."""

    fit: dict[str, float]
    score: dict[str, float]
    stop: int
    """The stopping parameter of the law of the number of runs is 1 / stop."""
    delta: float | None
    """The delta at which the search is counted; None for runs with Laplace noise."""

    @classmethod
    def of(cls, epsilon: object, delta: float | None, share: Fraction, stop: int) -> RunShares:
        """Divide a search into runs; `share` is that of the score."""
        whole = positive("epsilon", epsilon)
        if delta is None:
            name, run = "epsilon", whole / Fraction(2 + SHAPE) * Fraction(MARGIN)
        else:
            name, run = "rho", Fraction(rho_of_run(float(whole), delta, stop))
        score = rounded_down(run * share)
        return cls({name: rounded_down(run - Fraction(score))}, {name: score}, stop, delta)

    def event(self, relation: Relation) -> Event:
        """Return the event of the search."""
        (name, fit), (score,) = next(iter(self.fit.items())), self.score.values()
        if name == "epsilon":
            return Selected(Pure(_up(fit, score), under=relation), SHAPE, 1 / self.stop)
        selected = Selected(ZeroConcentrated(_up(fit, score), under=relation), SHAPE, 1 / self.stop)
        return Converted(selected, self.delta or 0.0)

    def require(self, run: Event) -> None:
        """Raise unless a run costs no more than its part."""
        most = _up(*self.fit.values(), *self.score.values())
        cost, delta = (pure_epsilon(run), 0.0) if "epsilon" in self.fit else approximate_zcdp(run)
        if not (cost <= most and delta == 0):
            raise AssertionError(f"a run of a search costs {cost:g}, and its part is {most:g}")


def _up(*parts: float) -> float:
    return math.nextafter(math.fsum(parts), math.inf)


@dataclass(frozen=True)
class BestOfRuns(StatisticPlan):
    """A random number of runs of randomly drawn plans, of which the best by a noisy score is released."""

    plans: tuple[StatisticPlan, ...]
    shares: RunShares
    noise: Noise
    """The noise of the score, in steps."""
    models: tuple[PrivateEstimator, ...] = field(repr=False, compare=False)
    """The estimator of each plan, which predicts once its fitted attributes are set."""
    plan: StatisticPlan | None = None
    """The plan whose arrays were released; None until then."""

    @property
    def event(self) -> Event:
        return self.shares.event(self.noise.relation)

    @property
    def lines(self) -> tuple[str, ...]:
        mean = (self.shares.stop - 1) / math.log(self.shares.stop)
        lines = (
            f"the best of a random number of runs, about {mean:.0f} on average, each of one of {len(self.plans)} "
            "candidates; only the best is released, with its candidate and score, and the number of runs stays secret",
            f"score, the sum over rows of a number between 0 and 1: {noise_in_words(self.noise, 1 / SCORE)}",
        )
        return lines if self.plan is None else (*lines, *self.plan.lines)

    @property
    def coverage(self) -> tuple[str, ...]:
        return (self.plan or self.plans[0]).coverage

    @property
    def learned_bounds(self) -> dict[str, list[float]]:
        return {} if self.plan is None else self.plan.learned_bounds

    def known(self, noisy: Noisy) -> StatisticPlan:
        return replace(self, plan=self.plans[int(noisy[0][0])].known(noisy[1:]))

    def measure(self, rows: Rows, source: RandomSource = SYSTEM) -> Noisy:
        best: tuple[int, int, Noisy] | None = None
        for _ in range(draw_runs(self.shares.stop, source)):
            place = below(len(self.plans), source)
            noisy = self.plans[place].measure(rows, source)
            score = int(self.noise.release(self.exact_score(place, noisy, rows), source=source))
            if best is None or score > best[0]:
                best = score, place, noisy
        assert best is not None, "there is at least one run"
        found = np.array([best[1], best[0]], dtype=np.int64)
        return (mark_simulated(found) if source.simulated else found, *best[2])

    def rehearse(self, per_unit: int) -> Noisy:
        """Rehearse every candidate, and return the arrays of the one with the most bytes."""
        rehearsed = [plan.rehearse(per_unit) for plan in self.plans]
        rows, source = NoRows(per_unit), SeededSource(0)
        self.noise.release(self.exact_score(0, self.plans[0].measure(rows, source), rows), source=source)
        most = np.full(2, np.iinfo(np.int64).min)
        return (most, *max(rehearsed, key=bytes_max))

    def exact_score(self, place: int, noisy: Noisy, rows: Rows) -> int:
        """Return the score of the model that a run measured, exact and private, in steps."""
        known = self.plans[place].known(noisy)
        plan = plan_of(known)
        scales = [one for one in (*plan.features.columns, plan.target) if isinstance(one, ColumnSteps)]
        cuts = [one for one in (*plan.features.columns, plan.target) if isinstance(one, Cut)]
        read, model = rows.matrix(scales, cuts, plan.needs), clone(self.models[place])
        model._set_fitted(plan.features, known.value(noisy), None)
        if isinstance(plan.target, Cut):
            predicted = _cells(model.predict(RowMatrix(read.steps, read.cells[:, :-1])), plan.target)
            return SCORE * int((predicted == read.cells[:, -1]).sum())
        assert plan.target is not None, "a search is over classifiers and regressors"
        guessed = np.asarray(model.predict(RowMatrix(read.steps[:, :-1], read.cells)))
        truth = read.steps[:, -1] * float(plan.target.step) + plan.target.centre
        errors = np.abs(guessed - truth) / unit_of(plan.target)
        return int(np.floor(SCORE * (1.0 - np.where(errors < 1, errors, 1.0))).astype(np.int64).sum())

    def value(self, noisy: Noisy) -> dict[str, Any]:
        assert self.plan is not None, "the plan is that of an answer"
        found: dict[str, Any] = self.plan.value(noisy[1:])
        return found

    def warnings(self, noisy: Noisy) -> tuple[str, ...]:
        return () if self.plan is None else self.plan.warnings(noisy[1:])

    def interval(self, noisy: Noisy, level: float) -> Interval | None:
        return None


def _cells(predicted: NDArray[Any], target: Cut) -> NDArray[np.int64]:
    """Return the cell of each predicted class."""
    listed = np.array(target.values).tolist()
    different, places = np.unique(predicted, return_inverse=True)
    return np.array([listed.index(one) for one in different.tolist()], dtype=np.int64)[places]


@lru_cache(maxsize=64)
def rho_of_run(epsilon: float, delta: float, stop: int) -> float:
    """Return the greatest rho of a run, about, for which a search is (epsilon, delta)-differentially private."""

    def fits(rho: float) -> bool:
        return epsilon_at(Selected(ZeroConcentrated(rho), SHAPE, 1 / stop), delta).upper <= epsilon

    high = 1.0
    while fits(high):
        high *= 2
    if not fits(RHO_MIN):
        raise OutOfRange(
            f"at delta {delta:g} a search with so many runs costs more than epsilon {epsilon:g}, whatever its noise; "
            "state a smaller mean_runs or a larger epsilon, or leave delta= out",
            name="delta",
        )
    return bisect(RHO_MIN, high, fits, 2.0**-20)[0] * MARGIN


class PrivateSearch(PrivateEstimator):
    """The best of several settings of a private `estimator`, a classifier or regressor, by a noisy score, paid once.

    `candidates` is a grid as scikit-learn's (a mapping from parameters to lists) or a list of mappings. `epsilon` and
    `delta` are what the whole search costs; of each run `score_share` pays for the score: the number of rows that are
    predicted rightly, or the sum of 1 - |error| over half of the target's bounds. `mean_runs` is about the expected
    number of runs, by default twice the number of candidates.
    """

    needs_target = True
    is_for_servers = False
    rows_per_unit = None

    def __init__(
        self,
        estimator: Any,
        candidates: Any,
        *,
        epsilon: Any = None,
        delta: Any = None,
        budget: Any = None,
        mean_runs: Any = None,
        score_share: Any = 0.1,
    ) -> None:
        self.estimator = estimator
        self.candidates = candidates
        self.epsilon = epsilon
        self.delta = delta
        self.budget = budget
        self.mean_runs = mean_runs
        self.score_share = score_share

    @property
    def _searched(self) -> PrivateEstimator:
        """The estimator, or an error about it."""
        if not isinstance(self.estimator, PrivateClassifier | PrivateRegressor):
            raise WrongType("a search is over a private classifier or regressor of tacit.learn", name="estimator")
        for name in ("budget", "epsilon", "delta"):
            if getattr(self.estimator, name) is not None:
                raise InvalidInput(f"the search pays; leave {name}= of its estimator out", name=name)
        return self.estimator

    @property
    def _kind_of_target(self) -> Kind | None:
        return self._searched._kind_of_target

    def _declared_kinds(self, columns: Mapping[str, Any]) -> dict[str, Kind]:
        return self._searched._declared_kinds(columns)

    def _checked_target(self, y: Any, length: int) -> Any:
        return self._searched._checked_target(y, length)

    def _delta_at_most(self, budget: Budget) -> float | None:
        """Return the stated delta; runs of a search that states none have Laplace noise."""
        return self._stated_delta

    def _prepare(
        self, columns: Mapping[str, Any], target: str | None, options: dict[str, Any], delta: float | None
    ) -> PreparedStatistic:
        candidates = self._listed_candidates()
        mean = float(positive("mean_runs", 2 * len(candidates) if self.mean_runs is None else self.mean_runs))
        share = Fraction(inside_unit_interval("score_share", self.score_share))
        options = self._with_cost(options)
        shares = RunShares.of(options.pop("epsilon", None), delta, share, stop_for(mean))
        models = [clone(self.estimator).set_params(**one) for one in candidates]
        prepared = [model._prepare(columns, target, {**options, **shares.fit}, 0.0) for model in models]
        relation = prepared[0].budget.cap.relation
        allocation = Allocation.of(Budget(1.0, relation=relation), **shares.score, rows_per_unit=prepared[0].per_unit)
        noise = allocation.noise(SCORE)
        for one in prepared:  # raises what is wrong with a candidate before the charge
            shares.require(Composed((one.plan.event, noise.event)))
            one.statistic.check()
        plans = tuple(one.plan for one in prepared)
        label = f"best of {len(candidates)} settings of {type(self.estimator).__name__}"
        plan = BestOfRuns(label, plans, shares, noise, tuple(models))
        found: PreparedStatistic = replace(prepared[0], plan=plan)
        return found

    def _plan(self, inputs: Any, columns: Any) -> ModelPlan:
        raise InvalidInput("a search is planned by its candidates: call prepare or fit", name="estimator")

    def _take_prepared(self, prepared: PreparedStatistic, names: Sequence[str] | None, *, is_alone: bool) -> Self:
        super()._take_prepared(prepared, names, is_alone=is_alone)
        place, score = (int(one) for one in self.answer_.noisy[0])
        self.best_params_ = dict(self._listed_candidates()[place])
        self.best_score_ = score / SCORE
        best = clone(self.estimator).set_params(**self.best_params_, epsilon=self.epsilon, delta=self.delta)
        best._set_fitted(self.features_, self.answer_.value, names)
        best.cost_, best.card_ = self.cost_, self.card_
        self.best_estimator_ = best
        return self

    def to_document(self) -> dict[str, Any]:
        """Return the best model as a document, with the cost and the card of the search."""
        check_is_fitted(self)
        found: dict[str, Any] = self.best_estimator_.to_document()
        return found

    def predict(self, X: Any) -> Any:
        """Return the predictions of the best model."""
        check_is_fitted(self)
        return self.best_estimator_.predict(X)

    def score(self, X: Any, y: Any) -> float:
        """Return the score of the best model on rows that may be seen."""
        check_is_fitted(self)
        return float(self.best_estimator_.score(X, y))

    def _listed_candidates(self) -> list[Mapping[str, Any]]:
        stated = self.candidates
        if not isinstance(stated, Mapping) and not (
            isinstance(stated, Sequence) and all(isinstance(one, Mapping) for one in stated)
        ):
            raise WrongType(
                "candidates is a mapping from parameters to lists, or a list of mappings", name="candidates"
            )
        grid = _grid_of(stated) if isinstance(stated, Mapping) else stated
        if not len(grid):
            raise EmptyInput("a search needs at least one candidate", name="candidates")
        if len(grid) > CANDIDATES_MAX:
            raise TooLarge(f"a search has at most {CANDIDATES_MAX:,} candidates", name="candidates")
        found = list(grid)
        known = self._searched.get_params()
        fixed = ("epsilon", "delta", "budget", "rows_per_unit", "classes", "target_bounds")
        for name in {name for one in found for name in one}:
            if name not in known or name in fixed:
                raise InvalidInput(f"{name} is no parameter that a search can choose", name="candidates", value=name)
        return found


def _grid_of(stated: Mapping[Any, Any]) -> ParameterGrid:
    """Return a grid, or raise an error about the list of a parameter."""
    for name, values in stated.items():
        is_list = isinstance(values, Sequence | np.ndarray) and not isinstance(values, str)
        if not isinstance(name, str) or not is_list or getattr(values, "ndim", 1) != 1:
            raise WrongType(f"candidates has no list of values for {name}", name="candidates", value=values)
        if not len(values):
            raise EmptyInput(f"candidates has an empty list for {name}; state at least one value", name="candidates")
    return ParameterGrid(dict(stated))


def stop_for(mean: float) -> int:
    """Return m of the stopping parameter 1 / m, the least with an expected number of runs of `mean` or more."""
    if mean > RUNS_MAX:
        raise TooLarge(f"a search has at most {RUNS_MAX:,} expected runs", name="mean_runs", value=mean)
    found = 2
    while (found - 1) / math.log(found) < mean:
        found += 1
    return found


def draw_runs(stop: int, source: RandomSource = SYSTEM) -> int:
    """Return a number of runs from P[k] ~ (1 - 1/stop)^k / k, exactly: a geometric number, accepted with 1 / k."""
    while True:
        runs = 1
        while below(stop, source):
            runs += 1
        if not below(runs, source):
            return runs


def below(limit: int, source: RandomSource = SYSTEM) -> int:
    """Return a uniform whole number from 0 to limit - 1."""
    width = (limit - 1).bit_length()
    while (found := bits(source, width) if width else 0) >= limit:
        pass
    return found
