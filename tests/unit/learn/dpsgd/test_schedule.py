"""Schedules: what a step releases has the noise that its event states, for the sum and the count beside it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

import tacit
from tacit.learn import AdaptiveClip
from tacit.learn.dpsgd.clipping import PerSampleClipper
from tacit.learn.dpsgd.matrix_noise import MatrixNoise
from tacit.learn.dpsgd.private_training import PrivateTraining
from tacit.learn.dpsgd.schedule import planned
from tacit.learn.dpsgd.step_noise import UNCLIPPED_COUNT, StepNoise, no_sums
from tacit.mechanisms.bulk_gaussian import BulkGaussian
from tacit.privacy.events import Converted, Gaussian, Repeated
from tacit.privacy.units import Relation
from tests.support.trainings import private, rows, train


@dataclass
class Seen:
    """What the steps of a training computed and released."""

    added: list[tuple[dict[str, Tensor], float, float]] = field(default_factory=list)
    """The sums of each step, and the deviation and sensitivity of its noise."""
    clipped: list[tuple[float, Tensor, bool]] = field(default_factory=list)
    """The clip and the norms of each chunk, and whether its sums were asked for in double precision."""


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    found, add, clipped = Seen(), BulkGaussian.add, PerSampleClipper.clipped_sums

    def adding(self: Any, sums: Any, deviation: float, sensitivity: float) -> Any:
        found.added.append(({name: one.clone() for name, one in sums.items()}, deviation, sensitivity))
        return add(self, sums, deviation, sensitivity)

    def clipping(self: Any, losses: Tensor, clip: float, units: Any = None, *, is_precise: bool = False) -> Any:
        sums, norms = clipped(self, losses, clip, units, is_precise=is_precise)
        found.clipped.append((clip, norms, is_precise))
        return sums, norms

    monkeypatch.setattr(BulkGaussian, "add", adding)
    monkeypatch.setattr(PerSampleClipper, "clipped_sums", clipping)
    return found


def some_long(count: int = 200) -> tuple[Tensor, Tensor]:
    """Return rows of which the second quarter has long gradients."""
    features, labels = rows(count)
    features[count // 4 : count // 2] *= 100
    return features, labels


def adaptive(noise_multiplier: float, deviation: float | None = None) -> PrivateTraining:
    """Return a training of one step, which takes all rows."""
    clip = AdaptiveClip(start=2.0, count_noise=deviation)
    return private(data=some_long(), batch_size=200, steps=1, clip=clip, noise_multiplier=noise_multiplier)


@pytest.mark.parametrize("deviation", [None, 3.0])
def test_a_unit_moves_the_count_by_a_half_and_both_noises_are_within_the_stated_one(
    seen: Seen, deviation: float | None
) -> None:
    training = adaptive(2.0, deviation)
    train(training)
    assert isinstance(training.schedule.clip, AdaptiveClip)
    ((sums, noise, sensitivity),), ((clip, norms, _),) = seen.added, seen.clipped
    within = int((norms <= clip).sum())
    assert 0 < len(norms) - within < within
    scale = 2 * abs(float(sums[UNCLIPPED_COUNT])) / (2 * within - len(norms))
    assert noise / scale == pytest.approx(training.schedule.clip.deviation(200))
    assert math.hypot(clip * (1 + training.schedule.widening), scale / 2) <= sensitivity * (1 + 1e-12)


def narrowed(training: PrivateTraining, clip: float, deviation: float, multiplier: float) -> bool:
    """Return whether the noise of a step is less than stated, in exact arithmetic."""
    schedule = training.schedule
    inverse = (Fraction(clip) * (1 + Fraction(schedule.widening)) / Fraction(deviation)) ** 2
    if isinstance(schedule.clip, AdaptiveClip):
        inverse += 1 / (2 * Fraction(schedule.clip.deviation(schedule.batch_size))) ** 2
    return inverse > 1 / Fraction(multiplier) ** 2


def test_rounding_makes_no_noise_smaller_than_stated(seen: Seen) -> None:
    clips = [0.1 + step / 7 for step in range(20)]
    training = private(steps=20, clip=clips, noise_multiplier=1.1, batch_size=60)
    train(training)
    for (_, noise, _), clip in zip(seen.added, clips, strict=True):
        assert not narrowed(training, clip, noise, 1.1)
    for multiplier in (0.7, 1.1, 1.3, 1.7, 2.3, 2.9):
        seen.added.clear()
        train(training := adaptive(multiplier, 3.3))
        assert not narrowed(training, 2.0, seen.added[0][1], multiplier)


@pytest.mark.parametrize(
    ("batch_size", "processes", "is_precise"), [(600, 1, True), (60, 1, False), (60, 2, True), (30, 2, False)]
)
def test_batches_too_large_for_single_precision_are_summed_in_double(
    seen: Seen, batch_size: int, processes: int, is_precise: bool
) -> None:
    """Each of several processes may sum its share of the rows that are allowed in single precision."""
    training = private(data=rows(batch_size), batch_size=batch_size, steps=2)
    training._parts.processes.size = processes
    train(training)
    assert [one for _, _, one in seen.clipped] == [is_precise] * 2


def test_a_pass_that_is_begun_is_charged_whole() -> None:
    data = TensorDataset(*rows())
    budget = tacit.Budget(50.0, 1e-3, relation=Relation.REPLACE_ONE)
    training = private(data=data, loader=DataLoader(data, batch_size=20, shuffle=True), steps=15, budget=budget)
    (charged,) = budget.events
    of_pass = Gaussian(0.5, under=Relation.REPLACE_ONE)
    assert isinstance(charged, Converted)
    assert charged.event == Repeated(of_pass, 2)
    for steps, passes in ((1, 1), (10, 1), (11, 2), (20, 2)):
        assert training.schedule.event_of(steps).event == Repeated(of_pass, passes)


def test_the_count_of_adaptive_clipping_gets_noise_of_its_stated_deviation() -> None:
    """Measured: the spread of 2,000 counts, wrong once in a million runs."""
    clip = AdaptiveClip(start=1.0, count_noise=4.0)
    plan = planned(steps=2_000, batch_size=50, units=500, epsilon=None, noise_multiplier=1.0, clip=clip, delta=1e-5)
    noise = StepNoise(plan, BulkGaussian(in_place=True), MatrixNoise(plan.coefficients))
    sums = no_sums({"weight": torch.zeros(2)}, plan)
    counts = [float(noise.noisy(sums, step, 1.0, None)[UNCLIPPED_COUNT]) for step in range(plan.steps)]
    assert np.std(counts) == pytest.approx(4.0, rel=0.08)
    assert abs(np.mean(counts)) < 5 * 4.0 / 2_000**0.5
