"""Masked arrays are refused wherever private values are read: as plain arrays they would show what is hidden."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tacit
from tacit import stats
from tacit.mechanisms import (
    ApproximateBounds,
    DiscreteGaussian,
    Exponential,
    ExponentialDensity,
    Gaussian,
    Geometric,
    InterquartileRange,
    KeySelection,
    Laplace,
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
from tacit.privacy.errors import WrongType

INTS = np.ma.masked_array([1, 0, 1, 0], mask=[0, 1, 0, 0])
FLOATS = np.ma.masked_array([1.5, 2.5, 99.0, 4.0], mask=[0, 0, 1, 0])
READERS: dict[str, Callable[[Any], Any]] = {
    "Laplace": Laplace(1.0, 1).release,
    "Laplace interval": lambda values: Laplace(1.0, 1).interval(0.9, values),
    "Gaussian": Gaussian(1.0, sigma=1).release,
    "Geometric": Geometric(1, 1).release,
    "DiscreteGaussian": DiscreteGaussian(1, sigma=1).release,
    "Exponential": Exponential(1, 1).release,
    "PermuteAndFlip": PermuteAndFlip(1, 1).release,
    "ReportNoisyMax": ReportNoisyMax(1.0, 1).release,
    "TopK": TopK(1, 1, 2).release,
    "ExponentialDensity": lambda values: ExponentialDensity(1, 1, 0, 1, cells=4).release(lambda _: values),
    "RandomizedResponse": RandomizedResponse(1).release,
    "RandomizedResponse estimate": RandomizedResponse(1).estimate,
    "SparseVector": SparseVector(1, 1, 0).release,
    "SparseVector, one": lambda values: SparseVector(1, 1, 0).start().ask(values[0:1].reshape(())),
    "SmoothSensitivity": lambda values: SmoothSensitivity(1, 1).release(values[0:1].reshape(()), 1),
    "SmoothSensitivity bound": lambda values: SmoothSensitivity(1, 1).release(1, values[0:1].reshape(())),
    "SmoothMedian": SmoothMedian(1, 0, 9).release,
    "SubsampleAggregate": lambda values: SubsampleAggregate(1, 0, 9, 3).release(values, np.mean),
    "StableMode": StableMode(1, 1e-6).release,
    "InterquartileRange": InterquartileRange(1, 1e-6).release,
    "KeySelection": KeySelection(1, 1e-6).release,
    "ApproximateBounds": ApproximateBounds(1, 1, bins=2).release,
    "stats": lambda values: stats.mean(values, bounds=(0, 9), epsilon=1, budget=tacit.Budget(epsilon=1)),
}


@pytest.mark.parametrize("values", [INTS, FLOATS, np.ma.masked_array([1, 0, 1, 0])], ids=["ints", "floats", "nothing"])
@pytest.mark.parametrize("reader", list(READERS))
def test_a_masked_array_is_refused(reader: str, values: Any) -> None:
    with pytest.raises(WrongType, match="masked"):
        READERS[reader](values)


@pytest.mark.parametrize("reader", ["Laplace", "Exponential", "RandomizedResponse", "StableMode"])
@pytest.mark.parametrize("values", [[1, 0, np.ma.masked, 1], [INTS, INTS, INTS], (np.ma.masked, 1, 0)], ids=repr)
def test_a_list_that_holds_masked_values_is_refused(reader: str, values: Any) -> None:
    with pytest.raises(WrongType, match="masked"):
        READERS[reader](values)
