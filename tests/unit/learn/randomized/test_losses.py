"""Corrected losses have the expected value, or the minimum, of the loss on true labels: exactly, over all reports."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

import tacit
from tacit.learn import RandomizedLabels, corrected_loss, randomize_labels
from tacit.mechanisms.simulation import SeededSource
from tacit.privacy.errors import InvalidInput, OutOfRange, WrongType

RNG = np.random.default_rng(4)
LOGITS = torch.tensor(RNG.normal(0, 2, (5, 3)))
TRUE = torch.tensor([0, 2, 1, 1, 0])


def released(y: Any = (0, 1, 2), **changes: Any) -> RandomizedLabels:
    budget = tacit.Budget(100, relation="replace-one")
    return randomize_labels(np.array(y), classes=range(3), epsilon=0.7, budget=budget, **changes)


def of_every_report(found: RandomizedLabels, method: str) -> torch.Tensor:
    """Return the loss of each row of LOGITS for each report: rows x reports."""
    reports = {int(code): place for place, code in enumerate(found.codes)}
    rows = torch.tensor([reports[code] for code in range(3)])
    return torch.stack([corrected_loss(LOGITS, found, row.expand(5), method=method) for row in rows], dim=1)


def with_every_report(**changes: Any) -> RandomizedLabels:
    return released(np.arange(300) % 3, _source=SeededSource(2), **changes)


def test_the_unbiased_loss_is_the_loss_of_the_true_label_in_expectation() -> None:
    found = with_every_report()
    expected = (torch.tensor(found.matrix)[TRUE] * of_every_report(found, "unbiased")).sum(dim=1)
    assert torch.allclose(expected, functional.cross_entropy(LOGITS, TRUE, reduction="none"))


@pytest.mark.parametrize("prior", [None, [0.5, 0.4, 0.1]])
def test_the_forward_loss_is_the_cross_entropy_of_the_report(prior: Any) -> None:
    found = with_every_report(prior=prior)
    matrix = torch.tensor(found.matrix)
    reported = [code for code in range(3) if found.kept[0, code]]
    rows = [int(np.flatnonzero(found.codes == code)[0]) for code in reported]
    losses = torch.stack([corrected_loss(LOGITS, found, [row] * 5) for row in rows], dim=1)
    assert torch.allclose(losses, -(LOGITS.softmax(dim=1) @ matrix)[:, reported].log())


def test_the_forward_loss_has_its_minimum_at_the_true_probabilities() -> None:
    found = with_every_report()
    rows = torch.tensor([int(np.flatnonzero(found.codes == code)[0]) for code in range(3)])
    logits = LOGITS[:1].clone().requires_grad_()
    chances = LOGITS[0].softmax(dim=0) @ torch.tensor(found.matrix)
    loss = (chances * corrected_loss(logits.expand(3, 3), found, rows)).sum()
    (gradient,) = torch.autograd.grad(loss, logits)
    assert float(gradient.abs().max()) < 1e-12
    plain = (chances * functional.cross_entropy(logits.expand(3, 3), torch.arange(3), reduction="none")).sum()
    (gradient,) = torch.autograd.grad(plain, logits)
    assert float(gradient.abs().max()) > 0.05  # the uncorrected loss has another minimum


def test_a_module_learns_from_batches_of_randomised_labels() -> None:
    torch.manual_seed(0)
    x = torch.randn(4000, 2)
    y = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
    found = released(y.numpy(), _source=SeededSource(7))
    model = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(80):
        rows = torch.randint(len(x), (500,))
        loss = corrected_loss(model(x[rows]), found, rows).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert float((found.labels == y.numpy()).mean()) < 0.55
    with torch.no_grad():
        assert float((model(x).argmax(dim=1) == y).float().mean()) > 0.9


def test_wrong_arguments_are_refused() -> None:
    found = released([0, 1, 2, 0, 1])
    assert corrected_loss(LOGITS, found).shape == (5,)
    for logits in (LOGITS[:, :2], LOGITS[0]):
        with pytest.raises(WrongType):
            corrected_loss(logits, found)
    for rows in ([0, 1], [0.0, 1, 2, 3, 4], [True] * 5):
        with pytest.raises(WrongType):
            corrected_loss(LOGITS, found, rows)
    with pytest.raises(OutOfRange):
        corrected_loss(LOGITS, found, [0, 1, 2, 3, 5])
    with pytest.raises(WrongType):
        corrected_loss(LOGITS[:3], found)
    with pytest.raises(InvalidInput):
        corrected_loss(LOGITS, found, method="backward and forward")
    with pytest.raises(InvalidInput):
        corrected_loss(LOGITS, released([0, 1, 2, 0, 1], prior=[0.8, 0.1, 0.1]), method="unbiased")
