"""Private selection of hyper-parameters: the best of a random number of fits, for one charge.

    search = tacit.learn.PrivateSearch(LogisticRegression(bounds=(0, 1), classes=[0, 1]), {"clip": [1.0, 4.0]},
                                       epsilon=2.0, budget=budget).fit(X, y)
    search.best_estimator_, search.best_params_, search.best_score_, search.cost

Promise (neighbours: as the budget says): one run draws a candidate uniformly, fits it, and releases the noisy number of
rows that it predicts rightly, together epsilon-differentially private (basic composition, enforced by a budget of the
run's own). The number of runs K is drawn from the logarithmic law P[K = k] ~ (1 - stop)^k / k, which is independent of
the rows, and the run with the greatest noisy number is released with that number. It is 2 epsilon-differentially
private, however many runs are expected (Papernot, Steinke 2022, theorem 2 and its pure form, with the truncated
negative binomial law of shape 0): the event `Selected`. K must stay secret: whoever can time a search learns about it.

`sklearn.model_selection.GridSearchCV` over a private estimator pays for every fit in full from the estimator's budget,
and compares exact scores of private rows, which no budget counts; without a budget `fit` refuses to run inside of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Final, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils.validation import check_is_fitted

from tacit.accounting.conversions import Cost
from tacit.learn.estimators.base import PrivateClassifier, columns_of
from tacit.ledger import Budget
from tacit.mechanisms.randomness import SYSTEM, RandomSource, bits
from tacit.privacy.errors import EmptyInput, InvalidInput, NotFinite, TooLarge, WrongType
from tacit.privacy.events import Pure, Selected
from tacit.privacy.numbers import inside_unit_interval, positive, rounded_down
from tacit.stats import moments
from tacit.stats.array_sums import ArrayColumn

CANDIDATES_MAX: Final = 1000
RUNS_MAX: Final = 10_000
"""The greatest expected number of runs."""
SHAPE: Final = 0.0


class PrivateSearch(BaseEstimator):  # type: ignore[misc]
    """The best of several settings of a private classifier by noisy accuracy, paid once.

    `candidates` is a grid as scikit-learn's (a mapping from parameters to lists) or a list of mappings. `epsilon` is
    what the whole search costs; half of it is a run, of which `score_share` pays for the score. `mean_runs` is about
    the expected number of runs, by default twice the number of candidates. Fits have Laplace noise.
    """

    def __init__(
        self,
        estimator: Any,
        candidates: Any,
        *,
        epsilon: Any = 1.0,
        budget: Any = None,
        mean_runs: Any = None,
        score_share: Any = 0.1,
    ) -> None:
        self.estimator = estimator
        self.candidates = candidates
        self.epsilon = epsilon
        self.budget = budget
        self.mean_runs = mean_runs
        self.score_share = score_share

    def fit(self, X: Any, y: Any, *, unit: Any = None) -> Self:
        """Charge the search, run it on the rows of X and y, and keep the best model."""
        return self._fit(X, y, unit, SYSTEM)

    def _fit(self, X: Any, y: Any, unit: Any, source: RandomSource) -> Self:
        candidates, run = self._candidates(), self._run_epsilon()
        budget = Budget(self.epsilon) if self.budget is None else self.budget
        if not isinstance(budget, Budget):
            raise WrongType("a search is paid from a budget: budget=tacit.Budget(1.0)", name="budget")
        stop = stop_for(float(positive("mean_runs", self.mean_runs or 2 * len(candidates))))
        for name, values in columns_of(X).items():
            if ArrayColumn(name, values).missing.any():
                raise NotFinite(f"{name} has missing values; leave such rows out before a search", name=name)
        relation = budget.cap.relation
        for one in candidates:  # raises what is wrong with an argument before the charge
            self._model(one, run, Budget(run, relation=relation)).prepare(X, y, unit=unit).preview()
        event = Selected(Pure(run, under=relation), SHAPE, 1 / stop)
        permit = budget.charge(event, f"search of {len(candidates)} candidates")
        best: tuple[float, Any, Mapping[str, Any]] | None = None
        for _ in range(draw_runs(stop, source)):
            chosen = candidates[below(len(candidates), source)]
            paying = Budget(run, relation=relation)
            model = self._model(chosen, run, paying).fit(X, y, unit=unit)
            score = self._score(model, X, y, unit, paying)
            if best is None or score > best[0]:
                best = score, model, chosen
        assert best is not None, "there is at least one run"
        self.best_score_, self.best_estimator_, self.best_params_ = best
        self.cost_, self.classes_ = permit.cost, self.best_estimator_.classes_
        return self

    @property
    def cost(self) -> Cost:
        """What the search was charged."""
        check_is_fitted(self)
        return self.cost_

    def predict(self, X: Any) -> Any:
        """Return the predictions of the best model."""
        check_is_fitted(self)
        return self.best_estimator_.predict(X)

    def score(self, X: Any, y: Any) -> float:
        """Return the accuracy of the best model on rows that may be seen."""
        check_is_fitted(self)
        return float(self.best_estimator_.score(X, y))

    def _candidates(self) -> list[Mapping[str, Any]]:
        if not isinstance(self.estimator, PrivateClassifier):
            raise WrongType("a search is over a private classifier of tacit.learn", name="estimator")
        if self.estimator.budget is not None or self.estimator.delta is not None:
            raise InvalidInput("the search pays; leave budget= and delta= of its estimator out", name="budget")
        stated = self.candidates
        if not isinstance(stated, Mapping) and not (
            isinstance(stated, Sequence) and all(isinstance(one, Mapping) for one in stated)
        ):
            raise WrongType(
                "candidates is a mapping from parameters to lists, or a list of mappings", name="candidates"
            )
        found = list(ParameterGrid(dict(stated))) if isinstance(stated, Mapping) else list(stated)
        if not found:
            raise EmptyInput("a search needs at least one candidate", name="candidates")
        if len(found) > CANDIDATES_MAX:
            raise TooLarge(f"a search has at most {CANDIDATES_MAX:,} candidates", name="candidates")
        known = self.estimator.get_params()
        for name in {name for one in found for name in one}:
            if name not in known or name in ("epsilon", "delta", "budget", "rows_per_unit"):
                raise InvalidInput(f"{name} is no parameter that a search can choose", name="candidates", value=name)
        return found

    def _run_epsilon(self) -> float:
        """Return the epsilon of one run: of the search, over 2 + shape."""
        return rounded_down(positive("epsilon", self.epsilon) / Fraction(2 + SHAPE) * (1 - Fraction(1, 2**40)))

    def _model(self, chosen: Mapping[str, Any], run: float, paying: Budget) -> Any:
        share = inside_unit_interval("score_share", self.score_share)
        fitted = rounded_down(Fraction(run) * (1 - share))
        return clone(self.estimator).set_params(**chosen, epsilon=fitted, budget=paying)

    def _score(self, model: Any, X: Any, y: Any, unit: Any, paying: Budget) -> float:
        """Return the noisy number of rows that a model predicts rightly, from what the fit left of a run's budget."""
        right = np.asarray(model.predict(X) == np.asarray(y).ravel(), dtype=bool)
        left = rounded_down(Fraction(paying.epsilon) - Fraction(model.epsilon))
        units = {} if model.rows_per_unit is None else {"rows_per_unit": model.rows_per_unit}
        found = moments.sum(right, epsilon=left, budget=paying, unit=unit, **units)
        return float(found.value)


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
