"""Locally randomised rows: each value of a row is randomised by itself, before anything is added up.

    rows = tacit.learn.randomize_features(
        X, bounds={"age": (17, 90)}, categories={"sex": ["F", "M"]}, epsilon=4.0, budget=budget
    )
    rows.columns, rows.noise_variances, rows.matrices, rows.card

Promise (local differential privacy: Kasiviswanathan et al. 2011; neighbours: one unit's rows replaced, the number of
rows is public): every row is reported by a randomiser whose law differs by at most a factor of e^epsilon between any
two rows, whatever the other rows hold. A row of d columns has epsilon / d for each value (basic composition).

- Numbers are clamped to stated bounds and rounded to public steps. Two-sided geometric noise has the width of the
  bounds as its sensitivity: a row replaced moves one number of a column by no more (Dwork et al. 2006; Ghosh et al.
  2009).
- Categories: randomised response over the listed ones (Warner 1965; Kairouz, Bonawitz, Ramage 2016).

Bounds and categories are stated, and never read off the data. A missing value, or one that is not listed, is refused:
it is for the holder of the rows to say what stands in its place (None can be a listed category).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.accounting.conversions import Cost
from tacit.learn.estimators.frames import columns_of
from tacit.learn.estimators.model_plan import Features, Floats, unit_of
from tacit.learn.randomized.reports import Owners, ReportPlan, require_replace_one_budget
from tacit.ledger import Budget, Permit
from tacit.measuring.moments import SQUARE_STEPS
from tacit.mechanisms import Geometric, RandomizedResponse
from tacit.mechanisms.randomness import SIMULATED, SYSTEM, RandomSource
from tacit.mechanisms.simulation import SeededSource
from tacit.privacy.arguments import column_mapping
from tacit.privacy.errors import InvalidInput, NotBounded, NotFinite, OutOfRange
from tacit.privacy.events import composed
from tacit.privacy.figures import at_most
from tacit.privacy.numbers import parameter, rounded_down
from tacit.privacy.tables import Kind
from tacit.privacy.units import Relation
from tacit.stats.array_sums import ArrayColumn
from tacit.stats.preparation import CommonOptions, StatisticInputs
from tacit.stats.rows import ColumnSteps, Cut
from tacit.stats.stated_kinds import LEARN, kind_of_bounds, kind_of_keys

Randomiser: TypeAlias = Geometric | RandomizedResponse
FeatureReports: TypeAlias = tuple[NDArray[np.int64], ...]
"""For each column the noisy steps of its numbers, or the reported cells of its categories."""


@dataclass(frozen=True, eq=False)
class RandomizedRows:
    """Reported rows, and all public facts of how they were made."""

    features: Features = field(repr=False)
    randomisers: tuple[Randomiser, ...] = field(repr=False)
    reports: FeatureReports = field(repr=False)
    epsilon: float
    """The privacy of each unit's rows."""
    epsilon_of_value: float
    cost: Cost
    permit: Permit | None = field(repr=False)
    card: str = field(repr=False)

    def __len__(self) -> int:
        return len(self.reports[0])

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """The reported values by column; numbers may lie beyond their bounds."""
        found: dict[str, NDArray[Any]] = {}
        for one, values in zip(self.features.columns, self.reports, strict=True):
            if isinstance(one, Cut):
                listed = np.empty(one.cells, dtype=object)
                listed[:] = one.values
                found[one.column] = (listed if None in one.values else np.array(one.values))[values]
            else:
                found[one.column] = values * float(one.step) + one.centre
        return found

    @property
    def noise_variances(self) -> dict[str, float]:
        """The variance of the noise of each numeric column, in the square of its unit."""
        return {
            one.column: variance_of(law) * float(one.step) ** 2
            for one, law in zip(self.features.columns, self.randomisers, strict=True)
            if isinstance(one, ColumnSteps) and isinstance(law, Geometric)
        }

    @property
    def matrices(self) -> dict[str, Floats]:
        """P(report | category) of each categorical column, categories x reports."""
        found = {}
        for one, law in zip(self.features.columns, self.randomisers, strict=True):
            if isinstance(law, RandomizedResponse):
                found[one.column] = np.full((law.categories, law.categories), law.lie_probability)
                np.fill_diagonal(found[one.column], law.truth_probability)
        return found

    @property
    def encoded(self) -> Floats:
        """Rows whose expected value, over the noise, is `features.encode` of the true ones."""
        parts: list[Floats] = []
        for one, law, values in zip(self.features.columns, self.randomisers, self.reports, strict=True):
            if isinstance(law, RandomizedResponse):
                parts.append(law.unbiased(values))
            elif isinstance(one, ColumnSteps):
                parts.append(np.asarray(values * (float(one.step) / unit_of(one)))[:, None])
        return np.concatenate(parts, axis=1)

    def take(self, names: tuple[str, ...]) -> RandomizedRows:
        """Return some of the columns; an unknown name raises."""
        for name in names:
            if name not in self.features.names:
                raise InvalidInput(f"there is no randomised column {name!r}", name="target", value=name)
        places = [self.features.names.index(name) for name in names]
        columns, kinds = self.features.columns, self.features.kinds
        features = Features(tuple(columns[place] for place in places), tuple(kinds[place] for place in places))
        laws, reports = self.randomisers, self.reports
        return replace(
            self,
            features=features,
            randomisers=tuple(laws[place] for place in places),
            reports=tuple(reports[place] for place in places),
        )


def randomize_features(
    X: Any,  # noqa: N803
    *,
    epsilon: Any,
    budget: Budget,
    bounds: Any = None,
    categories: Any = None,
    unit: Any = None,
    rows_per_unit: Any = None,
    purpose: str = "",
    _source: RandomSource = SYSTEM,
) -> RandomizedRows:
    """Charge epsilon and return randomised rows (module docstring); errors before the charge spend nothing.

    X               a frame, a mapping from names to columns, or an array, whose columns are x0, x1, ...; a target that
                    is private too is one of the columns
    bounds          of numbers: one pair, or a mapping from names to pairs
    categories      a mapping from names to lists of values
    unit            whose row each is, public; without it each row is a unit
    rows_per_unit   the most rows of a unit, by which epsilon is divided
    """
    require_replace_one_budget(budget)
    columns = columns_of(X)
    owners = Owners.of(unit, rows_per_unit, len(next(iter(columns.values()))))
    share = rounded_down(parameter("epsilon", owners.epsilon_of_row(epsilon)) / len(columns))
    features = _public_facts(columns, bounds, categories, CommonOptions(budget=budget, epsilon=epsilon))
    exact = list(map(_read, features.columns, features.kinds, columns.values()))
    laws = tuple(_randomiser(one, share) for one in features.columns)
    for law in laws:
        law.release(0, source=SeededSource(0))  # raises, before the charge, for noise that is too wide to be sampled

    def draw(source: RandomSource) -> FeatureReports:
        return tuple(np.asarray(law.release(values, source=source)) for law, values in zip(laws, exact, strict=True))

    event = owners.event(composed([law.event for law in laws]))
    found = ReportPlan(f"{len(exact[0]):,} randomised rows", event, draw).release(budget, purpose, _source)
    card = (
        f"{len(exact[0]):,} rows of which each of {len(laws)} values was randomised at epsilon {at_most(share)}: "
        f"{', '.join(features.names)}. Protects {owners.in_words}, whatever is known of all others. Neighbouring data: "
        f"one unit's rows, and others in their place. It cost {found.cost.in_words(Relation.REPLACE_ONE)}."
        + (f" {SIMULATED}" if _source.simulated else "")
    )
    return RandomizedRows(features, laws, found.answer, float(epsilon), share, found.cost, found.permit, card)


def _public_facts(columns: Mapping[str, Any], bounds: Any, categories: Any, options: CommonOptions) -> Features:
    """Return the stated bounds and categories of all columns, or raise."""
    listed = column_mapping("categories", categories)
    named = column_mapping("bounds", bounds) if isinstance(bounds, Mapping) else dict.fromkeys(columns, bounds)
    for name in (*listed, *named):
        if name not in columns:
            raise InvalidInput(f"there is no column {name!r} to have bounds or categories", value=name)
    kinds = {
        name: kind_of_keys(listed[name]) if name in listed else kind_of_bounds(named.get(name)) for name in columns
    }
    declared = {name: kind for name, kind in kinds.items() if name in listed and kind is not None}
    inputs = StatisticInputs(columns, CommonOptions(**options, kind=declared), kinds)
    found: list[ColumnSteps | Cut] = []
    for name in columns:
        stated, kind = named.get(name), inputs.kind(name)
        if name in listed or kind in (Kind.TEXT, Kind.BOOLEAN):
            found.append(inputs.cut(name, listed.get(name), what="categories"))
        elif isinstance(stated, str) and stated == LEARN:
            raise NotBounded("bounds of randomised rows are stated, not learnt", accepted="give bounds=(low, high)")
        else:
            found.append(inputs.scale(name, stated, SQUARE_STEPS))
    return Features(tuple(found), tuple(map(inputs.kind, columns)))


def _read(one: ColumnSteps | Cut, kind: Kind, values: Any) -> NDArray[np.int64]:
    """Return the true steps or cells of a column, or raise an error about a value that has none."""
    column = ArrayColumn(one.column, values, kind)
    if isinstance(one, ColumnSteps):
        if column.missing.any():
            raise NotFinite(f"{one.column} has missing values (NaN), or values that are no numbers", name=one.column)
        return column.steps(one)
    cells = column.cells(one)
    if (cells < 0).any():
        raise OutOfRange(f"{one.column} has missing values, or others than its categories", name=one.column)
    return cells


def _randomiser(one: ColumnSteps | Cut, epsilon: float) -> Randomiser:
    if isinstance(one, ColumnSteps):
        return Geometric(max(1, one.high - one.low), epsilon, relation=Relation.REPLACE_ONE)
    if one.cells < 2:
        raise InvalidInput(f"{one.column} has one category only, which tells nothing: leave the column out")
    return RandomizedResponse(epsilon, one.cells)


def variance_of(law: Geometric) -> float:
    """Return the variance of two-sided geometric noise: 2 r / (1 - r)^2 with r = e^(-1 / scale)."""
    rate = float(1 / law.scale)
    return 2 * math.exp(-rate) / math.expm1(-rate) ** 2
