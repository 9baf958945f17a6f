"""What all estimators share: parameters, X and y as columns of a statistic, `fit`, fitted attributes, documents.

    model = tacit.learn.LinearRegression(epsilon=1.0, budget=budget, bounds={"age": (17, 90)}, target_bounds=(0, 1e5))
    model.fit(X, y, unit=patients)
    model.predict(X), model.cost, model.card, model.answer_
    model.fit_table(curator.table("visits"), features=["age"], target="costs")

`fit` is one release through the pipeline of `tacit.stats`: its event is charged to `budget` (without one, to a budget
of this fit alone) before a row is counted. Bounds, categories and classes are stated, registered or learnt within the
same charge; they are never read off the data.

Errors about arrays (labels that are not among the classes, missing labels) tell their holder about them, as any error
about an argument does; nothing of the kind depends on the rows of a registered table, where such rows are left out.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final, Self, Unpack

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from tacit.accounting.conversions import Cost
from tacit.learn.counted_delta import (
    budget_delta,
    card_sentence,
    charged_deltas,
    counted_delta,
    counted_line,
    default_delta,
    delta_of,
    warn_if_less,
)
from tacit.learn.estimators.documents import FORMAT, encode, encode_features
from tacit.learn.estimators.fit_inputs import FitInputs, ModelColumns
from tacit.learn.estimators.frames import WrongFeatures, columns_of, names_in, one_column
from tacit.learn.estimators.model_plan import Features, Floats, ModelPlan, plan_of
from tacit.learn.estimators.parameters import (
    check_bounds,
    check_categories,
    check_classes,
    described,
    in_words,
)
from tacit.learn.estimators.repeated_fits import refuse_inside_a_search
from tacit.ledger import Budget
from tacit.measuring.allocation import BudgetTerms
from tacit.privacy.errors import (
    EmptyInput,
    InvalidInput,
    NotBounded,
    NotFinite,
    OutOfRange,
    WrongType,
)
from tacit.privacy.numbers import agreed, failure_probability
from tacit.privacy.tables import Kind
from tacit.stats.answer import Answer
from tacit.stats.array_sums import ArrayColumn, name_of
from tacit.stats.preparation import CommonOptions, RegisteredTable, StatisticInputs
from tacit.stats.releases import PreparedStatistic, prepare
from tacit.stats.rows import ColumnSteps, Cut, RowMatrix
from tacit.stats.stated_kinds import LEARN, kind_of_bounds, kind_of_keys

TARGET: Final = "target"
"""The name of y where it has none of its own."""

REPEATED_MAX: Final = 64
"""How many deltas that were charged before are tried, to find a training that was released already."""

NOT_WRITTEN: Final = ("answer_", "cost_", "features_")
"""Fitted attributes that a document holds in other forms, or not at all."""

ALONE: Final = (
    " It was paid from a budget of this fit alone: another fit on the same rows costs again, and no budget adds up "
    "the two."
)


class MissingTarget(NotFinite, ValueError):
    """y has missing values; also a ValueError, as scikit-learn's contract asks."""


class PrivateEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator whose fit is charged to a budget; `parameters.SHARED` says what parameters of all estimators are."""

    needs_target: ClassVar[bool] = False
    """Whether y is needed; classifiers and regressors need it."""
    is_for_servers: ClassVar[bool] = True
    """Whether a server may train it: its running time tells no more than the time class of its plan."""

    epsilon: Any
    delta: Any
    budget: Any
    bounds: Any = None
    categories: Any = None
    rows_per_unit: Any
    features_: Features
    cost_: Cost
    model_id: str | None = None
    """The id of the model in the folder of the curator that trained it."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.__doc__ = described(cls)

    @abstractmethod
    def _plan(self, inputs: StatisticInputs, columns: ModelColumns) -> ModelPlan:
        """Return the plan, with noise from `inputs.allocation`; called again with the bounds that were learnt."""

    def fit(self, X: Any, y: Any = None, *, unit: Any = None) -> Self:
        """Charge the fit, release the model from the rows of X and y, and return it; `unit` is whose row each is."""
        prepared = self.prepare(X, y, unit=unit)
        return self._take_prepared(prepared, names_in(X), is_alone=self.budget is None)

    def prepare(self, X: Any, y: Any = None, *, unit: Any = None) -> PreparedStatistic:
        """Return the planned fit: `preview()` is what it costs, `release()` charges it. Nothing is charged here."""
        columns = columns_of(X)
        options: dict[str, Any] = {"budget": self.budget, "unit": unit, "kind": self._declared_kinds(columns)}
        if self.budget is None:
            refuse_inside_a_search(PrivateEstimator)
            options["budget"] = self._own_budget()
        length = len(next(iter(columns.values())))
        if not length:
            raise WrongFeatures("Found array with 0 sample(s), and a minimum of 1 is required", name="X")
        target = None
        if self.needs_target:
            if y is None:
                raise WrongFeatures("this estimator requires y to be passed, but the target y is None", name="y")
            target = name_of(y) or TARGET
            while target in columns:
                target += " (y)"
            columns[target] = self._checked_target(one_column(y), length)
            if (kind := self._kind_of_target) is not None:
                options["kind"][target] = kind
        budget = options["budget"]
        delta = self._counted_delta(budget, budget) if isinstance(budget, Budget) else None
        return self._with_warning(self._prepare(columns, target, options, delta))

    def fit_table(
        self,
        table: RegisteredTable,
        features: Sequence[str],
        target: str | None = None,
        **options: Unpack[CommonOptions],
    ) -> Self:
        """Fit on columns of a registered table, paid from its budget; options: analyst, key, purpose, timeout_s, ..."""
        prepared = self.prepare_table(table, features, target, **options)
        return self.fit_prepared(prepared, features)

    def prepare_table(
        self,
        table: RegisteredTable,
        features: Sequence[str],
        target: str | None = None,
        **options: Unpack[CommonOptions],
    ) -> PreparedStatistic:
        """Return the planned fit on columns of a registered table; nothing is read or charged."""
        if self.budget is not None:
            raise InvalidInput("a registered table is paid from its own budget; leave budget= out", name="budget")
        if isinstance(features, str) or not len(features):
            raise WrongType("features is a list of columns of the table", name="features", value=features)
        if self.needs_target != (target is not None):
            name = type(self).__name__
            if target is None:
                raise EmptyInput(f"{name} needs a column that it predicts; state target=", name="target")
            raise InvalidInput(f"{name} predicts no column; leave target= out", name="target", value=target)
        columns: dict[str, Any] = {name: table[name] for name in features}
        stated = [*features, *([] if target is None else [target])]
        if len({table.table.column(name).name for name in stated}) < len(stated):
            raise InvalidInput("each column is a feature once, and the target is none of them", name="features")
        if target is not None:
            columns[target] = table[target]
        return self._with_warning(self._prepare_again_or_new(table, columns, target, dict(options)))

    def _prepare_again_or_new(
        self, table: RegisteredTable, columns: Mapping[str, Any], target: str | None, options: dict[str, Any]
    ) -> PreparedStatistic:
        """Return the planned fit: as it was released before, at a delta that it is no longer counted at, or a new one.

        So that repeating a training costs nothing, whatever is left now. Those that the payer was charged come first.
        One for a stated delta that is left in full is released at that delta.
        """
        if options.get("rho") is not None:
            return self._prepare(columns, target, options, None)
        budget, payer = table.budget, table.payer(options.get("analyst"))
        left, most = payer.stated_delta_left(), self._delta_at_most(budget)
        if most and (self._stated_delta is None or left == math.inf or left < 2 * most):
            budgets = (budget,) if payer.payer is None else (payer, budget)
            earlier = (one for each in budgets for one in charged_deltas(each.events, most))
            for delta in list(dict.fromkeys(earlier))[:REPEATED_MAX]:
                prepared = self._prepare(columns, target, options, delta)
                if prepared.is_released:
                    return prepared
        return self._prepare(columns, target, options, self._counted_delta(budget, payer))

    def _delta_at_most(self, budget: Budget) -> float | None:
        """Return the delta that a fit takes where enough is left: what is stated, or a slice; None for none."""
        return BudgetTerms.of(budget.cap).delta if self._stated_delta is None else self._stated_delta

    def _counted_delta(self, budget: Budget, payer: Budget) -> float | None:
        """Return the delta that a fit takes; None for none. A slice is one of the delta of `budget`."""
        stated, most = self._stated_delta, self._delta_at_most(budget)
        if stated is not None:
            return counted_delta(payer, stated)
        return None if most is None else default_delta(payer, most)

    def _with_warning(self, prepared: PreparedStatistic) -> PreparedStatistic:
        """Return a planned fit; warn if it is counted at a smaller delta than was stated."""
        if self._stated_delta is None:
            return prepared
        counted = delta_of(prepared.plan.event)
        warn_if_less(counted, self._stated_delta)
        return replace(prepared, counted=counted_line(counted, self._stated_delta))

    def fit_prepared(self, prepared: PreparedStatistic, features: Sequence[str]) -> Self:
        """Charge a fit that `prepare_table` planned with these features, and return the fitted model."""
        return self._take_prepared(prepared, features, is_alone=False)

    def _prepare(
        self, columns: Mapping[str, Any], target: str | None, options: dict[str, Any], delta: float | None
    ) -> PreparedStatistic:
        """Return the planned fit of columns; `options` may state what it costs where the estimator does not."""
        names = ModelColumns(tuple(name for name in columns if name != target), target)
        self._check_parameters(names.features)
        options = self._with_cost(options)
        if self.rows_per_unit is not None:
            options["rows_per_unit"] = self.rows_per_unit
        kinds = {name: kind_of_bounds(self._stated_bounds(name)) for name in names.features}

        def answer() -> Answer:
            inputs = FitInputs(columns, CommonOptions(**options), kinds, delta=delta or 0.0)  # type: ignore[typeddict-item]
            return inputs.answer(lambda given: self._plan(given, names).counted(given.allocation))

        return prepare(answer)

    def _with_cost(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return options with what the fit costs, which they or the estimator state."""
        if options.get("rho") is None:
            return {**options, "epsilon": self._required_epsilon(options.get("epsilon"))}
        for name in ("epsilon", "delta"):
            if (own := getattr(self, name)) is not None:
                raise InvalidInput(
                    f"the estimator has {name} {own} and its training rho {options['rho']}; state one of them",
                    name=name,
                )
        return options

    def _required_epsilon(self, stated: Any = None) -> Any:
        found = agreed("epsilon", self.epsilon, stated)
        if found is None:
            raise InvalidInput("state what the fit costs: epsilon= of the estimator", name="epsilon")
        return found

    @property
    def _stated_delta(self) -> float | None:
        return None if self.delta is None else float(failure_probability("delta", self.delta))

    def _own_budget(self) -> Budget:
        """Return a budget that holds one fit and no more: a fit takes a share of the delta of a budget."""
        delta = budget_delta(self._stated_delta or 0.0)
        if delta >= 1:
            raise OutOfRange("delta must be below 0.05", name="delta", value=self.delta)
        return Budget(self._required_epsilon(), delta)

    def _take_prepared(self, prepared: PreparedStatistic, names: Sequence[str] | None, *, is_alone: bool) -> Self:
        """Release a planned fit and set the fitted attributes; `is_alone` if no shared budget pays for it."""
        self.answer_ = answer = prepared.release()
        told = card_sentence(delta_of(answer.plan.event), self._stated_delta)
        self.cost_, self.card_ = answer.cost, answer.card + told + (ALONE if is_alone else "")
        self._set_fitted(plan_of(answer.plan).features, answer.value, names)
        return self

    def _set_fitted(self, features: Features, value: Mapping[str, Any], names: Sequence[str] | None) -> None:
        self.features_, self.n_features_in_ = features, len(features.columns)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        for name, found in value.items():
            setattr(self, name, found)

    def encoded_parameters(self) -> dict[str, Any]:
        """Return the parameters but the budget as JSON, or raise WrongType for one that a document cannot hold."""
        found = {}
        for name, one in self.get_params(deep=False).items():
            if name != "budget":
                try:
                    found[name] = encode(one)
                except WrongType as error:
                    raise WrongType(f"{name}: {error.message}", name=name, value=one) from None
        return found

    def require_shapes(self) -> None:
        """Raise InvalidInput for fitted arrays that do not belong to the features, beyond what predictions show."""

    @property
    def numbers_for_a_row(self) -> int:
        """How many numbers are read for the prediction of one row, about: the fitted ones and the encoded columns."""
        fitted = [one for name, one in vars(self).items() if name.endswith("_") and name not in NOT_WRITTEN]
        parts = [part for one in fitted for part in (one if isinstance(one, list) else [one])]
        return sum(map(np.size, parts)) + sum(self.features_.widths)

    def to_document(self) -> dict[str, Any]:
        """Return the fitted model as a document for `json.dump`, from which `from_document` makes it again.

        It holds what was released and public facts: the budget is left out, and no row is in it.
        """
        check_is_fitted(self)
        names = [name for name in vars(self) if name.endswith("_") and name not in NOT_WRITTEN]
        return {
            "format": FORMAT,
            "estimator": type(self).__name__,
            "parameters": self.encoded_parameters(),
            "features": encode_features(self.features_),
            "fitted": {name: encode(getattr(self, name)) for name in names},
            "cost": encode({"epsilon": self.cost_.epsilon, "delta": self.cost_.delta, "rho": self.cost_.rho}),
        }

    @property
    def cost(self) -> Cost:
        """What the fit was charged."""
        check_is_fitted(self)
        return self.cost_

    @property
    def card(self) -> str:
        """The fit in plain language: what was released, whom it protects, noise, cost."""
        check_is_fitted(self)
        return self.card_

    def _features(self, inputs: StatisticInputs, columns: ModelColumns, steps: int) -> Features:
        """Return the public facts of the features: numbers with `steps` steps in half their bounds, or categories."""
        found: list[ColumnSteps | Cut] = []
        for name in columns.features:
            listed = self._listed(name)
            if listed is not None or inputs.has_categories(name) or inputs.kind(name) is Kind.TEXT:
                found.append(inputs.cut(name, listed, what="categories"))
            else:
                found.append(inputs.scale(name, self._stated_bounds_of(inputs, name), steps))
        return Features(tuple(found), tuple(map(inputs.kind, columns.features)))

    def _listed(self, name: str) -> Any:
        return self.categories.get(name) if isinstance(self.categories, Mapping) else None

    def _stated_bounds(self, name: str) -> Any:
        """Return the bounds that the caller stated for a feature; None where none were."""
        if self._listed(name) is not None:
            return None
        return self.bounds.get(name) if isinstance(self.bounds, Mapping) else self.bounds

    def _stated_bounds_of(self, inputs: StatisticInputs, name: str) -> Any:
        return None if inputs.kind(name) is Kind.BOOLEAN else self._stated_bounds(name)

    def _declared_kinds(self, columns: Mapping[str, Any]) -> dict[str, Kind]:
        """Return the kinds that lists of categories declare."""
        self._check_parameters(tuple(columns))
        kinds = {name: kind_of_keys(self._listed(name)) for name in columns}
        return {name: kind for name, kind in kinds.items() if kind is not None}

    def _check_parameters(self, features: Sequence[str]) -> None:
        """Raise if a parameter states public facts of the features that cannot be."""
        check_bounds(self.bounds, features)
        check_categories(self.categories, features)

    @property
    def _kind_of_target(self) -> Kind | None:
        return None

    def _checked_target(self, y: Any, length: int) -> Any:
        """Return y, or raise an error about it."""
        column = ArrayColumn("y", y, self._kind_of_target, default=Kind.REAL)
        if len(column) != length:
            raise WrongFeatures(f"X has {length:,} rows and y {len(column):,}", name="y")
        if column.missing.any():
            raise MissingTarget("y has missing values (NaN), or values of another kind than the target's", name="y")
        return y

    def _encoded(self, X: Any) -> Floats:
        """Return rows as encoded features, as the fitted model reads them."""
        check_is_fitted(self)
        return self.features_.encode(self._columns_in(X))

    def _clamped(self, X: Any) -> Floats:
        """Return rows of numbers in their own units, clamped to the bounds of the features."""
        return np.asarray(self._encoded(X) * self.features_.units + self.features_.origins)

    def _columns_in(self, X: Any) -> dict[str, Any] | RowMatrix:
        """Return the columns of X by the names of the features; raise WrongFeatures where they differ."""
        if isinstance(X, RowMatrix):
            return X
        columns = columns_of(X)
        names = self.features_.names
        if len(columns) != len(names):
            raise WrongFeatures(
                f"X has {len(columns)} features, but {type(self).__name__} is expecting {len(names)} features as input",
                name="X",
            )
        if names_in(X) is None:
            return dict(zip(names, columns.values(), strict=True))
        if hasattr(self, "feature_names_in_") and list(columns) != list(self.feature_names_in_):
            raise WrongFeatures("the feature names should match those that were passed during fit", name="X")
        return dict(zip(names, columns.values(), strict=True))


class PrivateRegressor(RegressorMixin, PrivateEstimator):  # type: ignore[misc]
    """What regressors share: a numeric target within `target_bounds`."""

    needs_target = True
    target_bounds: Any

    @property
    def _kind_of_target(self) -> Kind | None:
        return Kind.REAL

    def _target_scale(self, inputs: StatisticInputs, columns: ModelColumns, steps: int) -> ColumnSteps:
        """Return the target as whole numbers within its bounds; learnt if all bounds are."""
        assert columns.target is not None
        stated = self.target_bounds
        if stated is None and isinstance(self.bounds, str) and self.bounds == LEARN:
            stated = LEARN
        try:
            return inputs.scale(columns.target, stated, steps)
        except NotBounded:
            if stated is not None:
                raise
            raise NotBounded(
                f"{inputs.name(columns.target)} has no declared bounds",
                accepted='give target_bounds=(low, high), chosen without looking at the data; or target_bounds="learn"',
            ) from None


class PrivateClassifier(ClassifierMixin, PrivateEstimator):  # type: ignore[misc]
    """What classifiers share: a target with listed `classes`, which are public."""

    needs_target = True
    classes: Any

    def _check_parameters(self, features: Sequence[str]) -> None:
        super()._check_parameters(features)
        check_classes(self.classes)

    @property
    def _kind_of_target(self) -> Kind | None:
        return kind_of_keys(self.classes)

    def _checked_target(self, y: Any, length: int) -> Any:
        super()._checked_target(y, length)
        if self.classes is not None:
            classes = tuple(_listed_values(self.classes))
            if (ArrayColumn("y", y, self._kind_of_target).cells(Cut("y", classes)) < 0).any():
                raise OutOfRange(f"y has labels that are not among the classes: {in_words(classes)}", name="y")
        return y

    def _class_cut(self, inputs: StatisticInputs, columns: ModelColumns) -> Cut:
        """Return the classes as cells: stated, registered, or those of a boolean."""
        assert columns.target is not None
        return inputs.cut(columns.target, self.classes, what="classes")

    @abstractmethod
    def predict_proba(self, X: Any) -> Floats:
        """Return P(class | x) for each row and class."""

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most likely class of each row; values beyond bounds are clamped, as in the training."""
        shares = self.predict_proba(X)
        return np.asarray(self.classes_[np.argmax(shares, axis=1)])


def _listed_values(classes: Any) -> list[Any]:
    return classes.tolist() if isinstance(classes, np.ndarray) else list(classes)
