"""Propose, test, release: an exact answer if the data is far from any data with another answer, otherwise none.

Promise of each: (epsilon, delta)-differentially private (Dwork, Lei 2009). Let A be how many records must change before
the answer does: neighbours with the same answer have A within 1 of each other, and neighbours with different answers
both have A <= 1. A gets discrete Laplace noise of scale 1 / epsilon, and the answer is released if the sum reaches a
threshold T with P(noise >= T - 1) <= delta. If the answers agree, only the noisy A is used (epsilon); if they differ,
anything but a refusal has probability at most delta. A refusal (None) is an answer like any other and costs the same.
Records change by being added or removed, or by being replaced, as the relation says. `StableMode` holds under both: the
lead of the mode moves by 1 or by 2, and A is the lead, or half of it rounded up. `InterquartileRange` needs a public
number of records and is refused under add/remove.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms.integer_sampler import sampler_for
from tacit.mechanisms.laws import LaplaceLaw
from tacit.mechanisms.mechanism import Interval, Mechanism, require_replace_one
from tacit.mechanisms.randomness import SYSTEM, RandomSource
from tacit.mechanisms.simulation import mark_simulated
from tacit.mechanisms.values import refuse_columns, refuse_masked, vector_of
from tacit.privacy import events
from tacit.privacy.errors import EmptyInput, OutOfRange, WrongType
from tacit.privacy.events import Event
from tacit.privacy.numbers import (
    Real,
    exact,
    failure_probability,
    level_of,
    not_negative,
    parameter,
    rounded_up,
)
from tacit.privacy.units import Relation

_EXPONENT_MAX: Final = 709.0
"""Spreads at the end of a double's range are reported as e^709."""

_LOGARITHM_SLACK: Final = 1 + 2.0**-40
"""Widens intervals by far more than the rounding errors of a double's logarithm."""


@dataclass(frozen=True, slots=True)
class StabilityTest:
    """The noisy comparison of a distance with the threshold that delta requires."""

    epsilon: Fraction
    delta: Fraction

    @property
    def threshold(self) -> int:
        """T: P(noise >= k) = r^k / (1 + r) for k >= 1, r = e^-epsilon, solved for k = T - 1 and rounded up."""
        epsilon = float(self.epsilon)
        log_delta = math.log(self.delta.numerator) - math.log(self.delta.denominator)
        needed = -(log_delta + math.log1p(math.exp(-epsilon))) / epsilon
        return 1 + max(1, math.ceil(needed * (1 + 2**-40)))

    @property
    def distance_max(self) -> int:
        """A distance from which on the test never fails in practice; larger ones need not be computed."""
        return self.threshold + math.ceil(64 / float(self.epsilon))

    def passes(self, distance: int, source: RandomSource) -> bool:
        """Return whether the distance with noise reaches the threshold."""
        return distance + sampler_for(LaplaceLaw(1 / self.epsilon)).draw_one(source) >= self.threshold


@dataclass(frozen=True, slots=True)
class StableMode(Mechanism):
    """The most frequent value, if it leads by enough."""

    epsilon: Real
    delta: Real

    def __post_init__(self) -> None:
        Mechanism.__post_init__(self)
        self._normalize(epsilon=parameter, delta=failure_probability)

    @property
    def event(self) -> Event:
        return _event(self.epsilon, self.delta, self.relation)

    def release(self, values: Iterable[Hashable], *, source: RandomSource = SYSTEM) -> Any:
        """Return the mode of the values, one from each unit, or None.

        Equal values of different types or signs (1 and 1.0, 0.0 and -0.0) count separately: which of them is returned
        would otherwise show whose came first. An empty list is an error only where the number of values is public.
        """
        refuse_masked(values)
        refuse_columns(values, "values")
        try:
            counts = Counter((type(value), repr(value), value) for value in values)
        except Exception:  # values without a hash, a text or an iterator
            raise WrongType("values are a list of texts, numbers or the like", name="values") from None
        if not counts and self.relation is Relation.REPLACE_ONE:
            raise EmptyInput("there must be at least one value", name="values")
        ranked = [(value, count) for (_, _, value), count in counts.most_common(2)] + [(None, 0)] * 2
        return self.release_leader(ranked[0][0], ranked[0][1] - ranked[1][1], source=source)

    def release_leader(self, mode: Any, lead: int, *, source: RandomSource = SYSTEM) -> Any:
        """Return the mode, which leads by so many units, or None.

        Adding or removing a unit moves the lead by 1 at most, replacing one by 2 (Dwork, Lei 2009).
        """
        distance = lead if self.relation is Relation.ADD_REMOVE else (lead + 1) // 2
        if not StabilityTest(Fraction(self.epsilon), Fraction(self.delta)).passes(distance, source):
            return None
        return mark_simulated(mode) if source.simulated else mode

    def interval(self, level: float, value: Any = None) -> Interval:
        """Return the released value as both ends, whatever the level: it has no noise."""
        level_of(level)
        return Interval(value, value)


@dataclass(frozen=True, slots=True)
class InterquartileRange(Mechanism):
    """The interquartile range to within a factor `base`, if the data pins it down; the number of values is public.

    The answer is the cell of the range on a logarithmic ruler, tried on two rulers half a cell apart at half the
    price each, since a range next to a mark of one lies in the middle of the other's cell. Replacing k values can
    widen the range to max_a x[q3 + a] - x[q1 - (k - a)] at most and narrow it to min_a x[q3 - a] - x[q1 + (k - a)].
    """

    epsilon: Real
    delta: Real
    base: Real = 2
    relation: Relation = field(default=Relation.REPLACE_ONE, kw_only=True)

    def __post_init__(self) -> None:
        Mechanism.__post_init__(self)
        self._normalize(epsilon=parameter, delta=failure_probability)
        if float(exact("base", self.base)) <= 1:
            raise OutOfRange("base must be above 1", name="base", value=self.base)
        require_replace_one(self.relation)

    @property
    def event(self) -> Event:
        half = _event(Fraction(self.epsilon) / 2, Fraction(self.delta) / 2, self.relation)
        return events.Repeated(half, 2)

    def release(self, values: Any, *, source: RandomSource = SYSTEM) -> Any:
        """Return the middle of the cell in which the interquartile range lies, or None."""
        ordered = np.sort(vector_of(values, "values").astype(np.float64))
        if len(ordered) < 4:
            raise EmptyInput("quartiles need at least four values", name="values")
        test = StabilityTest(Fraction(self.epsilon) / 2, Fraction(self.delta) / 2)
        answers = [self._on_ruler(ordered, shift, test, source) for shift in (0.0, 0.5)]
        released = answers[0] if answers[0] is not None else answers[1]
        return mark_simulated(released) if source.simulated else released

    def interval(self, level: float, value: Any = 1.0) -> Interval:
        """Return the ends of the cell, in which the range of the data certainly lies; (0, inf) if None was released."""
        level_of(level)
        if value is None:
            return Interval(0.0, math.inf)
        middle = float(not_negative("value", value))
        side = math.sqrt(float(self.base)) * _LOGARITHM_SLACK
        return Interval(middle / side, middle * side if middle < math.exp(_EXPONENT_MAX) else math.inf)

    def _on_ruler(
        self, ordered: NDArray[np.float64], shift: float, test: StabilityTest, source: RandomSource
    ) -> float | None:
        step = math.log(float(self.base))
        distance = changes_to_leave(ordered, lambda spread: _cell(spread, step, shift), test.distance_max)
        if not test.passes(distance, source):
            return None
        cell = _cell(_spread(ordered), step, shift)
        return math.exp(min((cell + 0.5 - shift) * step, _EXPONENT_MAX))


def changes_to_leave(ordered: NDArray[np.float64], cell_of: Callable[[float], float], most: int) -> int:
    """Return the least number of replaced values that puts the interquartile range into another cell, up to `most`."""
    cell, most = cell_of(_spread(ordered)), min(most, len(ordered) + 1)
    padded = np.concatenate([np.full(most, -np.inf), ordered, np.full(most, np.inf)])
    first, third = len(ordered) // 4 + most, 3 * len(ordered) // 4 + most
    for changes in range(1, most):
        with np.errstate(over="ignore"):
            widest = (padded[third : third + changes + 1] - padded[first - changes : first + 1]).max()
            narrowest = (padded[third - changes : third + 1] - padded[first : first + changes + 1]).min()
        if cell_of(float(widest)) > cell or cell_of(float(narrowest)) < cell:
            return changes
    return most


def _spread(ordered: NDArray[np.float64]) -> float:
    return float(ordered[3 * len(ordered) // 4]) - float(ordered[len(ordered) // 4])


def _cell(spread: float, step: float, shift: float) -> float:
    """Return the mark at or below a spread on the ruler; minus infinity for a spread of zero."""
    if spread <= 0:
        return -math.inf
    return math.floor(math.log(spread) / step + shift) if spread < math.inf else math.inf


def _event(epsilon: Real, delta: Real, relation: Relation) -> Event:
    return events.Approximate(rounded_up(Fraction(epsilon)), rounded_up(Fraction(delta)), under=relation)
