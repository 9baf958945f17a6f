"""Losses for PyTorch that are debiased for randomised labels.

    released = tacit.learn.randomize_labels(y, classes=range(10), epsilon=1.0, budget=budget)
    loss = tacit.learn.corrected_loss(model(x[rows]), released, rows).mean()

Nothing here reads a private label: losses are functions of reports and of public facts.
"""

from __future__ import annotations

from typing import Any

import torch

from tacit.learn.randomized.labels import RandomizedLabels
from tacit.privacy.errors import InvalidInput, WrongType


def corrected_loss(
    logits: torch.Tensor, released: RandomizedLabels, rows: Any = None, *, method: str = "forward"
) -> torch.Tensor:
    """Return one loss for each row of `logits` (rows x classes); `rows` are their places among the released labels.

    "forward"    -log of the probability of the report, T' softmax(logits), with the transition matrix T of the row
                 (Patrini et al. 2017): its minimum is that of the cross-entropy on true labels. The default: it is
                 bounded from below, and exists for every prior
    "unbiased"   the sum over classes of unbiased weights times cross-entropies (backward correction; Natarajan et al.
                 2013): its expected value is the cross-entropy of the true label. It has no lower bound, and grows with
                 1 / epsilon; without a prior only

    For another loss, sum losses for each class times `released.unbiased_weights`.
    """
    if logits.ndim != 2 or logits.shape[1] != len(released.classes):
        raise WrongType("logits must have a row for each label and a column for each class", name="logits")
    if method not in ("forward", "unbiased"):
        raise InvalidInput('method must be "forward" or "unbiased"', name="method", value=method)
    part = released if rows is None else released.take(torch.as_tensor(rows).cpu().numpy())
    if len(part) != len(logits):
        raise WrongType("rows must hold the place of each row of logits among the labels", name="rows")
    of_row = torch.from_numpy(part.likelihoods if method == "forward" else part.unbiased_weights).to(logits)
    log_probabilities = torch.log_softmax(logits, dim=1)
    if method == "forward":
        return -torch.logsumexp(log_probabilities + of_row.log(), dim=1)
    return -(of_row * log_probabilities).sum(dim=1)
