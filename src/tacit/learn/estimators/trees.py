"""Decision trees and forests from noisy counts by leaf and class.

Promise (neighbours: one unit more or less, or one replaced, as the budget says): every released table counts each row
in one cell, so a unit moves it by at most `rows_per_unit` in L1 and L2; tables get the noise of `noises`, all of
them together for the one charge. A tree is grown level by level: for each feature one table of counts by leaf, cell of
the feature and class, from which the splits of the level are chosen, and last one table by leaf and class. Each tree of
a forest is grown from all rows and from a subset of the features, chosen without the rows.

Numbers are split between equal bins of their bounds, categories by their noisy shares of a class. Trees are complete:
every row passes `max_depth` splits. Tables are counted by the engine of a registered table, by one CASE for the leaf.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from tacit.learn.estimators.base import PrivateClassifier
from tacit.learn.estimators.documents import require_fitted
from tacit.learn.estimators.fit_inputs import ModelColumns
from tacit.learn.estimators.model_plan import Features, Floats, ModelPlan, deviation
from tacit.learn.estimators.noises import Measurement, RoundNoises, RoundsPlan
from tacit.mechanisms.randomness import SYSTEM, RandomSource, words
from tacit.mechanisms.simulation import SeededSource, mark_simulated
from tacit.privacy.errors import InvalidInput, TooLarge
from tacit.privacy.numbers import whole
from tacit.stats.preparation import StatisticInputs
from tacit.stats.rows import CELLS_IN_ALL_MAX, ColumnSteps, Cut, Rows, Split, Term, TreeCut
from tacit.stats.statistic import Noisy, noise_in_words

DEPTH_MAX: Final = 12
BINS_MAX: Final = 256
TREES_MAX: Final = 100
LEAVES_SHARE: Final = 0.3
"""The share of the budget of a decision tree that its last table gets."""

Splits = NDArray[np.int64]
"""The nodes of a complete tree in the order of a heap: the feature, then for each of its cells whether it is inside."""


@dataclass(frozen=True)
class TreeTables(RoundsPlan):
    """Trees grown by noisy counts; `features` are cells alone."""

    target: Cut = field(kw_only=True)
    depth: int
    subsets: tuple[tuple[int, ...], ...]
    """The features that each tree is grown from, by their place."""

    @classmethod
    def of(
        cls,
        features: Features,
        target: Cut,
        depth: int,
        subsets: Sequence[Sequence[int]],
        inputs: StatisticInputs,
    ) -> TreeTables:
        """Return the plan of a tree for each subset of features."""
        tables = depth * sum(map(len, subsets))
        parts = [Measurement(1 - LEAVES_SHARE, tables, 1), Measurement(LEAVES_SHARE, len(subsets), 1)]
        noises = RoundNoises.of(inputs.allocation, parts, parts)
        what = "decision tree" if len(subsets) == 1 else "random forest"
        made = cls(f"{what} of {target.column}", features, noises, depth, tuple(map(tuple, subsets)), target=target)
        if 2**depth * made.width * target.cells > CELLS_IN_ALL_MAX:
            raise TooLarge("the tables of the tree would have too many cells", name="max_depth", value=depth)
        return made

    @property
    def lines(self) -> tuple[str, ...]:
        grown, leaves = self.noises.noises
        trees = f" of {len(self.subsets)} trees" if len(self.subsets) > 1 else ""
        return (
            f"rows by leaf, cell and class, for each feature in each of {self.depth} levels{trees}: "
            f"{noise_in_words(grown)}",
            f"rows by leaf and class{trees}: {noise_in_words(leaves)}",
        )

    @property
    def cuts(self) -> tuple[Cut, ...]:
        """The cells of each feature."""
        return tuple(one for one in self.features.columns if isinstance(one, Cut))

    @property
    def width(self) -> int:
        """The greatest number of cells of a feature."""
        return max(cut.cells for cut in self.cuts)

    def partition(self, splits: Splits, depth: int) -> TreeCut:
        """Return the first levels of a tree as a partition of rows."""

        def node(place: int) -> Split | int:
            if place >= 2**depth - 1:
                return place - int(2**depth - 1)
            cut = self.cuts[int(splits[place, 0])]
            cells = tuple(np.flatnonzero(splits[place, 1 : 1 + cut.cells]).tolist())
            return Split(cut, cells, node(2 * place + 1), node(2 * place + 2))

        return TreeCut(node(0))

    def leaf_counts(self, splits: Splits, rows: Rows, source: RandomSource) -> NDArray[Any]:
        """Return noisy counts by leaf and class."""
        (exact,) = rows.sums([Term()], (self.partition(splits, self.depth), self.target), self.needs)
        return np.asarray(self.noises.noises[-1].release(exact, source=source))

    def grown(self, subset: Sequence[int], rows: Rows, source: RandomSource) -> Splits:
        """Return the splits of a tree, in each leaf of a level those with the least impurity by noisy counts."""
        splits = np.zeros((2**self.depth - 1, 1 + self.width), dtype=np.int64)
        for level in range(self.depth):
            partition, best = self.partition(splits, level), np.full(2**level, np.inf)
            for feature in subset:
                cut = self.cuts[feature]
                (exact,) = rows.sums([Term()], (partition, cut, self.target), self.needs)
                noisy = np.asarray(self.noises.noises[0].release(exact, source=source), dtype=np.float64)
                for leaf in range(2**level):
                    impurity, inside = _best_split(np.maximum(noisy[leaf], 0.0), is_ordered=bool(cut.edges))
                    if impurity < best[leaf]:
                        best[leaf], place = impurity, 2**level - 1 + leaf
                        splits[place] = 0
                        splits[place, 0], splits[place, 1 : 1 + cut.cells] = feature, inside
        return splits

    def measure(self, rows: Rows, source: RandomSource = SYSTEM) -> Noisy:
        trees = [self.grown(subset, rows, source) for subset in self.subsets]
        counts = np.array([self.leaf_counts(splits, rows, source) for splits in trees])
        found = (np.array(trees), counts)
        return mark_simulated(found) if source.simulated else found

    def value(self, noisy: Noisy) -> dict[str, Any]:
        splits, counts = (np.asarray(one) for one in noisy)
        known = np.maximum(counts.astype(np.float64), 0.0)
        prior = known.sum(axis=(0, 1)) + 1.0
        pull = deviation(self.noises.noises[-1])  # a leaf of fewer rows than its noise is that of all rows
        smoothed = known + pull * prior / prior.sum()
        return {
            "splits_": splits,
            "leaf_proba_": smoothed / smoothed.sum(axis=2, keepdims=True),
            "classes_": np.array(self.target.values),
        }


def _best_split(counts: Floats, *, is_ordered: bool) -> tuple[float, NDArray[np.bool_]]:
    """Return the least impurity of a split of cells by counts of (cell, class), and which cells are inside.

    Categories are ordered by their share of the commonest class, which for two classes finds the best set of them
    (Breiman, Friedman, Olshen, Stone 1984, theorem 4.5).
    """
    cells = len(counts)
    totals = counts.sum(axis=0)
    shares = counts[:, np.argmax(totals)] / np.maximum(counts.sum(axis=1), 1e-9)
    order = np.arange(cells) if is_ordered else np.argsort(shares, kind="stable")
    inside = np.cumsum(counts[order], axis=0)[: max(1, cells - 1)]
    impurity = _gini(inside) + _gini(totals - inside)
    at = int(np.argmin(impurity))
    found = np.zeros(cells, dtype=bool)
    found[order[: at + 1]] = True
    return float(impurity[at]), found


def _gini(counts: Floats) -> Floats:
    rows = counts.sum(axis=1)
    return np.asarray(rows - (counts * counts).sum(axis=1) / np.maximum(rows, 1e-9))


class CellClassifier(PrivateClassifier):
    """What classifiers by cells share: numbers in equal bins of their bounds, and categories."""

    n_bins: Any

    def _cells(self, inputs: StatisticInputs, columns: ModelColumns) -> Features:
        bins = whole("n_bins", self.n_bins, at_least=2, at_most=BINS_MAX)
        found = self._features(inputs, columns, BINS_MAX)
        cuts = tuple(_binned(one, bins) if isinstance(one, ColumnSteps) else one for one in found.columns)
        return replace(found, columns=cuts)

    def _cells_in(self, X: Any) -> NDArray[np.int64]:
        """Return the cell of each row in each feature, -1 for values that are not listed."""
        check_is_fitted(self)
        read = zip(self.features_.columns, self.features_.read(self._columns_in(X)), strict=True)
        return np.column_stack([column.cells(cut) for cut, column in read if isinstance(cut, Cut)])


class _TreeClassifier(CellClassifier):
    """What trees share: prediction by leaves."""

    max_depth: Any

    def require_shapes(self) -> None:
        trees, nodes, _ = np.shape(self.splits_)
        require_fitted("splits_", self.splits_, (trees, nodes, 1 + max(self.features_.widths)))
        require_fitted("leaf_proba_", self.leaf_proba_, (trees, nodes + 1, len(self.classes_)))
        places = self.splits_[..., 0]
        if (nodes + 1) & nodes or (places < 0).any() or (places >= len(self.features_.columns)).any():
            raise InvalidInput("the splits are not those of a tree of the features", name="document")

    @property
    def numbers_for_a_row(self) -> int:
        """How many numbers are read for the prediction of one row: a node of each level and a leaf of each tree."""
        trees, nodes = self.splits_.shape[:2]
        return int(trees * (nodes.bit_length() + len(self.classes_)) + len(self.features_.columns))

    @property
    def _depth(self) -> int:
        return whole("max_depth", self.max_depth, at_most=DEPTH_MAX)

    def predict_proba(self, X: Any) -> Floats:
        """Return P(class | x) for each row and class, the average over trees."""
        cells = self._cells_in(X)
        found = np.zeros((len(cells), len(self.classes_)))
        for splits, shares in zip(self.splits_, self.leaf_proba_, strict=True):
            at = np.zeros(len(cells), dtype=np.int64)
            while (at < len(splits)).all() and len(cells):
                cell = cells[np.arange(len(cells)), splits[at, 0]]
                is_inside = (cell >= 0) & (splits[at, 1 + np.maximum(cell, 0)] == 1)
                at = 2 * at + np.where(is_inside, 1, 2)
            found += shares[at - len(splits)]
        return found / len(self.splits_)


def _binned(scale: ColumnSteps, bins: int) -> Cut:
    """Return equal bins of the bounds of a number; the two values of a boolean."""
    if scale.is_boolean:
        return Cut(scale.column, (False, True))
    return Cut(scale.column, edges=tuple(np.linspace(scale.lower, scale.upper, bins + 1).tolist()))


class DecisionTreeClassifier(_TreeClassifier):
    """A complete tree of `max_depth` levels, grown by noisy counts; numbers are split between `n_bins` equal bins.

    Neighbours, sensitivity and theorem: this module's docstring.
    """

    def __init__(
        self,
        *,
        epsilon: Any = None,
        delta: Any = None,
        budget: Any = None,
        bounds: Any = None,
        categories: Any = None,
        classes: Any = None,
        rows_per_unit: Any = None,
        max_depth: int = 4,
        n_bins: int = 16,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.budget = budget
        self.bounds = bounds
        self.categories = categories
        self.classes = classes
        self.rows_per_unit = rows_per_unit
        self.max_depth = max_depth
        self.n_bins = n_bins

    def _plan(self, inputs: StatisticInputs, columns: ModelColumns) -> ModelPlan:
        features, target = self._cells(inputs, columns), self._class_cut(inputs, columns)
        subsets = [range(len(features.columns))]
        return TreeTables.of(features, target, self._depth, subsets, inputs)


class RandomForestClassifier(_TreeClassifier):
    """`n_estimators` complete trees of `max_depth` levels, each from half of the features, and their average.

    Numbers are split between `n_bins` equal bins. `random_state` is the public seed by which features are chosen.
    Neighbours, sensitivity and theorem: see this module's docstring.
    """

    def __init__(
        self,
        *,
        epsilon: Any = None,
        delta: Any = None,
        budget: Any = None,
        bounds: Any = None,
        categories: Any = None,
        classes: Any = None,
        rows_per_unit: Any = None,
        n_estimators: int = 4,
        max_depth: int = 5,
        n_bins: int = 16,
        random_state: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.budget = budget
        self.bounds = bounds
        self.categories = categories
        self.classes = classes
        self.rows_per_unit = rows_per_unit
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.n_bins = n_bins
        self.random_state = random_state

    def _plan(self, inputs: StatisticInputs, columns: ModelColumns) -> ModelPlan:
        features, target = self._cells(inputs, columns), self._class_cut(inputs, columns)
        trees = whole("n_estimators", self.n_estimators, at_most=TREES_MAX)
        public = SeededSource(whole("random_state", self.random_state, at_least=0))  # the choice protects nothing
        count = len(features.columns)
        size = math.ceil(count / 2)
        subsets = [sorted(np.argsort(words(public, count, 8))[:size].tolist()) for _ in range(trees)]
        return TreeTables.of(features, target, self._depth, subsets, inputs)
