"""Private selection among candidates by their scores, and the exponential mechanism over a real interval.

Promise of each: if neighbouring inputs change no score by more than `sensitivity`, one `release` is
epsilon-differentially private, under either relation. With `monotonic` set, neighbours move all scores in one direction
(counts under add/remove do), and half the noise is enough; a replaced unit moves counts both ways, so that this is
refused under replace-one.

- `Exponential` chooses i with probability proportional to e^(epsilon score_i / (2 sensitivity)) (McSherry, Talwar
  2007). All log-ratios lie in one interval of length epsilon, which composes better than epsilon alone (Durfee, Rogers
  2019).
- `PermuteAndFlip` tries candidates in a random order and takes i with probability e^(-epsilon gap_i / (2 sensitivity)),
  never worse in expectation (McKenna, Sheldon 2020). Every coin is flipped, so the time does not tell the order.
- `ReportNoisyMax` adds Laplace noise to every score and reports the greatest, the first of equals (Dwork, Roth 2014,
  claim 3.9; the proof's shift by 2 sensitivities is a whole number of steps here, and ties fall the same way under it).
- `TopK` chooses k candidates one after another, each by `Exponential` with epsilon / k.
- `ExponentialDensity`: if neighbours (of either relation) change the log-density nowhere by more than `sensitivity`,
  one `release` is epsilon-differentially private, and its log-ratios lie in one interval of length epsilon (McSherry,
  Talwar 2007). The interval is cut into equal public cells; the release is the middle of one of them, chosen exactly
  with probability proportional to e^(epsilon log_density / (2 sensitivity)) there.

Scores are exact numbers, so that no law depends on whether they come as ints or as floats (`ReportNoisyMax` adds noise
and has to know; see there). Exponentials are compared with integer arithmetic where doubles cannot decide
(`categorical`, `exact_sampling`). Released are indices into the scores.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms.categorical import CategoricalSampler, weights_of
from tacit.mechanisms.exact_sampling import exponential_coins, permutation
from tacit.mechanisms.grid import Grid
from tacit.mechanisms.integer_sampler import sampler_for
from tacit.mechanisms.laplace import laplace_half_width
from tacit.mechanisms.laws import LaplaceLaw
from tacit.mechanisms.mechanism import Interval, Mechanism, require_one_direction
from tacit.mechanisms.randomness import SYSTEM, RandomSource
from tacit.mechanisms.simulation import mark_simulated
from tacit.mechanisms.values import declared_numbers, declared_sensitivity, integers_only_error, vector_of
from tacit.privacy import events
from tacit.privacy.errors import OutOfRange, TooLarge, WrongType
from tacit.privacy.events import Event
from tacit.privacy.numbers import (
    MAGNITUDE_MAX,
    Real,
    exact,
    level_of,
    parameter,
    rounded_up,
    truth_value,
    whole,
)


class ScoreGaps:
    """The distance of each score from the greatest, times a factor: in double precision, and exactly on demand."""

    def __init__(self, scores: NDArray[Any], factor: Fraction) -> None:
        self._scores = scores
        self._factor = factor
        if scores.dtype == np.int64:
            halves = (scores.max() - scores).view(np.uint64).astype(np.float64) / 2  # 2^63, unsigned, is the widest gap
        else:
            halves = scores.max() / 2 - scores / 2
        with np.errstate(over="ignore"):
            self.doubles: NDArray[np.float64] = halves * float(2 * factor)

    def exact(self, index: int) -> Fraction:
        """Return one gap as a rational."""
        return (Fraction(self._scores.max().item()) - Fraction(self._scores[index].item())) * self._factor

    def all_exact(self) -> list[Fraction]:
        """Return every gap as a rational."""
        return [self.exact(index) for index in range(len(self._scores))]


@dataclass(frozen=True, slots=True)
class Selection(Mechanism):
    """A mechanism that chooses one candidate by its score."""

    sensitivity: Real
    epsilon: Real
    monotonic: bool = False

    def __post_init__(self) -> None:
        Mechanism.__post_init__(self)
        self._normalize(sensitivity=parameter, epsilon=parameter, monotonic=truth_value)
        require_one_direction(self.monotonic, self.relation)
        if self.factor >= MAGNITUDE_MAX:
            raise TooLarge("epsilon over sensitivity must be below 2^1000", name="epsilon", value=self.epsilon)
        parameter("epsilon over sensitivity", self.factor)

    @property
    def factor(self) -> Fraction:
        """The factor of a score in the exponent."""
        return Fraction(self.epsilon) / Fraction(self.sensitivity) / (1 if self.monotonic else 2)

    @property
    def event(self) -> Event:
        return events.Pure(epsilon=rounded_up(Fraction(self.epsilon)), under=self.relation)

    def release(self, scores: Any, *, source: RandomSource = SYSTEM) -> Any:
        """Return the index of the chosen candidate."""
        chosen = self._choose(self._read(scores), source)
        return mark_simulated(chosen) if source.simulated else chosen

    def _read(self, scores: Any) -> NDArray[Any]:
        return vector_of(scores, "scores")

    @abstractmethod
    def _choose(self, scores: NDArray[Any], source: RandomSource) -> int:
        """Return the index of the chosen candidate."""

    def interval(self, level: float, candidates: int) -> Interval:
        """Return the range of the chosen score minus the greatest one, among a number of candidates.

        P(shortfall > (ln candidates + ln(1 / (1 - level))) / factor) <= 1 - level (McSherry, Talwar 2007).
        """
        share = level_of(level)
        return self._shortfall(1 - share, candidates)

    def _shortfall(self, missed: float, candidates: int) -> Interval:
        count = whole("candidates", candidates)
        return Interval(-(math.log(count) - math.log(missed)) / float(self.factor), 0.0)


@dataclass(frozen=True, slots=True)
class Exponential(Selection):
    """The exponential mechanism over a finite list of candidates."""

    @property
    def event(self) -> Event:
        return events.Exponential(epsilon=rounded_up(Fraction(self.epsilon)), under=self.relation)

    def _choose(self, scores: NDArray[Any], source: RandomSource) -> int:
        gaps = ScoreGaps(scores, self.factor)
        return CategoricalSampler(gaps.doubles, weights_of(gaps.all_exact)).draw_one(source)


@dataclass(frozen=True, slots=True)
class PermuteAndFlip(Selection):
    """Candidates in a random order, each accepted by a coin; the first accepted one is chosen."""

    def _choose(self, scores: NDArray[Any], source: RandomSource) -> int:
        gaps = ScoreGaps(scores, self.factor)
        heads = exponential_coins(gaps.doubles, gaps.exact, source)
        order = permutation(len(scores), source)
        return int(order[int(np.argmax(heads[order]))])


@dataclass(frozen=True, slots=True)
class ReportNoisyMax(Selection):
    """The greatest score after Laplace noise; only its index is reported.

    Whether scores are integers or real numbers decides the noise, and is declared as in `additive`.
    """

    integers: bool = field(default=False, init=False, repr=False)

    def __post_init__(self) -> None:
        given = self.sensitivity
        Selection.__post_init__(self)
        object.__setattr__(self, "sensitivity", declared_sensitivity("sensitivity", given))
        object.__setattr__(self, "integers", isinstance(self.sensitivity, int))

    def _read(self, scores: Any) -> NDArray[Any]:
        array = declared_numbers(scores, integers=self.integers, refusal=lambda: integers_only_error(self.sensitivity))
        return vector_of(array, "scores")

    def _choose(self, scores: NDArray[Any], source: RandomSource) -> int:
        if scores.dtype == np.int64:
            steps, scale = scores, 1 / self.factor
        else:
            sensitivity = Fraction(self.sensitivity)
            grid = Grid.fitting(sensitivity, 1 / self.factor, 1)
            steps, scale = grid.encode(scores), (sensitivity // grid.step + 1) / (self.factor * sensitivity)
        return int(np.argmax(steps + sampler_for(LaplaceLaw(scale)).draw(len(steps), source)))

    def interval(self, level: float, candidates: int) -> Interval:
        """Return the range of the chosen score minus the greatest one: twice the joint bound on all noises."""
        share = level_of(level)
        missed = (1 - share) / whole("candidates", candidates)
        fine = 2**20
        return Interval(-2 * (laplace_half_width(fine / self.factor, missed) + 1) / fine, 0.0)


@dataclass(frozen=True, slots=True)
class TopK(Mechanism):
    """The k best candidates, chosen one after another without replacement, the best first."""

    sensitivity: Real
    epsilon: Real
    k: int
    monotonic: bool = False

    def __post_init__(self) -> None:
        Mechanism.__post_init__(self)
        self._normalize(sensitivity=parameter, epsilon=parameter, k=whole)
        _ = self._single_choice

    @property
    def _single_choice(self) -> Exponential:
        share = Fraction(self.epsilon) / self.k
        return Exponential(self.sensitivity, share, self.monotonic, relation=self.relation)

    @property
    def event(self) -> Event:
        return events.Repeated(self._single_choice.event, self.k)

    def release(self, scores: Any, *, source: RandomSource = SYSTEM) -> Any:
        """Return the indices of the chosen candidates, an array of k."""
        left = vector_of(scores, "scores")
        if self.k > len(left):
            raise OutOfRange(f"{self.k} candidates cannot be chosen from {len(left)}", name="k", value=self.k)
        indices = np.arange(len(left))
        chosen = np.empty(self.k, dtype=np.int64)
        for place in range(self.k):
            position = self._single_choice._choose(left, source)
            chosen[place] = indices[position]
            left, indices = np.delete(left, position), np.delete(indices, position)
        return mark_simulated(chosen) if source.simulated else chosen

    def interval(self, level: float, candidates: int) -> Interval:
        """Return the range of each chosen score minus the best remaining one, for all k of them jointly."""
        return self._single_choice._shortfall((1 - level_of(level)) / self.k, candidates)


CELLS_MAX: Final = 2**20


@dataclass(frozen=True, slots=True)
class ExponentialDensity(Mechanism):
    """A number between `lower` and `upper`, drawn with a log-density that depends on the data."""

    sensitivity: Real
    epsilon: Real
    lower: float
    upper: float
    cells: int = 4096

    def __post_init__(self) -> None:
        Mechanism.__post_init__(self)
        Exponential(self.sensitivity, self.epsilon)
        lower, upper = float(exact("lower", self.lower)), float(exact("upper", self.upper))
        if not lower < upper:
            raise OutOfRange("the interval must be longer than one point", name="bounds", value=(lower, upper))
        if upper - lower >= MAGNITUDE_MAX:
            raise TooLarge("the interval must be shorter than 2^1000", name="bounds", value=(lower, upper))
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)
        if whole("cells", self.cells) > CELLS_MAX:
            raise TooLarge(f"an interval is cut into at most {CELLS_MAX:,} cells", name="cells", value=self.cells)

    @property
    def _choice(self) -> Exponential:
        return Exponential(self.sensitivity, self.epsilon, relation=self.relation)

    @property
    def points(self) -> NDArray[np.float64]:
        """The public numbers of which one is released, the middles of the cells."""
        width = (self.upper - self.lower) / self.cells
        return np.asarray(self.lower + width * (np.arange(self.cells) + 0.5), dtype=np.float64)

    @property
    def event(self) -> Event:
        return self._choice.event

    def release(self, log_density: Callable[[NDArray[np.float64]], Any], *, source: RandomSource = SYSTEM) -> Any:
        """Return a point drawn with `log_density`, a function from an array of points to an array of numbers."""
        scores = self._scores(log_density)
        chosen = float(self.points[self._choice._choose(scores, source)])
        return mark_simulated(chosen) if source.simulated else chosen

    def interval(self, level: float, log_density: Callable[[NDArray[np.float64]], Any]) -> Interval:
        """Return the central interval that holds `level` of the draws for a public log-density, such as a guess."""
        share = level_of(level)
        weights = np.exp(-ScoreGaps(self._scores(log_density), self._choice.factor).doubles)
        cumulative = np.cumsum(weights) / weights.sum()
        low, high = np.searchsorted(cumulative, [(1 - share) / 2, (1 + share) / 2])
        return Interval(float(self.points[low]), float(self.points[min(high, self.cells - 1)]))

    def _scores(self, log_density: Callable[[NDArray[np.float64]], Any]) -> NDArray[Any]:
        """Return the log-density of every point; the caller's function gets a copy of the points."""
        if not callable(log_density):
            raise WrongType(
                f"a log-density is a function of an array of points, not {type(log_density).__name__}",
                name="log_density",
            )
        scores = vector_of(log_density(self.points), "scores")
        if len(scores) != self.cells:
            raise WrongType("a log-density gives one number for each point", name="log_density")
        return scores
