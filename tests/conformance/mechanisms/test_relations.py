"""Every mechanism under every relation: refused at construction, or held to its event on all small data sets.

Data sets are tuples over three values, each record one unit; neighbours are enumerated by brute force under the
relation. Output laws are worked out without drawing anything, as products of independent components, and the
divergence between neighbours, both ways, is compared with the curve of the mechanism's event. Where an output has too
many values, they are put together in public cells: that is post-processing and can only hide.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from itertools import permutations, product
from typing import Any, Final, TypeAlias
from unittest.mock import patch

import numpy as np
import pytest
from numpy.typing import NDArray

import tacit.mechanisms
from tacit import accounting
from tacit.mechanisms import (
    AboveThreshold,
    ApproximateBounds,
    DiscreteGaussian,
    Exponential,
    ExponentialDensity,
    Gaussian,
    Geometric,
    InterquartileRange,
    KeySelection,
    Laplace,
    Mechanism,
    PermuteAndFlip,
    RandomizedResponse,
    ReportNoisyMax,
    SmoothMedian,
    SmoothSensitivity,
    SparseVector,
    StableMode,
    SubsampleAggregate,
    TopK,
)
from tacit.mechanisms.propose_test_release import StabilityTest
from tacit.mechanisms.randomness import SYSTEM
from tacit.mechanisms.smooth_sensitivity import median_smooth_bound
from tacit.mechanisms.sparse_vector import SparseVectorSession
from tacit.privacy import Relation, events
from tacit.privacy.errors import InvalidInput, OutOfRange
from tacit.privacy.events import Event
from tests.conformance.mechanisms.exact_masses import all_points, cells_of, ints, law_of
from tests.statistical.evidence import Refuted
from tests.statistical.exact_laws import (
    exponential_law,
    laplace_at_least,
    laplace_mass,
    noisy_max_law,
    permute_and_flip_law,
)

Data: TypeAlias = tuple[int, ...]
Component: TypeAlias = Mapping[Hashable, float]
Law: TypeAlias = list[Component]
"""Independent parts of an output, each with its outcomes and their probabilities."""

VALUES: Final = (0, 1, 2)
EPSILON, DELTA = 1.0, 0.05
SHARES: Final = (0.0, 0.25, 0.5, 0.9, 1.0, 2.0)
"""The epsilons at which curves are compared, over the epsilon of a mechanism."""
ADD_REMOVE, REPLACE_ONE = Relation.ADD_REMOVE, Relation.REPLACE_ONE


# Data sets and their neighbours


def neighbours(relation: Relation, sizes: range, *, ordered: bool) -> set[tuple[Data, Data]]:
    """Return every pair of neighbouring data sets of these sizes; the order of records matters if `ordered`."""
    found = set()
    for size in sizes:
        for data in product(VALUES, repeat=size):
            for place in range(size):
                others = [()] if relation == ADD_REMOVE else [(other,) for other in VALUES if other != data[place]]
                found |= {(data, (*data[:place], *other, *data[place + 1 :])) for other in others}
    kept = {pair for pair in found if len(pair[1]) in sizes}
    return kept if ordered else {tuple(sorted(tuple(sorted(data)) for data in pair)) for pair in kept}  # type: ignore[misc]


def histogram(data: Data) -> list[int]:
    return [data.count(value) for value in VALUES]


def moved(relation: Relation, each: float = 1) -> Any:
    """How far neighbours are apart in a histogram: one count by `each`, or two."""
    return each if relation == ADD_REMOVE else 2 * each


# Divergences


def divergences(left: Law, right: Law, epsilons: Sequence[float]) -> list[float]:
    """Return the hockey-stick divergence at each epsilon, both ways; components that are the same in both cancel."""
    if len(left) != len(right):
        return [1.0] * len(epsilons)
    first, second = np.ones(1), np.ones(1)
    for one, two in zip(left, right, strict=True):
        if one != two:
            outcomes = list({**one, **two})
            first = np.multiply.outer(first, [one.get(outcome, 0.0) for outcome in outcomes]).ravel()
            second = np.multiply.outer(second, [two.get(outcome, 0.0) for outcome in outcomes]).ravel()
    return [
        float(max(np.maximum(0, p - math.exp(epsilon) * q).sum() for p, q in ((first, second), (second, first))))
        for epsilon in epsilons
    ]


@cache
def promised(event: Event, epsilon: float) -> float:
    return accounting.delta(event, epsilon).upper


# Laws


def noisy_counts(mechanism: Any, data: Data) -> Law:
    return [noisy_count(mechanism, count) for count in histogram(data)]


@cache
def noisy_count(mechanism: Any, count: int) -> Component:
    points = all_points(law_of(mechanism, ints(1), 0), 0, 60_000)
    assert points is not None
    cells = cells_of(mechanism, ints(len(points)), count, points)
    total = cells.total()
    return {cell: mass / total for cell, mass in cells.items()}


def listed(chances: Any) -> Law:
    return [dict(enumerate(np.asarray(chances).tolist()))]


def chosen_twice(mechanism: TopK, data: Data) -> Law:
    scores, factor, law = histogram(data), float(mechanism._single_choice.factor), {}
    first = exponential_law(scores, factor)
    for one in range(len(scores)):
        left = [place for place in range(len(scores)) if place != one]
        second = exponential_law([scores[place] for place in left], factor)
        law |= {(one, two): first[one] * chance for two, chance in zip(left, second, strict=True)}
    return [law]


def reports(mechanism: RandomizedResponse, data: Data) -> Law:
    truth, lie = mechanism.truth_probability, mechanism.lie_probability
    return [{value: truth if value == answer else lie for value in VALUES} for answer in data]


def sparse_answers(mechanism: SparseVector, data: Data) -> Law:
    """Go through every noise of the threshold; given it, the answers are independent.

    Asked is four times for the records that are not 0, then for those that are: a replaced record moves the two
    counts in opposite directions, and several answers together pin down the noise of the threshold.
    """
    threshold_scale, question_scale = mechanism._scales
    with patch("tacit.mechanisms.sparse_vector.sampler_for"):
        session = SparseVectorSession(mechanism, SYSTEM)
    questions = [len(data) - data.count(0)] * 4 + [data.count(0)]
    at, values = session._steps(float(mechanism.threshold)), [session._steps(one) for one in questions]
    noise = np.arange(-int(40 * threshold_scale), int(40 * threshold_scale) + 1)
    weight = laplace_mass(noise, threshold_scale)
    above = [laplace_at_least(at + noise - value, question_scale) for value in values]
    law: dict[Hashable, float] = {}
    for answers in product((False, True), repeat=len(values)):
        ends = [place + 1 for place in range(len(answers)) if sum(answers[: place + 1]) == mechanism.positives]
        given = answers[: ends[0]] if ends else answers
        if given in law:
            continue
        likely = weight
        for chance, answer in zip(above, given, strict=False):
            likely = likely * (chance if answer else 1 - chance)
        law[given] = float(likely.sum())
    return [law]


CUTS: Final = np.linspace(-40, 44, 5001)


def student(mechanism: SmoothSensitivity, value: float, bound: float, cuts: NDArray[np.float64]) -> NDArray[Any]:
    """Return the masses between public cuts, and beyond them, of Student noise around a value."""
    z = (cuts - value) * float(mechanism._sharpness) / bound
    below = 0.5 + z / (2 * np.sqrt(2 + z * z))
    return np.diff(np.concatenate([[0.0], below, [1.0]]))


def noisy_ones(mechanism: SmoothSensitivity, data: Data) -> Law:
    return listed(student(mechanism, data.count(1), 1.0, CUTS))


def median_masses(mechanism: SmoothMedian, values: Any) -> NDArray[Any]:
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    bound = median_smooth_bound(ordered, mechanism.lower, mechanism.upper, mechanism._noise.beta)
    cuts = np.linspace(mechanism.lower, mechanism.upper, 2001)  # what lies beyond is clamped to the ends
    return student(mechanism._noise, float(ordered[(len(ordered) - 1) // 2]), bound, cuts)


def median_law(mechanism: SmoothMedian, data: Data) -> Law:
    return listed(median_masses(mechanism, data))


def aggregate_law(mechanism: SubsampleAggregate, data: Data) -> Law:
    """Average over every order in which the records can be cut into blocks."""
    orders = list(permutations(range(len(data))))
    total = sum(
        median_masses(mechanism._median, [np.mean(np.array(data)[part]) for part in np.array_split(order, 3)])
        for order in orders
    )
    return listed(total / len(orders))


def passed(mechanism: Any, data: Any) -> list[tuple[Any, float]]:
    """Return what each stability test of a mechanism guards, and how likely it passes."""
    met: list[float] = []

    def passes(test: StabilityTest, distance: int, source: object) -> bool:
        met.append(float(laplace_at_least(np.array([test.threshold - distance]), 1 / test.epsilon)[0]))
        return len(met) > failures

    guarded = []
    for failures in range(2 if isinstance(mechanism, InterquartileRange) else 1):
        met.clear()
        with patch.object(StabilityTest, "passes", passes):
            answer = mechanism.release(data)
        guarded.append((answer, met[failures]))
    return guarded


def guarded_law(mechanism: Any, data: Data) -> Law:
    law: dict[Hashable, float] = {}
    left = 1.0
    for answer, chance in passed(mechanism, [float(value * value) for value in data]):
        law[answer] = law.get(answer, 0.0) + left * chance
        left *= 1 - chance
    return [{**law, None: law.get(None, 0.0) + left}]


def shown_keys(mechanism: KeySelection, data: Data) -> Law:
    return [{True: mechanism.chance(count), False: 1 - mechanism.chance(count)} for count in histogram(data)]


# The table


@dataclass(frozen=True)
class Case:
    """One way of using a mechanism: how it is made for a relation, its law, and the sizes of data that it takes."""

    make: Callable[[Relation], Any]
    law: Callable[[Any, Data], Law]
    sizes: range = range(4)
    refused: tuple[Relation, ...] = ()
    ordered: bool = False
    epsilon: float = EPSILON


def scored(kind: Any, law: Any, epsilon: float = EPSILON) -> tuple[Case, Case]:
    """Choices by a histogram, in which a count moves by 1; under add/remove all counts move one way."""
    make = partial(kind, 1, epsilon)
    return (
        Case(lambda relation: make(relation=relation), law, epsilon=epsilon),
        Case(lambda relation: make(monotonic=True, relation=relation), law, refused=(REPLACE_ONE,), epsilon=epsilon),
    )


def by_factor(law: Any) -> Callable[[Any, Data], Law]:
    return lambda mechanism, data: listed(law(histogram(data), float(mechanism.factor)))


IN_THE_TAILS: Final = 12.0
"""An epsilon so large that a count or two is far out in the noise, where a sparse vector loses most."""

ROOT_TWO: Final = math.nextafter(math.sqrt(2), 2)
CASES: Final[dict[type[Mechanism], tuple[Case, ...]]] = {
    Laplace: (Case(lambda relation: Laplace(moved(relation), EPSILON, relation=relation), noisy_counts),),
    Geometric: (Case(lambda relation: Geometric(moved(relation), EPSILON, relation=relation), noisy_counts),),
    Gaussian: (
        Case(
            lambda relation: Gaussian(1 if relation == ADD_REMOVE else ROOT_TWO, sigma=1.5, relation=relation),
            noisy_counts,
        ),
    ),
    DiscreteGaussian: (
        Case(
            lambda relation: DiscreteGaussian(1 if relation == ADD_REMOVE else ROOT_TWO, sigma=1.5, relation=relation),
            noisy_counts,
        ),
    ),
    Exponential: scored(Exponential, by_factor(exponential_law)),
    PermuteAndFlip: scored(PermuteAndFlip, by_factor(permute_and_flip_law)),
    ReportNoisyMax: scored(
        ReportNoisyMax, lambda mechanism, data: listed(noisy_max_law(histogram(data), 1 / mechanism.factor))
    ),
    TopK: scored(partial(TopK, k=2), chosen_twice),
    ExponentialDensity: (
        Case(
            lambda relation: ExponentialDensity(1, EPSILON, 0.0, 3.0, cells=3, relation=relation),
            lambda mechanism, data: listed(exponential_law(histogram(data), float(mechanism._choice.factor))),
        ),
    ),
    RandomizedResponse: (
        Case(
            lambda relation: RandomizedResponse(EPSILON, categories=3, relation=relation),
            reports,
            refused=(ADD_REMOVE,),
            ordered=True,
        ),
    ),
    SparseVector: tuple(
        case
        for count in (1, 2)
        for case in scored(partial(SparseVector, threshold=1, positives=count), sparse_answers, IN_THE_TAILS)
    ),
    AboveThreshold: scored(partial(AboveThreshold, threshold=2), sparse_answers, IN_THE_TAILS),
    SmoothSensitivity: (
        Case(lambda relation: SmoothSensitivity(EPSILON, Fraction(1, 8), relation=relation), noisy_ones),
    ),
    SmoothMedian: (
        Case(
            lambda relation: SmoothMedian(EPSILON, 0, 2, relation=relation),
            median_law,
            range(1, 5),
            refused=(ADD_REMOVE,),
        ),
    ),
    SubsampleAggregate: (
        Case(
            lambda relation: SubsampleAggregate(EPSILON, 0, 2, blocks=3, relation=relation),
            aggregate_law,
            range(3, 5),
            refused=(ADD_REMOVE,),
        ),
    ),
    StableMode: (
        Case(lambda relation: StableMode(EPSILON, DELTA, relation=relation), guarded_law, range(5), ordered=True),
    ),
    InterquartileRange: (
        Case(
            lambda relation: InterquartileRange(EPSILON, DELTA, relation=relation),
            guarded_law,
            range(4, 6),
            refused=(ADD_REMOVE,),
        ),
    ),
    KeySelection: (Case(lambda relation: KeySelection(EPSILON, DELTA, relation=relation), shown_keys, range(6)),),
    ApproximateBounds: (
        Case(
            lambda relation: ApproximateBounds(moved(relation), EPSILON, bins=2, relation=relation),
            lambda mechanism, data: noisy_counts(mechanism.noise, data),  # what follows is post-processing
        ),
    ),
}


def hold(mechanism: Any, case: Case) -> float:
    """Hold a mechanism to its event on every pair of neighbours; return the largest share of delta that is used."""
    law = cache(partial(case.law, mechanism))
    worst, epsilons = 0.0, [share * case.epsilon for share in SHARES]
    for one, two in neighbours(mechanism.relation, case.sizes, ordered=case.ordered):
        for epsilon, needed in zip(epsilons, divergences(law(one), law(two), epsilons), strict=True):
            allowed = promised(mechanism.event, epsilon)
            if needed > allowed * (1 + 1e-9) + 1e-12:
                raise Refuted(
                    f"{mechanism} on {one} and {two} needs a delta of {needed:.6g} at epsilon {epsilon:g}, "
                    f"and {allowed:.6g} is charged"
                )
            worst = max(worst, needed / allowed if allowed else 0.0)
    return worst


EVERY: Final = [
    pytest.param(case, relation, id=f"{kind.__name__}-{number}-{relation}")
    for kind, cases in CASES.items()
    for number, case in enumerate(cases)
    for relation in Relation
]


@pytest.mark.parametrize(("case", "relation"), EVERY)
def test_a_mechanism_is_refused_or_keeps_its_event_on_every_pair_of_neighbours(case: Case, relation: Relation) -> None:
    if relation in case.refused:
        with pytest.raises(OutOfRange):
            case.make(relation)
        return
    mechanism = case.make(relation)
    assert mechanism.event.relation is relation
    assert hold(mechanism, case) > 0.1, "a law that never comes near its promise tests nothing"


@pytest.mark.parametrize(("case", "relation"), EVERY)
def test_a_relation_that_is_given_by_its_name_is_that_relation(case: Case, relation: Relation) -> None:
    if relation in case.refused:
        with pytest.raises(OutOfRange):
            case.make(relation.value)
        return
    named = case.make(relation.value)
    assert named == case.make(relation)
    assert named.relation is relation
    with pytest.raises(InvalidInput, match="the relation is add-remove or replace-one"):
        case.make("bogus")


def test_every_public_mechanism_is_in_the_table() -> None:
    public = {getattr(tacit.mechanisms, name) for name in tacit.mechanisms.__all__}
    concrete = {one for one in public if isinstance(one, type) and issubclass(one, Mechanism)} - {Mechanism}
    assert concrete == set(CASES)


# Planted bugs


class OneGroupMoves(KeySelection):
    """Charges a replaced unit for the group that it leaves, and not for the one that it enters."""

    @property
    def event(self) -> Event:
        return events.Approximate(EPSILON, DELTA, under=self.relation)


def test_charging_one_group_for_a_replaced_unit_is_noticed() -> None:
    (case,) = CASES[KeySelection]
    assert hold(OneGroupMoves(EPSILON, DELTA), case) > 0.95
    with pytest.raises(Refuted):
        hold(OneGroupMoves(EPSILON, DELTA, relation=REPLACE_ONE), case)


@pytest.mark.parametrize("kind", [Exponential, PermuteAndFlip, ReportNoisyMax, SparseVector, AboveThreshold])
def test_half_the_noise_for_counts_that_move_both_ways_is_noticed(kind: Any) -> None:
    case = CASES[kind][0]
    mechanism = case.make(REPLACE_ONE)
    object.__setattr__(mechanism, "monotonic", True)
    with pytest.raises(Refuted):
        hold(mechanism, case)


def test_reports_whose_number_is_secret_are_noticed() -> None:
    (case,) = CASES[RandomizedResponse]
    mechanism = case.make(REPLACE_ONE)
    object.__setattr__(mechanism, "relation", ADD_REMOVE)
    with pytest.raises(Refuted):
        hold(mechanism, case)


@pytest.mark.parametrize("kind", [Laplace, Geometric, Gaussian, DiscreteGaussian, ApproximateBounds])
def test_the_sensitivity_of_the_other_relation_is_noticed(kind: Any) -> None:
    (case,) = CASES[kind]
    mechanism = case.make(ADD_REMOVE)
    object.__setattr__(mechanism, "relation", REPLACE_ONE)
    with pytest.raises(Refuted):
        hold(mechanism, case)
