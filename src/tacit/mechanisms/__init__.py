"""Mechanisms with exact noise; the docstring of each module states their promise.

Every mechanism is a frozen object with `release`, `event` and `interval`. Randomness comes from the operating system.

    noise on numbers              Laplace, Geometric, Gaussian, DiscreteGaussian
    private selection             Exponential, ExponentialDensity, PermuteAndFlip, ReportNoisyMax, TopK
    a person's own answer         RandomizedResponse
    many threshold questions      SparseVector, AboveThreshold
    noise scaled to the data      SmoothSensitivity, SmoothMedian, SubsampleAggregate
    propose, test, release        StableMode, InterquartileRange
    selection of groups           KeySelection
    unknown bounds                ApproximateBounds

The exact samplers are in `tacit.mechanisms.exact_sampling` and `tacit.mechanisms.integer_sampler`.
"""

from tacit.mechanisms.approximate_bounds import ApproximateBounds
from tacit.mechanisms.gaussian import DiscreteGaussian, Gaussian
from tacit.mechanisms.laplace import Geometric, Laplace
from tacit.mechanisms.mechanism import Interval, Mechanism
from tacit.mechanisms.partition_selection import KeySelection
from tacit.mechanisms.propose_test_release import InterquartileRange, StableMode
from tacit.mechanisms.randomized_response import RandomizedResponse
from tacit.mechanisms.selection import Exponential, ExponentialDensity, PermuteAndFlip, ReportNoisyMax, TopK
from tacit.mechanisms.smooth_sensitivity import SmoothMedian, SmoothSensitivity, SubsampleAggregate
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
