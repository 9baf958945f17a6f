"""The state of a training in one file, without pickle: tensors as safetensors, all else as JSON in its metadata.

Promise: a file is written under another name, synced and renamed, so that a process that is killed leaves the old state
or the new one. Each state is noted with the permit at the budget that paid (`pipeline.steps`) by a digest that covers
the digest before, and of copies of a state one goes on. A state holds no noise or random bits to come: whoever goes on
draws fresh ones.

What a training shows before a state of it is stored and noted would be shown twice if that part were run again. So a
state has a lease: the number of steps that may be shown after it without a note (one less than the number of steps
between two states). A step beyond the lease is noted as under way before its noise is drawn: weights, and hooks of the
caller's optimizer, show it before it can be stored. Whoever goes on from a state counts the lease and the steps under
way as run, and has as many fewer left: together no more noise is ever drawn than was charged, whatever fails in between
(a full disk, a hook). With a state after every step the lease is 0, and only a step that failed is lost.

Who can write the file, but not the ledger, gets nothing beyond what was charged. What is noted covers the settings, so
that noise, clip, rate, number of steps and permit of a file are those that were charged; the digest covers all of the
file. A file that was written but not noted is taken as well, if the step that it ends is noted as under way: its number
of steps must be that of the note, and what else it holds is public (weights, optimizer, average), or harms the audit
alone (canaries), or are sums that its reader knows (several bands). So in that moment the model is not protected
against a writer, and the guarantee is.

The file holds the model and which canaries were in the training; it names no row of the data. With several bands
(`matrix_noise`) it also holds sums of clipped gradients without noise, until the last step: such a file is as private
as the data. Its secret, from which the groups of units follow, must stay secret as well. The file of a training that is
over holds no sums.
"""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor, nn
from torch.optim.lr_scheduler import LRScheduler

from tacit.accounting.conversions import Cost
from tacit.learn.dpsgd.rounding import CLIP_MAX, CLIP_MIN
from tacit.learn.dpsgd.schedule import AdaptiveClip, Schedule
from tacit.ledger import Budget
from tacit.pipeline.steps import StepAnchor, start_digest, step_digest
from tacit.privacy import strict_json
from tacit.privacy.errors import InvalidInput, NameTaken, StorageUnavailable, WrongType
from tacit.storage.files import sync, touch_private

KIND: Final = "tacit private training 4"
Tensors = dict[str, Tensor]
_LENGTH_BYTES: Final = 8
_UNDER_WAY: Final = b"steps are under way"
_STOPPED: Final = b"stopped"


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """What is fixed for a training when it is charged."""

    schedule: Schedule
    permit: str
    secret: str
    """Random, so that digests, which auditors read, tell nothing of the state; groups of units follow from it."""
    epsilon: float
    delta: float
    rho: float
    stated_delta: float
    """What the caller stated; the schedule has the delta at which the budget counts the training."""
    clipping: str
    physical_batch_size: int | None
    views: int
    average: float | None
    canaries: int
    exact_noise: bool
    rows_apart: bool
    is_simulated: bool
    processes: int
    optimizer: str
    columns: str
    """Dtypes and shapes of a row's columns, where they are known without reading rows."""
    has_units: bool
    """Whether the unit of each row was named."""

    @property
    def cost(self) -> Cost:
        """What was charged."""
        return Cost(self.epsilon, self.delta, self.rho)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as values of JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, record: Any) -> TrainingSettings:
        """Return the settings of `to_dict`."""
        schedule = dict(record["schedule"])
        clip = schedule["clip"]
        schedule["clip"] = AdaptiveClip(**clip) if isinstance(clip, dict) else _runs(clip)
        schedule["noise"] = _runs(schedule["noise"])
        schedule["coefficients"] = tuple(map(float, schedule["coefficients"]))
        return cls(**{**record, "schedule": Schedule(**schedule)})


def _runs(record: Any) -> tuple[tuple[float, int], ...]:
    return tuple((float(value), int(count)) for value, count in record)


@dataclass(frozen=True, slots=True)
class TrainingProgress:
    """How far a training has come."""

    clip: float
    done: int = 0
    """The number of steps that were run and are in the model."""
    forfeited: int = 0
    """The number of steps that may have been shown, and are not in the model."""
    is_stopped: bool = False
    noise_squares: float = 0.0
    noise_numbers: int = 0
    """Sum of the squares, and number, of the noises of canaries over their stated deviation."""

    def __post_init__(self) -> None:
        numbers = self.done, self.forfeited, self.noise_numbers
        if not all(type(one) is int and one >= 0 for one in numbers) or not CLIP_MIN <= self.clip <= CLIP_MAX:
            raise InvalidInput("the progress of a training has counts, and a clip between 2^-30 and 2^30", name="path")

    @property
    def counted(self) -> int:
        """The number of steps that count as run."""
        return self.done + self.forfeited


def ended(why: str, place: Path | None) -> InvalidInput:
    """Return the error of a training that cannot go on; `place` is its checkpoint."""
    way = "continue it with tacit.learn.resume from its checkpoint"
    if place is None:
        way = "it had no checkpoint= to go on from, and its charge stays"
    return InvalidInput(f"this training cannot go on here: {why}; {way}", name="training")


class StateAnchor:
    """The notes of a training's states with its permit, and the file of the last one.

    Each note is a number of steps that count as run, and a digest of the settings with that of the last state, or of
    steps that are under way after it.
    """

    def __init__(self, budget: Budget, settings: TrainingSettings) -> None:
        self._settings = settings
        self._anchor = StepAnchor(budget, settings.permit, settings.schedule.steps)
        self._seal = start_digest(json.dumps(settings.to_dict(), sort_keys=True).encode())
        self._state = self._noted = self._seal
        self._counted = 0

    def begin(self) -> None:
        """Note a training without steps."""
        self._anchor.begin(self._sealed(self._noted))

    def announce(self, counted: int) -> None:
        """Note that the steps up to a number count as run, before they are; raise AlreadySettled as `store` does."""
        self._move(counted, _under_way(self._state))

    def end(self, counted: int) -> None:
        """Note that nobody goes on, before steps are refunded."""
        self._move(counted, step_digest(self._state, _STOPPED))

    def store(
        self, path: Path, progress: TrainingProgress, lease: int, tensors: Tensors, rest: Any, *, is_noted: bool = True
    ) -> None:
        """Replace the file by a state, and note it; raise AlreadySettled if another copy of the last one went on.

        The state of a training that is over need not be noted: nobody goes on from it.
        """
        if is_noted:
            self.announce(progress.counted)
        header = {
            "kind": KIND,
            "settings": self._settings.to_dict(),
            "progress": asdict(progress),
            "lease": lease,
            "is_noted": is_noted,
            "rest": rest,
            "before": self._state,
        }
        state = save_tensors(tensors, metadata={"tacit": json.dumps(header)})
        _replace(path, state)
        if not is_noted:
            return
        self._advance(step_digest(self._state, state))

    def adopt(self, state: State) -> int:
        """Go on from a state of a file, and return the number of steps that count as run.

        Raise AlreadySettled unless the state is the noted one, or the one that steps under way ended in.
        """
        counted = state.progress.counted
        if state.is_over and not state.is_noted:
            return counted
        noted, under_way = self._anchor.steps, _under_way(state.digest)
        if self._anchor.is_at(counted, self._sealed(state.digest)):
            self._counted, self._noted = counted, state.digest
        elif self._anchor.is_at(counted, self._sealed(_under_way(state.before))):
            self._counted, self._noted = counted, _under_way(state.before)
            self._advance(state.digest)
        elif noted >= counted and not state.is_over and self._anchor.is_at(noted, self._sealed(under_way)):
            self._counted, self._noted = noted, under_way
        else:
            raise self._anchor.stale(counted)
        self._state = state.digest
        return self._counted

    def _move(self, counted: int, digest: str) -> None:
        if (counted, digest) != (self._counted, self._noted):
            self._anchor.move((self._counted, self._sealed(self._noted)), (counted, self._sealed(digest)))
        elif not self._anchor.is_at(counted, self._sealed(digest)):  # before the file of another one is replaced
            raise self._anchor.stale(counted)
        self._counted, self._noted = counted, digest

    def _advance(self, digest: str) -> None:
        """Note the state that steps under way ended in."""
        self._anchor.advance(self._counted, self._sealed(digest), self._sealed(self._noted), since=self._counted)
        self._state = self._noted = digest

    def _sealed(self, digest: str) -> str:
        return step_digest(self._seal, digest.encode())


def _under_way(digest: str) -> str:
    """Return what is noted for steps after a state with this digest."""
    return step_digest(digest, _UNDER_WAY)


@dataclass(frozen=True, eq=False)
class State:
    """A state that was read from a file."""

    settings: TrainingSettings
    progress: TrainingProgress
    lease: int
    is_noted: bool
    tensors: Tensors
    rest: Any
    digest: str
    before: str

    @property
    def is_over(self) -> bool:
        """Whether no steps are left."""
        return self.progress.is_stopped or self.progress.counted >= self.settings.schedule.steps

    def progress_after(self, noted: int) -> TrainingProgress:
        """Return the progress with the steps counted that may have been shown: those noted, and those of the lease."""
        counted = self.progress.counted
        shown = counted if self.is_over else min(max(counted + self.lease, noted), self.settings.schedule.steps)
        return replace(self.progress, forfeited=self.progress.forfeited + shown - counted)


def read_state(path: Path) -> State:
    """Return the state in a file; raise InvalidInput for anything that `StateAnchor.store` did not write."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InvalidInput(f"no checkpoint can be read at {path}: {error.strerror}", name="path", value=path) from None
    try:
        length = int.from_bytes(data[:_LENGTH_BYTES], "little")
        outer = strict_json.loads(data[_LENGTH_BYTES : _LENGTH_BYTES + length])
        header = strict_json.loads(outer["__metadata__"]["tacit"])
        if header["kind"] != KIND:
            raise InvalidInput("the file is of another kind", name="path")
        if type(header["lease"]) is not int or header["lease"] < 0:
            raise InvalidInput("the lease is no number of steps", name="path")
        return State(
            TrainingSettings.from_dict(header["settings"]),
            TrainingProgress(**header["progress"]),
            header["lease"],
            header["is_noted"],
            load_tensors(data),
            header["rest"],
            step_digest(header["before"], data),
            header["before"],
        )
    except (InvalidInput, KeyError, TypeError, ValueError, SafetensorError):
        raise InvalidInput(
            f"{path} is not the checkpoint of a private training of this version, or damaged", name="path"
        ) from None


def require_free(path: Path) -> None:
    """Raise NameTaken if there is a file, and InvalidInput if there is no folder for it."""
    if os.path.lexists(path):
        raise NameTaken(f"{path} exists; continue it with tacit.learn.resume, or name a new file", name="checkpoint")
    if not path.parent.is_dir():
        raise InvalidInput(f"there is no folder {path.parent}", name="checkpoint", value=str(path))


def _replace(path: Path, state: bytes) -> None:
    """Write a file that only its owner can read, and give it its name when it is complete and on disk."""
    aside = path.with_name(f".tacit-{secrets.token_hex(8)}")
    try:
        touch_private(aside)
        aside.write_bytes(state)
        sync(aside)
        os.replace(aside, path)
        sync(path.parent)
    except OSError as error:
        raise StorageUnavailable(f"the checkpoint {path} cannot be written: {error.strerror}") from None
    finally:
        aside.unlink(missing_ok=True)


def model_tensors(model: nn.Module) -> Tensors:
    """Return parameters and buffers of a model by name, copied."""
    state = model.state_dict()
    strange = sorted(name for name, value in state.items() if not isinstance(value, Tensor))
    if strange:
        raise WrongType(f"a checkpoint holds tensors alone, and the model's state has {strange[0]}", name="model")
    return {f"model.{name}": _copied(value) for name, value in state.items()}


def load_model(model: nn.Module, tensors: Tensors) -> None:
    """Set parameters and buffers; raise InvalidInput, and set none, unless names, shapes and dtypes are the same."""
    stored = {name.removeprefix("model."): one for name, one in tensors.items() if name.startswith("model.")}
    own = model.state_dict()
    if {n: (t.shape, t.dtype) for n, t in own.items()} != {n: (t.shape, t.dtype) for n, t in stored.items()}:
        raise InvalidInput("the checkpoint is of another model: names, shapes or dtypes differ", name="model")
    model.load_state_dict(stored)


def optimizer_parts(optimizer: torch.optim.Optimizer, scheduler: LRScheduler | None) -> tuple[Tensors, Any]:
    """Return the tensors of an optimizer's and its scheduler's state, copied, and the rest as values of JSON."""
    tensors: Tensors = {}

    def plain(value: Any, name: str) -> Any:
        if isinstance(value, Tensor):
            tensors[name] = _copied(value)
            return {"tensor": name}
        if isinstance(value, dict):
            return {"dict": [[key, plain(one, f"{name}.{key}")] for key, one in value.items()]}
        if isinstance(value, list | tuple):
            return {type(value).__name__: [plain(one, f"{name}.{index}") for index, one in enumerate(value)]}
        if value is None or isinstance(value, bool | int | float | str):
            return value
        raise WrongType(
            f"the {name.partition('.')[0]}'s state has a {type(value).__name__}, which a checkpoint cannot hold",
            name=name.partition(".")[0],
        )

    states = {"optimizer": optimizer.state_dict(), "scheduler": None if scheduler is None else scheduler.state_dict()}
    return tensors, {name: plain(state, name) for name, state in states.items()}


def load_optimizer(
    optimizer: torch.optim.Optimizer, scheduler: LRScheduler | None, tensors: Tensors, rest: Any
) -> None:
    """Set the state of an optimizer and its scheduler from `optimizer_parts`."""

    def restored(value: Any) -> Any:
        match value:
            case {"tensor": name}:
                return tensors[name]
            case {"dict": pairs}:
                return {key: restored(one) for key, one in pairs}
            case {"list": values}:
                return [restored(one) for one in values]
            case {"tuple": values}:
                return tuple(restored(one) for one in values)
        return value

    try:
        if scheduler is not None:
            scheduler.load_state_dict(restored(rest["scheduler"]))
        optimizer.load_state_dict(restored(rest["optimizer"]))
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise InvalidInput(f"the checkpoint is of another optimizer: {error}", name="optimizer") from None


def _copied(value: Tensor) -> Tensor:
    return value.detach().clone().contiguous()
