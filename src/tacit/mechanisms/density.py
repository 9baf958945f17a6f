"""The exponential mechanism over a real interval.

Promise: if neighbours (of either relation) change the log-density nowhere by more than `sensitivity`, one `release` is
epsilon-differentially private, and its log-ratios lie in one interval of length epsilon (McSherry, Talwar 2007).
The interval is cut into equal cells in public; the release is the middle of one of them, chosen exactly with
probability proportional to e^(epsilon log_density / (2 sensitivity)) there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms.mechanism import Interval, Mechanism
from tacit.mechanisms.randomness import SYSTEM, Source
from tacit.mechanisms.selection import Exponential, Gaps
from tacit.mechanisms.simulation import marked
from tacit.mechanisms.values import vector_of
from tacit.privacy.errors import OutOfRange, TooLarge, WrongType
from tacit.privacy.events import Event
from tacit.privacy.numbers import MAGNITUDE_MAX, Real, exact, level_of, whole

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
        """The public numbers of which one is released: the middles of the cells."""
        width = (self.upper - self.lower) / self.cells
        return np.asarray(self.lower + width * (np.arange(self.cells) + 0.5), dtype=np.float64)

    @property
    def event(self) -> Event:
        return self._choice.event

    def release(self, log_density: Callable[[NDArray[np.float64]], Any], *, source: Source = SYSTEM) -> Any:
        """Return a point drawn with the log-density, a function from an array of points to an array of numbers."""
        scores = self._scores(log_density)
        chosen = float(self.points[self._choice._choose(scores, source)])
        return marked(chosen) if source.simulated else chosen

    def interval(self, level: float, log_density: Callable[[NDArray[np.float64]], Any]) -> Interval:
        """Return the middle interval that holds `level` of the draws for a public log-density (a planned one, say)."""
        share = level_of(level)
        weights = np.exp(-Gaps(self._scores(log_density), self._choice.factor).doubles)
        cumulative = np.cumsum(weights) / weights.sum()
        low, high = np.searchsorted(cumulative, [(1 - share) / 2, (1 + share) / 2])
        return Interval(float(self.points[low]), float(self.points[min(high, self.cells - 1)]))

    def _scores(self, log_density: Callable[[NDArray[np.float64]], Any]) -> NDArray[Any]:
        """Return the log-density of every point, from points that the caller's function may change as it likes."""
        if not callable(log_density):
            raise WrongType(
                f"a log-density is a function of an array of points, not {type(log_density).__name__}",
                name="log_density",
            )
        scores = vector_of(log_density(self.points), "scores")
        if len(scores) != self.cells:
            raise WrongType("a log-density gives one number for each point", name="log_density")
        return scores
