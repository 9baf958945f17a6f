"""DP-SGD as one object: Poisson samples, clipped gradients, noise and accounting around the caller's own loop.

    private = tacit.learn.make_private(model, optimizer, (images, labels), epsilon=2.0, delta=1e-5, clip=1.0,
                                       batch_size=256, epochs=10, budget=budget)
    for x, y in private:                                               # all steps, in chunks of Poisson samples
        private.step(F.cross_entropy(model(x), y, reduction="none"))   # one loss for each row
    private.cost, private.card, private.finding

Promise (neighbours: one unit more or less; with a loader of the caller's own, one row replaced): all weights of all
steps together are as private as was charged before the first one. Each step releases one Gaussian mechanism of
sensitivity `clip` on a Poisson sample of the units (`schedule`): the sum of the clipped gradients with noise, divided by
the *expected* batch size, which is public; a batch without units is noise alone. Optimizer, learning rates, weight
averaging and gradients on public data are post-processing.

Public: the number of units, the rate, numbers of steps and rows per chunk that follow from them, all arguments, and
the model's weights at the start and after every step. The loop itself sees raw rows: what a program shows of them, or
of losses and norms, is not covered. Weights are changed by `step` alone; a change by others is noticed where PyTorch
counts it (not through `.data`), and stops the training.

Order: everything that can be checked is checked, then the whole training is charged, then the first row is read. A
failure in the loop loses no step: the same chunk is handed out again when the loop is entered again. A failure inside
`step` once its noise is drawn ends this object, and the training goes on from its checkpoint (`checkpoints`).
"""

from __future__ import annotations

import math
import warnings
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Self

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, RandomSampler, SequentialSampler, default_collate

from tacit.accounting import Cost, epsilon, meaning
from tacit.attack import Finding
from tacit.learn.dpsgd.canaries import CANARIES, Canaries, noise_ratio
from tacit.learn.dpsgd.checkpoints import (
    Progress,
    Settings,
    StateAnchor,
    load_model,
    load_optimizer,
    model_tensors,
    optimizer_parts,
    read_state,
    require_free,
)
from tacit.learn.dpsgd.clipping import PerSampleClipper
from tacit.learn.dpsgd.interrupts import interrupts_held
from tacit.learn.dpsgd.processes import Processes
from tacit.learn.dpsgd.sampling import Chunk, Indices, Rows, UnitRows, poisson_sample, rows_of
from tacit.learn.dpsgd.schedule import AdaptiveClip, Schedule, planned
from tacit.ledger import Budget
from tacit.mechanisms.bulk_gaussian import BulkGaussian
from tacit.mechanisms.randomness import SIMULATED, SYSTEM
from tacit.pipeline import ReleaseOptions, begin
from tacit.privacy.errors import AlreadySettled, EmptyInput, Exhausted, InvalidInput, WrongType
from tacit.privacy.figures import at_most, grouped
from tacit.privacy.numbers import inside_unit_interval, whole
from tacit.privacy.units import Relation
