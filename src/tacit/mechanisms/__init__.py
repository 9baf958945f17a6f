"""Mechanisms with exact noise: one file a mechanism, with its promise.

Every mechanism is a frozen object with `release`, `event` and `interval`. Randomness comes from the operating system.
Numbers: `Laplace`, `Geometric`, `Gaussian`, `DiscreteGaussian`. Choices: `Exponential`, `ExponentialDensity`,
`PermuteAndFlip`, `ReportNoisyMax`, `TopK`. A person's own answer: `RandomizedResponse`. Many questions:
`SparseVector`, `AboveThreshold`. Noise fitted to the data: `SmoothSensitivity`, `SmoothMedian`, `SubsampleAggregate`,
`StableMode`, `InterquartileRange`. Which groups are shown: `KeySelection`. Unknown bounds: `ApproximateBounds`.
The samplers beneath them: `tacit.mechanisms.samplers`.
"""

from tacit.mechanisms.approximate_bounds import ApproximateBounds
from tacit.mechanisms.gaussian import DiscreteGaussian, Gaussian
from tacit.mechanisms.laplace import Geometric, Laplace
from tacit.mechanisms.mechanism import Interval, Mechanism
from tacit.mechanisms.partition import KeySelection
from tacit.mechanisms.propose import InterquartileRange, StableMode
from tacit.mechanisms.randomized_response import RandomizedResponse
from tacit.mechanisms.selection import Exponential, ExponentialDensity, PermuteAndFlip, ReportNoisyMax, TopK
from tacit.mechanisms.smooth import SmoothMedian, SmoothSensitivity, SubsampleAggregate
from tacit.mechanisms.sparse_vector import AboveThreshold, SparseVector

__all__ = [
    "AboveThreshold",
    "ApproximateBounds",
    "DiscreteGaussian",
    "Exponential",
    "ExponentialDensity",
    "Gaussian",
    "Geometric",
    "InterquartileRange",
    "Interval",
    "KeySelection",
    "Laplace",
    "Mechanism",
    "PermuteAndFlip",
    "RandomizedResponse",
    "ReportNoisyMax",
    "SmoothMedian",
    "SmoothSensitivity",
    "SparseVector",
    "StableMode",
    "SubsampleAggregate",
    "TopK",
]
