"""Partition selection: which groups may be shown when their keys are not public.

Promise: the counts are of units, each in one group at most. A group that no unit is in is never shown.
- Add/remove: a unit changes one count by 1, and one `release` is (epsilon, delta)-differentially private.
- Replace-one: a unit leaves one group and enters another, so that two counts change by 1. What is shown of one group is
  independent of the others, and each is (epsilon, delta)-private; one `release` is the composition of two of them, at
  most (2 epsilon, 2 delta) (basic composition: Dwork, Kenthapadi, McSherry, Mironov, Naor 2006), and the event says so.

Noise is two-sided geometric, cut off beyond `reach` on both sides, and a group is shown if its count with noise passes
`reach` (Desfontaines, Voss, Gipson, Mandayam 2022, theorem 3: the best there is when delta is exactly what the cut
leaves). Why it holds: shifted by 1, the noise has densities within e^epsilon wherever both are above zero, and the
outermost value, which one of the two cannot reach, has probability at most delta.
Callers repeat the event for units that are in several groups, and add noise to what is shown.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms.exact_sampling import exp_negative, exponential_coins, integers_below
from tacit.mechanisms.integer_sampler import sampler_for
from tacit.mechanisms.laws import SCALE_MAX, LaplaceLaw
from tacit.mechanisms.mechanism import Interval, Mechanism
from tacit.mechanisms.randomness import SYSTEM, RandomSource
from tacit.mechanisms.simulation import mark_simulated
from tacit.mechanisms.values import counts_of
from tacit.privacy import events
from tacit.privacy.errors import OutOfRange, TooLarge
from tacit.privacy.events import Event
from tacit.privacy.numbers import Real, failure_probability, level_of, parameter, rounded_up, whole
from tacit.privacy.units import Relation

REACH_MAX: Final = 2**60


@dataclass(frozen=True, slots=True)
class KeySelection(Mechanism):
    """Truncated geometric thresholding of the number of units in each group; epsilon and delta are for one group."""

    epsilon: Real
    delta: Real

    def __post_init__(self) -> None:
        Mechanism.__post_init__(self)
        self._normalize(epsilon=parameter, delta=failure_probability)
        _ = self.reach

    @property
    def event(self) -> Event:
        one_count = events.Approximate(
            epsilon=rounded_up(Fraction(self.epsilon)), delta=rounded_up(Fraction(self.delta)), under=self.relation
        )
        return events.Repeated(one_count, 2) if self.relation is Relation.REPLACE_ONE else one_count

    @property
    def reach(self) -> int:
        """The greatest noise: the least k at which P(noise = k) is no more than delta."""
        return _reach(Fraction(self.epsilon), Fraction(self.delta))

    @property
    def threshold(self) -> int:
        """The least noisy number of units for which a group is shown."""
        return self.reach + 1

    def release(self, counts: Any, *, source: RandomSource = SYSTEM) -> Any:
        """Return for each count of units whether its group is shown."""
        array = counts_of(counts, "counts")  # may be empty: the number of groups is as private as the counts
        if array.size and int(array.min()) < 0:
            raise OutOfRange("counts of units are not negative", name="counts")
        noise = self._draw_noise(array.size, source)
        shown = array >= self.threshold - noise  # array + noise could overflow
        return mark_simulated(shown) if source.simulated else shown

    def chance(self, count: int) -> float:
        """Return the probability that a group of `count` units is shown."""
        count, reach, epsilon = whole("count", count, at_least=0), self.reach, float(self.epsilon)
        if not 0 < count <= 2 * reach:
            return float(count > 0)
        if count > reach:  # the law is symmetric
            return 1 - self.chance(2 * reach + 1 - count)
        # Sums of r^x, r = e^-epsilon: over x from reach + 1 - count to reach, and over all from -reach to reach.
        shown = math.exp(-epsilon * (reach + 1 - count)) * _geometric_sum(epsilon, count)
        return shown / (1 + 2 * math.exp(-epsilon) * _geometric_sum(epsilon, reach))

    def interval(self, level: float) -> Interval:
        """Return the range of sizes of groups that noise decides about.

        A group of `low` units or fewer stays hidden and one of `high` or more is shown, each with probability `level`.
        For a level below 1/2 both may hold for the same groups; `low` is then `high`.
        """
        share = level_of(level)
        counts = range(2 * self.reach + 2)  # the last one is shown for certain
        hidden = bisect_right(counts, 1 - share, key=self.chance) - 1
        shown = bisect_left(counts, share, key=self.chance)
        return Interval(min(hidden, shown), shown)

    def _draw_noise(self, size: int, source: RandomSource) -> NDArray[np.int64]:
        """Return truncated noise: proposals of a wider law, drawn again until they are kept.

        A proposal is kept with probability 1/2 or more. Where the cut lies within one scale, proposals are uniform and
        kept with probability e^(-epsilon |x|); elsewhere they are of the law that is not cut off.
        """
        noise = np.empty(size, dtype=np.int64)
        missing = np.arange(size)
        while missing.size:
            proposed, kept = self._propose(missing.size, source)
            noise[missing[kept]] = proposed[kept]
            missing = missing[~kept]
        return noise

    def _propose(self, size: int, source: RandomSource) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        reach, epsilon = self.reach, Fraction(self.epsilon)
        if reach * epsilon > 1:
            proposed = sampler_for(LaplaceLaw(1 / epsilon)).draw(size, source)
            return proposed, np.abs(proposed) <= reach
        proposed = integers_below(2 * reach + 1, size, source) - reach
        exponents = np.abs(proposed) * float(epsilon)
        return proposed, exponential_coins(exponents, lambda index: abs(int(proposed[index])) * epsilon, source)


def _geometric_sum(epsilon: float, count: int) -> float:
    """Return r^0 + r^1 + ... + r^(count - 1), r = e^-epsilon."""
    return math.expm1(-epsilon * count) / math.expm1(-epsilon)


@lru_cache(maxsize=256)
def _reach(epsilon: Fraction, delta: Fraction) -> int:
    """Return the least k with r^k (1 - r) <= delta (1 + r - 2 r^(k + 1)), r = e^-epsilon.

    Solved, k >= ln(1 + tanh(epsilon / 2) (1 - delta) / delta) / epsilon. Doubles approximate this, and integer
    arithmetic finds the first k for which it holds.
    """
    odds = float((1 - delta) / delta)
    near = math.log1p(math.tanh(float(epsilon) / 2) * odds) / float(epsilon)
    if near >= REACH_MAX or (near * epsilon > 1 and 1 / epsilon > SCALE_MAX):
        raise TooLarge("the noise scale is too large to sample; use a greater epsilon or delta", name="epsilon")
    bits = 128 + 2 * (1 / epsilon).__ceil__().bit_length() + (1 / delta).__ceil__().bit_length()
    one, ratio = 1 << bits, exp_negative(epsilon, bits)

    def holds(k: int) -> bool:
        tail = exp_negative(k * epsilon, bits)
        outermost = tail.high * (one - ratio.low)
        return outermost <= delta * (one * (one + ratio.low) - 2 * tail.high * ratio.high)

    low = max(0, math.floor(near * (1 - 2.0**-30)) - 1)
    high = math.ceil(near * (1 + 2.0**-30)) + 1
    found = low + bisect_left(range(low, high), True, key=holds)
    if not holds(found):
        raise TooLarge("the threshold of this noise cannot be computed; use a greater epsilon or delta", name="epsilon")
    return found
