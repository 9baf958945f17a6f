"""Preprocessing from released statistics: standardisation, and bins of equal width or of equal numbers of rows.

Promise (neighbours: one unit more or less, or one replaced, as the budget says): `StandardScaler` releases a noisy
count of rows, and a noisy sum and sum of squares of each column, each of which a unit moves by at most `rows_per_unit`
times its reach. `KBinsDiscretizer` releases noisy counts of cells in a tree for each column (`stats.count_tree`).
Transformed rows are private again: only their parameters are released.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Literal, Self

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin

from tacit.learn.estimators.base import PrivateEstimator
from tacit.learn.estimators.fit_inputs import ModelColumns
from tacit.learn.estimators.frames import BoundedRows
from tacit.learn.estimators.model_plan import Features, Floats, ModelPlan, SumsPlan, require_numbers
from tacit.learn.estimators.noises import least_noises
from tacit.measuring.allocation import Allocation
from tacit.measuring.moments import FUNCTIONS, SQUARE_STEPS
from tacit.mechanisms.randomness import SYSTEM, RandomSource
from tacit.pipeline import ZERO_COST
from tacit.privacy.errors import InvalidInput, NotBounded
from tacit.privacy.events import Event, composed
from tacit.privacy.numbers import whole
from tacit.stats.cells import Partition
from tacit.stats.count_tree import NoisyTree, level_sizes
from tacit.stats.moments import SPREAD_WEIGHTS, label_of, square
from tacit.stats.preparation import StatisticInputs
from tacit.stats.quantiles import SHARE_STEPS, TreeQuantiles
from tacit.stats.releases import PreparedStatistic
from tacit.stats.rows import Rows, Term
from tacit.stats.statistic import Noisy, NoisySums

QUANTILE_CELLS: Final = 1024
"""The cells of a column in which quantiles are searched."""


@dataclass(frozen=True)
class ColumnMoments(SumsPlan):
    """The number of rows, and mean and variance of each column."""

    @classmethod
    def of(cls, features: Features, allocation: Allocation) -> ColumnMoments:
        """Return the sums with their noise."""
        scales = require_numbers(features)
        rows, total, squares = SPREAD_WEIGHTS
        terms = [Term(), *(term for scale in scales for term in (Term((scale,)), square(scale)))]
        noises = least_noises(allocation, [term.reach for term in terms], [rows, *[total, squares] * len(scales)])
        parts = tuple(NoisySums(term, noise, (), label_of(term)) for term, noise in zip(terms, noises, strict=True))
        return cls(f"mean and variance of {', '.join(features.names)}", features, parts)

    def value(self, noisy: Noisy) -> dict[str, Any]:
        count, *sums = (np.asarray(one, dtype=np.float64) for one in noisy)
        scales = require_numbers(self.features)
        pairs = list(zip(scales, sums[::2], sums[1::2], strict=True))
        means = [FUNCTIONS["avg"]((scale,), (count, total)) for scale, total, _ in pairs]
        variances = [FUNCTIONS["var_pop"]((scale,), (count, *both)) for scale, *both in pairs]
        return {
            "n_samples_seen_": max(0, int(count)),
            "mean_": np.array(means, dtype=np.float64).ravel(),
            "var_": np.array(variances, dtype=np.float64).ravel(),
        }


class StandardScaler(OneToOneFeatureMixin, TransformerMixin, PrivateEstimator):  # type: ignore[misc]
    """Columns less their mean, over their standard deviation, both noisy; values beyond bounds are clamped first.

    `with_mean` and `with_std` say which of the two is done. `output_bounds_` are the bounds of the transformed columns,
    which the next step of a pipeline takes.
    """

    def __init__(
        self,
        *,
        epsilon: Any = None,
        delta: Any = None,
        budget: Any = None,
        bounds: Any = None,
        rows_per_unit: Any = None,
        with_mean: bool = True,
        with_std: bool = True,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.budget = budget
        self.bounds = bounds
        self.rows_per_unit = rows_per_unit
        self.with_mean = with_mean
        self.with_std = with_std

    def _plan(self, inputs: StatisticInputs, columns: ModelColumns) -> ModelPlan:
        return ColumnMoments.of(self._features(inputs, columns, SQUARE_STEPS), inputs.allocation)

    @property
    def scale_(self) -> Floats:
        """The divisor of each column: its standard deviation, 1 where the variance is 0."""
        return np.asarray(
            np.where(self.var_ > 0, np.sqrt(self.var_), 1.0) if self.with_std else np.ones(len(self.var_))
        )

    @property
    def output_bounds_(self) -> dict[str, tuple[float, float]]:
        """The bounds of each transformed column, public facts that follow from those of the rows and the release."""
        scales = require_numbers(self.features_)
        ends = self._scaled(np.array([[one.lower for one in scales], [one.upper for one in scales]]))
        return {name: (float(low), float(high)) for name, (low, high) in zip(self.features_.names, ends.T, strict=True)}

    def _scaled(self, values: Floats) -> Floats:
        return np.asarray((values - (self.mean_ if self.with_mean else 0.0)) / self.scale_)

    def transform(self, X: Any) -> Floats:
        """Return the columns of X, standardised."""
        values = self._clamped(X)
        return BoundedRows.of(self._scaled(values), self.output_bounds_.values())

    def inverse_transform(self, X: Any) -> Floats:
        """Return standardised columns in their own units."""
        found = np.asarray(X, dtype=np.float64) * self.scale_
        return np.asarray(found + (self.mean_ if self.with_mean else 0.0))


@dataclass(frozen=True)
class BinEdges(ModelPlan):
    """The edges of the bins of each column: quantiles from trees of counts; without trees, equally far apart."""

    quantiles: tuple[TreeQuantiles, ...]
    bins: int

    @property
    def noises_event(self) -> Event:
        return composed([one.event for one in self.quantiles])

    def counted(self, allocation: Allocation) -> Self:
        return super().counted(allocation) if self.quantiles else self

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(f"{one.cells.column}: {line}" for one in self.quantiles for line in one.lines)

    def measure(self, rows: Rows, source: RandomSource = SYSTEM) -> Noisy:
        return tuple(level for one in self.quantiles for level in one.measure(rows, source))

    def value(self, noisy: Noisy) -> dict[str, Any]:
        levels, edges = iter(noisy), []
        found = [np.asarray(one.value(tuple(next(levels) for _ in one.tree.noises))) for one in self.quantiles]
        for place, scale in enumerate(require_numbers(self.features)):
            even = np.linspace(scale.lower, scale.upper, self.bins + 1)
            inner = np.clip(found[place], scale.lower, scale.upper) if found else even[1:-1]
            edges.append(np.unique([scale.lower, *inner, scale.upper]))
        return {"bin_edges_": edges, "n_bins_": np.array([len(one) - 1 for one in edges])}


class KBinsDiscretizer(TransformerMixin, PrivateEstimator):  # type: ignore[misc]
    """Columns as `n_bins` bins: `strategy` "quantile" (of about equal numbers of rows) or "uniform" (of equal width).

    Bins of equal width follow from the bounds alone, so that fit releases and costs nothing. `encode` is "ordinal" or
    "onehot-dense". Bins that would be empty between equal quantiles are merged.
    """

    def __init__(
        self,
        n_bins: int = 5,
        *,
        epsilon: Any = None,
        delta: Any = None,
        budget: Any = None,
        bounds: Any = None,
        rows_per_unit: Any = None,
        strategy: Literal["quantile", "uniform"] = "quantile",
        encode: Literal["ordinal", "onehot-dense"] = "onehot-dense",
    ) -> None:
        self.n_bins = n_bins
        self.epsilon = epsilon
        self.delta = delta
        self.budget = budget
        self.bounds = bounds
        self.rows_per_unit = rows_per_unit
        self.strategy = strategy
        self.encode = encode

    @property
    def _stated_delta(self) -> float | None:
        """The stated delta; bins of equal width take none."""
        return None if self.strategy == "uniform" else super()._stated_delta

    def _plan(self, inputs: StatisticInputs, columns: ModelColumns) -> ModelPlan:
        features = self._features(inputs, columns, SQUARE_STEPS)
        require_numbers(features)
        bins = whole("n_bins", self.n_bins, at_least=2)
        for name, accepted in (("strategy", ("quantile", "uniform")), ("encode", ("ordinal", "onehot-dense"))):
            if getattr(self, name) not in accepted:
                raise InvalidInput(f"{name} is one of {', '.join(accepted)}", name=name, value=getattr(self, name))
        label = f"bins of {', '.join(features.names)}"
        if self.strategy == "uniform":
            return BinEdges(label, features, (), bins)
        shares = tuple(round(place / bins * SHARE_STEPS) / SHARE_STEPS for place in range(1, bins))
        cells = [
            Partition.of(
                inputs.name(name),
                inputs.kind(name),
                inputs.bounds(name, self._stated_bounds_of(inputs, name)),
                QUANTILE_CELLS,
                even=inputs.learns(name),
            )
            for name in columns.features
        ]
        levels = [len(level_sizes(one.count)) for one in cells]
        noises = iter(least_noises(inputs.allocation, [1] * sum(levels)))
        trees = [NoisyTree(one, tuple(islice(noises, count))) for one, count in zip(cells, levels, strict=True)]
        quantiles = tuple(
            TreeQuantiles(f"quantiles of {tree.cells.column}", tree.cells, shares, (), is_single=False, tree=tree)
            for tree in trees
        )
        return BinEdges(label, features, quantiles, bins)

    def prepare_table(self, *given: Any, **options: Any) -> PreparedStatistic:
        """Return the planned fit on columns of a registered table; bins of equal width have none."""
        if self.strategy == "uniform":
            raise InvalidInput("bins of equal width follow from bounds, and nothing of a table is released for them")
        return super().prepare_table(*given, **options)

    def _take_prepared(self, prepared: PreparedStatistic, names: Sequence[str] | None, *, is_alone: bool) -> Self:
        if self.strategy != "uniform":
            return super()._take_prepared(prepared, names, is_alone=is_alone)
        if not isinstance(prepared.plan, BinEdges):
            raise NotBounded("bins of equal width follow from bounds", accepted="state the bounds")
        self.cost_, self.card_ = ZERO_COST, "Bins of equal width within stated bounds; nothing was released."
        self._set_fitted(prepared.plan.features, prepared.plan.value(()), names)
        return self

    def transform(self, X: Any) -> Floats:
        """Return the bin of each value, as a number or one-hot; values beyond bounds are clamped first."""
        values = self._clamped(X)
        found = [
            np.clip(np.searchsorted(edges, column, side="right") - 1, 0, len(edges) - 2)
            for edges, column in zip(self.bin_edges_, values.T, strict=True)
        ]
        counts = self.n_bins_.tolist()
        if self.encode == "ordinal":
            return BoundedRows.of(np.array(found, dtype=np.float64).T, [(0.0, bins - 1.0) for bins in counts])
        parts = [(one[:, None] == np.arange(bins)) for one, bins in zip(found, counts, strict=True)]
        return BoundedRows.of(np.concatenate(parts, axis=1).astype(np.float64), [(0.0, 1.0)] * sum(counts))

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the names of transformed columns."""
        names = self.features_.names if input_features is None else input_features
        if self.encode == "ordinal":
            return np.array(names, dtype=object)
        listed = [f"{name}_{bin}" for name, bins in zip(names, self.n_bins_, strict=True) for bin in range(bins)]
        return np.array(listed, dtype=object)
