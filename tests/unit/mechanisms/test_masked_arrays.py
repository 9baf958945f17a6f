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


ARRAYS = {"ints": INTS, "floats": FLOATS, "nothing": np.ma.masked_array([1, 0, 1, 0])}
LISTS = {"a list": [1, 0, np.ma.masked, 1], "a list of arrays": [INTS, INTS, INTS], "a tuple": (np.ma.masked, 1, 0)}
CASES = [
    *((reader, shown, values) for reader in READERS for shown, values in ARRAYS.items()),
    *(
        (reader, shown, values)
        for reader in ("Laplace", "Exponential", "RandomizedResponse", "StableMode")
        for shown, values in LISTS.items()
    ),
]


@pytest.mark.parametrize(
    ("reader", "values"),
    [pytest.param(reader, values, id=f"{reader} of {shown}") for reader, shown, values in CASES],
)
def test_masked_values_are_refused(reader: str, values: Any) -> None:
    with pytest.raises(WrongType, match="masked"):
        READERS[reader](values)
