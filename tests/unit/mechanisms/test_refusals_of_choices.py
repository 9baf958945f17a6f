"""Wrong use of the mechanisms that choose, test and fit their noise: each is refused by its own error and code."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tacit.mechanisms import (
    AboveThreshold,
    Exponential,
    ExponentialDensity,
    InterquartileRange,
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
from tacit.privacy import Relation
from tacit.privacy.errors import (
    EmptyInput,
    Exhausted,
    InvalidInput,
    NotFinite,
    NotPositive,
    OutOfRange,
    TacitError,
    TooLarge,
    WrongType,
)

CODES = {
    InvalidInput: "T100",
    NotPositive: "T101",
    NotFinite: "T102",
    OutOfRange: "T103",
    WrongType: "T104",
    EmptyInput: "T105",
    TooLarge: "T106",
    Exhausted: "T201",
}
WITH_EPSILON: dict[str, Callable[[Any], object]] = {
    "Exponential": lambda epsilon: Exponential(1, epsilon),
    "PermuteAndFlip": lambda epsilon: PermuteAndFlip(1, epsilon),
    "ReportNoisyMax": lambda epsilon: ReportNoisyMax(1, epsilon),
    "TopK": lambda epsilon: TopK(1, epsilon, 1),
    "ExponentialDensity": lambda epsilon: ExponentialDensity(1, epsilon, 0.0, 1.0),
    "RandomizedResponse": lambda epsilon: RandomizedResponse(epsilon),
    "SparseVector": lambda epsilon: SparseVector(1, epsilon, 0),
    "AboveThreshold": lambda epsilon: AboveThreshold(1, epsilon, 0),
    "SmoothSensitivity": lambda epsilon: SmoothSensitivity(epsilon, 1),
    "SmoothMedian": lambda epsilon: SmoothMedian(epsilon, 0.0, 1.0),
    "SubsampleAggregate": lambda epsilon: SubsampleAggregate(epsilon, 0.0, 1.0, 3),
    "StableMode": lambda epsilon: StableMode(epsilon, 1e-6),
    "InterquartileRange": lambda epsilon: InterquartileRange(epsilon, 1e-6),
}
WITH_SENSITIVITY: dict[str, Callable[[Any], object]] = {
    "Exponential": lambda sensitivity: Exponential(sensitivity, 1),
    "PermuteAndFlip": lambda sensitivity: PermuteAndFlip(sensitivity, 1),
    "ReportNoisyMax": lambda sensitivity: ReportNoisyMax(sensitivity, 1),
    "TopK": lambda sensitivity: TopK(sensitivity, 1, 1),
    "ExponentialDensity": lambda sensitivity: ExponentialDensity(sensitivity, 1, 0.0, 1.0),
    "SparseVector": lambda sensitivity: SparseVector(sensitivity, 1, 0),
}
BAD_POSITIVES: list[tuple[Any, type[TacitError]]] = [
    (0, NotPositive),
    (-1, NotPositive),
    (-0.0, NotPositive),
    (math.nan, NotFinite),
    (math.inf, NotFinite),
    (True, WrongType),
    ("1", WrongType),
    ([1], WrongType),
    (np.array([1.0, 2.0]), WrongType),
    (1j, WrongType),
    (2**1001, TooLarge),
]
BOUNDED: dict[str, Callable[[Any, Any], object]] = {
    "ExponentialDensity": lambda lower, upper: ExponentialDensity(1, 1, lower, upper),
    "SmoothMedian": lambda lower, upper: SmoothMedian(1, lower, upper),
    "SubsampleAggregate": lambda lower, upper: SubsampleAggregate(1, lower, upper, 3),
}
BAD_BOUNDS: list[tuple[Any, Any, type[TacitError]]] = [
    (1.0, 1.0, OutOfRange),
    (2.0, 1.0, OutOfRange),
    (0.0, math.inf, NotFinite),
    (math.nan, 1.0, NotFinite),
    ("0", "1", WrongType),
    (0.0, date(2020, 1, 1), WrongType),
    (date(2020, 1, 1), date(2021, 1, 1), WrongType),
    (-1.5e308, 1.5e308, TooLarge),
]


def require_refusal(call: Callable[[], object], expected: type[TacitError]) -> None:
    with pytest.raises(TacitError) as refused:
        call()
    assert type(refused.value) is expected
    assert refused.value.code == CODES[expected]
    assert refused.value.message


@pytest.mark.parametrize(("value", "expected"), BAD_POSITIVES)
@pytest.mark.parametrize("name", list(WITH_EPSILON))
def test_an_epsilon_that_is_no_finite_number_above_zero_is_refused(
    name: str, value: Any, expected: type[TacitError]
) -> None:
    require_refusal(lambda: WITH_EPSILON[name](value), expected)


@pytest.mark.parametrize("name", [name for name in WITH_EPSILON if name != "RandomizedResponse"])
def test_a_missing_epsilon_is_refused(name: str) -> None:
    require_refusal(lambda: WITH_EPSILON[name](None), WrongType)


@pytest.mark.parametrize(("value", "expected"), [*BAD_POSITIVES, (None, WrongType)])
@pytest.mark.parametrize("name", list(WITH_SENSITIVITY))
def test_a_sensitivity_that_is_no_finite_number_above_zero_is_refused(
    name: str, value: Any, expected: type[TacitError]
) -> None:
    require_refusal(lambda: WITH_SENSITIVITY[name](value), expected)


@pytest.mark.parametrize(("lower", "upper", "expected"), BAD_BOUNDS)
@pytest.mark.parametrize("name", list(BOUNDED))
def test_bounds_that_leave_no_finite_range_are_refused(
    name: str, lower: Any, upper: Any, expected: type[TacitError]
) -> None:
    require_refusal(lambda: BOUNDED[name](lower, upper), expected)


PARAMETERS: dict[str, tuple[Callable[[], object], type[TacitError]]] = {
    "more epsilon than a double holds": (lambda: Exponential(1e-300, 1e300), TooLarge),
    "more epsilon than a double holds, among k": (lambda: TopK(1e-300, 1e300, 2), TooLarge),
    "no k": (lambda: TopK(1, 1, 0), OutOfRange),
    "half a k": (lambda: TopK(1, 1, 1.5), WrongType),  # type: ignore[arg-type]
    "monotonic in words": (lambda: Exponential(1, 1, "no"), WrongType),  # type: ignore[arg-type]
    "monotonic in words, among k": (lambda: TopK(1, 1, 1, "no"), WrongType),  # type: ignore[arg-type]
    "monotonic in words, for questions": (lambda: SparseVector(1, 1, 0, 1, "no"), WrongType),  # type: ignore[arg-type]
    "no cells": (lambda: ExponentialDensity(1, 1, 0.0, 1.0, 0), OutOfRange),
    "too many cells": (lambda: ExponentialDensity(1, 1, 0.0, 1.0, 2**20 + 1), TooLarge),
    "neither epsilon nor truth": (lambda: RandomizedResponse(), InvalidInput),
    "both epsilon and truth": (lambda: RandomizedResponse(1, truth=0.75), InvalidInput),
    "a sure truth": (lambda: RandomizedResponse(truth=1), OutOfRange),
    "no truth": (lambda: RandomizedResponse(truth=0), OutOfRange),
    "truth like a guess": (lambda: RandomizedResponse(truth=0.5), OutOfRange),
    "truth below a guess among four": (lambda: RandomizedResponse(categories=4, truth=0.25), OutOfRange),
    "truth that is no number": (lambda: RandomizedResponse(truth=math.nan), NotFinite),
    "one category": (lambda: RandomizedResponse(1, 1), OutOfRange),
    "half a category": (lambda: RandomizedResponse(1, 2.5), WrongType),  # type: ignore[arg-type]
    "too many categories": (lambda: RandomizedResponse(1, 2**32 + 1), TooLarge),
    "no positives": (lambda: SparseVector(1, 1, 0, 0), OutOfRange),
    "half a positive": (lambda: SparseVector(1, 1, 0, 0.5), WrongType),  # type: ignore[arg-type]
    "two positives above one threshold": (lambda: AboveThreshold(1, 1, 0, 2), WrongType),
    "an endless threshold": (lambda: SparseVector(1, 1, math.inf), NotFinite),
    "a threshold in words": (lambda: SparseVector(1, 1, "0"), WrongType),  # type: ignore[arg-type]
    "an epsilon too small for smoothness": (lambda: SmoothSensitivity(1e-7, 1), OutOfRange),
    "a grid that is no power of two": (lambda: SmoothSensitivity(1, 0.3), OutOfRange),
    "a grid of zero": (lambda: SmoothSensitivity(1, 0), NotPositive),
    "a median of a secret number": (lambda: SmoothMedian(1, 0.0, 1.0, relation=Relation.ADD_REMOVE), OutOfRange),
    "blocks of a secret number": (lambda: SubsampleAggregate(1, 0, 1, 3, relation=Relation.ADD_REMOVE), OutOfRange),
    "a range of a secret number": (lambda: InterquartileRange(1, 1e-6, relation=Relation.ADD_REMOVE), OutOfRange),
    "two blocks": (lambda: SubsampleAggregate(1, 0.0, 1.0, 2), OutOfRange),
    "a delta of zero": (lambda: StableMode(1, 0), OutOfRange),
    "a delta of one": (lambda: StableMode(1, 1), OutOfRange),
    "a delta of zero for a range": (lambda: InterquartileRange(1, 0), OutOfRange),
    "a delta that is no number": (lambda: InterquartileRange(1, math.nan), NotFinite),
    "a base of one": (lambda: InterquartileRange(1, 1e-6, base=1), OutOfRange),
    "a base that doubles take for one": (lambda: InterquartileRange(1, 1e-6, base=1 + Fraction(1, 10**20)), OutOfRange),
    "a base in words": (lambda: InterquartileRange(1, 1e-6, base="two"), WrongType),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("case", list(PARAMETERS))
def test_a_wrong_parameter_is_refused(case: str) -> None:
    require_refusal(*PARAMETERS[case])


SCORES: list[tuple[Any, type[TacitError]]] = [
    ([], EmptyInput),
    (5, WrongType),
    ([[1, 2], [3, 4]], WrongType),
    ([[1, 2], [3]], WrongType),
    (["a", "b"], WrongType),
    ([True, False], WrongType),
    (None, WrongType),
    ([1.0, math.nan], NotFinite),
    ([1.0, math.inf], NotFinite),
    (np.array(["1e4000", "0"], dtype=np.longdouble), WrongType),
    ([0, 2**62 + 1], TooLarge),
]


@pytest.mark.parametrize(("scores", "expected"), SCORES)
@pytest.mark.parametrize("mechanism", [Exponential(1, 1), PermuteAndFlip(1, 1), ReportNoisyMax(1, 1), TopK(1, 1, 1)])
def test_scores_that_are_no_list_of_finite_numbers_are_refused(
    mechanism: Any, scores: Any, expected: type[TacitError]
) -> None:
    require_refusal(lambda: mechanism.release(scores), expected)


@pytest.mark.parametrize(("values", "expected"), SCORES)
@pytest.mark.parametrize("mechanism", [SmoothMedian(1, 0.0, 1.0), InterquartileRange(1, 1e-6)])
def test_values_that_are_no_list_of_finite_numbers_are_refused(
    mechanism: Any, values: Any, expected: type[TacitError]
) -> None:
    require_refusal(lambda: mechanism.release(values), expected)


def exhausted() -> object:
    session = SparseVector(1, 1000, 0).start()
    while not session.exhausted:
        session.ask(100)
    return session.ask(100)


VALUES: dict[str, tuple[Callable[[], object], type[TacitError]]] = {
    "scores beyond the grid": (lambda: ReportNoisyMax(1.0, 1).release([0.0, 1e300]), TooLarge),
    "more than there are": (lambda: TopK(1, 1, 3).release([1, 2]), OutOfRange),
    "a density of another length": (
        lambda: ExponentialDensity(1, 1, 0.0, 1.0).release(lambda points: [1.0, 2.0]),
        WrongType,
    ),
    "a density that is no number": (
        lambda: ExponentialDensity(1, 1, 0.0, 1.0).release(lambda points: points * math.nan),
        NotFinite,
    ),
    "an answer beyond the categories": (lambda: RandomizedResponse(1, 3).release(3), OutOfRange),
    "a negative answer": (lambda: RandomizedResponse(1, 3).release([-1, 0]), OutOfRange),
    "an answer in words": (lambda: RandomizedResponse(1).release("yes"), WrongType),
    "an answer with a fraction": (lambda: RandomizedResponse(1).release(0.5), WrongType),
    "reports of nobody": (lambda: RandomizedResponse(1).estimate(np.array([], dtype=int)), EmptyInput),
    "an interval of nobody": (lambda: RandomizedResponse(1).interval(0.9, np.array([], dtype=int)), EmptyInput),
    "a sure prior": (lambda: RandomizedResponse(1).posterior(1), OutOfRange),
    "a question after the last answer": (exhausted, Exhausted),
    "a question about a list": (lambda: SparseVector(1, 1, 0).release([[1, 2]]), WrongType),
    "a question about words": (lambda: SparseVector(1, 1, 0).release(["high"]), WrongType),
    "a question about nothing finite": (lambda: SparseVector(1, 1, 0).release([math.inf]), NotFinite),
    "a question beyond the grid": (lambda: SparseVector(1, 1, 0).release([1e300]), TooLarge),
    "a threshold beyond the grid": (lambda: SparseVector(1, 1, 1e300).start(), TooLarge),
    "a value that is no number": (lambda: SmoothSensitivity(1, 1).release(math.nan, 1), NotFinite),
    "several values": (lambda: SmoothSensitivity(1, 1).release(np.array([1.0, 2.0]), 1), WrongType),
    "a negative bound": (lambda: SmoothSensitivity(1, 1).release(0, -1), OutOfRange),
    "an endless bound": (lambda: SmoothSensitivity(1, 1).release(0, math.inf), NotFinite),
    "fewer records than blocks": (lambda: SubsampleAggregate(1, 0.0, 1.0, 3).release([1, 2], np.mean), EmptyInput),
    "one record": (lambda: SubsampleAggregate(1, 0.0, 1.0, 3).release(1, np.mean), WrongType),
    "a mode of nothing where the number is public": (
        lambda: StableMode(1, 1e-6, relation=Relation.REPLACE_ONE).release([]),
        EmptyInput,
    ),
    "a mode of lists": (lambda: StableMode(1, 1e-6).release([[1], [2]]), WrongType),  # type: ignore[list-item]
    "quartiles of three": (lambda: InterquartileRange(1, 1e-6).release([1, 2, 3]), EmptyInput),
}


@pytest.mark.parametrize("case", list(VALUES))
def test_a_wrong_value_is_refused(case: str) -> None:
    require_refusal(*VALUES[case])


@pytest.mark.parametrize("level", [0, 1, -0.5, 2])
@pytest.mark.parametrize(
    "interval",
    [
        lambda level: Exponential(1, 1).interval(level, 5),
        lambda level: ReportNoisyMax(1, 1).interval(level, 5),
        lambda level: TopK(1, 1, 2).interval(level, 5),
        lambda level: ExponentialDensity(1, 1, 0.0, 1.0).interval(level, lambda points: points),
        lambda level: RandomizedResponse(1).interval(level, [0, 1]),
        lambda level: SparseVector(1, 1, 0).interval(level, 5),
        lambda level: SmoothSensitivity(1, 1).interval(level, 1),
        lambda level: SmoothMedian(1, 0.0, 1.0).interval(level),
        lambda level: SubsampleAggregate(1, 0.0, 1.0, 3).interval(level),
        lambda level: StableMode(1, 1e-6).interval(level),
        lambda level: InterquartileRange(1, 1e-6).interval(level),
    ],
)
def test_a_level_outside_zero_and_one_is_refused(interval: Callable[[float], object], level: float) -> None:
    require_refusal(lambda: interval(level), OutOfRange)
