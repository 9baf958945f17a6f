"""Approximate bounds of unknown values, learnt from noisy counts in logarithmic bins.

Promise: if neighbours (of either relation) differ by at most `sensitivity` in L1 over the counts of all bins, one
`release` is epsilon-differentially private (Laplace noise on a histogram; choosing bins afterwards is post-processing).

Bins (Wilson, Zhang, Lam, Desfontaines, Simmons-Marengo, Gipson 2020, section 5.1): for each sign `bins` of them, the
first from 0 to `scale`, the i-th after it from scale base^(i - 1) to scale base^i. The range goes from the lower edge
of the lowest bin to the upper edge of the highest bin whose noisy count passes a threshold t.

The threshold: with n = 2 `bins` bins in all, at most n - 1 are empty if there are data. With r = e^(-epsilon /
sensitivity) an empty bin passes with probability P(noise >= t) <= r^t / (1 + r), that of geometric noise at whole t
(Laplace noise has r^t / 2), so that none passes with probability at least (1 - r^t / (1 + r))^(n - 1). Setting this to
p gives t = -(sensitivity / epsilon) ln((1 - p^(1 / (n - 1))) (1 + r)). (Some printed versions count the bins of one
sign only.)

Windows: values that are spread over several bins, beside a bin that holds most rows (as zeros do), may pass in none of
them. So the sums of 2, 4 and 8 adjacent bins are compared with thresholds of their own. The sum S of w independent
noises of scale b = sensitivity / epsilon has P(S >= b x) <= e^(-u x) (1 - u^2)^(-w) for each 0 < u < 1 (Chernoff; the
moments of geometric noise, 1 / (1 - (cosh s - 1) / (cosh(1 / b) - 1)), are at most those of Laplace noise, 1 / (1 -
s^2 b^2)), least at u = (sqrt(w^2 + x^2) - w) / x. Bins alone have half of 1 - `success`, windows the other half, shared
equally: by the union bound, no empty bin and no window of empty bins passes with probability `success`. Of a window
that passes, and has no bin in it that was taken before, the bins between the outermost that hold half its mean or more
are taken.

An empty bin that passes makes the range far too wide, by powers of `base`, so `success` is near 1. What that costs is
recovered next to bins that pass: from there the range grows over neighbours whose noisy counts pass t / 2, by one
factor of `base` each, whether they were empty or not. Where nothing passes, the bin or window that comes nearest to its
threshold is taken; such bounds are a guess, and `stands_out` is false.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms.laplace import Laplace
from tacit.mechanisms.mechanism import Interval, Mechanism
from tacit.mechanisms.randomness import SYSTEM, RandomSource
from tacit.mechanisms.simulation import mark_simulated
from tacit.mechanisms.values import counts_of, vector_of
from tacit.privacy.errors import OutOfRange, WrongType
from tacit.privacy.events import Event
from tacit.privacy.figures import grouped
from tacit.privacy.numbers import (
    LEVEL_MAX,
    Real,
    exact,
    inside_unit_interval,
    level_of,
    parameter,
    whole,
)
from tacit.privacy.units import Relation

BINS_MAX: Final = 1024
WINDOWS: Final = (2, 4, 8)
HALVINGS: Final = 60

LEARNING_WEIGHT: Final = 0.5
"""The budget weight of learning one pair of bounds within a query, relative to 1 for a measure."""
LEARNING_BINS: Final = 64
LEARNING_SCALE: Final = Fraction(1, 2**20)
"""The number of bins of each sign, and the width of the first, for unknown values: up to 2^43."""
UNLEARNED: Final = (-1, 1)
"""The stand-in for bounds in a plan until they are learned."""
LEARNED: Final = (
    "the bounds of {name} were learnt from the data, {lower} to {upper}; values beyond them are moved to the nearer "
    "one, and intervals do not count that; up to {limit} with similar values (within a factor of two) may lie beyond "
    "them"
)
GUESSED: Final = (
    "no range of {name} away from 0 holds enough rows to stand out from the noise ({limit} with similar values, within "
    "a factor of two), so its bounds are a guess: nearly all values are 0, or too few others were found; state its "
    "bounds if they are known"
)


class LearnedBounds(NamedTuple):
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
            raise OutOfRange("base must be above 1", name="base", value=self.base)
        self._normalize(scale=parameter, success=inside_unit_interval)
        if not LEVEL_MAX >= float(self.success) >= 1 - LEVEL_MAX:
            raise OutOfRange("success must lie between 2^-40 and 1 - 2^-40", name="success", value=self.success)

    @property
    def noise(self) -> Laplace:
        """The noise on each count."""
        return Laplace(self.sensitivity, self.epsilon, relation=self.relation)

    @property
    def event(self) -> Event:
        return self.noise.event

    @classmethod
    def for_unknown_values(cls, sensitivity: Real, epsilon: Real, relation: Relation) -> ApproximateBounds:
        """Return the mechanism that queries and statistics use for values without declared bounds."""
        return cls(sensitivity, epsilon, bins=LEARNING_BINS, scale=LEARNING_SCALE, relation=relation)

    @property
    def threshold(self) -> float:
        """The noisy count above which a bin is taken."""
        passes = -math.expm1(math.log1p(-self._failure / 2) / (2 * self.bins - 1))
        scale = float(self.noise.scale)
        ratio = math.exp(-1 / scale) if scale else 0.0
        return -math.log(passes * (1 + ratio)) * scale  # that of geometric noise; real noise passes more seldom

    def is_next_to_zero(self, found: LearnedBounds) -> bool:
        """Return whether a range is made of the bins next to 0 alone, as where zeros hide all other values."""
        scale = exact("scale", self.scale)
        return -scale <= found.lower and found.upper <= scale

    def window_threshold(self, width: int) -> float:
        """Return the noisy count above which a window of `width` adjacent bins passes."""
        wanted = math.log(self._failure / 2 / (len(WINDOWS) * 2 * self.bins))
        low, high = 0.0, 4 * (width - wanted)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if _log_tail(middle, width) <= wanted else (middle, high)
        return high * float(self.noise.scale)

    @property
    def _failure(self) -> float:
        return float(1 - Fraction(self.success))

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

    def limit_in_words(self, unit_weight: int | None = None) -> str:
        """Return how many rows of one bin may be missed, or how many people with this weight in the counts."""
        found = max(2, math.ceil(self.threshold / (unit_weight or 1)))  # rounded up from 1, for the plural
        return f"about {found:,} {'rows' if unit_weight is None else 'people'}"

    def warning(self, name: str, lower: Real, upper: Real, *, is_guess: bool, unit_weight: int | None = None) -> str:
        """Return a warning about learnt bounds, with their detection limit, which is public."""
        said, limit = GUESSED if is_guess else LEARNED, self.limit_in_words(unit_weight)
        return said.format(name=name, lower=grouped(float(lower)), upper=grouped(float(upper)), limit=limit)

    def release(self, counts: Any, *, source: RandomSource = SYSTEM) -> Any:
        """Return the range, given the counts of the bins from the most negative to the most positive."""
        array = counts_of(counts, "counts")
        if len(array) != 2 * self.bins:
            raise self._wrong_counts()
        noisy = np.asarray(self.noise.release(array, source=source))
        found = self.bounds_from(noisy)
        return mark_simulated(found) if source.simulated else found

    def interval(self, level: float) -> Interval:
        """Return the range of the noise of a bin's count; bins that exceed the threshold by more are found."""
        noise = self.noise
        steps = noise._half_width(level_of(level), noise._integer_noise())  # counts are integers
        return Interval(-steps, steps)

    def bounds_from(self, counts: Any) -> LearnedBounds:
        """Return the range for counts, noisy ones or (in tests) exact ones."""
        return self._range(self._vector(counts))[0]

    def stands_out(self, counts: Any) -> bool:
        """Return whether a noisy count passes a threshold, so that the range is more than a guess."""
        return self._range(self._vector(counts))[1]

    def learn(self, counts: Any, source: RandomSource) -> tuple[LearnedBounds, bool]:
        """Return the released range, and whether it is a guess: no bin stands out, or only the bins next to 0."""
        found, stands_out = self._range(np.asarray(self.noise.release(counts, source=source), dtype=np.float64))
        return found, not stands_out or self.is_next_to_zero(found)

    def _vector(self, counts: Any) -> NDArray[np.float64]:
        array = np.asarray(vector_of(counts, "counts"), dtype=np.float64)
        if len(array) != 2 * self.bins:
            raise self._wrong_counts()
        return array

    def _range(self, array: NDArray[np.float64]) -> tuple[LearnedBounds, bool]:
        taken = array > self.threshold
        nearest, guess = _ratio(array.max(), self.threshold), array == array.max()
        for width in WINDOWS:
            if width > len(array):
                break
            least = self.window_threshold(width)
            sums = np.convolve(array, np.ones(width), "valid")
            for start in np.argsort(-sums, kind="stable").tolist():
                if sums[start] <= least:
                    break
                if not taken[start : start + width].any():
                    taken |= _filled_bins(array, start, width)
            if (near := _ratio(sums.max(), least)) > nearest:
                nearest, guess = near, _filled_bins(array, int(sums.argmax()), width)
        stands_out = bool(taken.any())
        passing = np.flatnonzero(taken if stands_out else guess)
        half = array > self.threshold / 2
        low, high = int(passing[0]), int(passing[-1])
        while low > 0 and half[low - 1]:
            low -= 1
        while high + 1 < len(array) and half[high + 1]:
            high += 1
        return LearnedBounds(self.edges(low - self.bins)[0], self.edges(high - self.bins)[1]), stands_out

    def _wrong_counts(self) -> WrongType:
        return WrongType(f"counts must be {2 * self.bins} whole numbers, one for each bin", name="counts")


def _ratio(count: float, threshold: float) -> float:
    """Return a noisy count over its threshold, which is 0 where the noise is negligible."""
    return float(count) / threshold if threshold else math.inf


def _log_tail(x: float, width: int) -> float:
    """Return the logarithm of the bound on P(S >= b x) for the sum of `width` noises of scale b."""
    if x == 0:
        return 0.0
    tilt = x / (math.hypot(width, x) + width)
    return -tilt * x - width * math.log1p(-tilt * tilt)


def _filled_bins(array: NDArray[np.float64], start: int, width: int) -> NDArray[np.bool_]:
    """Return which bins lie between the outermost ones of a window that hold half of its mean or more."""
    window = array[start : start + width]
    inside = np.flatnonzero(window >= window.mean() / 2)
    held = np.zeros(len(array), dtype=bool)
    held[start + inside[0] : start + inside[-1] + 1] = True
    return held
