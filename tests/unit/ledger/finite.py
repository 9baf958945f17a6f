"""Mechanisms with a handful of answers, and the most that an adaptive analyst can get out of a filter with them.

A mechanism is the list of its answers' probabilities on two neighbouring data sets, so everything is computed by
enumeration. `worst_delta` plays the best adversary: at every point of the transcript it takes the mechanism that the
filter admits and that leads to the greatest loss in the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from tacit.privacy import events
from tacit.privacy.events import Event

Pair = tuple[float, float]
"""The probability of an answer, or of a transcript, on the one data set and on the other."""


@dataclass(frozen=True)
class Mechanism:
    """What can be answered, how likely on each data set, and the event that says what is known of it."""

    answers: tuple[Pair, ...]
    event: Event


def response(epsilon: float) -> Mechanism:
    """Randomized response between two answers."""
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))
    return Mechanism(((truth, 1 - truth), (1 - truth, truth)), events.RandomizedResponse(epsilon))


def leak(delta: float) -> Mechanism:
    """Tell which data set it is with probability delta, and nothing otherwise: (0, delta)-private."""
    return Mechanism(((delta, 0.0), (0.0, delta), (1 - delta, 1 - delta)), events.Approximate(0, delta))


def leaky_response(epsilon: float, delta: float) -> Mechanism:
    """Leak with probability delta, respond at random otherwise: (epsilon, delta)-private."""
    inner = tuple(((1 - delta) * p, (1 - delta) * q) for p, q in response(epsilon).answers)
    return Mechanism(((delta, 0.0), (0.0, delta), *inner), events.Approximate(epsilon, delta))


def composed(*mechanisms: Mechanism) -> tuple[Pair, ...]:
    """The transcripts of mechanisms run one after another, chosen in advance."""
    transcripts: tuple[Pair, ...] = ((1.0, 1.0),)
    for mechanism in mechanisms:
        transcripts = tuple((p * a, q * b) for p, q in transcripts for a, b in mechanism.answers)
    return transcripts


def delta_at(epsilon: float, transcripts: Sequence[Pair]) -> float:
    """The least delta for which these transcripts are (epsilon, delta)-private, from the first data set's side."""
    return math.fsum(max(0.0, p - math.exp(epsilon) * q) for p, q in transcripts)


def worst_delta(
    epsilon: float,
    menu: Sequence[Mechanism],
    steps_max: int,
    start: Any,
    admit: Callable[[Any, Mechanism], Any],
) -> float:
    """Return the greatest delta at epsilon that an adaptive choice from the menu reaches.

    `admit(state, mechanism)` returns the filter's next state, or None where it refuses. The loss of a transcript is
    homogeneous in its two probabilities, so only their ratio matters for what is best from there on.
    """

    @cache
    def gain(log_ratio: float, state: Any, steps: int) -> float:
        """What can be gained from a transcript that has probability 1 on the first data set."""
        best = max(0.0, 1 - math.exp(epsilon - log_ratio))
        if steps == 0 or log_ratio == math.inf:
            return best
        for mechanism in menu:
            after = admit(state, mechanism)
            if after is None:
                continue
            total = 0.0
            for p, q in mechanism.answers:
                if p:
                    ratio = math.inf if q == 0 else round(log_ratio + math.log(p / q), 12)
                    total += p * gain(ratio, after, steps - 1)
            best = max(best, total)
        return best

    return gain(0.0, start, steps_max)
