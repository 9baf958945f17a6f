"""Banded matrix noise in a training: coefficients, what is released and kept, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch.utils.data import DataLoader, TensorDataset

import tacit
import tacit.learn
from tacit import mechanisms
from tacit.learn.dpsgd.matrix_noise import MatrixNoise, coefficients, encoding_error, prefix_error
from tacit.learn.dpsgd.sampling import Groups
from tacit.ledger import Ledger
from tacit.ledger.accounts import NamedAccount
from tacit.ledger.amounts import ceil_float
from tacit.ledger.caps import Cap
from tacit.ledger.filters import filter_of
from tacit.mechanisms.bulk_gaussian import BulkGaussian
from tacit.privacy.errors import InvalidInput, TacitError
from tacit.privacy.events import Converted, Gaussian, Repeated, Sampled
from tests.support.trainings import model, optimizer, private, rows, train

ADD = BulkGaussian.add
REPLACED = tacit.Relation.REPLACE_ONE


def matrix(c: Any, steps: list[int]) -> Any:
    """Return C for the steps that were run."""
    at = np.subtract.outer(steps, steps)
    return np.where((at >= 0) & (at < len(c)), np.asarray(c)[np.clip(at, 0, len(c) - 1)], 0.0)


@contextmanager
def recorded() -> Iterator[list[tuple[int, Any, Any, Any]]]:
    """Record step, sums, independent noise and result of every step, of the weights."""
    found: list[Any] = []
    encoded, decoded = MatrixNoise.encoded, MatrixNoise.decoded

    def add(self: BulkGaussian, sums: Any, deviation: float, sensitivity: float) -> Any:
        before = sums["weight"].double().clone()
        noisy = ADD(self, sums, deviation, sensitivity)
        found[-1].append((noisy["weight"].double() - before).flatten().numpy())
        return noisy

    def noted_sums(self: MatrixNoise, step: int, sums: Any) -> Any:
        found.append([step, sums["weight"].double().flatten().numpy().copy()])
        return encoded(self, step, sums)

    def noted_result(self: MatrixNoise, step: int, noisy: Any) -> Any:
        result = decoded(self, step, noisy)
        found[-1].append(result["weight"].double().flatten().numpy().copy())
        return result

    with (
        patch.object(BulkGaussian, "add", add),
        patch.object(MatrixNoise, "encoded", noted_sums),
        patch.object(MatrixNoise, "decoded", noted_result),
    ):
        yield found


def check_noise(found: Any, c: Any) -> None:
    """Assert that the results are the sums with noise C^-1 z."""
    steps, sums, noise, results = ([one[place] for one in found] for place in range(4))
    np.testing.assert_allclose(matrix(c, steps) @ (np.array(results) - sums), noise, atol=1e-9)


@pytest.mark.parametrize("bands", [2, 3, 8, 40])
def test_coefficients_have_norm_one_and_beat_the_square_root_and_independent_noise(bands: int) -> None:
    steps = 400
    c = coefficients(bands, steps)
    norm = sum(Fraction(one) ** 2 for one in c)
    assert 1 - Fraction(1, 10**9) < norm <= 1
    assert all(one >= 0 for one in c)
    root = np.cumprod([1.0, *((2 * k - 1) / (2 * k) for k in range(1, bands))])
    assert prefix_error(c, steps) < prefix_error(root / np.linalg.norm(root), steps)
    assert prefix_error(c, steps) < 0.8 * prefix_error((1.0,), steps)
    for place in range(bands):  # a minimum: no coefficient can be moved for the better
        for move in (1e-3, -1e-3):
            moved = np.array(c)
            moved[place] += move
            assert prefix_error(moved / np.linalg.norm(moved), steps) >= prefix_error(c, steps) * (1 - 1e-9)


def test_prefix_errors_are_those_of_the_matrices() -> None:
    c = coefficients(3, 20)
    error = np.tril(np.ones((20, 20))) @ np.linalg.inv(matrix(c, list(range(20))))
    assert prefix_error(c, 20) == pytest.approx(np.sqrt(np.square(error).sum() / 20))
    assert prefix_error((1.0,), 20) == pytest.approx(np.sqrt(21 / 2))


def test_steps_release_the_sums_with_correlated_noise() -> None:
    with recorded() as found:
        training = private(bands=3, steps=10, physical_batch_size=5, audit=20, clipping="automatic")
        train(training)
    assert [one[0] for one in found] == list(range(10))
    check_noise(found, training.schedule.coefficients)


def test_one_band_is_training_with_independent_noise() -> None:
    one, other = private(), private(bands=1)
    assert one.schedule == other.schedule
    assert (other.schedule.coefficients, encoding_error(1, 10**6)) == ((1.0,), 0.0)
    sums = {"a": torch.ones(2)}
    assert MatrixNoise((1.0,)).encoded(0, sums) is sums


def test_the_event_has_a_sample_for_each_block_of_steps() -> None:
    budget = tacit.Budget(50.0, 1e-3)
    training = private(bands=4, steps=18, budget=budget, audit=True)
    (event,) = budget.events
    assert isinstance(event, Converted)
    assert event.event == Repeated(Sampled(0.4, Gaussian(1.0)), 5)
    assert training.schedule.event_of(4).event == Repeated(Sampled(0.4, Gaussian(1.0)), 1)
    train(training, 5)
    two = tacit.accounting.epsilon(Repeated(Sampled(0.4, Gaussian(1.0)), 2), event.delta).upper
    assert training.epsilon_spent == two
    train(training)
    assert training.finding is not None
    assert not training.finding.is_violation
    for words in ("one of 4 groups", "with probability 0.4", "next 3 steps"):
        assert words in training.card


def test_exact_noise_covers_the_rounding_of_all_rows_of_a_block() -> None:
    for count, bands, sensitivity, multiplier in ((10**6, 16, 1.0, 1.0), (10, 256, 0.5, 20.0), (12_345, 2, 7.0, 0.5)):
        moved = sensitivity * (1 + encoding_error(bands, 10**6))
        noise = mechanisms.Gaussian(moved, sigma=multiplier)._grid_noise(count)
        rows_together = sensitivity / float(noise.grid.step) + np.sqrt(bands * count)
        assert noise.law.variance >= (multiplier * rows_together) ** 2


def test_the_noise_of_a_training_is_widened() -> None:
    training = private(bands=4, steps=8)
    asked: list[tuple[float, float]] = []

    def add(self: BulkGaussian, sums: Any, deviation: float, sensitivity: float) -> Any:
        asked.append((deviation, sensitivity))
        return ADD(self, sums, deviation, sensitivity)

    with patch.object(BulkGaussian, "add", add):
        train(training)
    wide = (1 + training.schedule.sum_error) * (1 + encoding_error(4, 200))
    assert set(asked) == {asked[0]}
    assert wide <= min(asked[0]) <= max(asked[0]) <= wide * (1 + 1e-8)


def test_a_unit_of_several_rows_is_sampled_in_every_bands_th_step_alone() -> None:
    features, labels = rows(200)
    features[:, 0] = torch.arange(200.0)
    training = private(data=(features, labels), units=np.arange(200) // 2, batch_size=10, bands=4, steps=40, augment=2)
    seen: dict[int, set[int]] = {}
    net = training._parts.model
    for x, _ in training:
        numbers = x[:, 0].long().tolist()
        for unit in {one // 2 for one in numbers}:
            assert numbers.count(2 * unit) == numbers.count(2 * unit + 1) == 2
            seen.setdefault(unit, set()).add(training.steps % 4)
        training.step(net(x).sum(1))
    assert {len(one) for one in seen.values()} == {1}
    assert {next(iter(one)) for one in seen.values()} == {0, 1, 2, 3}


def test_empty_batches_release_what_is_left_of_the_steps_before() -> None:
    with recorded() as found:
        training = private(data=rows(2_000), batch_size=1, bands=2, steps=30, clipping="per-layer")
        train(training)
    assert any(not one[1].any() for one in found)
    check_noise(found, training.schedule.coefficients)


def test_groups_are_uniform_and_follow_from_the_secret() -> None:
    groups = Groups(30_000, 3, "a")
    counts = np.bincount(groups.numbers, minlength=3)
    assert abs(counts - 10_000).max() < 500  # six deviations
    assert np.array_equal(groups.numbers, Groups(30_000, 3, "a").numbers)
    assert not np.array_equal(groups.numbers, Groups(30_000, 3, "b").numbers)
    members = [groups.at(step) for step in (4, 5, 6)]
    assert np.array_equal(np.sort(np.concatenate(members)), np.arange(30_000))
    assert np.array_equal(groups.at(1), members[0])
    assert private(bands=2)._settings.secret != private(bands=2)._settings.secret


@pytest.mark.parametrize("every", [1, 3])
def test_a_resumed_training_goes_on_with_the_same_groups_and_correlated_noise(tmp_path: Path, every: int) -> None:
    budget, path = tacit.Budget(50.0, 1e-3), tmp_path / "state"
    with recorded() as found:
        first = private(bands=4, steps=12, budget=budget, checkpoint=path, checkpoint_every=every, audit=20)
        train(first, 5)
        stored = path.read_bytes()
        net = model(seed=3)
        second = tacit.learn.resume(path, net, optimizer(net), rows(), budget=budget, checkpoint_every=every)
        assert np.array_equal(first._groups.numbers, second._groups.numbers)
        forfeited = second._progress.forfeited
        assert forfeited == (0 if every == 1 else 2)
        del found[second.steps :]  # steps that were shown, and are not in the model
        train(second)
    assert [one[0] for one in found] == [*range(second.steps)] if every == 1 else [0, 1, 2, *range(5, 12)]
    check_noise(found, second.schedule.coefficients)
    (tmp_path / "copy").write_bytes(stored)
    held = [name for name in load_file(tmp_path / "copy") if name.startswith("past.")]
    assert len(held) == 3 * 5  # sums of weights, biases and canaries, and what was released of two
    assert not [name for name in load_file(path) if name.startswith("past.")]
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_history_that_is_forgotten_at_resume_is_noticed(tmp_path: Path) -> None:
    """The planted bug: without its state, noise that was added is not cancelled."""
    budget, path = tacit.Budget(50.0, 1e-3), tmp_path / "state"
    with recorded() as found:
        train(private(bands=4, steps=8, budget=budget, checkpoint=path), 4)
        net = model(seed=3)
        with patch("tacit.learn.dpsgd.matrix_noise._read", lambda _: []):
            second = tacit.learn.resume(path, net, optimizer(net), rows(), budget=budget)
            train(second)
    with pytest.raises(AssertionError):
        check_noise(found, second.schedule.coefficients)


def test_trainings_that_end_early_keep_no_sums(tmp_path: Path) -> None:
    training = private(bands=3, steps=9, checkpoint=tmp_path / "state")
    train(training, 4)
    training.stop()
    assert not [name for name in load_file(tmp_path / "state") if name.startswith("past.")]
    assert "stopped after 4 steps" in training.card
    saved = private(bands=3, steps=4)
    train(saved)
    saved.save(tmp_path / "end")
    assert not [name for name in load_file(tmp_path / "end") if name.startswith("past.")]


def test_a_stop_refunds_whole_blocks(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "ledger") as ledger:
        ledger.create_budget("visits", 50.0, 1e-2, filter="renyi", order=4.0)
        budget = ledger.budget("visits")
        training = private(budget=budget, steps=40, noise_multiplier=4.0, bands=4)
        reserved = ledger.row_of(budget.scope).totals[1]
        train(training, 9)
        training.stop()
        kept = ledger.row_of(budget.scope).totals[1]
    assert reserved is not None
    assert kept is not None
    assert kept[0] == pytest.approx(reserved[0] * 3 / 10, rel=1e-6)


BAD: list[dict[str, Any]] = [
    {"bands": 0},
    {"bands": 2.5},
    {"bands": "2"},
    {"bands": 6},  # more than there are steps
    {"bands": 11, "steps": 40},  # a group has fewer units than a batch
    {"bands": 257, "steps": 400, "batch_size": 1, "data": rows(400)},
    {"bands": 2, "clip": tacit.learn.AdaptiveClip()},
    {"bands": 2, "clip": [1.0, 2.0, 1.0, 1.0, 1.0]},
    {"bands": 2, "noise_multiplier": lambda step: 1.0 + step},
]


@pytest.mark.parametrize("bad", BAD)
def test_what_is_not_proved_for_several_bands_is_refused_before_the_charge(bad: dict[str, Any]) -> None:
    budget = tacit.Budget(50.0, 1e-3)
    with pytest.raises(TacitError, match="bands"):
        private(budget=budget, **bad)
    assert budget.spent().epsilon == 0


def test_a_loader_of_the_same_order_in_every_pass_costs_what_it_does_without_bands(tmp_path: Path) -> None:
    data = TensorDataset(*rows())
    budget = tacit.Budget(50.0, 1e-3, relation=REPLACED)
    with recorded() as found:
        loader = DataLoader(data, batch_size=20)
        training = private(
            data=data, loader=loader, epochs=3, budget=budget, bands=10, audit=True, checkpoint=tmp_path / "state"
        )
        train(training, 4)
        net = model(seed=2)
        second = tacit.learn.resume(tmp_path / "state", net, optimizer(net), data, budget=budget, loader=loader)
        train(second)
    (event,) = budget.events
    assert isinstance(event, Converted)
    assert event.event == Repeated(Gaussian(0.5, under=REPLACED), 3)
    assert [one[0] for one in found] == [0, 1, 2, 3, *range(10, 30)]
    check_noise(found, second.schedule.coefficients)
    assert second.finding is not None
    assert not second.finding.is_violation


def test_loaders_whose_rows_come_closer_together_are_refused(tmp_path: Path) -> None:
    data = TensorDataset(*rows())
    budget = tacit.Budget(50.0, 1e-3, relation=REPLACED)
    fixed, shuffled = (DataLoader(data, batch_size=20, shuffle=shuffle) for shuffle in (False, True))
    with pytest.raises(InvalidInput, match="same order"):
        private(data=data, loader=shuffled, epochs=2, budget=budget, bands=2)
    with pytest.raises(InvalidInput, match="pass of a loader"):
        private(data=data, loader=fixed, epochs=2, budget=budget, bands=11)
    assert budget.spent().epsilon == 0
    train(private(data=data, loader=shuffled, epochs=1, budget=budget, bands=2))
    train(private(data=data, loader=fixed, epochs=2, budget=budget, bands=2, checkpoint=tmp_path / "state"), 2)
    for other in (shuffled, DataLoader(data, batch_size=21)):
        net = model()
        with pytest.raises(InvalidInput, match=r"same order|batch size 20, not 21"):
            tacit.learn.resume(tmp_path / "state", net, optimizer(net), data, budget=budget, loader=other)


@pytest.mark.parametrize("name", ["zcdp", "renyi", "gdp"])
def test_the_distance_of_the_noise_to_gaussian_noise_is_paid_by_what_caps_leave_out(name: str) -> None:
    """It is 2^-150 for each number, with a factor 1 + e^epsilon."""
    cap = Cap.of(8.0, 1e-6, filter=name, order=16.0 if name == "renyi" else None)
    accounts = filter_of(cap).accounts
    deltas = [Fraction(ceil_float(one.caps[1])) for one in accounts if len(one.caps) > 1]
    deltas += [Fraction(one.delta) for one in accounts if isinstance(one, NamedAccount)]
    factor = 1 + Fraction(np.exp(cap.epsilon))
    numbers = 2**109 * Fraction(cap.delta) / factor  # of all trainings of a budget
    assert numbers > 10**20
    assert sum(deltas) + factor * numbers / 2**150 <= Fraction(cap.delta)


def test_the_event_is_charged_at_the_stated_delta_without_the_slack() -> None:
    budget = tacit.Budget(3.0, 1e-3)
    training = private(epsilon=1.0, budget=budget)
    schedule = training.schedule
    assert 0 < schedule.slack < 1e-25
    assert Fraction(schedule.delta_of_event) + Fraction(schedule.slack) <= schedule.delta == 1e-5
    assert schedule.slack >= (1 + np.exp(34.0)) * BulkGaussian().failure(11 * 5) * 2.0**-50
