"""The privacy of banded matrix noise, computed from what a training releases, beside the event that is charged.

A unit whose gradient is 1 in one direction is in a training or not. Means of the released rows come from the sampler
and the matrix of the code; the divergence of the two mixtures of Gaussians from 200,000 seeded draws. Noise, samples
and draws are seeded; each check of the healthy code fails with a probability below 1e-6 for other seeds, at five
standard errors, except for the verdict of the canaries.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from tacit.accounting import delta
from tacit.learn.dpsgd import matrix_noise, private_training, schedule, training
from tacit.learn.dpsgd.matrix_noise import MatrixNoise
from tacit.learn.dpsgd.sampling import Groups
from tacit.learn.dpsgd.schedule import Schedule, planned
from tacit.mechanisms.bulk_gaussian import BulkGaussian
from tacit.mechanisms.simulation import SeededSource
from tests.support.trainings import private, rows, train

Floats = NDArray[np.float64]
BANDS = 2
EPSILONS = (0.25, 1.0, 2.0)
ADD, NORMAL = BulkGaussian.add, matrix_noise.coefficients


def everybody(self: Groups, step: int) -> Any:
    """Plant a sampler that draws from all groups in every step."""
    return np.arange(len(self.numbers))


def too_wide(bands: int, steps: int) -> tuple[float, ...]:
    """Plant coefficients of which each, not their norm, is at most 1."""
    c = NORMAL(bands, steps)
    return tuple(one / max(c) for one in c)


def a_schedule(steps: int = 4) -> Schedule:
    return planned(
        steps=steps, batch_size=1, units=4, epsilon=None, noise_multiplier=1.0, clip=1.0, delta=1e-5, bands=BANDS
    )


def patterns(of: Schedule, group: int) -> Iterator[tuple[float, Floats]]:
    """Yield the means of all rows if a unit of a group is sampled in some of its steps, with their probability."""
    groups = Groups(100, of.bands, "secret")
    unit = int(np.flatnonzero(groups.numbers == group)[0])
    open_to = [step for step in range(of.steps) if unit in groups.at(step)]
    rate = float(of.rate)
    for coins in product((0, 1), repeat=len(open_to)):
        sampled, matrix, means = dict(zip(open_to, coins, strict=True)), MatrixNoise(of.coefficients), []
        for step in range(of.steps):
            row = matrix.encoded(step, {"x": torch.tensor([float(sampled.get(step, 0))], dtype=torch.float64)})
            means.append(row["x"].item())
            matrix.decoded(step, row)
        yield float(np.prod([rate if coin else 1 - rate for coin in coins])), np.array(means)


def divergence(of: Schedule, epsilon: float, groups: tuple[int, ...], *, is_removed: bool = False) -> Any:
    """Return delta at epsilon of all released rows, with its standard error, for noise of the charged multiplier."""
    sigma, random = of.noise_at(0), np.random.default_rng(1)
    mixture = [(chance / len(groups), means) for group in groups for chance, means in patterns(of, group)]
    chosen = random.choice(len(mixture), 200_000, p=[chance for chance, _ in mixture])
    y = random.normal(0.0, sigma, (len(chosen), of.steps))
    if is_removed:
        y += np.array([means for _, means in mixture])[chosen]
    ratio = sum(chance * np.exp((y @ means - means @ means / 2) / sigma**2) for chance, means in mixture)
    beyond = np.maximum(1 - np.exp(epsilon) / ratio, 0) if is_removed else np.maximum(1 - np.exp(epsilon) * ratio, 0)
    return beyond.mean(), beyond.std() / np.sqrt(len(beyond))


def is_covered(of: Schedule, sigma_factor: float = 1.0, steps: int = 4) -> bool:
    """Whether the divergences are within the charged event."""
    event = of.event.event
    if sigma_factor != 1.0:
        of = Schedule(**{**{name: getattr(of, name) for name in of.__slots__}, "noise": ((sigma_factor, steps),)})
    found = [
        (divergence(of, epsilon, groups, is_removed=is_removed), delta(event, epsilon).upper)
        for epsilon in EPSILONS
        for is_removed in (False, True)
        for groups in ((0,), (0, 1))
    ]
    return all(measured <= charged + 5 * error for (measured, error), charged in found)


def test_the_rows_of_a_training_are_as_private_as_its_event() -> None:
    assert is_covered(a_schedule())
    of = a_schedule()
    for epsilon in EPSILONS:  # and the event is met by a unit of the first group: nothing is wasted
        measured, error = divergence(of, epsilon, (0,), is_removed=True)
        assert abs(measured - delta(of.event.event, epsilon).upper) <= 5 * error + 1e-4


def test_an_end_within_a_block_is_covered() -> None:
    of = a_schedule(3)
    assert of.event.event.count == 2  # type: ignore[attr-defined]
    assert is_covered(of, steps=3)


def test_samples_from_all_groups_are_not_covered() -> None:
    with patch.object(Groups, "at", everybody):
        assert not is_covered(a_schedule())


def test_coefficients_of_a_greater_norm_are_not_covered() -> None:
    with patch.object(schedule, "coefficients", too_wide):
        assert not is_covered(a_schedule())


def test_less_noise_than_was_charged_is_not_covered() -> None:
    assert not is_covered(a_schedule(), sigma_factor=0.9)


def test_an_event_at_the_rate_of_a_batch_is_not_covered() -> None:
    plain = a_schedule()
    rate = plain.rate / BANDS
    with patch.object(Schedule, "rate", property(lambda _: rate)):
        event = plain.event.event
    found = [(divergence(plain, epsilon, (0,), is_removed=True), delta(event, epsilon).upper) for epsilon in EPSILONS]
    assert not all(measured <= charged + 5 * error for (measured, error), charged in found)


def moves(bands: int = 3, steps: int = 15) -> Floats:
    """Return how far the rows of a training move, each step, if one unit's rows become worth nothing."""
    shown: list[list[Floats]] = []
    for is_inside in (True, False):
        features, labels = rows(60)
        if not is_inside:
            features[7] = torch.nan  # it adds 0, and is sampled as before
        summed: list[Floats] = []

        def add(_: BulkGaussian, sums: Any, *__: float, of: list[Floats] = summed) -> Any:
            of.append(np.concatenate([one.double().flatten().numpy() for one in sums.values()]))
            return {name: torch.zeros_like(one) for name, one in sums.items()}  # the same weights in both trainings

        with (
            patch.object(training, "SYSTEM", SeededSource(0)),
            patch.object(private_training, "SYSTEM", SeededSource(0)),
            patch.object(BulkGaussian, "add", add),
        ):
            one = private(data=(features * 100, labels), batch_size=15, bands=bands, steps=steps)
            train(one)
        shown.append(summed)
    found: Floats = np.linalg.norm(np.array(shown[0]) - np.array(shown[1]), axis=1)
    return found


def blocks_are_bounded(bands: int = 3) -> bool:
    """Whether the rows of one training move in blocks of `bands` steps, each by at most the clip."""
    found = moves(bands)
    first = int(np.flatnonzero(found)[0]) % bands
    padded = np.concatenate([np.zeros((bands - first) % bands), found])
    padded = np.concatenate([padded, np.zeros(-len(padded) % bands)]).reshape(-1, bands)
    assert found.any()
    return bool((np.linalg.norm(padded, axis=1) <= 1 + 1e-3).all())


def test_a_unit_moves_blocks_of_rows_by_the_clip_and_nothing_between_them() -> None:
    assert blocks_are_bounded()
    with patch.object(Groups, "at", everybody):
        assert not blocks_are_bounded()
    with patch.object(schedule, "coefficients", too_wide):
        assert not blocks_are_bounded()


def audited(seed: int = 0, epsilon: float = 2.0) -> Any:
    with (
        patch.object(training, "SYSTEM", SeededSource(seed + 100)),
        patch.object(private_training, "SYSTEM", SeededSource(seed)),
    ):
        one = private(data=rows(1_000), batch_size=50, steps=40, epsilon=epsilon, bands=4, audit=True)
    train(one)
    return one


def test_the_canaries_of_a_healthy_training_are_consistent() -> None:
    one = audited()
    assert one.finding.verdict == "consistent"
    _, low, high = one.noise_ratio
    assert low <= 1.001 <= high
    assert not one.faults


@pytest.mark.parametrize("factor", [0.0, 0.5])
def test_forgotten_and_halved_noise_is_noticed(factor: float) -> None:
    def add(self: BulkGaussian, sums: Any, deviation: float, sensitivity: float) -> Any:
        return ADD(self, sums, deviation * factor, sensitivity) if factor else dict(sums)

    with patch.object(BulkGaussian, "add", add), pytest.warns(UserWarning, match="refutes the promise"):
        one = audited()
    assert one.finding.is_violation or factor
    assert one.noise_ratio[2] < 0.51


def test_noise_that_is_used_again_is_noticed() -> None:
    kept: list[Any] = []

    def add(self: BulkGaussian, sums: Any, deviation: float, sensitivity: float) -> Any:
        if not kept:
            kept.append(ADD(self, {n: torch.zeros_like(one) for n, one in sums.items()}, deviation, sensitivity))
        return {name: one + kept[0][name] for name, one in sums.items()}

    with patch.object(BulkGaussian, "add", add), pytest.warns(UserWarning, match="more than one step"):
        assert "is used in more than one step" in audited().faults


def test_canaries_that_are_sampled_in_all_steps_are_noticed() -> None:
    with patch.object(Groups, "at", everybody), pytest.warns(UserWarning, match="refutes the promise"):
        assert audited().finding.is_violation
