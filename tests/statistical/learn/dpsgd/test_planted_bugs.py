"""Bugs that break the promise of a training, planted, and noticed.

Noise and samples are seeded. False alarms: each check of the healthy code would fail with a probability below 1e-6 for
other seeds, except for the verdict of the canaries, which is stated where it is made.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from scipy import stats

from tacit.learn.dpsgd import private_training
from tacit.learn.dpsgd.clipping import PerSampleClipper
from tacit.learn.dpsgd.sampling import Indices, poisson_sample
from tacit.mechanisms.bulk_gaussian import BulkGaussian
from tacit.mechanisms.randomness import RandomSource
from tacit.mechanisms.simulation import SeededSource
from tests.support.trainings import model, private, rows, train

ADD = BulkGaussian.add


def with_noise(factor: float) -> Any:
    """Plant noise of another size: none, or a part of what was stated."""

    def add(self: BulkGaussian, sums: Any, deviation: float, sensitivity: float) -> Any:
        return ADD(self, sums, deviation * factor, sensitivity) if factor else dict(sums)

    return patch.object(BulkGaussian, "add", add)


def audited(epsilon: float = 2.0, seed: int = 0) -> Any:
    with patch.object(private_training, "SYSTEM", SeededSource(seed)):
        training = private(data=rows(1_000), batch_size=100, steps=40, epsilon=epsilon, audit=True)
    train(training)
    return training


def test_a_healthy_training_is_consistent() -> None:
    training = audited()
    assert training.finding.verdict == "consistent"  # a violation in one of 20 runs would be within its confidence,
    ratio, low, high = training.noise_ratio  # but the bound of an exact training lies far below epsilon
    assert low <= 1.0005 <= high  # the grid widens the noise by less than a thousandth; wrong once in 10^6 runs
    assert ratio == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("factor", [0.0, 0.5])
def test_forgotten_and_halved_noise_is_noticed(factor: float) -> None:
    with with_noise(factor), pytest.warns(UserWarning, match="refutes the promise"):
        training = audited()
    assert training.finding.is_violation or factor  # guesses alone notice half the noise in most runs, not in all
    assert training.noise_ratio[2] < 0.51


@pytest.mark.parametrize("factor", [0.5, 0.9])
def test_at_a_large_epsilon_the_measured_deviation_notices_it(factor: float) -> None:
    with with_noise(factor), pytest.warns(UserWarning, match="refutes the promise"):
        training = audited(epsilon=20.0)
    assert training.noise_ratio[2] < 1


@pytest.mark.parametrize(("period", "sign"), [(1, 1), (30, 1), (1, -1)])
def test_noise_that_is_used_again_is_noticed(period: int, sign: int) -> None:
    """Also noise whose sign alternates, which cancels in the sums over the steps."""
    kept: list[Any] = []
    calls = iter(range(1_000))

    def add(self: BulkGaussian, sums: Any, deviation: float, sensitivity: float) -> Any:
        if len(kept) < period:
            kept.append(ADD(self, {n: torch.zeros_like(one) for n, one in sums.items()}, deviation, sensitivity))
        call = next(calls)
        again = kept[call % period]
        return {name: one + sign**call * again[name] for name, one in sums.items()}

    with patch.object(BulkGaussian, "add", add), pytest.warns(UserWarning, match="more than one step"):
        assert "is used in more than one step" in audited().faults
    assert not audited().faults


def binomial(draw: Callable[[int, Fraction, RandomSource], Indices], draws: int = 400) -> bool:
    """Whether sizes of samples have the variance of independent coins, and units their rate; false alarm below 1e-6."""
    units, rate = 500, Fraction(1, 10)
    source = SeededSource(3)
    samples = [draw(units, rate, source) for _ in range(draws)]
    sizes = np.array([len(one) for one in samples])
    variance = units * float(rate * (1 - rate))
    spread = (draws - 1) * sizes.var(ddof=1) / variance
    low, high = stats.chi2.ppf([1e-7, 1 - 1e-7], draws - 1)
    total = sizes.sum()
    within = abs(total - draws * units * float(rate)) <= 5.5 * np.sqrt(draws * variance)
    return bool(low <= spread <= high and within)


def test_samples_are_poisson_and_others_are_noticed() -> None:
    def fixed(units: int, rate: Fraction, source: RandomSource) -> Indices:
        return np.random.default_rng(int.from_bytes(source.read(4), "little")).permutation(units)[: int(units * rate)]

    def half(units: int, rate: Fraction, source: RandomSource) -> Indices:
        return poisson_sample(units, rate / 2, source)

    assert binomial(poisson_sample)
    assert not binomial(fixed)
    assert not binomial(half)


def sizes_are_binomial(draws: int = 300) -> bool:
    """Whether the sizes of a training's batches have the variance of Poisson samples; false alarm below 1e-6."""
    sizes: list[int] = []
    with patch.object(private_training, "SYSTEM", SeededSource(5)):
        training = private(data=rows(500), batch_size=50, steps=draws)
    train(training, see=sizes.append)
    low, high = stats.chi2.ppf([1e-7, 1 - 1e-7], draws - 1)
    return bool(low <= (draws - 1) * np.var(sizes, ddof=1) / (50 * 0.9) <= high)


def test_shuffled_batches_that_are_accounted_as_poisson_samples_are_noticed() -> None:
    order: list[int] = []

    def shuffled(units: int, rate: Fraction, source: RandomSource) -> Indices:
        if not order:
            order.extend(np.random.default_rng(len(order)).permutation(units).tolist())
        batch, order[:] = order[: int(units * rate)], order[int(units * rate) :]
        return np.sort(batch)

    assert sizes_are_binomial()
    with patch.object(private_training, "poisson_sample", shuffled):
        assert not sizes_are_binomial()


def test_a_rate_above_the_accounted_one_is_noticed_by_the_audit() -> None:
    def often(units: int, rate: Fraction, source: RandomSource) -> Indices:
        return poisson_sample(units, min(Fraction(1), rate * 6), source)

    with patch.object(private_training, "poisson_sample", often), pytest.warns(UserWarning, match="refutes"):
        assert audited().finding.is_violation


def greatest_move(net: torch.nn.Module, features: torch.Tensor, labels: torch.Tensor, clip: float) -> float:
    """Return how far the sum of a batch moves at most when one of its rows is removed."""
    clipper = PerSampleClipper(net)

    def summed(kept: torch.Tensor) -> torch.Tensor:
        losses = F.cross_entropy(net(features[kept]), labels[kept], reduction="none")
        return torch.cat([one.flatten() for one in clipper.clipped_sums(losses, clip)[0].values()])

    everybody = torch.arange(len(features))
    whole = summed(everybody)
    moves = [float((whole - summed(everybody[everybody != row])).norm()) for row in everybody]
    clipper.close()
    return max(moves)


def test_clipping_the_batch_instead_of_its_rows_is_noticed() -> None:
    def per_batch(self: PerSampleClipper, losses: torch.Tensor, clip: float, units: Any = None) -> Any:
        parameters = dict(self.model.named_parameters())
        found = torch.autograd.grad(losses.sum(), list(parameters.values()))
        norm = float(torch.sqrt(torch.stack([(one**2).sum() for one in found]).sum()))
        sums = {name: one * min(1.0, clip / norm) for name, one in zip(parameters, found, strict=True)}
        return sums, torch.zeros(len(losses))

    features, labels = rows(12)
    features[3] *= -100
    net = model()
    assert greatest_move(net, features, labels, 0.5) <= 0.5 * (1 + 1e-5)
    with patch.object(PerSampleClipper, "clipped_sums", per_batch):
        assert greatest_move(net, features, labels, 0.5) > 0.55


def test_samples_of_another_rate_than_the_accounted_one_are_noticed() -> None:
    """Twice the rate, which the bound from guesses alone would not show."""

    def often(units: int, rate: Any, source: RandomSource) -> Indices:
        return poisson_sample(units, 2 * rate, source)

    with patch.object(private_training, "poisson_sample", often), pytest.warns(UserWarning, match="of another rate"):
        training = audited()
    assert training.faults == ["is on samples of another rate than the accounted one"]
