"""Smooth sensitivity: noise that is scaled to the data at hand.

Promise, under either relation: let S be a function of the data that is never below the local sensitivity of the value
and changes between neighbours by a factor of at most e^beta. Then value + (S / s) Z, with Z from Student's t of two
degrees of freedom, is epsilon-differentially private for epsilon = beta / 2 + (3 / 4) sqrt(4 beta^2 + 2 s^2) (smooth
sensitivity: Nissim, Raskhodnikova, Smith 2007; Student's t: Bun, Steinke 2019, who add up what is taken together here).
Why: go from one neighbour to the other with the centre and ln S changing evenly. At Z = z the log-density changes by at
most s * 3 |z| / (2 + z^2) for the centre, which moves by no more than the S in between, plus beta |2 - 2 z^2| /
(2 + z^2) for the scale; the sum is greatest at z = (2 beta + sqrt(4 beta^2 + 2 s^2)) / s, where it is the stated one.
beta = 0.35 epsilon and s = 0.6 epsilon give it exactly, and nearly the greatest beta * s, which is what the noise of a
median is in inverse proportion to.

The noise is exact: a uniform number is drawn to as many bits as decide to which multiple of the public grid
value + (S / s) Z is rounded, with Z's quantile (2u - 1) / sqrt(2u (1 - u)) enclosed by integer square roots.
S itself is secret: neither the grid nor an interval may show it, so `interval` is for the worst data.
The bound of the median is for a public number of values: `SmoothMedian` and `SubsampleAggregate` are refused under
add/remove.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms.exact_sampling import permutation
from tacit.mechanisms.grid import RELEASED_STEPS_MAX, Grid, grid_step
from tacit.mechanisms.mechanism import Interval, Mechanism, require_replace_one
from tacit.mechanisms.randomness import SYSTEM, RandomSource, bits
from tacit.mechanisms.simulation import mark_simulated
from tacit.mechanisms.values import records_of, refuse_masked, vector_of
from tacit.privacy import events
from tacit.privacy.errors import EmptyInput, OutOfRange, WrongType
from tacit.privacy.events import Event
from tacit.privacy.numbers import Real, exact, level_of, not_negative, parameter, rounded_up, whole
from tacit.privacy.units import Relation

EPSILON_MIN: Final = Fraction(1e-6)
SMOOTH_SLACK: Final = 1 + 2.0**-40
"""The factor by which bounds, computed in doubles, are widened; beta is reduced by far more than it can change."""

_BETA_MAX: Final = 16.0
"""A bound that is smooth for this beta is so for every larger one, whose e^-beta a double could not hold."""

_WINDOW_NATS: Final = 21
_WINDOW_MAX: Final = 2**14
BETA_SHARE: Final = Fraction(35, 100)
SHARPNESS_SHARE: Final = Fraction(6, 10)


@dataclass(frozen=True, slots=True)
class SmoothSensitivity(Mechanism):
    """Student noise scaled by a smooth bound that the caller computes for `beta`, released on a given public grid."""

    epsilon: Real
    grid: Real

    def __post_init__(self) -> None:
        Mechanism.__post_init__(self)
        self._normalize(epsilon=parameter)
        if Fraction(self.epsilon) < EPSILON_MIN:
            raise OutOfRange(f"smooth sensitivity takes an epsilon of at least {float(EPSILON_MIN):g}", name="epsilon")
        self._normalize(grid=grid_step)

    @property
    def beta(self) -> float:
        """The required smoothness: neighbours' bounds differ by a factor of at most e^beta."""
        return float(Fraction(self.epsilon) * BETA_SHARE * (1 - Fraction(1, 2**10)))

    @property
    def event(self) -> Event:
        return events.Pure(epsilon=rounded_up(Fraction(self.epsilon)), under=self.relation)

    def release(self, value: Any, smooth_bound: Any, *, source: RandomSource = SYSTEM) -> Any:
        """Return `value` with noise for its smooth bound, as a multiple of the grid."""
        refuse_masked([value, smooth_bound])
        centre, spread = exact("value", value), not_negative("smooth_bound", smooth_bound)
        steps = self._noisy_steps(centre / Fraction(self.grid), spread / Fraction(self.grid), source)
        released = Grid(Fraction(self.grid)).decode_one(steps)
        return mark_simulated(released) if source.simulated else released

    def interval(self, level: float, smooth_bound: Any) -> Interval:
        """Return the range of the noise for a public guess of the smooth bound, such as the width of the range."""
        width = self._noise_width(level) * float(not_negative("smooth_bound", smooth_bound)) + float(self.grid) / 2
        return Interval(-width, width)

    def _noise_width(self, level: float) -> float:
        share = (1 + level_of(level)) / 2
        return float((2 * share - 1) / math.sqrt(2 * share * (1 - share)) / self._sharpness)

    @property
    def _sharpness(self) -> Fraction:
        """s of the module's docstring."""
        return Fraction(self.epsilon) * SHARPNESS_SHARE

    def _noisy_steps(self, centre: Fraction, spread: Fraction, source: RandomSource) -> int:
        scale = spread / self._sharpness
        number, number_bits = bits(source, 128), 128
        while True:
            low = _round(centre + scale * _quantile(number, number_bits, up=False))
            high = _round(centre + scale * _quantile(number + 1, number_bits, up=True))
            if low == high or not scale:
                return low
            if low > RELEASED_STEPS_MAX or high < -RELEASED_STEPS_MAX:
                return low
            number, number_bits = number << 64 | bits(source, 64), number_bits + 64


@dataclass(frozen=True, slots=True)
class SmoothMedian(Mechanism):
    """The median of numbers within public bounds; how many there are is public (replace-one)."""

    epsilon: Real
    lower: float
    upper: float
    relation: Relation = field(default=Relation.REPLACE_ONE, kw_only=True)

    def __post_init__(self) -> None:
        Mechanism.__post_init__(self)
        lower, upper = float(exact("lower", self.lower)), float(exact("upper", self.upper))
        if not lower < upper:
            raise OutOfRange("the lower bound must be below the upper bound", name="bounds", value=(lower, upper))
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)
        require_replace_one(self.relation)
        _ = self._noise

    @property
    def _noise(self) -> SmoothSensitivity:
        lower, upper = Fraction(self.lower), Fraction(self.upper)
        step = Grid.below(max((upper - lower) / 2**30, max(abs(lower), abs(upper)) / 2**52)).step
        return SmoothSensitivity(self.epsilon, step, relation=self.relation)

    @property
    def event(self) -> Event:
        return self._noise.event

    def release(self, values: Any, *, source: RandomSource = SYSTEM) -> Any:
        """Return the noisy median, clamped to the bounds, as are the values."""
        clamped = np.sort(np.clip(vector_of(values, "values").astype(np.float64), self.lower, self.upper))
        bound = median_smooth_bound(clamped, float(self.lower), float(self.upper), self._noise.beta)
        noisy = self._noise.release(float(clamped[_median_rank(len(clamped))]), bound, source=source)
        released = min(max(noisy, float(self.lower)), float(self.upper))
        return mark_simulated(released) if source.simulated else released

    def interval(self, level: float, value: Any = None) -> Interval:
        """Return the range of the median of the clamped values for the worst data, within the bounds.

        `value` is what was released; without it the interval is around zero, that is, of the error, which is never more
        than the width of the range. For most data the error is far smaller; by how much is secret.
        """
        width = min(self._noise.interval(level, self.upper - self.lower).high, self.upper - self.lower)
        if value is None:
            return Interval(-width, width)
        released = min(max(float(exact("value", value)), self.lower), self.upper)
        return Interval(max(self.lower, released - width), min(self.upper, released + width))


@dataclass(frozen=True, slots=True)
class SubsampleAggregate(Mechanism):
    """Any estimator, made private: the smooth median of its estimates on disjoint random blocks of the data.

    One record lies in one block and moves one estimate, so the promise is that of the median over `blocks` numbers.
    An estimate that fails or is not a number, or a block that is not an array, counts as the middle of the bounds, so
    that no error depends on the data. A mistake in `estimate` therefore shows only as answers near the middle; test it
    on public data first.
    """

    epsilon: Real
    lower: float
    upper: float
    blocks: int
    relation: Relation = field(default=Relation.REPLACE_ONE, kw_only=True)

    def __post_init__(self) -> None:
        Mechanism.__post_init__(self)
        object.__setattr__(self, "blocks", whole("blocks", self.blocks, at_least=3))
        object.__setattr__(self, "lower", self._median.lower)
        object.__setattr__(self, "upper", self._median.upper)

    @property
    def _median(self) -> SmoothMedian:
        return SmoothMedian(self.epsilon, self.lower, self.upper, relation=self.relation)

    @property
    def event(self) -> Event:
        return self._median.event

    def release(self, records: Any, estimate: Callable[[Any], Any], *, source: RandomSource = SYSTEM) -> Any:
        """Return the private value of `estimate`, a function of an array of records.

        Records are a list, whose blocks become arrays one by one, or a numpy array, whose dtype must be public.
        `estimate` must keep nothing from one block for the next.
        """
        rows = records_of(records, "records")
        if not callable(estimate):
            raise WrongType(f"estimate is a function of an array, not {type(estimate).__name__}", name="estimate")
        if len(rows) < self.blocks:
            raise EmptyInput(f"{self.blocks} blocks need at least as many records", name="records")
        parts = np.array_split(permutation(len(rows), source), self.blocks)
        return self._median.release(np.array([self._number(estimate, rows, part) for part in parts]), source=source)

    def interval(self, level: float, value: Any = None) -> Interval:
        """Return the range of the median of the blocks' estimates for the worst data, as for `SmoothMedian`."""
        return self._median.interval(level, value)

    def _number(self, estimate: Callable[[Any], Any], rows: Any, part: NDArray[np.int64]) -> float:
        try:
            block = rows[part] if isinstance(rows, np.ndarray) else _array_of([rows[place] for place in part])
            number = float(estimate(block))
        except Exception:  # failures of the caller's function may depend on the data
            number = math.nan
        return number if math.isfinite(number) else (self.lower + self.upper) / 2


def median_smooth_bound(ordered: NDArray[np.float64], lower: float, upper: float, beta: float) -> float:
    """Return a beta-smooth bound on the median's local sensitivity, for values in order and within the bounds.

    max over k of e^(-k beta) times the widest gap between two values k + 1 ranks apart that enclose the median
    (Nissim, Raskhodnikova, Smith 2007, proposition 3.4). Beyond a window of ranks, the whole range takes the gaps'
    place, which keeps the bound smooth: the k-th gap is at most a neighbour's (k + 1)-th, and all are within the range.
    """
    beta = min(beta, _BETA_MAX)
    middle = _median_rank(len(ordered))
    window = min(len(ordered) + 1, math.ceil(_WINDOW_NATS / beta), _WINDOW_MAX)
    padding = np.full(window + 1, 1.0)
    padded = np.concatenate([lower * padding, ordered, upper * padding])
    centre = middle + window + 1
    widest = (upper - lower) * math.exp(-beta * window)
    for k in range(window):
        ends = padded[centre : centre + k + 2]
        starts = padded[centre - k - 1 : centre + 1]
        widest = max(widest, math.exp(-beta * k) * float((ends - starts).max()))
    return widest * SMOOTH_SLACK


def _array_of(records: list[Any]) -> NDArray[Any]:
    """Return one block as an array, whose dtype depends on the records of this block alone."""
    refuse_masked(records)
    return np.asarray(records)


def _median_rank(count: int) -> int:
    return (count - 1) // 2


def _quantile(number: int, number_bits: int, *, up: bool) -> Fraction:
    """Bound (2u - 1) / sqrt(2u (1 - u)) at u = number / 2^number_bits, rounded up or down."""
    one = 1 << number_bits
    if not 0 < number < one:
        return Fraction(2 * RELEASED_STEPS_MAX**2 * (1 if number else -1))
    numerator = 2 * number - one
    square = 2 * number * (one - number)
    root = math.isqrt(square << 128)
    away_from_zero = up == (numerator > 0)
    return Fraction(numerator << 64, root if away_from_zero else root + 1)


def _round(number: Fraction) -> int:
    return math.floor(number + Fraction(1, 2))
