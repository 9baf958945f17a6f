"""One event on a random sample: its whole privacy curve follows from that of the event.

Promise: at ln(1 + rate (e^epsilon - 1)) the sampled event's delta is at most rate times the event's own delta at
epsilon; for a Poisson sample under add-remove by Balle, Barthe, Gaboardi 2018, theorem 8, for a sample of fixed size
when a unit is exchanged by their theorem 9. When a unit is removed it is exactly that, so that lower bounds carry over
where the event describes a mechanism that costs the same in both directions.
Not here: samples that are composed with anything else (`composition`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from tacit.accounting.parts import attained, parts, replaced
from tacit.privacy import events
from tacit.privacy.events import Event

SAMPLES = events.Sampled | events.SampledWithoutReplacement


class Sample(NamedTuple):
    """What ran on a sample, and whether its lower bounds are those of the removal of a unit."""

    rate: float
    event: Event
    is_attained: bool


def sole_sample(event: Event) -> Sample | None:
    """Return the one sampled event that an event is, or None."""
    inside = parts(event)
    part = next(iter(inside))
    if sum(inside.values()) > 1:
        return None
    certain = attained(event) is not None
    match part:
        case events.Sampled(rate, inner):
            return Sample(rate, inner, certain and not _has_samples(inner))
        case events.SampledWithoutReplacement(size, population, inner):
            return Sample(size / population, replaced(inner), certain and not _has_samples(inner))
        case _:
            return None


def inner_delta(rate: float, delta: float) -> float:
    """Return the event's own delta that becomes `delta` after sampling, which is below the rate."""
    return min(delta / rate, 1 - 2.0**-53) * (1 - 2.0**-52)


def inner_epsilon(rate: float, epsilon: float) -> float:
    """Return the event's own epsilon that becomes `epsilon` after sampling: ln(1 + (e^epsilon - 1) / rate)."""
    if epsilon < 1:
        return math.log1p(math.expm1(epsilon) / rate)
    return epsilon + math.log1p(-(1 - rate) * math.exp(-epsilon)) - math.log(rate)


def _has_samples(event: Event) -> bool:
    """Whether the removal of a unit may cost something else than its addition."""
    if isinstance(event, events.CompoundEvent):
        return isinstance(event, SAMPLES) or any(_has_samples(part) for part in dict.fromkeys(event.parts))
    return False
