"""Randomised labels: k-ary randomised response on each label, charged before a label leaves.

    released = tacit.learn.randomize_labels(y, classes=range(10), epsilon=1.0, budget=budget)
    released.labels, released.matrix, released.likelihoods, released.cost, released.card

Promise (label differential privacy: Chaudhuri, Hsu 2011; neighbours: the labels of one unit replaced by others, while
features, units and the number of rows are public): each label y is reported by a randomiser whose law differs by at
most a factor of e^epsilon between any two labels, independently of other rows, so all reports are epsilon-private.

Without a prior the randomiser is randomised response over all classes (Warner 1965; Kairouz, Bonawitz, Ramage 2016).
With a public prior p it is RRWithPrior (Ghazi, Golowich, Kumar, Manurangsi, Zhang 2021, algorithms 1 and 2): Y holds
the k likeliest classes, with the k that maximises P(report = y) = (sum of p over Y) / (1 + (k - 1) e^-epsilon).
A label in Y is reported as by randomised response over Y, any other one as a uniform class of Y.

Theorem (RRTop-k is epsilon-private for every Y): a report r in Y has the probability t = 1 / (1 + (k - 1) e^-epsilon)
for y = r, e^-epsilon t for another y in Y, and 1 / k for y outside of Y, which is the mean of the others over Y and so
lies between t and e^-epsilon t. Y follows from public numbers alone, so RRWithPrior is as private.
Theorem (optimality, theorem 3 there): among all epsilon-private randomisers none reports the true label with a greater
probability under p. With a(y) the probability that y is reported truly, privacy asks a(y) + e^-epsilon times the sum of
the other a to be at most 1; the linear program over a has its vertices at a = t on a set of k classes and 0 elsewhere.

Event: `RandomizedResponse`, over all classes without a prior, and over two with one, since the privacy curve of two is
above that of every epsilon-private randomiser (Kairouz, Oh, Viswanath 2015). A unit with several rows has an epsilon
divided by their greatest number, composed.

Two stages (LP-2ST there): with a function as prior, a uniformly random half of the units is randomised without a prior,
the function makes a prior of their reports, and the other half is randomised with it. Each unit's labels are read in
one half only, so the charge is that of one randomiser (parallel composition, also if the second half's randomiser is
chosen by the first half's reports).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.accounting.conversions import Cost
from tacit.learn.estimators.parameters import in_words
from tacit.learn.randomized.reports import Owners, ReportPlan, require_replace_one_budget
from tacit.ledger import Budget, Permit
from tacit.mechanisms import RandomizedResponse
from tacit.mechanisms.exact_sampling import integers_below, permutation
from tacit.mechanisms.randomness import SIMULATED, SYSTEM, RandomSource
from tacit.privacy import events
from tacit.privacy.errors import InvalidInput, NotFinite, OutOfRange, TacitError, TooLarge, WrongType
from tacit.privacy.figures import at_most
from tacit.privacy.units import Relation
from tacit.stats.array_sums import ArrayColumn
from tacit.stats.rows import Cut
from tacit.stats.stated_kinds import kind_of_keys

Floats: TypeAlias = NDArray[np.float64]

PRIOR_SLACK: Final = 1e-6
"""How far the sum of a prior may be from 1; it is then divided by its sum."""
MATRIX_CELLS_MAX: Final = 10_000_000


class LabelReports(NamedTuple):
    """What leaves."""

    codes: NDArray[np.int64]
    kept: NDArray[np.bool_]
    """Which classes each row could report, or one row for all of them."""
    failure: str = ""
    """Why a function that makes a prior failed."""


@dataclass(frozen=True, eq=False)
class RandomizedLabels:
    """Reported labels, and all public facts of how they were made."""

    labels: NDArray[Any]
    """The reported label of each row."""
    classes: NDArray[Any]
    epsilon: float
    """The privacy of each unit's labels."""
    epsilon_of_label: float
    """The privacy of each label: less than epsilon where a unit has several rows."""
    codes: NDArray[np.int64] = field(repr=False)
    """The places of the reported labels among the classes."""
    kept: NDArray[np.bool_] = field(repr=False)
    """Which classes could be reported: one row for each label, or one for all of them."""
    cost: Cost
    permit: Permit | None = field(repr=False)
    card: str = field(repr=False)

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, rows: Any) -> RandomizedLabels:
        """Return the labels at some places."""
        places = np.asarray(rows)
        if places.dtype.kind not in "iu" or places.ndim != 1:
            raise WrongType("rows must be a list of places among the labels", name="rows")
        if places.size and not 0 <= int(places.min()) <= int(places.max()) < len(self):
            raise OutOfRange(f"rows must be places among {len(self):,} labels", name="rows")
        kept = self.kept if len(self.kept) == 1 else self.kept[places]
        return replace(self, labels=self.labels[places], codes=self.codes[places], kept=kept)

    @property
    def keeps_all(self) -> bool:
        """Whether every label could be reported as any class, so that the transition matrices have inverses."""
        return bool(self.kept.all())

    @property
    def matrix(self) -> Floats:
        """P(report | label), labels x reports; one matrix for each row where they differ."""
        rows, classes = self.kept.shape
        if rows * classes**2 > MATRIX_CELLS_MAX:
            raise TooLarge("the matrices of all rows are too many numbers; use likelihoods", name="matrix")
        found = np.stack([self._given(self.kept, np.full(rows, code)) for code in range(classes)], axis=2)
        found *= self.kept[:, None, :]
        return found[0] if rows == 1 else found

    @property
    def likelihoods(self) -> Floats:
        """P(report of this row | label) for each row and each class that its label could be."""
        return self._given(np.broadcast_to(self.kept, (len(self), len(self.classes))), self.codes)

    @property
    def unbiased_weights(self) -> Floats:
        """A weight of each class for each row, 1 for the true one and 0 for others in expectation; some are negative.

        A loss that is summed over classes with these weights is unbiased (Natarajan et al. 2013).
        """
        self.require_inverse()
        return self._response.unbiased(self.codes)

    def debiased(self, probabilities: Any) -> Floats:
        """Return P(label | x) from P(report | x), rows x classes: multiplied by the inverse of the transition matrix.

        Rows are then projected to the nearest probabilities, in Euclidean distance.
        """
        self.require_inverse()
        given = np.asarray(probabilities, dtype=np.float64)
        if given.ndim != 2 or given.shape[1] != len(self.classes):
            raise WrongType("probabilities must have one column for each class", name="probabilities")
        lie = self._response.lie_probability
        return nearest_probabilities((given - lie) / (self._response.truth_probability - lie))

    def require_inverse(self) -> None:
        """Raise unless the transition matrices have inverses."""
        if not self.keeps_all:
            raise InvalidInput(
                "with a prior some labels are never reported, so that no weights are unbiased; use the forward "
                "correction, or likelihoods"
            )

    @property
    def _response(self) -> RandomizedResponse:
        return RandomizedResponse(self.epsilon_of_label, len(self.classes))

    def _given(self, kept: NDArray[np.bool_], codes: NDArray[np.int64]) -> Floats:
        """Return the probability of reporting `codes`, which are kept, for each row and label."""
        size = kept.sum(axis=1, keepdims=True)
        lie = math.exp(-self.epsilon_of_label)
        truth = 1 / (1 + (size - 1) * lie)
        is_report = codes[:, None] == np.arange(kept.shape[1])
        return np.asarray(np.where(kept, np.where(is_report, truth, lie * truth), 1 / size))


def randomize_labels(
    y: Any,
    *,
    classes: Any,
    epsilon: Any,
    budget: Budget,
    prior: Any = None,
    unit: Any = None,
    rows_per_unit: Any = None,
    purpose: str = "",
    _source: RandomSource = SYSTEM,
) -> RandomizedLabels:
    """Charge epsilon and return randomised labels (module docstring); errors before the charge spend nothing.

    classes         all labels, public
    prior           public probabilities of the classes, one row for all labels or one for each; or a function
                    `prior(first, rows, others)`: `first` are the randomised labels of one half, at `rows`, and it
                    returns a prior for each of the rows `others`. If it fails, these are randomised without a prior,
                    and a warning says why
    unit            whose label each is, public; without it each row is a unit
    rows_per_unit   the most rows of a unit, by which epsilon is divided
    """
    plan = plan_labels(y, classes, epsilon, budget, prior, unit, rows_per_unit)
    return plan.release(budget, purpose, _source)


@dataclass(frozen=True, eq=False)
class LabelPlan:
    """A planned release of labels with its public facts."""

    codes: NDArray[np.int64] = field(repr=False)
    """The true labels, as places among the classes: private."""
    classes: NDArray[Any]
    owners: Owners
    epsilon: float
    epsilon_of_label: float
    prior: Floats | Callable[..., Any] | None

    @property
    def reports(self) -> ReportPlan[LabelReports]:
        """The plan for the pipeline."""
        sizes = len(self.classes) if self.prior is None else 2
        event = events.RandomizedResponse(self.epsilon_of_label, sizes, under=Relation.REPLACE_ONE)
        return ReportPlan(f"{len(self.codes):,} randomised labels", self.owners.event(event), self._draw)

    def release(self, budget: Budget, purpose: str, source: RandomSource) -> RandomizedLabels:
        """Charge the plan and return the randomised labels."""
        found = self.reports.release(budget, purpose, source)
        if failure := found.answer.failure:
            warnings.warn(
                f"half of the labels were randomised without a prior: {failure}", RuntimeWarning, stacklevel=4
            )
        return self._labels(found.answer, found.cost, found.permit, is_simulated=source.simulated)

    def _draw(self, source: RandomSource) -> LabelReports:
        if callable(self.prior):
            return self._two_stages(self.prior, source)
        return _reports(self.codes, len(self.classes), self.epsilon_of_label, self.prior, source)

    def _two_stages(self, prior: Callable[..., Any], source: RandomSource) -> LabelReports:
        """Return reports of one half of the units, and those of the other half with a prior made of the first."""
        codes, units, epsilon = self.codes, self.owners.units, self.epsilon_of_label
        count, classes = int(units.max()) + 1, len(self.classes)
        is_first = (permutation(count, source) < (count + 1) // 2)[units]
        rows, others = np.flatnonzero(is_first), np.flatnonzero(~is_first)
        found, kept = np.zeros_like(codes), np.ones((len(codes), classes), dtype=np.bool_)
        first = _reports(codes[rows], classes, epsilon, None, source)
        found[rows], failure, probabilities = first.codes, "", None
        cost = Cost(self.epsilon, 0.0, self.epsilon**2 / 2)
        try:
            probabilities = _prior(prior(self._labels(first, cost), rows.copy(), others.copy()), len(others), classes)
        except Exception as error:  # of the caller's function: of reports and public rows
            failure = error.message if isinstance(error, TacitError) else f"{type(error).__name__}: {error}"
        second = _reports(codes[others], classes, epsilon, probabilities, source)
        found[others], kept[others] = second.codes, second.kept
        return LabelReports(found, kept, failure)

    def _labels(
        self, reports: LabelReports, cost: Cost, permit: Permit | None = None, *, is_simulated: bool = False
    ) -> RandomizedLabels:
        """Return reports with their public facts."""
        restricted = "" if reports.kept.all() else ", restricted to the likeliest classes of a prior"
        card = (
            f"Randomised response on {len(reports.codes):,} labels of {len(self.classes)} classes, each at epsilon "
            f"{at_most(self.epsilon_of_label)}{restricted}. Protects the labels of {self.owners.in_words}, and nothing "
            "else: features are taken as public, by models that learn from these labels too. Neighbouring data: one "
            f"unit's labels, and others in their place. It cost {cost.in_words(Relation.REPLACE_ONE)}."
            + (f" {SIMULATED}" if is_simulated else "")
        )
        return RandomizedLabels(
            labels=np.asarray(self.classes[reports.codes]),
            classes=self.classes,
            epsilon=self.epsilon,
            epsilon_of_label=self.epsilon_of_label,
            codes=reports.codes,
            kept=reports.kept,
            cost=cost,
            permit=permit,
            card=card,
        )


def plan_labels(
    y: Any, classes: Any, epsilon: Any, budget: Any, prior: Any, unit: Any, rows_per_unit: Any
) -> LabelPlan:
    """Check all arguments and return the plan; nothing is charged."""
    require_replace_one_budget(budget)
    listed, codes = coded_labels(y, classes)
    owners = Owners.of(unit, rows_per_unit, len(codes))
    share = owners.epsilon_of_row(epsilon)
    stated = prior if prior is None or callable(prior) else _prior(prior, len(codes), len(listed))
    return LabelPlan(codes, listed, owners, float(epsilon), share, stated)


def coded_labels(y: Any, classes: Any) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the classes in the order that was given, and the place of each label among them."""
    listed = classes if isinstance(classes, np.ndarray) else np.asarray(list(classes) if _is_listed(classes) else [])
    values = listed.tolist()
    if listed.ndim != 1 or len(set(values)) < max(2, len(values)):
        raise InvalidInput("classes must be at least two different labels", name="classes")
    column = ArrayColumn("y", y, kind_of_keys(values))
    if column.missing.any():
        raise NotFinite("y has missing values (NaN), or values of another kind than the classes", name="y")
    codes = column.cells(Cut("y", tuple(values)))
    if (codes < 0).any():
        raise OutOfRange(f"y has labels that are not among the classes: {in_words(values)}", name="y")
    return listed, codes


def _is_listed(classes: Any) -> bool:
    return hasattr(classes, "__iter__") and not isinstance(classes, str | bytes | dict)


def _prior(given: Any, rows: int, classes: int) -> Floats:
    """Return a prior as probabilities, one row or `rows` of them, or raise."""
    try:
        found = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise WrongType("prior must hold probabilities of the classes", name="prior") from None
    found = found[None] if found.ndim == 1 else found
    if found.shape not in ((1, classes), (rows, classes)):
        raise WrongType(f"prior must hold {classes} probabilities, or as many for each of {rows:,} rows", name="prior")
    if not np.isfinite(found).all():
        raise NotFinite("prior has values that are NaN or infinite", name="prior")
    sums = found.sum(axis=1, keepdims=True)
    if (found < 0).any() or (np.abs(sums - 1) > PRIOR_SLACK).any():
        raise OutOfRange("prior must hold probabilities that are not negative and sum to 1", name="prior")
    return np.asarray(found / sums)


def likeliest(prior: Floats, epsilon: float) -> NDArray[np.bool_]:
    """Return which classes RRWithPrior keeps for each row of a prior."""
    order = np.argsort(-prior, axis=1, kind="stable")
    ranked = np.take_along_axis(prior, order, axis=1)
    others = np.arange(prior.shape[1])
    size = 1 + np.argmax(np.cumsum(ranked, axis=1) / (1 + others * math.exp(-epsilon)), axis=1)
    kept = np.zeros(prior.shape, dtype=np.bool_)
    np.put_along_axis(kept, order, others < size[:, None], axis=1)
    return kept


def _reports(
    codes: NDArray[np.int64], classes: int, epsilon: float, prior: Floats | None, source: RandomSource
) -> LabelReports:
    """Return a report of each label, by randomised response over the classes that its prior keeps."""
    if prior is None:
        reports = RandomizedResponse(epsilon, classes).release(codes, source=source)
        return LabelReports(np.asarray(reports), np.ones((1, classes), dtype=np.bool_))
    kept = likeliest(prior, epsilon)
    of_row = np.broadcast_to(kept, (len(codes), classes))
    sizes = of_row.sum(axis=1)
    found = np.empty(len(codes), dtype=np.int64)
    for size in np.unique(sizes).tolist():
        rows = np.flatnonzero(sizes == size)
        listed = np.nonzero(of_row[rows])[1].reshape(-1, size)
        # randomised response leaves a uniform answer uniform
        is_kept, place = listed == codes[rows, None], integers_below(size, len(rows), source)
        place = np.where(is_kept.any(axis=1), is_kept.argmax(axis=1), place)
        if size > 1:
            place = np.asarray(RandomizedResponse(epsilon, size).release(place, source=source))
        found[rows] = listed[np.arange(len(rows)), place]
    return LabelReports(found, kept)


def nearest_probabilities(weights: Floats) -> Floats:
    """Return the probabilities nearest to each row of weights (Duchi, Shalev-Shwartz, Singer, Chandra 2008)."""
    ranked = -np.sort(-weights, axis=1)
    places = np.arange(1, weights.shape[1] + 1)
    excess = (np.cumsum(ranked, axis=1) - 1) / places
    last = weights.shape[1] - np.argmax((ranked > excess)[:, ::-1], axis=1) - 1
    found = np.maximum(weights - np.take_along_axis(excess, last[:, None], axis=1), 0.0)
    return np.asarray(found / found.sum(axis=1, keepdims=True))
