"""Which groups may be shown at all, when their keys are not public.

Promise: the counts are of units, each in one group at most. A group that no unit is in is never shown.
- Add/remove: a unit changes one count by 1, and one `release` is (epsilon, delta)-differentially private.
- Replace-one: a unit leaves one group and enters another, so that two counts change by 1. What is shown of one group is
  independent of the others, and each is (epsilon, delta)-private; one `release` is the composition of two of them, at
  most (2 epsilon, 2 delta) (basic composition: Dwork, Kenthapadi, McSherry, Mironov, Naor 2006), and the event says so.

Noise is two-sided geometric, cut off beyond `reach` on both sides, and a group is shown if its count with noise passes
`reach` (Desfontaines, Voss, Gipson, Mandayam 2022, theorem 3: the best there is when delta is exactly what the cut
leaves). Why it holds: shifted by 1, the noise has densities within e^epsilon wherever both are above zero, and the
outermost value, which one of the two cannot reach, has probability at most delta.
Not here: units that are in several groups (the caller repeats the event as often) and noise on what is shown.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms.mechanism import Interval, Mechanism
from tacit.mechanisms.randomness import SYSTEM, Source
from tacit.mechanisms.samplers import discrete_laplace
from tacit.mechanisms.simulation import marked
from tacit.mechanisms.values import numbers_of
from tacit.privacy import events
from tacit.privacy.errors import OutOfRange, WrongType
from tacit.privacy.events import Event
from tacit.privacy.numbers import Real, inside_unit_interval, plain, positive, rounded_up
from tacit.privacy.relations import Relation


@dataclass(frozen=True, slots=True)
class KeySelection(Mechanism):
    """Truncated geometric thresholding of the number of units in each group; epsilon and delta are for one group."""

    epsilon: Real
    delta: Real

    def __post_init__(self) -> None:
        Mechanism.__post_init__(self)
        object.__setattr__(self, "epsilon", plain(positive("epsilon", self.epsilon)))
        object.__setattr__(self, "delta", plain(inside_unit_interval("delta", self.delta)))

    @property
    def event(self) -> Event:
        one_count = events.Approximate(
            epsilon=rounded_up(positive("epsilon", self.epsilon)),
            delta=rounded_up(inside_unit_interval("delta", self.delta)),
            under=self.relation,
        )
        return events.Repeated(one_count, 2) if self.relation is Relation.REPLACE_ONE else one_count

    @property
    def reach(self) -> int:
        """The greatest noise: the least k at which P(noise = k) is no more than delta."""
        epsilon, delta = float(self.epsilon), float(self.delta)
        ratio = math.exp(-epsilon)
        # From e^(-k epsilon) (1 - r) / (1 + r - 2 r e^(-k epsilon)) <= delta, r = e^-epsilon.
        log_tail = math.log(delta) + math.log1p(ratio) - math.log(-math.expm1(-epsilon) + 2 * delta * ratio)
        return max(0, math.ceil(-log_tail / epsilon * (1 + 2.0**-40) + 2.0**-40))

    @property
    def threshold(self) -> int:
        """The number of units, with noise, from which on a group is shown."""
        return self.reach + 1

    def release(self, counts: Any, *, source: Source = SYSTEM) -> Any:
        """Return, for each count of units, whether its group is shown."""
        array = numbers_of(counts)
        if not array.size:  # how many groups there are is as private as the counts
            array = array.astype(np.int64)
        if array.dtype != np.int64 or array.ndim != 1:
            raise WrongType("counts of units are a list of whole numbers", name="counts")
        if array.size and int(array.min()) < 0:
            raise OutOfRange("counts of units are not negative", name="counts")
        noise = self._noise(array.size, source)
        shown = array >= self.threshold - noise  # no sum that could overflow
        return marked(shown) if source.simulated else shown

    def chance(self, count: int) -> float:
        """Return the probability that a group of so many units is shown."""
        reach, ratio = self.reach, math.exp(-float(self.epsilon))
        if count <= 0:
            return 0.0
        values = np.arange(-reach, reach + 1)
        weights = ratio ** np.abs(values)
        return float(weights[values >= self.threshold - count].sum() / weights.sum())

    def interval(self, level: float) -> Interval:
        """Return between how many units it is left to chance whether a group is shown.

        A group of `low` units or fewer stays hidden and one of `high` or more is shown, each with probability `level`.
        """
        share = float(inside_unit_interval("level", level))
        counts = range(2 * self.reach + 2)  # the last one is shown for certain
        hidden = bisect_right(counts, 1 - share, key=self.chance) - 1
        return Interval(hidden, bisect_left(counts, share, key=self.chance))

    def _noise(self, size: int, source: Source) -> NDArray[np.int64]:
        """Draw the cut-off noise by drawing again whatever lies beyond."""
        reach, scale = self.reach, 1 / positive("epsilon", self.epsilon)
        noise = np.asarray(discrete_laplace(scale, size, source=source))
        while (beyond := np.flatnonzero(np.abs(noise) > reach)).size:
            noise[beyond] = discrete_laplace(scale, int(beyond.size), source=source)
        return noise
