"""Defences without a guarantee: what they do in a plain loop, and what a private training admits of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.sparse import csr_matrix
from torch import nn

from tacit.learn import EarlyStopping, defences, drop_rare_features, normalize_weights, share_largest
from tacit.privacy.errors import EmptyInput, InvalidInput, NotPositive, OutOfRange, TacitError, WrongType
from tests.support.trainings import model, optimizer, private, train


def test_training_stops_after_the_patience_and_the_best_weights_come_back() -> None:
    net, stopping = model(), EarlyStopping(patience=2, min_delta=0.1)
    stops, weights = [], []
    for loss in (1.0, torch.tensor(0.5), 0.45, float("nan"), 0.2):
        nn.init.constant_(net.weight, len(stops))
        weights.append(net.weight.detach().clone())
        stops.append(stopping.check(loss, net))
    assert stops == [False, False, False, True, False]
    assert stopping.best_loss == pytest.approx(0.2)
    nn.init.zeros_(net.weight)
    stopping.restore(net)
    assert torch.equal(net.weight, weights[4])


def test_buffers_are_kept_with_the_weights() -> None:
    net, stopping = nn.BatchNorm1d(3), EarlyStopping()
    stopping.check(1.0, net)
    net(torch.randn(10, 3) + 5)
    stopping.restore(net)
    assert torch.equal(net.running_mean, torch.zeros(3))


def test_weights_into_each_unit_are_scaled_down_to_the_norm_and_others_are_left() -> None:
    net = nn.Sequential(nn.Conv1d(2, 3, 2), nn.Linear(4, 2), nn.Linear(4, 2).requires_grad_(False))
    for parameter in net.parameters():
        nn.init.constant_(parameter, 3.0)
    nn.init.constant_(net[1].weight[1], 0.1)
    normalize_weights(net, 1.0)
    assert torch.allclose(net[0].weight.flatten(1).norm(dim=1), torch.ones(3))
    assert torch.allclose(net[1].weight.norm(dim=1), torch.tensor([1.0, 0.2]))
    assert (net[0].bias == 3).all()
    assert (net[2].weight == 3).all()


def test_a_private_training_admits_normalised_weights_in_a_hook_and_refuses_them_in_the_loop() -> None:
    net = model()
    chosen = optimizer(net, weight_decay=0.01)
    chosen.register_step_post_hook(lambda *_: normalize_weights(net, 0.2))
    train(private(net, optimizer=chosen))
    assert net.weight.norm(dim=1).max() <= 0.2 + 1e-6

    def normalised(_: Any) -> None:
        normalize_weights(training.net, 0.2)  # type: ignore[attr-defined]

    training = private()
    with pytest.raises(InvalidInput, match="changed by something else than step"):
        train(training, see=normalised)


def test_early_stopping_on_public_rows_ends_a_private_training_and_restores_its_best_weights() -> None:
    net, stopping = model(), EarlyStopping(patience=1)
    training = private(net, steps=5)
    for features, labels in training:
        training.step(nn.functional.cross_entropy(net(features), labels, reduction="none"))
        if stopping.check(float(training.steps), net):
            training.stop()
            break
    assert training.steps == 2
    last = net.weight.detach().clone()
    stopping.restore(net)
    assert not torch.equal(net.weight, last)


MATRIX = np.array([[1, 0, 2], [1, 0, 0], [3, 5, 0]])


@pytest.mark.parametrize("made", [np.array, torch.tensor, csr_matrix, pd.DataFrame])
def test_features_that_few_rows_have_are_dropped(made: Callable[[Any], Any]) -> None:
    found, kept = drop_rare_features(made(MATRIX), 2)
    assert kept.tolist() == [True, False, False]
    shown = found.toarray() if isinstance(found, csr_matrix) else np.asarray(found)
    assert shown.tolist() == [[1], [1], [3]]
    assert drop_rare_features(made(MATRIX), 1)[1].all()


def test_the_largest_share_of_all_gradients_is_kept_and_the_rest_is_zero() -> None:
    gradients = [torch.tensor([[1.0, -5.0], [0.5, 2.0]]), torch.tensor([-3.0, 0.0])]
    found = share_largest(iter(gradients), 0.3)  # two of six
    assert found[0].tolist() == [[0, -5], [0, 0]]
    assert found[1].tolist() == [-3, 0]
    assert all(torch.equal(one, all_) for one, all_ in zip(share_largest(gradients, 1.0), gradients, strict=True))
    assert share_largest([torch.ones(1000)], 1e-9)[0].sum() == 1


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: EarlyStopping(0), OutOfRange),
        (lambda: EarlyStopping(min_delta=-1), OutOfRange),
        (lambda: EarlyStopping().check("low", model()), WrongType),
        (lambda: EarlyStopping().check(torch.ones(3), model()), WrongType),
        (lambda: EarlyStopping().check(1.0, None), WrongType),
        (lambda: EarlyStopping().restore(model()), InvalidInput),
        (lambda: normalize_weights(model(), 0), NotPositive),
        (lambda: normalize_weights(model(), math.nan), InvalidInput),
        (lambda: normalize_weights(torch.ones(3), 1), WrongType),
        (lambda: drop_rare_features(MATRIX, 0), OutOfRange),
        (lambda: drop_rare_features(MATRIX, 4), OutOfRange),
        (lambda: drop_rare_features([1, 2], 1), WrongType),
        (lambda: share_largest([], 0.1), EmptyInput),
        (lambda: share_largest([None], 0.1), WrongType),
        (lambda: share_largest([torch.ones(2)], 0), NotPositive),
        (lambda: share_largest([torch.ones(2)], 1.5), OutOfRange),
    ],
)
def test_what_cannot_be_used_is_refused_with_a_code(call: Callable[[], Any], error: type[TacitError]) -> None:
    with pytest.raises(error) as caught:
        call()
    assert type(caught.value) is error or error is InvalidInput


@pytest.mark.parametrize("one", [EarlyStopping, normalize_weights, drop_rare_features, share_largest])
def test_every_defence_says_that_it_guarantees_nothing(one: Any) -> None:
    assert "no guarantee" in " ".join(str(one.__doc__).lower().split()), one
    assert "promise nothing" in str(defences.__doc__)
