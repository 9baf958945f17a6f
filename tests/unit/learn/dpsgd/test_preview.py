"""What a training costs, before it is charged, and the description of its arguments."""

from __future__ import annotations

from inspect import signature
from typing import Any

import pytest
import torch

import tacit
import tacit.learn
from tacit.learn import AdaptiveClip
from tacit.privacy.errors import BudgetExceeded, InvalidInput, OutOfRange
from tests.support.trainings import model, optimizer, private, rows, train


@pytest.mark.parametrize(
    "options",
    [{"epsilon": 1.0}, {"noise_multiplier": [2.0, 1.0, 2.0]}, {"clip": AdaptiveClip(), "augment": 2}, {"bands": 3}],
)
def test_a_preview_is_what_is_charged_and_charges_nothing(options: dict[str, Any]) -> None:
    budget, net = tacit.Budget(50.0, 1e-3), model()
    stated: dict[str, Any] = {
        "noise_multiplier": None if "epsilon" in options else 1.0,
        "delta": 1e-5,
        "batch_size": 20,
        "steps": 3,
    }
    stated |= {"audit": False, **options}
    before = [one.clone() for one in net.parameters()]
    quote = tacit.learn.preview_private(net, optimizer(net), rows(), budget=budget, **stated)
    assert budget.spent().epsilon == 0
    training = private(net, budget=budget, **stated)
    assert all(torch.equal(*pair) for pair in zip(before, net.parameters(), strict=True))
    assert quote == training.cost
    assert quote.fits
    assert quote.steps == 3
    assert quote.noise_multiplier == min(one for one, _ in training.schedule.noise)


def test_a_preview_says_what_does_not_fit_and_refuses_what_a_training_does() -> None:
    net, budget = model(), tacit.Budget(1.0, 1e-3)
    given: dict[str, Any] = {"delta": 1e-5, "batch_size": 20, "steps": 5, "budget": budget}
    quote = tacit.learn.preview_private(net, optimizer(net), rows(), epsilon=2.0, **given)
    assert not quote.fits
    with pytest.raises(OutOfRange, match="at most the number of units"):
        tacit.learn.preview_private(net, optimizer(net), rows(), epsilon=1.0, **{**given, "batch_size": 500})
    bad = torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.BatchNorm1d(2))
    with pytest.raises(InvalidInput, match="module '1' is a BatchNorm1d"):
        tacit.learn.preview_private(bad, optimizer(bad), rows(), epsilon=1.0, **given)
    assert not bad._modules["1"]._forward_pre_hooks


def test_previews_and_refusals_leave_a_training_of_the_same_model_as_it_is() -> None:
    class Recurrent(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cells, self.out = torch.nn.GRU(4, 3, batch_first=True), torch.nn.Linear(3, 2)

        def forward(self, inputs: torch.Tensor) -> torch.Tensor:
            found: torch.Tensor = self.out(self.cells(inputs.unsqueeze(1))[0][:, -1])
            return found

    net = Recurrent()
    training = private(net)
    given: dict[str, Any] = {"delta": 1e-5, "batch_size": 20, "steps": 5, "budget": tacit.Budget(50.0, 1e-3)}
    tacit.learn.preview_private(net, optimizer(net), rows(), epsilon=2.0, **given)
    with pytest.raises(BudgetExceeded):
        tacit.learn.make_private(net, optimizer(net), rows(), epsilon=200.0, **given)
    train(training)
    assert training.steps == 5


def test_every_argument_of_a_training_is_described_where_help_shows_it() -> None:
    described = str(tacit.learn.make_private.__doc__)
    assert not [name for name in signature(tacit.learn.make_private).parameters if f" {name} " not in described]
    here = signature(tacit.learn.preview_private).parameters
    assert here.keys() < signature(tacit.learn.make_private).parameters.keys()
