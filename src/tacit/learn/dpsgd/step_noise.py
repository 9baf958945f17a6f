"""What one step of a training releases: the sums of its batch, and of its canaries, with noise in one mechanism.

Neighbours: one unit more or less (one row replaced, with a loader). Sensitivity: clip (1 + widening) for the gradients,
rounding included (`rounding`), and with adaptive clipping 1/2 for the count, which is scaled so that one deviation
serves both (`schedule`).
Theorem: `Sampled(rate, Gaussian(multiplier))` for the deviation over the joint sensitivity; with several bands for all
steps that a unit's gradient enters, together (`matrix_noise`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tacit.learn.dpsgd.canaries import Canaries
from tacit.learn.dpsgd.matrix_noise import MatrixNoise
from tacit.learn.dpsgd.sampling import Indices
from tacit.learn.dpsgd.schedule import AdaptiveClip, Schedule
from tacit.mechanisms.bulk_gaussian import BulkGaussian

CANARY_SUMS: Final = "tacit canaries"
UNCLIPPED_COUNT: Final = "tacit count"
"""Names beside the parameters' in what a step releases: the directions of canaries, the count of adaptive clipping."""
ROUNDING: Final = 1 + 2.0**-28
"""The factor on deviations: more than the rounding errors of computing them, and of a count of up to 2^24 units."""


def no_sums(parameters: Mapping[str, Tensor], schedule: Schedule) -> dict[str, Tensor]:
    """Return the sums of a batch without units."""
    sums = {name: torch.zeros_like(one) for name, one in parameters.items()}
    if isinstance(schedule.clip, AdaptiveClip):
        sums[UNCLIPPED_COUNT] = torch.zeros(1, dtype=torch.float64)
    return sums


@dataclass(frozen=True, eq=False)
class StepCanaries:
    """The canaries that are sampled in a step, and the groups of units that all canaries are in."""

    canaries: Canaries
    sampled: Indices
    groups: NDArray[np.int64]


class StepNoise:
    """The noise of a training's steps."""

    def __init__(self, schedule: Schedule, noise: BulkGaussian, matrix: MatrixNoise) -> None:
        self._schedule, self._noise, self.matrix = schedule, noise, matrix
        self.squares, self.numbers = 0.0, 0
        """Sum of the squares, and number, of the noises of the canaries of the last step over their deviation."""

    def noisy(self, sums: dict[str, Tensor], step: int, clip: float, sampled: StepCanaries | None) -> dict[str, Tensor]:
        """Return what a step releases (module docstring)."""
        schedule, clip = self._schedule, clip * (1 + self._schedule.widening)
        deviation = schedule.sum_noise_at(step) * clip * ROUNDING
        sensitivity = deviation / schedule.noise_at(step)
        scale = 1.0
        sums = dict(sums)
        if isinstance(schedule.clip, AdaptiveClip):
            scale = deviation / schedule.clip.deviation(schedule.batch_size)
            sums[UNCLIPPED_COUNT] = sums[UNCLIPPED_COUNT] * scale
        if sampled is not None:
            sums[CANARY_SUMS] = torch.from_numpy(sampled.canaries.means(sampled.sampled, schedule) * clip)
            sampled.canaries.samples[sampled.sampled] += 1
        sums = self.matrix.encoded(step, sums)
        means = sums[CANARY_SUMS] / clip if sampled is not None else None
        noisy = self._noise.add(sums, deviation, sensitivity)  # whose memory is that of the sums
        self.squares, self.numbers = 0.0, 0
        if sampled is not None and means is not None:
            shown = noisy.pop(CANARY_SUMS)
            self.squares = sampled.canaries.score(shown / clip, means, step, sampled.groups, schedule)
            self.numbers = len(shown)
        if UNCLIPPED_COUNT in noisy:
            noisy[UNCLIPPED_COUNT] = noisy[UNCLIPPED_COUNT] / scale
        return self.matrix.decoded(step, noisy)
