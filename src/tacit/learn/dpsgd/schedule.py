"""What a training does in each step, fixed before the first one: sampling rate, noise and clip; and its privacy event.

Promise: the event of a schedule is that of all its steps together, whatever model, loss and optimizer they serve.

Poisson samples (add/remove one unit). A step releases sum + N(0, (noise multiplier * bound)^2 I), sum over the sampled
units of gradients of norm at most clip, which with rounding moves by at most bound = clip (1 + sum_error): a Gaussian
mechanism on a Poisson sample, `Sampled(rate, Gaussian(multiplier))` (Abadi et al. 2016; dominating pair: Zhu, Dong,
Wang 2022). Which gradients are summed depends on earlier releases: adaptive composition with parameters that are fixed
beforehand, which loss distributions cover.

A loader of the caller's own (replace one row). It visits every row at most once per pass, in an order that does not
depend on the rows. Replacing a row changes the sum of one step per pass, by at most 2 bound. Given the order, all steps
of a pass but one are the same functions of what was released before, so a pass is a Gaussian mechanism of sensitivity 2
bound, and the order may be public: `Repeated(Gaussian(multiplier / 2), passes)`, without amplification. It does not
hold for add/remove: without a row all later rows of the order move up, and every batch is another.

Adaptive clipping (Andrew, Thakkar, McMahan, Ramaswamy 2021, theorem 1): a step also releases the number of units whose
norm is at most the clip, as the sum of b - 1/2 with b = 0 or 1, which a unit moves by 1/2, with noise of deviation
s_b. Sum and count together are one Gaussian mechanism: with noise multiplier z_g for the sum, its multiplier z has
1 / z^2 = 1 / z_g^2 + 1 / (2 s_b)^2. The event states z, and the sum gets the z_g that follows. Clips depend on released
counts alone.

Banded matrix noise (`matrix_noise` has the theorem): with b bands, Poisson samples of one of b groups at the b-fold
rate make `Repeated(Sampled(b rate, Gaussian(multiplier)), ceil(steps / b))`; the event of a loader stays as it is.

Slack. Noise is Gaussian up to a total variation of s = n 2^-150 for n numbers, which adds (1 + e^epsilon) s to a delta.
`BulkGaussian.failure` states n 2^-100 and is taken off the delta of the event, so the training is private at the stated
epsilon and delta for every epsilon up to 34. What is charged is the event alone: (1 + e^epsilon) s is paid by the share
2^-40 of its delta that a cap leaves out of its conversion (`ledger.accounts.CONVERSION_LOSS`), for all trainings of a
budget together with up to 2^109 delta / (1 + e^epsilon) numbers. An `Approximate` event of this delta beside the
training would close the accounts of Rényi and Gaussian budgets, which have no place for a delta.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from typing import Any, Final, TypeAlias

from tacit.accounting import calibrate
from tacit.learn.dpsgd.matrix_noise import BANDS_MAX, coefficients, encoding_error
from tacit.learn.dpsgd.rounding import CLIP_MAX, CLIP_MIN, sum_error
from tacit.privacy.errors import InvalidInput, OutOfRange, TacitError, TooLarge
from tacit.privacy.events import Composed, Converted, Event, Gaussian, Repeated, Sampled
from tacit.privacy.numbers import inside_unit_interval, parameter, positive, rounded_down, rounded_up, whole
from tacit.privacy.units import Relation

STEPS_MAX: Final = 10_000_000
COUNT_NOISE: Final = 20
"""Batch size over the deviation of the count of adaptive clipping, as Andrew et al. recommend."""

Runs: TypeAlias = tuple[tuple[float, int], ...]
"""Values of a schedule, each with the number of steps for which it stands."""


@dataclass(frozen=True, slots=True)
class AdaptiveClip:
    """A clip that follows a quantile of the norms, found privately step by step (module docstring).

    After a step the clip is multiplied by exp(-learning_rate * (share of norms within it - quantile)). `count_noise` is
    the deviation of the count, a twentieth of the batch size if it is not stated.
    """

    start: float = 1.0
    quantile: float = 0.5
    learning_rate: float = 0.2
    count_noise: float | None = None

    def __post_init__(self) -> None:
        for name, check in (("start", parameter), ("quantile", inside_unit_interval), ("learning_rate", positive)):
            object.__setattr__(self, name, float(check(name, getattr(self, name))))
        if self.count_noise is not None:
            object.__setattr__(self, "count_noise", float(positive("count_noise", self.count_noise)))

    def deviation(self, batch_size: int) -> float:
        """Return the standard deviation of the noise of the count."""
        return batch_size / COUNT_NOISE if self.count_noise is None else self.count_noise

    def after(self, clip: float, share: float) -> float:
        """Return the clip of the next step; the factor is limited, since noisy shares are not."""
        moved = self.learning_rate * (share - self.quantile)
        return min(max(clip * math.exp(-min(max(moved, -1.0), 1.0)), CLIP_MIN), CLIP_MAX)


@dataclass(frozen=True, slots=True)
class Schedule:
    """The steps of a training."""

    steps: int
    batch_size: int
    units: int
    """The number of units, which is public."""
    noise: Runs
    clip: Runs | AdaptiveClip
    delta: float
    slack: float = 0.0
    """The part of delta for the distance of the noise to Gaussian noise (`BulkGaussian.failure`)."""
    steps_per_pass: int | None = None
    """The number of batches of the caller's own loader; None for Poisson samples."""
    coefficients: tuple[float, ...] = (1.0,)
    """Those of banded matrix noise (`matrix_noise`)."""

    @property
    def bands(self) -> int:
        """The number of steps over which noise is correlated; 1 for independent noise."""
        return len(self.coefficients)

    @property
    def sum_error(self) -> float:
        """How far rounding can move the sums of neighbours apart beyond the clip, over the clip (`rounding`)."""
        return sum_error(self.batch_size, self.units)

    @property
    def widening(self) -> float:
        """The share by which the sensitivity is wider than the clip, so that rounding is within it."""
        return (1 + self.sum_error) * (1 + encoding_error(self.bands, self.units)) - 1

    @property
    def rate(self) -> Fraction:
        """The probability with which a unit is in a batch, or in one of its group if there are several bands."""
        return Fraction(self.bands * self.batch_size, self.units)

    @property
    def event(self) -> Converted:
        """The event of the whole training, counted at its delta where epsilons are added up."""
        return self.event_of(self.steps)

    def event_of(self, steps: int) -> Converted:
        """Return the event of the first steps."""
        return Converted(self._composed(steps), self.delta_of_event)

    @property
    def delta_of_event(self) -> float:
        """Delta without the slack, rounded down."""
        return rounded_down(Fraction(self.delta) - Fraction(self.slack))

    def _composed(self, steps: int) -> Event:
        if self.steps_per_pass is not None:
            passes = -(-steps // self.steps_per_pass)
            halved = rounded_down(Fraction(self.noise[0][0]) / 2)
            return Repeated(Gaussian(halved, under=Relation.REPLACE_ONE), passes)
        rate, parts, left = rounded_up(self.rate), [], steps
        for multiplier, count in self.noise:
            taken = min(count, left)
            if taken:
                parts.append(Repeated(Sampled(rate, Gaussian(multiplier)), -(-taken // self.bands)))
            left -= taken
        return parts[0] if len(parts) == 1 else Composed(tuple(parts))

    def noise_at(self, step: int) -> float:
        """Return the noise multiplier of a step: the deviation of everything it releases over its sensitivity."""
        return _at(self.noise, step)

    def clip_at(self, step: int) -> float:
        """Return the clip of a step; where it is adaptive, that of the first."""
        return self.clip.start if isinstance(self.clip, AdaptiveClip) else _at(self.clip, step)

    def sum_noise_at(self, step: int) -> float:
        """Return the noise multiplier of the sum of gradients alone, which is greater if there is a count beside it."""
        total = self.noise_at(step)
        if not isinstance(self.clip, AdaptiveClip):
            return total
        return 1 / math.sqrt(1 / total**2 - 1 / (2 * self.clip.deviation(self.batch_size)) ** 2)


def planned(
    *,
    steps: int,
    batch_size: int,
    units: int,
    epsilon: Any,
    noise_multiplier: Any,
    clip: Any,
    delta: Any,
    slack: float = 0.0,
    steps_per_pass: int | None = None,
    bands: Any = 1,
) -> Schedule:
    """Return the schedule of a training; `epsilon` finds the noise multiplier, or it is stated."""
    if (epsilon is None) == (noise_multiplier is None):
        raise InvalidInput("state either epsilon or noise_multiplier", name="epsilon")
    if steps > STEPS_MAX:
        raise TooLarge(f"a training has at most {STEPS_MAX:,} steps", name="steps", value=steps)
    if batch_size > units:
        raise OutOfRange(
            f"the expected batch size must be at most the number of units, {units:,}",
            name="batch_size",
            value=batch_size,
        )
    _check_bands(whole("bands", bands), steps, batch_size, units, steps_per_pass)
    at = float(inside_unit_interval("delta", delta))
    if slack > at / 2:
        raise TooLarge("delta is too small for so many steps and parameters", name="delta", value=delta)
    clips = clip if isinstance(clip, AdaptiveClip) else _runs("clip", clip, steps)
    for value in (clips.start,) if isinstance(clips, AdaptiveClip) else (value for value, _ in clips):
        if not CLIP_MIN <= value <= CLIP_MAX:
            raise OutOfRange("the clip must be at least 2^-30 and at most 2^30", name="clip", value=value)

    c = coefficients(bands, steps)

    def schedule(noise: Runs) -> Schedule:
        return Schedule(steps, batch_size, units, noise, clips, at, slack, steps_per_pass, c)

    if epsilon is not None:
        target, of_event = float(positive("epsilon", epsilon)), schedule(()).delta_of_event
        sigma = calibrate(lambda sigma: schedule(((sigma, steps),)).event_of(steps).event, target, of_event)
        noise: Runs = ((sigma, steps),)
    else:
        noise = _runs("noise_multiplier", noise_multiplier, steps)
    if steps_per_pass is not None and len(noise) > 1:
        raise InvalidInput("noise is the same in all steps with a loader of your own", name="noise_multiplier")
    if bands > 1 and (isinstance(clips, AdaptiveClip) or len(clips) > 1 or len(noise) > 1):
        raise InvalidInput("noise and clip are the same in all steps with several bands", name="bands", value=bands)
    _check_count_noise(clips, noise, batch_size)
    return schedule(noise)


def _check_bands(bands: int, steps: int, batch_size: int, units: int, steps_per_pass: int | None) -> None:
    most = min(BANDS_MAX, steps if steps_per_pass is None else min(steps, steps_per_pass))
    if bands > most:
        raise OutOfRange(
            f"bands must be at most {BANDS_MAX}, the number of steps and that of a pass of a loader: {most:,} here",
            name="bands",
            value=bands,
        )
    if steps_per_pass is None and bands * batch_size > units:
        raise OutOfRange(
            f"a batch is drawn from one of as many groups as there are bands: bands times batch_size must be at most "
            f"the number of units, {units:,}",
            name="bands",
            value=bands,
        )


def _check_count_noise(clips: Runs | AdaptiveClip, noise: Runs, batch_size: int) -> None:
    if isinstance(clips, AdaptiveClip):
        deviation, most = clips.deviation(batch_size), max(value for value, _ in noise)
        if 2 * deviation <= 1.01 * most:
            raise OutOfRange(
                f"the count of adaptive clipping needs noise of a deviation above {0.51 * most:.3g}; state a greater "
                "count_noise, or a greater batch size",
                name="count_noise",
                value=deviation,
            )


def _runs(name: str, stated: Any, steps: int) -> Runs:
    """Return a number, a list with one for each step, or a function of the step (from 0 on), evaluated here."""
    if callable(stated):
        values = [_evaluated(name, stated, step) for step in range(steps)]
    elif isinstance(stated, Sequence) and not isinstance(stated, str):
        values = [float(parameter(name, one)) for one in stated]
        if len(values) != steps:
            raise InvalidInput(f"{name} must have a value for each of the {steps:,} steps", name=name)
    else:
        return ((float(parameter(name, stated)), steps),)
    return tuple((value, len(list(same))) for value, same in groupby(values))


def _evaluated(name: str, function: Callable[[int], Any], step: int) -> float:
    try:
        found = function(step)
    except TacitError:
        raise
    except Exception as error:
        raise InvalidInput(f"{name}({step}) failed: {error!r}", name=name) from error
    return float(parameter(name, found))


def _at(runs: Runs, step: int) -> float:
    for value, count in runs:
        if step < count:
            return value
        step -= count
    return runs[-1][0]
