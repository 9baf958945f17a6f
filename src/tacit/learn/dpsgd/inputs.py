"""What a training is made of, checked before it is charged: model, optimizer, rows, units, and a loader if given.

Promise: the optimizer holds exactly the trainable parameters of the model; a loader is one whose order of rows is known
to be independent of the rows, with each row at most once per pass (`schedule` has the theorem that needs it).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau
from torch.utils.data import DataLoader, RandomSampler, SequentialSampler, default_collate

from tacit.learn.dpsgd.processes import Processes
from tacit.learn.dpsgd.sampling import RowReader, UnitRows, rows_of
from tacit.learn.dpsgd.schedule import Schedule
from tacit.privacy.errors import EmptyInput, InvalidInput, WrongType


@dataclass(frozen=True)
class TrainingParts:
    """Model, optimizer and data of a training, checked."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    scheduler: LRScheduler | None
    rows: RowReader
    units: UnitRows
    loader: Any
    processes: Processes
    parameters: dict[str, nn.Parameter]

    @classmethod
    def of(
        cls, model: Any, optimizer: Any, scheduler: Any, data: Any, units: Any, loader: Any, *, is_distributed: bool
    ) -> TrainingParts:
        """Return the parts; raise for what cannot be trained privately, before anything is charged."""
        if not isinstance(model, nn.Module):
            raise WrongType("model must be a torch.nn.Module", name="model")
        if not isinstance(optimizer, torch.optim.Optimizer) or isinstance(optimizer, torch.optim.LBFGS):
            raise WrongType("optimizer must be one of torch.optim that steps without a closure", name="optimizer")
        parameters = {name: one for name, one in model.named_parameters() if one.requires_grad}
        if not parameters:
            raise EmptyInput("the model has no trainable parameter; set requires_grad on some", name="model")
        held = {id(one) for group in optimizer.param_groups for one in group["params"] if one.requires_grad}
        if held != {id(one) for one in parameters.values()}:
            raise InvalidInput(
                "the optimizer must hold the trainable parameters of the model and no others; freeze those that are "
                "not to be trained with requires_grad_(False)",
                name="optimizer",
            )
        _check_scheduler(scheduler, optimizer)
        if loader is not None:
            _check_loader(loader, data, units)
        rows = rows_of(data)
        processes = Processes(is_distributed=is_distributed)
        if loader is not None and processes.size > 1:
            raise InvalidInput("a loader of your own cannot be used with several processes", name="loader")
        return cls(model, optimizer, scheduler, rows, UnitRows(len(rows), units), loader, processes, parameters)

    @property
    def parameter_count(self) -> int:
        """The number of trainable scalars."""
        return sum(one.numel() for one in self.parameters.values())

    @property
    def optimizer_name(self) -> str:
        """The classes of the optimizer and of its scheduler."""
        names = [type(self.optimizer).__name__, *([] if self.scheduler is None else [type(self.scheduler).__name__])]
        return " with ".join(names)


def require_order(loader: Any, schedule: Schedule) -> None:
    """Raise unless the batches of a row in a loader are as far apart as several bands need (`matrix_noise`)."""
    if schedule.bands == 1 or loader is None or schedule.steps <= len(loader):
        return
    if type(loader.sampler) is not SequentialSampler:
        raise InvalidInput(
            "with several bands, every pass of a loader needs the same order: use shuffle=False, or one pass, or leave "
            "loader out for Poisson samples",
            name="loader",
        )


def _check_scheduler(scheduler: Any, optimizer: torch.optim.Optimizer) -> None:
    """Raise unless a scheduler is one of torch for this optimizer, and follows the number of steps alone."""
    if scheduler is None:
        return
    if not isinstance(scheduler, LRScheduler) or isinstance(scheduler, ReduceLROnPlateau):
        raise WrongType(
            "scheduler must be one of torch.optim.lr_scheduler that follows the number of steps, not a loss",
            name="scheduler",
        )
    if scheduler.optimizer is not optimizer:
        raise InvalidInput(
            "the scheduler is of another optimizer; make it with the optimizer that is passed", name="scheduler"
        )


def _check_loader(loader: Any, data: Any, units: Any) -> None:
    """Raise unless each pass over a loader visits every row at most once, in an order that is independent of rows."""
    if not isinstance(loader, DataLoader) or loader.dataset is not data:
        raise WrongType(
            "loader must be a torch DataLoader over `data`; leave it out for Poisson samples", name="loader"
        )
    is_known = type(loader.sampler) is SequentialSampler or (
        type(loader.sampler) is RandomSampler and not loader.sampler.replacement and loader.sampler._num_samples is None
    )
    if not is_known or type(loader.batch_sampler) is not torch.utils.data.BatchSampler:
        raise InvalidInput(
            "how often this loader visits a row is not known, so nothing can be promised; use a DataLoader with "
            "shuffle=True or False and no sampler of your own, or leave loader out",
            name="loader",
        )
    if loader.collate_fn is not default_collate:
        raise InvalidInput("a collate_fn of your own may mix rows; leave it out", name="loader")
    if units is not None:
        raise InvalidInput("the rows of a unit may be in many batches of a loader; leave loader out", name="units")
