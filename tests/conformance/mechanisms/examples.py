"""One example of every mechanism: its input, and what else its interval takes."""

from typing import Any

import numpy as np

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

VALUES = [1.0, 2.0, 5.0, 5.5, 7.0, 8.0, 9.5, 4.0]

EXAMPLES: list[tuple[Any, tuple[Any, ...], tuple[Any, ...]]] = [
    (Laplace(1.0, 0.5), (VALUES,), ()),
    (Geometric(2, 0.5), ([1, 2, 3],), ()),
    (Gaussian(1.0, 0.5, 1e-6), (VALUES,), ()),
    (DiscreteGaussian(1, rho=0.1), ([1, 2, 3],), ()),
    (Exponential(1, 0.5), ([1, 2, 3],), (3,)),
    (PermuteAndFlip(1, 0.5), ([1, 2, 3],), (3,)),
    (ReportNoisyMax(1, 0.5), ([1, 2, 3],), (3,)),
    (TopK(1, 0.5, 2), ([1, 2, 3],), (3,)),
    (ExponentialDensity(1, 0.5, 0.0, 1.0), (np.sin,), (np.sin,)),
    (RandomizedResponse(0.5), ([0, 1, 1],), ([0, 1, 1],)),
    (SparseVector(1, 0.5, 3, positives=2), ([1, 2, 3],), (3,)),
    (AboveThreshold(1, 0.5, 3), ([1, 2, 3],), (3,)),
    (SmoothSensitivity(0.5, 1 / 1024), (3.0, 1.0), (1.0,)),
    (SmoothMedian(0.5, 0, 10), (VALUES,), ()),
    (SubsampleAggregate(0.5, 0, 10, blocks=3), (VALUES, np.mean), ()),
    (StableMode(0.5, 1e-6), (["a"] * 99,), ()),
    (InterquartileRange(0.5, 1e-6), (list(range(3000)),), ()),
    (KeySelection(0.5, 1e-6), ([20, 25, 30],), ()),
    (ApproximateBounds(1, 0.5, bins=2), ([5, 5, 5, 5],), ()),
]
