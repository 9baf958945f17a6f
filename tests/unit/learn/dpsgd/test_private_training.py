"""A private training: its loop, its price, and what it refuses before anything is charged."""

from __future__ import annotations

import gc
import os
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

import tacit
import tacit.learn
from tacit.accounting import epsilon
from tacit.ledger import Ledger
from tacit.privacy.errors import (
    BudgetExceeded,
    EmptyInput,
    Exhausted,
    InvalidInput,
    NotPositive,
    OutOfRange,
    TacitError,
    WrongType,
)
from tacit.privacy.events import Converted, Gaussian, Repeated, Sampled
from tests.support.trainings import model, optimizer, private, rows, train


def test_a_small_model_learns() -> None:
    features, labels = rows(2_000)
    net = model()
    training = private(net, (features, labels), epsilon=1.0, batch_size=200, epochs=8, optimizer=optimizer(net, lr=2.0))
    train(training)
    accuracy = (net(features).argmax(1) == labels).float().mean()
    assert accuracy > 0.93
    assert training.steps == 80


def test_the_stated_epsilon_is_charged_and_the_event_is_that_of_the_sampler() -> None:
    budget = tacit.Budget(3.0, 1e-3)
    training = private(epsilon=1.0, batch_size=20, steps=30, budget=budget)
    (event,) = budget.events
    assert isinstance(event, Converted)
    assert isinstance(event.event, Repeated)
    assert event.event.count == 30
    assert isinstance(event.event.event, Sampled)
    assert event.event.event.rate == 0.1
    assert training.cost == budget.spent()
    assert training.cost.delta == pytest.approx(1e-5)
    assert 0.998 < training.cost.epsilon <= 1.0
    assert epsilon(event.event, 1e-5).upper == pytest.approx(training.cost.epsilon, rel=1e-9)
    train(training, 10)
    assert 0 < training.epsilon_spent < training.cost.epsilon


def test_weights_move_by_the_noisy_sum_over_the_expected_batch_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.mechanisms.bulk_gaussian.BulkGaussian.add", lambda _, sums, *__: dict(sums))
    features, labels = rows(50)
    net = model()
    plain = torch.nn.Linear(4, 2)
    plain.load_state_dict(net.state_dict())
    training = private(net, (features, labels), batch_size=50, steps=1, optimizer=optimizer(net, lr=1.0), clip=0.1)
    train(training)
    total = [torch.zeros_like(one) for one in plain.parameters()]
    for row in range(50):
        loss = F.cross_entropy(plain(features[row : row + 1]), labels[row : row + 1])
        gradients = torch.autograd.grad(loss, list(plain.parameters()))
        norm = torch.sqrt(sum((one**2).sum() for one in gradients))
        for summed, one in zip(total, gradients, strict=True):
            summed += one * min(1.0, 0.1 / float(norm))
    for before, after, summed in zip(plain.parameters(), net.parameters(), total, strict=True):
        torch.testing.assert_close(after, before - summed / 50)


def test_chunks_of_a_batch_make_one_step() -> None:
    sizes: list[int] = []
    training = private(physical_batch_size=7, batch_size=100, steps=3)
    train(training, see=sizes.append)
    assert max(sizes) <= 7
    assert training.steps == 3
    assert len(sizes) > 3 * 80 / 7


def test_an_empty_batch_is_a_step_of_noise_alone() -> None:
    seen: list[int] = []
    net = model()
    before = net.weight.detach().clone()
    training = private(net, rows(10_000), batch_size=1, steps=40)
    train(training, see=seen.append)
    assert training.steps == 40
    assert 5 < len(seen) < 39  # e^-1 of the batches are empty
    assert not torch.equal(before, net.weight)


def test_the_rows_of_a_unit_come_together_and_are_clipped_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.mechanisms.bulk_gaussian.BulkGaussian.add", lambda _, sums, *__: dict(sums))
    features, labels = rows(60)
    net = model()
    before = [one.detach().clone() for one in net.parameters()]
    training = private(
        net,
        (features * 100, labels),
        units=np.arange(60) // 20,
        batch_size=3,
        steps=1,
        physical_batch_size=20,
        optimizer=optimizer(net, lr=1.0),
    )
    sizes: list[int] = []
    train(training, see=sizes.append)
    moved = torch.sqrt(
        sum(((one.detach() - old) ** 2).sum() for one, old in zip(net.parameters(), before, strict=True))
    )
    assert sizes == [20, 20, 20]
    assert float(moved) <= 1.0 + 1e-5


def test_views_of_a_row_are_averaged_before_clipping(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.mechanisms.bulk_gaussian.BulkGaussian.add", lambda _, sums, *__: dict(sums))
    weights = []
    for views in (None, 3):
        net = model()
        sizes: list[int] = []
        train(private(net, rows(40), batch_size=40, steps=2, augment=views), see=sizes.append)
        assert sizes == [40 * (views or 1)] * 2
        weights.append(net.weight.detach())
    torch.testing.assert_close(*weights)


def test_a_loop_that_is_left_goes_on_with_the_same_rows() -> None:
    training = private(steps=3)
    first = next(iter(training))[0]
    again = next(iter(training))[0]
    assert torch.equal(first, again)
    train_net = training._parts.model
    training.step(train_net(again).sum(1))
    train(training)
    assert training.steps == 3


def test_misuse_of_the_loop_is_an_error_and_loses_no_step() -> None:
    training = private(steps=2)
    net = training._parts.model
    with pytest.raises(InvalidInput, match="once for each batch"):
        training.step(torch.ones(3, requires_grad=True))
    batches = iter(training)
    features, _ = next(batches)
    with pytest.raises(InvalidInput, match="was not called"):
        next(batches)
    for losses in (net(features).sum(), net(features[1:]).sum(1), [1.0], net(features)):
        with pytest.raises(InvalidInput, match="one loss for each"):
            training.step(losses)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="no gradient"):
        training.step(net(features).sum(1).detach())
    training.step(net(features).sum(1))
    with pytest.raises(InvalidInput, match="once for each batch"):
        training.step(net(features).sum(1))
    train(training)
    with pytest.raises(Exhausted, match="all 2 steps"):
        training.step(net(features).sum(1))
    with pytest.raises(Exhausted, match="all 2 steps"):
        iter(training)


def test_an_optimizer_step_by_the_caller_is_noticed() -> None:
    training = private(steps=3)
    net, own = training._parts.model, training._parts.optimizer
    for features, labels in training:
        losses = F.cross_entropy(net(features), labels, reduction="none")
        losses.mean().backward()
        own.step()
        with pytest.raises(InvalidInput, match="changed by something else"):
            training.step(losses)
        break


def test_rows_with_nan_add_nothing() -> None:
    features, labels = rows(100)
    features[::3] = torch.nan
    net = model()
    train(private(net, (features, labels), batch_size=50))
    assert all(bool(one.isfinite().all()) for one in net.parameters())


@pytest.mark.parametrize("wrong", ["features", "labels"])
def test_rows_on_which_the_loop_fails_lose_no_step_and_are_charged_once(wrong: str) -> None:
    features, labels = rows()
    data = (torch.ones(200, 7), labels) if wrong == "features" else (features, labels + 5)
    budget = tacit.Budget(50.0, 1e-3)
    training = private(data=data, budget=budget)
    charged = budget.spent()
    with pytest.raises((WrongType, IndexError)):
        train(training)
    assert (training.steps, budget.spent()) == (0, charged)
    net = training._parts.model
    for x, y in training:
        training.step(F.cross_entropy(net(x[:, :4]), y % 2, reduction="none"))
    assert (training.steps, budget.spent()) == (5, charged)


def test_losses_that_are_not_finite_add_nothing() -> None:
    training = private()
    net = training._parts.model
    for x, y in training:
        training.step(F.cross_entropy(net(x), y, reduction="none") * torch.nan)
    assert training.steps == 5
    assert all(bool(one.isfinite().all()) for one in net.parameters())


BAD: list[dict[str, Any]] = [
    {"clip": 0.0},
    {"clip": -1.0},
    {"clip": float("nan")},
    {"clip": 1e-40},
    {"clip": 1e40},
    {"scheduler": 1},
    {"clip": [1.0, 2.0]},
    {"clip": lambda step: 1 / step},
    {"batch_size": 0},
    {"batch_size": 201},
    {"steps": 0},
    {"steps": 1, "epochs": 1},
    {"delta": 0.0},
    {"delta": 1.0},
    {"noise_multiplier": 0.0},
    {"noise_multiplier": 1.0, "epsilon": 1.0},
    {"clipping": "none"},
    {"physical_batch_size": 0},
    {"physical_batch_size": 1, "data": (torch.ones(2**14 + 1, 4), torch.ones(2**14 + 1))},
    {"augment": 0},
    {"average": 1.5},
    {"audit": 3},
    {"units": [1, 2]},
    {"units": [0.5] * 200},
    {"data": (torch.ones(3, 4), torch.ones(2))},
    {"data": (torch.ones(0, 4), torch.ones(0))},
    {"data": ["a", "b"]},
    {"data": torch.tensor(1.0)},
    {"checkpoint": "/nowhere/at/all"},
    {"checkpoint_every": 0, "checkpoint": "x"},
    {"distributed": True},
    {"clip": tacit.learn.AdaptiveClip(count_noise=0.1)},
    {"net": torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.BatchNorm1d(2))},
]


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: "-".join(bad))
def test_what_cannot_be_used_is_refused_before_the_charge(bad: dict[str, Any]) -> None:
    budget = tacit.Budget(50.0, 1e-3)
    with pytest.raises(TacitError):
        private(budget=budget, **bad)
    assert budget.spent().epsilon == 0


def test_a_model_without_trainable_parameters_is_refused() -> None:
    frozen = model().requires_grad_(False)
    with pytest.raises(EmptyInput, match="no trainable parameter"):
        private(frozen)
    with pytest.raises(InvalidInput, match="optimizer must hold"):
        private(model(), optimizer=optimizer(model()))


def test_adaptive_clips_follow_the_quantile_and_stay_within_the_event() -> None:
    budget = tacit.Budget(50.0, 1e-3)
    clip = tacit.learn.AdaptiveClip(start=50.0, quantile=0.5)
    training = private(data=rows(2_000), batch_size=500, steps=60, clip=clip, budget=budget, noise_multiplier=2.0)
    train(training)
    assert training.clip < 3.0
    (event,) = budget.events
    assert isinstance(event, Converted)
    assert event.event == Repeated(Sampled(0.25, Gaussian(2.0)), 60)
    assert training.schedule.sum_noise_at(0) == pytest.approx((2.0**-2 - 50.0**-2) ** -0.5)


def test_schedules_are_evaluated_before_the_start_and_composed() -> None:
    budget = tacit.Budget(50.0, 1e-3)
    training = private(steps=4, noise_multiplier=[1.0, 1.0, 2.0, 2.0], clip=lambda step: 1.0 + step, budget=budget)
    (event,) = budget.events
    assert isinstance(event, Converted)
    assert [(one.event.event.sigma, one.count) for one in event.event.events] == [(1.0, 2), (2.0, 2)]
    assert [training.schedule.clip_at(step) for step in range(4)] == [1.0, 2.0, 3.0, 4.0]
    train(training)


def test_public_gradients_are_added_without_clipping_and_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "tacit.mechanisms.bulk_gaussian.BulkGaussian.add",
        lambda _, sums, *__: {name: torch.zeros_like(one) for name, one in sums.items()},
    )
    net = model()
    training = private(net, steps=4, optimizer=optimizer(net, lr=0.1, momentum=0.0))
    public = rows(20, seed=5)
    for features, labels in training:
        losses = F.cross_entropy(net(features), labels, reduction="none")
        with pytest.raises(InvalidInput, match="public_loss must"):
            training.step(losses, public_loss=1.0)
        start = net.weight.detach().clone()
        (gradient,) = torch.autograd.grad(1e3 * F.cross_entropy(net(public[0]), public[1]), net.weight)
        training.step(
            F.cross_entropy(net(features), labels, reduction="none"),
            public_loss=lambda: 1e3 * F.cross_entropy(net(public[0]), public[1]),
        )
        torch.testing.assert_close(net.weight.detach(), start - 0.1 * gradient)


def test_the_average_follows_the_weights_with_a_smaller_decay_in_the_first_steps() -> None:
    net = model()
    training = private(net, steps=4, average=0.3)
    expected = net.weight.detach().clone()
    for step, (features, labels) in enumerate(training, start=1):
        training.step(F.cross_entropy(net(features), labels, reduction="none"))
        decay = min(0.3, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * net.weight.detach()
        torch.testing.assert_close(training.averaged["weight"], expected)
    assert set(training.averaged) == {"weight", "bias"}


def test_a_refused_budget_leaves_everything_as_it_was() -> None:
    budget = tacit.Budget(0.5, 1e-3)
    net = model()
    before = net.weight.detach().clone()
    with pytest.raises(BudgetExceeded):
        private(net, epsilon=1.0, budget=budget)
    assert budget.spent().epsilon == 0
    assert torch.equal(before, net.weight)


def test_a_shuffled_loader_is_accounted_without_amplification_or_refused() -> None:
    data = TensorDataset(*rows())
    loader = DataLoader(data, batch_size=20, shuffle=True)
    with pytest.raises(InvalidInput, match="without amplification"):
        private(data=data, loader=loader, epochs=2)
    budget = tacit.Budget(50.0, 1e-3, relation=tacit.Relation.REPLACE_ONE)
    training = private(data=data, loader=loader, epochs=2, budget=budget, audit=True)
    train(training)
    (event,) = budget.events
    assert isinstance(event, Converted)
    assert event.event == Repeated(Gaussian(0.5, under=tacit.Relation.REPLACE_ONE), 2)
    assert training.steps == 20
    assert training.finding is not None
    assert not training.finding.is_violation


def test_loaders_of_which_nothing_is_known_are_refused() -> None:
    data = TensorDataset(*rows())
    budget = tacit.Budget(50.0, 1e-3, relation=tacit.Relation.REPLACE_ONE)
    strange: list[Any] = [
        DataLoader(data, batch_size=20, sampler=WeightedRandomSampler([1.0] * 200, 200)),
        DataLoader(data, batch_size=20, collate_fn=lambda batch: batch),
        DataLoader(TensorDataset(*rows()), batch_size=20),
        [rows()],
    ]
    for loader in strange:
        with pytest.raises(InvalidInput):
            private(data=data, loader=loader, epochs=2, budget=budget)
    with pytest.raises(InvalidInput, match="many batches"):
        private(data=data, loader=DataLoader(data, batch_size=20), epochs=2, budget=budget, units=range(200))
    with pytest.raises(InvalidInput, match="add/remove"):
        private(budget=budget)
    assert budget.spent().epsilon == 0


def test_stopping_early_refunds_the_steps_that_a_filter_counts_one_by_one(tmp_path: Any) -> None:
    with Ledger.open(tmp_path / "ledger") as ledger:
        ledger.create_budget("visits", 20.0, 1e-2, filter="renyi", order=8.0)
        budget = ledger.budget("visits")
        training = private(budget=budget, steps=40, noise_multiplier=2.0)
        reserved = ledger.row_of(budget.scope).totals
        train(training, 10)
        training.stop()
        kept = ledger.row_of(budget.scope).totals
        assert reserved[0] == kept[0]
        assert reserved[1] is not None
        assert kept[1] is not None
        assert kept[1][0] == pytest.approx(reserved[1][0] / 4, rel=1e-6)
        assert ledger.reservations() == []
        with pytest.raises(Exhausted):
            iter(training)
        assert "stopped after 10 steps" in training.card


def test_stopping_in_memory_refunds_nothing() -> None:
    budget = tacit.Budget(50.0, 1e-3)
    training = private(budget=budget)
    before = budget.spent()
    train(training, 2)
    training.stop()
    assert budget.spent() == before


def test_a_stop_gives_back_whole_passes_of_a_loader_in_rho_and_nothing_of_poisson_samples(tmp_path: Any) -> None:
    data = TensorDataset(*rows())
    passes: dict[str, Any] = {"data": data, "loader": DataLoader(data, batch_size=20), "epochs": 4}
    poisson: dict[str, Any] = {"steps": 40}
    for name, relation, options in (("loader", "replace-one", passes), ("poisson", "add-remove", poisson)):
        with Ledger.open(tmp_path / name) as ledger:
            ledger.create_budget("visits", 8.0, 1e-4, filter="zcdp", relation=relation)  # type: ignore[arg-type]
            budget = ledger.budget("visits")
            training = private(budget=budget, epsilon=2.0, delta=1e-6, **options)
            _, reserved = ledger.row_of(budget.scope).totals
            train(training, 4)
            training.stop()
            _, kept = ledger.row_of(budget.scope).totals
            if name == "poisson":
                assert reserved is kept is None
            else:
                assert reserved is not None
                assert kept is not None
                assert kept[0] == pytest.approx(reserved[0] / 4, rel=1e-6)


def test_a_training_without_a_checkpoint_says_that_it_cannot_go_on() -> None:
    net = model()
    training = private(net)
    with torch.no_grad():
        net.weight.add_(1.0)  # type: ignore[operator]
    with pytest.raises(InvalidInput, match=r"changed by something else than step.*had no checkpoint=.*charge stays"):
        train(training)


def test_the_card_says_what_was_done() -> None:
    training = private(epsilon=1.0, audit=True, steps=10)
    train(training)
    for words in ("one unit more or less", "Poisson samples", "epsilon 0.999", "Public are", "canaries show"):
        assert words in training.card
    assert training.finding is not None
    assert training.finding.claimed is not None
    assert training.finding.lower_bound is not None
    assert str(training.finding).startswith(f"{training.finding.attack}")
    assert training.finding.reason in str(training.finding)


def test_wrong_types_of_the_main_arguments() -> None:
    data = rows()
    net = model()
    for arguments in ((1, optimizer(net), data), (net, 1, data), (net, torch.optim.LBFGS(net.parameters()), data)):
        with pytest.raises(InvalidInput):
            tacit.learn.make_private(
                *arguments, epsilon=1.0, delta=1e-5, batch_size=2, steps=1, budget=tacit.Budget(9, 0.1)
            )  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="paid from a budget"):
        tacit.learn.make_private(net, optimizer(net), data, epsilon=1.0, delta=1e-5, batch_size=2, steps=1, budget=None)
    with pytest.raises((NotPositive, OutOfRange)):
        private(epochs=0)


def test_masks_of_dropout_are_drawn_in_secret_and_the_callers_generator_is_left_alone() -> None:
    """With a seed that is known, one unit less would give all later rows of a batch other masks."""
    net = model()
    masks: list[list[float]] = []
    for _ in range(2):
        training = private(net, batch_size=100, steps=2, optimizer=optimizer(net))
        torch.manual_seed(0)
        before = torch.get_rng_state()
        seen = []
        for features, labels in training:
            seen.append(float(torch.rand(1)))
            training.step(F.cross_entropy(net(features), labels, reduction="none"))
            assert torch.equal(torch.get_rng_state(), before)
        masks.append(seen)
    assert len({one for seen in masks for one in seen}) == 4


def test_a_forked_process_cannot_go_on_with_a_training() -> None:
    training = private(steps=4)
    child = os.fork()
    if not child:
        try:
            train(training)
        except InvalidInput:
            os._exit(3)
        finally:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3


def test_exact_noise_takes_nothing_of_delta() -> None:
    net = model()
    training = private(net, exact_noise=True, audit=True, steps=5, epsilon=1.0, optimizer=optimizer(net))
    train(training)
    assert training.schedule.slack == 0
    assert training.noise_ratio is not None
    low, high = training.noise_ratio[1:]
    assert low <= 1 <= high


@pytest.mark.parametrize("kind", [torch.nn.Linear, torch.nn.LSTM])
def test_a_training_that_is_left_behind_keeps_no_hooks_and_no_rows(kind: Any) -> None:
    net = kind(4, 2, **({"batch_first": True} if kind is torch.nn.LSTM else {}))
    hooks = len(net._forward_hooks), "forward" in vars(net)

    def step(training: Any) -> None:
        features, _ = next(iter(training))
        out = net(features[:, None])
        training.step((out[0] if isinstance(out, tuple) else out).flatten(1).sum(1))

    first = private(net, batch_size=200, rows_apart=True)
    step(first)
    with pytest.raises(BudgetExceeded):  # which leaves the first one alone
        private(net, epsilon=1.0, budget=tacit.Budget(0.5, 1e-3), rows_apart=True)
    if kind is torch.nn.Linear:
        step(first)
    second = private(net, batch_size=200, rows_apart=True)
    for _ in range(3):
        step(second)
    assert not first._clipper._uses
    assert not first._clipper._handles
    with pytest.raises(InvalidInput):
        step(first)
    del first
    gc.collect()
    step(second)
    del second
    gc.collect()
    assert (len(net._forward_hooks), "forward" in vars(net)) == hooks
