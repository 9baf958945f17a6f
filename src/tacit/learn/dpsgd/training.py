"""DP-SGD as one object: Poisson samples, clipped gradients, noise and accounting around the caller's own loop.

    private = tacit.learn.make_private(model, optimizer, (images, labels), epsilon=2.0, delta=1e-5, clip=1.0,
                                       batch_size=256, epochs=10, budget=budget)
    for x, y in private:                                               # all steps, in chunks of Poisson samples
        private.step(F.cross_entropy(model(x), y, reduction="none"))   # one loss for each row
    private.cost, private.card, private.finding

Promise (neighbours: one unit more or less; with a loader of the caller's own, one row replaced): all weights of all
steps together are as private as was charged before the first one. Each step releases one Gaussian mechanism of
sensitivity `clip`, widened for rounding (`rounding`), on a Poisson sample of the units (a pass of a loader, or a group
of units, where these are stated; `schedule`): the sum of clipped gradients with noise, divided by the *expected* batch
size, which is public; a batch without units is noise alone. Optimizer, learning rates, weight averaging and gradients
on public data are post-processing.

Public: the number of units, the rate, numbers of steps and rows per chunk that follow from them, all arguments, and
the model's weights at the start and after every step. The loop itself sees raw rows: what a program shows of them, or
of losses and norms, is not covered. Weights are changed by `step` alone; a change by others is noticed where PyTorch
counts it (not through `.data`), and stops the training.

Order: everything that can be checked is checked, then the whole training is charged, then the first row is read. A
failure in the loop loses no step: the same chunk is handed out again when the loop is entered again. A failure inside
`step` once its noise is drawn ends this object, and counts as a step; the training goes on from its checkpoint
(`checkpoints`), or is stopped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import torch
from torch import nn

from tacit.learn.counted_delta import HIGHER_EPSILON, MORE_NOISE, counted_delta, warn_if_less
from tacit.learn.dpsgd.canaries import CANARIES
from tacit.learn.dpsgd.checkpoints import (
    StateAnchor,
    TrainingSettings,
    load_model,
    load_optimizer,
    model_tensors,
    optimizer_parts,
    read_state,
    require_free,
)
from tacit.learn.dpsgd.clipping import Clipping, PerSampleClipper
from tacit.learn.dpsgd.inputs import TrainingParts, require_order
from tacit.learn.dpsgd.model_owners import close_with, take_model
from tacit.learn.dpsgd.private_training import PrivateTraining
from tacit.learn.dpsgd.rounding import CHUNKS_MAX
from tacit.learn.dpsgd.schedule import AdaptiveClip, Schedule, planned
from tacit.ledger import Budget
from tacit.mechanisms.bulk_gaussian import BulkGaussian
from tacit.mechanisms.randomness import SYSTEM
from tacit.pipeline import Quote, ReleaseOptions, begin, preview_steps
from tacit.privacy.errors import InvalidInput, TooLarge, WrongType
from tacit.privacy.numbers import inside_unit_interval, positive, whole
from tacit.privacy.units import Relation

ARGUMENTS: Final = """Arguments:

    model                 a torch.nn.Module that computes each row apart
    optimizer             one of torch.optim, with the trainable parameters of the model
    data                  a torch Dataset, or tensors (arrays) with one entry per row
    delta                 the delta of the guarantee; counted at less where the budget leaves less
    epsilon               finds the noise for this epsilon at `delta`, instead of noise_multiplier
    noise_multiplier      deviation of the noise over the clip: a number, a list with one for each step, or a
                          function of the step, which is evaluated before the start
    clip                  the norm to which the gradient of a unit is clipped, stated in the same ways, or an
                          `AdaptiveClip`
    clipping              "flat": one norm over all parameters; "per-layer": one for each layer, clip / sqrt(layers);
                          "automatic": every gradient is scaled by clip / (norm + 0.01)
    batch_size            the expected number of units in a batch
    epochs or steps       an epoch is number of units / batch size steps
    budget                the budget that pays for the whole training before its first row
    units                 names the unit of each row, if a unit has several; its rows are sampled and clipped together
    physical_batch_size   the most rows that are handed out at once; a batch then comes in several chunks
    loader                a DataLoader over `data` instead of Poisson samples. Its batches give no amplification, and
                          the guarantee is for one row replaced, so the budget must be of that relation. A read that
                          fails, or a pass that is short, loses the other steps of that pass once one of them was run
    purpose               the purpose of the charge in the ledger
    checkpoint            a new file that holds the state after every `checkpoint_every` steps, for `resume`; of the
                          steps since the last state, those that may have been seen are lost with a process that dies
    checkpoint_every      the number of steps from one state to the next
    rows_apart            states that the model treats rows apart, where that cannot be tried on made-up rows; without
                          it such a model is refused
    exact_noise           whether noise is drawn by `tacit.mechanisms.Gaussian`, exactly and in about seven times the
                          processor time, instead of in bulk, whose distance to Gaussian noise is taken off delta
    audit                 whether canaries audit the training, or their number
    scheduler             a torch.optim.lr_scheduler of the optimizer: it is stepped after every step of the training,
                          and its state is part of the checkpoint
    average               the decay of a moving average of the weights (`PrivateTraining.averaged`); in step t it is at
                          most (1 + t) / (10 + t)
    augment               K hands out each row K times; the gradients of its views are averaged before they are clipped
    bands                 DP-FTRL with banded matrix noise: the noise of a step is cancelled in part by that of the next
                          bands - 1 steps, and each step samples from one of `bands` groups of units. Needs the same
                          noise and clip in all steps, and bands * batch_size units; checkpoints then hold sums without
                          noise, and are as private as the data. 1 is DP-SGD
    distributed           every process of the torch.distributed group calls with its own part of the data, without a
                          unit in two parts; rank 0 has the budget, the others None
"""


@dataclass(frozen=True)
class _Plan:
    """A schedule as a plan that the pipeline charges; everything was checked when it was made."""

    schedule: Schedule

    @property
    def event(self) -> Any:
        return self.schedule.event

    @property
    def label(self) -> str:
        return f"training of {self.schedule.steps:,} steps"

    def check(self) -> None:
        """Do nothing."""


def make_private(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    data: Any,
    *,
    epsilon: Any = None,
    noise_multiplier: Any = None,
    delta: Any,
    clip: Any = 1.0,
    batch_size: int | None = None,
    epochs: Any = None,
    steps: int | None = None,
    budget: Budget | None,
    units: Any = None,
    clipping: Any = "flat",
    physical_batch_size: int | None = None,
    loader: Any = None,
    purpose: str = "",
    checkpoint: Path | str | None = None,
    checkpoint_every: int = 1,
    exact_noise: bool = False,
    rows_apart: bool = False,
    audit: bool | int = True,
    scheduler: Any = None,
    average: float | None = None,
    augment: int | None = None,
    bands: int = 1,
    distributed: bool = False,
) -> PrivateTraining:
    """Charge a training and return it; nothing is charged if an argument cannot be used."""
    parts = TrainingParts.of(model, optimizer, scheduler, data, units, loader, is_distributed=distributed)
    _check_budget(parts, budget)
    every = whole("checkpoint_every", checkpoint_every)
    place = None if checkpoint is None else Path(checkpoint)
    stated = _stated(parts, clip, clipping, physical_batch_size, augment, average, audit)
    stated |= {"exact_noise": bool(exact_noise), "rows_apart": bool(rows_apart)}
    size = _Size.of(parts, batch_size, epochs, steps)

    def charge() -> dict[str, Any]:
        at = float(inside_unit_interval("delta", delta))
        schedule = _schedule(parts, stated, size, budget, epsilon, noise_multiplier, at, clip, bands)
        return _charged(parts, schedule, stated | {"stated_delta": at}, budget, place, purpose).to_dict()

    with _leaving(model):
        clipper = PerSampleClipper(model, clipping, rows_apart=stated["rows_apart"])
        settings = _decided(parts, charge, clipper)
    return _made(parts, clipper, settings, budget, place, every).start()


make_private.__doc__ = f"{make_private.__doc__}\n\n{ARGUMENTS}"


@dataclass(frozen=True, slots=True, eq=False)
class TrainingPreview(Quote):
    """The exact cost of a training, before anything is charged."""

    noise_multiplier: float = 0.0
    """The deviation of the noise over the clip; the least of all steps."""
    steps: int = 0


def preview_private(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    data: Any,
    *,
    epsilon: Any = None,
    noise_multiplier: Any = None,
    delta: Any,
    clip: Any = 1.0,
    batch_size: int | None = None,
    epochs: Any = None,
    steps: int | None = None,
    budget: Budget,
    units: Any = None,
    clipping: Any = "flat",
    physical_batch_size: int | None = None,
    loader: Any = None,
    exact_noise: bool = False,
    rows_apart: bool = False,
    audit: bool | int = True,
    scheduler: Any = None,
    augment: int | None = None,
    bands: int = 1,
) -> TrainingPreview:
    """Return exactly what `make_private` would charge for these arguments, its noise and its steps; charge nothing.

    The checks are the same, no row is read, and model and optimizer stay as they are. It is for a training of one
    process.
    """
    parts = TrainingParts.of(model, optimizer, scheduler, data, units, loader, is_distributed=False)
    _check_budget(parts, budget)
    stated = _stated(parts, clip, clipping, physical_batch_size, augment, None, audit)
    stated |= {"exact_noise": bool(exact_noise), "rows_apart": bool(rows_apart)}
    size = _Size.of(parts, batch_size, epochs, steps)
    with _leaving(model, also_on_success=True):
        PerSampleClipper(model, clipping, rows_apart=stated["rows_apart"]).close()
    at = float(inside_unit_interval("delta", delta))
    schedule = _schedule(parts, stated, size, budget, epsilon, noise_multiplier, at, clip, bands)
    quote = preview_steps(_Plan(schedule), budget)
    return TrainingPreview(**quote.facts, noise_multiplier=min(one for one, _ in schedule.noise), steps=schedule.steps)


@dataclass(frozen=True)
class _Size:
    """The numbers of a training's units and steps, and its batch size, as they were stated."""

    units: int
    batch_size: int
    epochs: Any
    steps: Any

    @classmethod
    def of(cls, parts: TrainingParts, batch_size: Any, epochs: Any, steps: Any) -> _Size:
        total = parts.processes.total(parts.units.count)
        return cls(total, _batch_size(batch_size, parts.loader), epochs, steps)


def _schedule(
    parts: TrainingParts,
    stated: dict[str, Any],
    size: _Size,
    budget: Any,
    epsilon: Any,
    noise_multiplier: Any,
    delta: float,
    clip: Any,
    bands: Any,
) -> Schedule:
    """Return the schedule that is charged to a budget."""
    count = _steps(size.epochs, size.steps, size.units, size.batch_size, parts.loader)
    numbers = parts.parameter_count + stated["canaries"] + 1  # one for the count of adaptive clipping
    schedule = planned(
        steps=count,
        batch_size=size.batch_size,
        units=size.units,
        epsilon=epsilon,
        noise_multiplier=noise_multiplier,
        clip=clip,
        delta=counted_delta(budget, delta),
        slack=BulkGaussian(exact=stated["exact_noise"]).failure(numbers * count),
        steps_per_pass=None if parts.loader is None else len(parts.loader),
        bands=bands,
    )
    require_order(parts.loader, schedule)
    warn_if_less(schedule.delta, delta, HIGHER_EPSILON if epsilon is None else MORE_NOISE)
    return schedule


def _made(parts: TrainingParts, clipper: PerSampleClipper, settings: TrainingSettings, *others: Any) -> PrivateTraining:
    """Return the training that takes the model over."""

    def again() -> PerSampleClipper:
        return PerSampleClipper(parts.model, cast(Clipping, settings.clipping), rows_apart=settings.rows_apart)

    own = take_model(clipper, again)
    training = PrivateTraining(parts, own, settings, *others)
    close_with(training, own)
    return training


def _stated(
    parts: TrainingParts,
    clip: Any,
    clipping: Any,
    physical_batch_size: Any,
    augment: Any,
    average: Any,
    audit: Any,
) -> dict[str, Any]:
    """Return checked arguments by the names of `TrainingSettings`."""
    views = _at_least_one("augment", augment) or 1
    _check_combination(clip, clipping, views, parts.loader)
    return {
        "clipping": clipping,
        "physical_batch_size": _rows_per_chunk(physical_batch_size, len(parts.rows) * views),
        "views": views,
        "average": None if average is None else float(inside_unit_interval("average", average)),
        "canaries": (CANARIES if audit else 0) if isinstance(audit, bool) else whole("audit", audit, at_least=20),
    }


def _decided(parts: TrainingParts, charge: Callable[[], dict[str, Any]], clipper: PerSampleClipper) -> TrainingSettings:
    """Return the settings that rank 0 has charged; on a refusal the model is left as it was."""
    try:
        return TrainingSettings.from_dict(parts.processes.decided_by_first(charge))
    except BaseException:
        clipper.close()
        raise


@contextmanager
def _leaving(model: nn.Module, *, also_on_success: bool = False) -> Iterator[None]:
    """On a refusal give modules back the passes that a training of the model, which goes on, has put in their place."""
    kept = {module: vars(module)["forward"] for module in model.modules() if "forward" in vars(module)}
    try:
        yield
    except BaseException:
        also_on_success = True
        raise
    finally:
        for module, forward in kept.items() if also_on_success else ():
            module.forward = forward


def _charged(
    parts: TrainingParts, schedule: Schedule, stated: dict[str, Any], budget: Any, place: Path | None, purpose: str
) -> TrainingSettings:
    """Charge a schedule, and return the settings of its training."""
    if place is not None:
        require_free(place)
        model_tensors(parts.model), optimizer_parts(parts.optimizer, parts.scheduler)
    permit = begin(_Plan(schedule), budget, ReleaseOptions(purpose), refundable=True)
    return TrainingSettings(
        schedule=schedule,
        permit=permit.id,
        secret=SYSTEM.read(32).hex(),
        epsilon=permit.cost.epsilon,
        delta=permit.cost.delta,
        rho=permit.cost.rho,
        is_simulated=SYSTEM.simulated,
        processes=parts.processes.size,
        optimizer=parts.optimizer_name,
        columns=parts.rows.columns,
        has_units=parts.units.are_named,
        **stated,
    )


def _at_least_one(name: str, value: Any) -> int | None:
    return None if value is None else whole(name, value)


def _rows_per_chunk(physical_batch_size: int | None, rows: int) -> int | None:
    found = _at_least_one("physical_batch_size", physical_batch_size)
    if found is not None and rows > CHUNKS_MAX // 2 * found:
        raise TooLarge(
            f"a batch of all rows must have at most {CHUNKS_MAX // 2:,} chunks; use a larger physical_batch_size",
            name="physical_batch_size",
        )
    return found


def _check_combination(clip: Any, clipping: Any, views: int, loader: Any) -> None:
    if views > 1 and loader is not None:
        raise InvalidInput("augment needs Poisson samples; leave loader out", name="augment")
    if isinstance(clip, AdaptiveClip) and (clipping != "flat" or loader is not None):
        raise InvalidInput('adaptive clipping needs clipping="flat" and Poisson samples', name="clip")


def _check_budget(parts: TrainingParts, budget: Any) -> None:
    if not parts.processes.is_first:
        return
    if not isinstance(budget, Budget):
        raise WrongType("a training is paid from a budget: budget=tacit.Budget(3.0, 1e-4)", name="budget")
    needed = Relation.ADD_REMOVE if parts.loader is None else Relation.REPLACE_ONE
    if budget.cap.relation is needed:
        return
    if parts.loader is None:
        raise InvalidInput("Poisson samples protect one unit more or less; use a budget of add/remove", name="budget")
    raise InvalidInput(
        "the batches of a loader are private for one row replaced, without amplification by sampling; leave loader out "
        'for Poisson samples, or use a budget with relation="replace-one"',
        name="loader",
    )


def _batch_size(batch_size: Any, loader: Any) -> int:
    own = None if loader is None else loader.batch_size
    if batch_size is None and own is None:
        raise InvalidInput("state batch_size, the expected number of units in a batch", name="batch_size")
    found = whole("batch_size", own if batch_size is None else batch_size)
    if own is not None and own != found:
        raise InvalidInput(f"the loader's batch size is {own}", name="batch_size", value=batch_size)
    return found


def _steps(epochs: Any, steps: Any, units: int, batch_size: int, loader: Any) -> int:
    if (epochs is None) == (steps is None):
        raise InvalidInput("state either epochs or steps", name="epochs")
    if steps is not None:
        return whole("steps", steps)
    if loader is not None:
        return whole("epochs", epochs) * len(loader)
    passes = positive("epochs", epochs)
    return max(1, math.ceil(passes * units / batch_size))


def resume(
    path: Path | str,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    data: Any,
    *,
    budget: Budget | None,
    units: Any = None,
    loader: Any = None,
    scheduler: Any = None,
    checkpoint_every: int = 1,
    distributed: bool = False,
) -> PrivateTraining:
    """Go on with the training of a checkpoint, with fresh samples and noise; nothing is charged.

    Model, optimizer, scheduler and data are made as for `make_private`, and get the checkpoint's state; `budget` is the
    one that paid. With several bands the units must be the same and in the same order, since each keeps its group.
    Raise AlreadySettled for a state that is not the last one, InvalidInput for another model or data.
    """
    place, every = Path(path), whole("checkpoint_every", checkpoint_every)
    parts = TrainingParts.of(model, optimizer, scheduler, data, units, loader, is_distributed=distributed)
    _check_budget(parts, budget)
    state = read_state(place)
    settings = state.settings
    schedule = settings.schedule
    for what, then, now in (
        ("units", schedule.units, parts.processes.total(parts.units.count)),
        ("processes", settings.processes, parts.processes.size),
        ("named units", settings.has_units, parts.units.are_named),
        ("columns", settings.columns, parts.rows.columns),
        ("optimizer", settings.optimizer, parts.optimizer_name),
        ("batches of a loader", schedule.steps_per_pass, None if loader is None else len(loader)),
        ("batch size", schedule.batch_size, schedule.batch_size if loader is None else loader.batch_size),
    ):
        if then != now:
            raise InvalidInput(f"the checkpoint is of another training: {what} {then}, not {now}", name="path")

    require_order(loader, schedule)

    def check() -> dict[str, Any]:
        if budget is not None:
            StateAnchor(budget, settings).adopt(state)
        return {}

    parts.processes.decided_by_first(check)  # before the model is changed
    load_model(model, state.tensors)
    load_optimizer(optimizer, scheduler, state.tensors, state.rest)
    clipper = PerSampleClipper(model, cast(Clipping, settings.clipping), rows_apart=settings.rows_apart)
    training = _made(parts, clipper, settings, budget, place, every)
    try:
        return training.restore(state)
    except BaseException:
        training._clipper.close()
        raise
