"""The sparse vector technique: which of many questions lie above a threshold, at a cost for those that do.

Promise: if neighbouring inputs change no question's value by more than `sensitivity`, the answers to any number of
questions, chosen one after another, up to and with the `positives`-th "above", are epsilon-differentially private. This
holds under either relation.
This is the sparse vector technique in its proven form (Dwork, Roth 2014, algorithm 1; Lyu, Su, Li 2017, algorithm 7):
the threshold gets Laplace noise of scale sensitivity / epsilon_1 once and keeps it, every question fresh noise of scale
2 positives sensitivity / epsilon_2, epsilon_1 + epsilon_2 = epsilon, split 1 : (2 positives)^(2/3). With `monotonic`
set, all questions move in one direction, as counts do under add/remove, and half of the questions' noise is enough; a
replaced unit moves counts both ways, so that this is refused under replace-one. The noisy values are never shown, the
noise of the questions grows with `positives`, and the answers stop: leaving out any of the three is one of the
published wrong variants.
Values and threshold are rounded to a public grid; rounding is inside the sensitivity.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, SupportsIndex

import numpy as np

from tacit.mechanisms.grid import Grid
from tacit.mechanisms.integer_sampler import sampler_for
from tacit.mechanisms.laplace import laplace_half_width
from tacit.mechanisms.laws import SCALE_MAX, LaplaceLaw
from tacit.mechanisms.mechanism import Interval, Mechanism, require_one_direction
from tacit.mechanisms.randomness import SYSTEM, RandomSource
from tacit.mechanisms.simulation import mark_simulated
from tacit.mechanisms.values import is_list, numbers_of, refuse_masked, sequence_of
from tacit.privacy import events
from tacit.privacy.errors import Exhausted, InvalidInput, TooLarge, WrongType
from tacit.privacy.events import Event
from tacit.privacy.numbers import Real, exact, level_of, parameter, rounded_up, truth_value, whole


@dataclass(frozen=True, slots=True)
class SparseVector(Mechanism):
    """Answers "above" or "below", until `positives` of them were "above"."""

    sensitivity: Real
    epsilon: Real
    threshold: Real
    positives: int = 1
    monotonic: bool = False

    def __post_init__(self) -> None:
        Mechanism.__post_init__(self)
        self._normalize(sensitivity=parameter, epsilon=parameter, threshold=exact, positives=whole)
        if self.positives > SCALE_MAX:
            raise TooLarge("at most 2^50 positive answers are paid for at once", name="positives", value=self.positives)
        self._normalize(monotonic=truth_value)
        require_one_direction(self.monotonic, self.relation)
        _ = self._grid

    @property
    def event(self) -> Event:
        return events.Pure(epsilon=rounded_up(Fraction(self.epsilon)), under=self.relation)

    def start(self, *, source: RandomSource = SYSTEM) -> SparseVectorSession:
        """Return a session with fresh noise on the threshold; the event pays for one session."""
        return SparseVectorSession(self, source)

    def release(self, values: Any, *, source: RandomSource = SYSTEM) -> Any:
        """Return whether each value lies above, in order, ending with the last "above" that was paid for."""
        refuse_masked(values)
        questions = _one_by_one(values)
        session = self.start(source=source)
        answers: list[Any] = []
        for value in questions:
            answers.append(session.ask(value))
            if session.exhausted:
                break
        return tuple(answers)

    def interval(self, level: float, questions: int) -> Interval:
        """Return the range in which answers may be wrong: outside, all of `questions` are right at this level."""
        missed = (1 - level_of(level)) / (whole("questions", questions) + 1)
        widths = [laplace_half_width(scale, missed) for scale in self._scales]
        width = float((sum(widths) + 1) * self._grid.step)
        return Interval(float(self.threshold) - width, float(self.threshold) + width)

    @property
    def _grid(self) -> Grid:
        sensitivity = Fraction(self.sensitivity)
        return Grid.fitting(sensitivity, sensitivity / Fraction(self.epsilon), 1)

    @property
    def _scales(self) -> tuple[Fraction, Fraction]:
        """The scales of the threshold's and the questions' noise, in steps of the grid."""
        weight = self.positives if self.monotonic else 2 * self.positives
        first = Fraction(self.epsilon) / (1 + Fraction(weight ** (2 / 3)))
        steps_apart = Fraction(self.sensitivity) // self._grid.step + 1
        return steps_apart / first, weight * steps_apart / (Fraction(self.epsilon) - first)


@dataclass(frozen=True, slots=True)
class AboveThreshold(SparseVector):
    """The first of many questions that lies above a threshold: a sparse vector with one positive answer."""

    def __post_init__(self) -> None:
        SparseVector.__post_init__(self)
        if self.positives != 1:
            raise WrongType("AboveThreshold stops at the first positive answer; use SparseVector for more")

    def first(self, values: Iterable[Any], *, source: RandomSource = SYSTEM) -> int | None:
        """Return the index of the first value that was answered "above", or None."""
        answers = self.release(values, source=source)
        found = len(answers) - 1 if answers and answers[-1] else None
        return mark_simulated(found) if source.simulated else found


class SparseVectorSession:
    """One run of a sparse vector, with its noisy threshold and the number of positive answers left.

    Threads may share it. A positive answer is spent before its noise is drawn and given back after a negative one, so
    that an answer that fails in between is spent. A copy, or a forked process, would compare with the same noisy
    threshold again, and is refused.
    """

    def __init__(self, mechanism: SparseVector, source: RandomSource) -> None:
        threshold_scale, question_scale = mechanism._scales
        self._grid = mechanism._grid
        self._source = source
        self._noise = sampler_for(LaplaceLaw(question_scale))
        self._lock = threading.RLock()  # a signal handler that interrupts `ask` may call it in the same thread
        self._process = os.getpid()
        self._left = mechanism.positives
        self._threshold = self._steps(float(mechanism.threshold))
        self._threshold += sampler_for(LaplaceLaw(threshold_scale)).draw_one(source)

    @property
    def exhausted(self) -> bool:
        """Whether every "above" that was paid for has been given."""
        return self._left <= 0

    def ask(self, value: Any) -> Any:
        """Return whether a value lies above the threshold, by noisy comparison."""
        if os.getpid() != self._process:
            raise InvalidInput("a forked process cannot continue a session; start another one there")
        steps = self._steps(value)
        with self._lock:
            if self.exhausted:
                raise Exhausted("all positive answers of this session are used; start a new session for more")
            self._left -= 1
            above = steps + self._noise.draw_one(self._source) >= self._threshold
            if not above:
                self._left += 1
        return mark_simulated(above) if self._source.simulated else above

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        raise WrongType("a session cannot be copied: two would share the threshold's noise; start another one")

    def _steps(self, value: Any) -> int:
        number = numbers_of(value)
        if number.ndim:
            raise WrongType("the value of a query is one number", name="value")
        near = self._grid.encode_one(float(number))
        # An int is rounded without a double in between. Equal numbers of any type end on the same mark, and the noise
        # is the same for all, so that a value's type does not show.
        return round(int(number) / self._grid.step) if number.dtype == np.int64 else near


def _one_by_one(values: Any) -> Iterator[Any]:
    """Return an iterator over the values of questions; raise if there is none."""
    try:
        if isinstance(values, Iterable) and not isinstance(values, Mapping):
            return iter(sequence_of(values) if is_list(values) else values)
    except Exception:  # an array without dimensions, or an object whose iterator is broken
        pass
    raise WrongType("values are a list of numbers, one for each query", name="values")
