"""Bounds for values of which nothing is known, learnt from noisy counts in logarithmic bins.

Promise: if neighbours (of either relation) differ by at most `sensitivity` in L1 over the counts of all bins, one
`release` is epsilon-differentially private (Laplace noise on a histogram; choosing bins afterwards is post-processing).

Bins (Wilson, Zhang, Lam, Desfontaines, Simmons-Marengo, Gipson 2020, section 5.1): for each sign `bins` of them, the
first from 0 to `scale`, the i-th after it from scale base^(i - 1) to scale base^i. The range goes from the lower edge
of the lowest bin to the upper edge of the highest bin whose noisy count passes a threshold t.

The threshold: with n = 2 `bins` bins in all, at most n - 1 are empty if there are data. With r = e^(-epsilon /
sensitivity) an empty bin passes with probability P(noise >= t) <= r^t / (1 + r), that of geometric noise at whole t
(Laplace noise has r^t / 2), so that none passes with probability at least (1 - r^t / (1 + r))^(n - 1). Setting this to
`success` gives t = -(sensitivity / epsilon) ln((1 - success^(1 / (n - 1))) (1 + r)). (Some printed versions count the
bins of one sign only.)

An empty bin that passes makes the range absurd, by powers of `base`, so `success` is near 1. What that costs is got
back next to bins that pass: from there the range grows over neighbours whose noisy counts pass t / 2, by one factor of
`base` each, whether they were empty or not. Where no bin passes, the fullest by its noisy count is taken; such bounds
are a guess, and `stands_out` says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, NamedTuple

import numpy as np

from tacit.mechanisms.laplace import Laplace
from tacit.mechanisms.mechanism import Interval, Mechanism
from tacit.mechanisms.randomness import SYSTEM, Source
from tacit.mechanisms.simulation import marked
from tacit.mechanisms.values import counts_of, vector_of
from tacit.privacy.errors import OutOfRange, WrongType
from tacit.privacy.events import Event
from tacit.privacy.numbers import LEVEL_MAX, Real, exact, inside_unit_interval, level_of, parameter, plain, whole

BINS_MAX: Final = 1024


class LearntBounds(NamedTuple):
    """A range in which most values lie."""

    lower: Fraction
    upper: Fraction


@dataclass(frozen=True, slots=True)
class ApproximateBounds(Mechanism):
    """A range for values, from the counts of logarithmic bins of both signs."""

    sensitivity: Real
    epsilon: Real
    bins: int = 64
    base: Real = 2
    scale: Real = 1
    success: Real = 1 - 1e-6

    def __post_init__(self) -> None:
        Mechanism.__post_init__(self)
        Laplace(self.sensitivity, self.epsilon)
        if whole("bins", self.bins) > BINS_MAX:
            raise OutOfRange(f"there are at most {BINS_MAX:,} bins of each sign", name="bins", value=self.bins)
        if exact("base", self.base) <= 1:
            raise OutOfRange("the base of the bins is above 1", name="base", value=self.base)
        object.__setattr__(self, "scale", plain(parameter("scale", self.scale)))
        success = inside_unit_interval("success", self.success)
        if not LEVEL_MAX >= float(success) >= 1 - LEVEL_MAX:
            raise OutOfRange("success must lie between 2^-40 and 1 - 2^-40", name="success", value=self.success)
        object.__setattr__(self, "success", plain(success))

    @property
    def noise(self) -> Laplace:
        """The noise on each count."""
        return Laplace(self.sensitivity, self.epsilon, relation=self.relation)

    @property
    def event(self) -> Event:
        return self.noise.event

    @property
    def threshold(self) -> float:
        """The noisy count from which on a bin is taken for filled."""
        passes = -math.expm1(math.log1p(-float(1 - Fraction(self.success))) / (2 * self.bins - 1))
        scale = float(self.noise.scale)
        ratio = math.exp(-1 / scale) if scale else 0.0
        return -math.log(passes * (1 + ratio)) * scale  # that of geometric noise; real noise passes more seldom

    def edges(self, bin: int) -> tuple[Fraction, Fraction]:
        """Return the lower and the upper edge of a bin: 0, 1, ... of positive values, -1, -2, ... of negative ones."""
        number = whole("bin", bin, at_least=-self.bins)
        if number >= self.bins:
            raise OutOfRange(f"bins are numbered from {-self.bins} to {self.bins - 1}", name="bin", value=bin)
        place = number if number >= 0 else -number - 1
        base, scale = exact("base", self.base), exact("scale", self.scale)
        near = Fraction(0) if place == 0 else scale * base ** (place - 1)
        far = scale * base**place
        return (near, far) if number >= 0 else (-far, -near)

    def release(self, counts: Any, *, source: Source = SYSTEM) -> Any:
        """Return the range, given the counts of the bins from the most negative to the most positive."""
        array = counts_of(counts, "counts")
        if len(array) != 2 * self.bins:
            raise self._no_counts()
        noisy = np.asarray(self.noise.release(array, source=source))
        found = self.chosen(noisy)
        return marked(found) if source.simulated else found

    def interval(self, level: float) -> Interval:
        """Return where the noise of a bin's count lies: bins with as many more than the threshold are found."""
        noise = self.noise
        steps = noise._half_width(level_of(level), noise._integer_noise())  # counts are integers
        return Interval(-steps, steps)

    def chosen(self, counts: Any) -> LearntBounds:
        """Return the range that counts lead to, noisy ones or (in tests) exact ones."""
        array = vector_of(counts, "counts")
        if len(array) != 2 * self.bins:
            raise self._no_counts()
        passing = np.flatnonzero(array > self.threshold)
        if not passing.size:
            passing = np.array([int(array.argmax())])
        near = array > self.threshold / 2
        low, high = int(passing[0]), int(passing[-1])
        while low > 0 and near[low - 1]:
            low -= 1
        while high + 1 < len(array) and near[high + 1]:
            high += 1
        return LearntBounds(self.edges(low - self.bins)[0], self.edges(high - self.bins)[1])

    def stands_out(self, counts: Any) -> bool:
        """Return whether any of the noisy counts passes the threshold, so that the range is more than a guess."""
        return bool((vector_of(counts, "counts") > self.threshold).any())

    def _no_counts(self) -> WrongType:
        return WrongType(f"there are {2 * self.bins} whole numbers, one for each bin", name="counts")
