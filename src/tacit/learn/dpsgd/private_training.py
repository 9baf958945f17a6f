"""The object of a private training: hands out batches, takes losses, releases steps, keeps its state.

What it promises, and to whom, is in `training`; the event of its steps in `schedule`.
"""

from __future__ import annotations

import os
import warnings
from collections import deque
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor

from tacit.accounting import Cost, epsilon
from tacit.attack import Finding
from tacit.learn.dpsgd.canaries import Canaries, noise_ratio
from tacit.learn.dpsgd.cards import audit_words, card_of
from tacit.learn.dpsgd.checkpoints import (
    State,
    StateAnchor,
    TrainingProgress,
    TrainingSettings,
    ended,
    model_tensors,
    optimizer_parts,
    require_free,
)
from tacit.learn.dpsgd.clipping import PerSampleClipper
from tacit.learn.dpsgd.inputs import TrainingParts
from tacit.learn.dpsgd.interrupts import interrupts_held
from tacit.learn.dpsgd.loader_passes import LoaderPasses, rows_in
from tacit.learn.dpsgd.losses import coded_errors, public_gradients, require_losses, require_public_loss
from tacit.learn.dpsgd.matrix_noise import MatrixNoise
from tacit.learn.dpsgd.rounding import single_rows
from tacit.learn.dpsgd.sampling import Chunk, Groups, Indices, poisson_sample
from tacit.learn.dpsgd.schedule import AdaptiveClip, Schedule
from tacit.learn.dpsgd.step_noise import UNCLIPPED_COUNT, StepCanaries, StepNoise, no_sums
from tacit.learn.secret_seeds import SecretSeeds
from tacit.ledger import Budget
from tacit.mechanisms.bulk_gaussian import BulkGaussian
from tacit.mechanisms.randomness import SYSTEM
from tacit.privacy.errors import AlreadySettled, Exhausted, InvalidInput, TacitError
from tacit.privacy.figures import at_most


class PrivateTraining:
    """A training that was charged: an iterator over its batches, and `step` for each of them."""

    def __init__(
        self,
        parts: TrainingParts,
        clipper: PerSampleClipper,
        settings: TrainingSettings,
        budget: Budget | None,
        checkpoint: Path | None,
        checkpoint_every: int,
    ) -> None:
        self._parts, self._clipper, self._settings, self._budget = parts, clipper, settings, budget
        self._checkpoint, self._checkpoint_every = checkpoint, checkpoint_every
        self._source = SYSTEM
        self._process = os.getpid()
        self._seeds = SecretSeeds(self._source)
        self._anchor = StateAnchor(budget, settings) if parts.processes.is_first and budget is not None else None
        self._progress = TrainingProgress(settings.schedule.clip_at(0))
        units = parts.units.count + (0 if self._anchor is None else settings.canaries)
        self._groups = Groups(units, settings.schedule.bands, f"{settings.secret} {parts.processes.rank}")
        self._noise = self._noise_after({})
        self._chunks: deque[tuple[Chunk, Any]] = deque()
        self._pending: tuple[Chunk, Any] | None = None
        self._sums: dict[str, Tensor] = {}
        self._is_precise = False
        self._sampled_canaries: Indices | None = None
        self._passes = LoaderPasses(parts.loader)
        self._canaries: Canaries | None = None
        self._averaged: dict[str, Tensor] | None = None
        self._ended_why = ""
        self._is_saved = self._is_settled = False
        self._announced = settings.schedule.steps
        """The number of steps that are noted, or need no note: without a file nobody else can go on."""
        self._versions: list[int] = []
        self._finding: Finding | None = None

    def start(self) -> Self:
        """Note the start of a training that was charged, and store its first state."""
        self._parts.processes.broadcast(self._parts.parameters)
        if self._settings.canaries and self._anchor is not None:
            self._canaries = Canaries.drawn(self._settings.canaries, self._source)
        if self._settings.average is not None:
            self._averaged = {name: one.detach().clone() for name, one in self._parts.parameters.items()}
        if self._anchor is not None:
            try:
                self._anchor.begin()
                self._store()
            except BaseException:
                self._checkpoint = None
                with suppress(TacitError):
                    self.stop()
                raise
        self._versions = self._count_changes()
        return self

    def _noise_after(self, tensors: dict[str, Tensor]) -> StepNoise:
        schedule, exact = self._settings.schedule, self._settings.exact_noise
        noise = BulkGaussian(self._source, exact=exact, in_place=True)
        return StepNoise(schedule, noise, MatrixNoise(schedule.coefficients, tensors))

    def restore(self, state: State) -> Self:
        """Continue from a state of a file: claim it for this process first."""
        self._progress = state.progress_after(
            self._parts.processes.decided_by_first(lambda: self._adopted(state))["noted"]
        )
        self._forfeit_pass()
        if self._settings.average is not None:
            self._averaged = {name: state.tensors[f"average.{name}"] for name in self._parts.parameters}
        if self._anchor is not None and self._settings.canaries:
            self._canaries = Canaries.of(state.tensors)
        self._noise = self._noise_after(state.tensors)

        def claim() -> dict[str, Any]:
            self._store()
            return {}

        if not state.is_over:
            self._parts.processes.decided_by_first(claim)
        self._versions = self._count_changes()
        self._is_settled = state.is_over and not state.is_noted
        if not self._steps_left:
            self._end()
        return self

    def _adopted(self, state: State) -> dict[str, Any]:
        assert self._anchor is not None
        return {"noted": self._anchor.adopt(state)}

    def __iter__(self) -> Self:
        self._require_live()
        if not self._steps_left:
            raise Exhausted(
                f"all {self._settings.schedule.steps:,} steps of this training are done; the loop over it covers all "
                "epochs",
                accepted="charge another training for more",
            )
        if self._pending is not None:  # the loop was left before its step: the same rows come again
            self._chunks.appendleft(self._pending)
            self._pending = None
        return self

    def __next__(self) -> Any:
        self._require_live()
        if self._pending is not None:
            raise InvalidInput("call step once for each batch: it was not called for the last one", name="step")
        self._require_unchanged()
        while not self._chunks:
            if not self._steps_left:
                raise StopIteration
            self._draw()
        chunk, batch = self._chunks.popleft()
        self._clipper.forget(len(chunk.rows))
        self._pending = (chunk, batch)
        self._seeds.seed()
        return self._parts.rows.fetch(chunk.rows) if batch is None else batch

    def _draw(self) -> None:
        """Draw the batch of the next step; canaries are units with the numbers after those of people."""
        self._sums = {}
        schedule, people = self._settings.schedule, self._parts.units.count
        if schedule.steps_per_pass is None:
            members = self._groups.at(self._progress.counted)
            sampled = members[poisson_sample(len(members), schedule.rate, self._source)]
            inside = sampled[: sampled.searchsorted(people)]
            self._is_precise = len(inside) > single_rows(schedule.batch_size) // self._parts.processes.size
            self._sampled_canaries = sampled[len(inside) :] - people
            most, views = self._settings.physical_batch_size, self._settings.views
            self._chunks.extend((chunk, None) for chunk in self._parts.units.chunks(inside, most, views))
            if not self._chunks:  # an empty batch
                self._release({})
            return
        self._seeds.seed()  # a loader shuffles and augments
        batch = None
        try:
            batch = self._passes.read(is_first=self._progress.counted % schedule.steps_per_pass == 0)
        finally:
            if batch is None:
                self._seeds.restore()
                self._forfeit_pass()
                if not self._steps_left:
                    self._end()
        if batch is None:
            return
        if self._canaries is not None:
            step = self._progress.counted
            self._sampled_canaries = self._canaries.sampled_by_loader(step, schedule.steps_per_pass)
        size = rows_in(batch)
        self._is_precise = size > single_rows(schedule.batch_size)
        self._chunks.append((Chunk(torch.arange(size).numpy(), None, True), batch))

    def _forfeit_pass(self) -> None:
        """Count the steps that are left of a begun pass over a loader: it is not continued in another order."""
        per_pass = self._settings.schedule.steps_per_pass
        left = 0 if per_pass is None else min(-self._progress.counted % per_pass, self._steps_left)
        self._progress = replace(self._progress, forfeited=self._progress.forfeited + left)

    def step(self, losses: Tensor, public_loss: Any = None) -> None:
        """Take the losses of the rows that were handed out last; with the last rows of a batch, change the weights.

        `losses` has one loss for each row, in their order. `public_loss` is a function without arguments that returns a
        loss on public data; its gradient is added without clipping and noise when the weights are changed.
        """
        self._require_live()
        chunk = self._require_losses(losses)
        self._seeds.restore()
        self._require_unchanged()
        require_public_loss(public_loss, self._parts.processes.size)
        views, clip = self._settings.views, self._progress.clip
        units = None if chunk.units is None else torch.from_numpy(chunk.units)
        own = losses if views == 1 else losses / views
        with coded_errors():
            sums, norms = self._clipper.clipped_sums(own, clip, units, is_precise=self._is_precise)
        if isinstance(self._settings.schedule.clip, AdaptiveClip):
            sums[UNCLIPPED_COUNT] = ((norms <= clip).double() - 0.5).sum().reshape(1)
        extra: dict[str, Tensor] = {}
        if chunk.is_last and public_loss is not None:
            extra = public_gradients(public_loss, self._parts.parameters)
            self._clipper.forget()
        self._pending = None  # before they are added: never twice
        for name, one in sums.items():
            self._sums[name] = self._sums[name].double().add_(one) if name in self._sums else one
        if chunk.is_last:
            self._release(extra)

    def _release(self, extra: dict[str, Tensor]) -> None:
        """Add noise to the sums of a batch, change the weights, and store and note the state.

        `extra` are gradients on public data.
        """
        self._ended_why = "a step failed or was interrupted after its noise was drawn"
        with interrupts_held():
            sums = self._parts.processes.all_reduce(
                self._sums or no_sums(self._parts.parameters, self._settings.schedule)
            )
            step = self._progress.counted
            self._progress = replace(self._progress, forfeited=self._progress.forfeited + 1)  # until it is in the model
            if self._anchor is not None:
                if step >= self._announced:
                    self._anchor.announce(step + 1)
                released = self._noise.noisy(sums, step, self._progress.clip, self._step_canaries)
                self._change(released, extra)
                self._store_if_due()
            else:
                released = sums
            self._parts.processes.broadcast(released)
            if self._anchor is None:
                self._change(released, extra)
            self._sums, self._versions = {}, self._count_changes()
            self._ended_why = ""
            if not self._steps_left:
                self._end()

    @property
    def _step_canaries(self) -> StepCanaries | None:
        if self._canaries is None or self._sampled_canaries is None:
            return None
        return StepCanaries(self._canaries, self._sampled_canaries, self._groups.numbers[self._parts.units.count :])

    def _change(self, released: dict[str, Tensor], extra: dict[str, Tensor]) -> None:
        """Change the weights by what a step released; post-processing."""
        schedule = self._settings.schedule
        for name, parameter in self._parts.parameters.items():
            parameter.grad = (released[name] / schedule.batch_size).to(parameter.dtype)
            if name in extra:
                parameter.grad += extra[name]
        self._parts.optimizer.step()
        self._parts.optimizer.zero_grad(set_to_none=True)
        if self._parts.scheduler is not None:
            self._parts.scheduler.step()
        done = self._progress.done + 1
        if self._averaged is not None and self._settings.average is not None:
            decay = min(self._settings.average, (1 + done) / (10 + done))
            for name, parameter in self._parts.parameters.items():
                self._averaged[name].lerp_(parameter.detach(), 1 - decay)
        clip = schedule.clip_at(self._progress.counted)
        if isinstance(schedule.clip, AdaptiveClip):
            share = released[UNCLIPPED_COUNT].item() / schedule.batch_size + 0.5
            clip = schedule.clip.after(self._progress.clip, share)
        self._progress = replace(
            self._progress,
            done=done,
            forfeited=self._progress.forfeited - 1,
            clip=clip,
            noise_squares=self._progress.noise_squares + self._noise.squares,
            noise_numbers=self._progress.noise_numbers + self._noise.numbers,
        )

    def _store_if_due(self) -> None:
        if self._checkpoint is not None and (self._progress.done % self._checkpoint_every == 0 or not self._steps_left):
            self._store()

    def _store(self) -> None:
        """Store and note the state, if the training has a file."""
        if self._checkpoint is not None:
            self._write(self._checkpoint, lease=self._checkpoint_every - 1)
            self._announced = self._progress.counted + self._checkpoint_every - 1

    def _write(self, place: Path, *, lease: int, is_noted: bool = True) -> None:
        assert self._anchor is not None
        self._announced = 0  # unless it succeeds: the next step is noted, after which nobody goes on from the file
        tensors, rest = optimizer_parts(self._parts.optimizer, self._parts.scheduler)
        tensors |= model_tensors(self._parts.model)
        tensors |= {f"average.{name}": one for name, one in (self._averaged or {}).items()}
        tensors |= {} if self._canaries is None else self._canaries.tensors
        tensors |= self._noise.matrix.tensors if self._steps_left else {}
        self._anchor.store(place, self._progress, lease, tensors, rest, is_noted=is_noted)

    def _end(self) -> None:
        """Settle the charge and audit the training."""
        self._seeds.restore()
        self._clipper.close()
        self._noise.matrix.forget()
        if self._anchor is None or self._budget is None:
            return
        schedule = self._settings.schedule
        if not self._is_settled:
            self._settle(self._budget)
        if self._canaries is not None and self._progress.noise_numbers:
            promise = (self.epsilon_spent, schedule.delta)
            self._finding = self._canaries.finding(promise, schedule, self._source)
            ratio = self.noise_ratio
            if self._finding.is_violation or self.faults or (ratio is not None and ratio[2] < 1):
                warnings.warn(f"the audit refutes the promise of this training: {self._audit_words}", stacklevel=3)

    def _settle(self, budget: Budget) -> None:
        """Refund the steps that were not run, if the training was stopped, and commit the charge."""
        permit = self._settings.permit
        with suppress(AlreadySettled):  # noting the last step has committed it, or a process that died has
            if self._progress.is_stopped:
                counted = self._progress.counted
                budget.refund(permit, self._settings.schedule.event_of(counted) if counted else None)
        with suppress(AlreadySettled):
            budget.commit(permit)
        self._is_settled = True

    def stop(self) -> None:
        """End the training before its last step.

        Steps that were not run are refunded by a ledger in the accounts that count them one by one: that of the filter
        "renyi", and with a loader those of "zcdp" and "gdp", by whole passes; Poisson samples have no rho. The sum of
        epsilons counted the training as a whole and keeps its price, since a loss distribution does not cover a stop
        that depends on what was released. Budgets in memory refund no steps. A training of which no noise was drawn is
        refunded whole by every budget. One of which a step failed can be stopped as well, and that step counts.
        """
        if self._is_saved or os.getpid() != self._process:
            self._require_live()
        if self._is_settled or not (self._steps_left or self._progress.is_stopped):
            return
        going_on, self._progress = self._progress, replace(self._progress, is_stopped=True)
        self._chunks.clear()
        self._pending = None
        if self._anchor is not None:
            try:
                self._store()
                if self._checkpoint is None:
                    self._anchor.end(self._progress.counted)
            except BaseException:
                self._progress = going_on
                raise
        self._end()

    def save(self, path: Path | str) -> None:
        """Store the state in a file and end this object: the training goes on with `resume`, in one place only.

        A training that is over can be saved as well. To go on after every state, use `checkpoint`.
        """
        self._require_live()
        place = Path(path)
        if self._anchor is not None:
            if place != self._checkpoint:
                require_free(place)
            self._write(place, lease=0, is_noted=bool(self._steps_left))
        if self._steps_left:
            self._clipper.close()
            self._ended_why, self._is_saved, self._checkpoint = "it was saved", True, place

    @property
    def steps(self) -> int:
        """The number of steps that are in the model."""
        return self._progress.done

    @property
    def _steps_left(self) -> int:
        return 0 if self._progress.is_stopped else self._settings.schedule.steps - self._progress.counted

    @property
    def schedule(self) -> Schedule:
        """The steps that were charged: rate, noise and clips."""
        return self._settings.schedule

    @property
    def clip(self) -> float:
        """The clip of the next step."""
        return self._progress.clip

    @property
    def cost(self) -> Cost:
        """What was charged for the whole training."""
        return self._settings.cost

    @property
    def permit(self) -> str:
        """The permit of the charge."""
        return self._settings.permit

    @property
    def epsilon_spent(self) -> float:
        """The epsilon of the steps so far, at the training's delta.

        It holds for a number of steps that was fixed beforehand; what is promised for a training that was stopped by
        what it showed is its cost.
        """
        if not self._progress.counted:
            return 0.0
        event = self._settings.schedule.event_of(self._progress.counted)
        return epsilon(event.event, event.delta).upper

    @property
    def averaged(self) -> dict[str, Tensor]:
        """The moving average of the weights by name, with the model's buffers, for `load_state_dict`."""
        if self._averaged is None:
            raise InvalidInput("state average, the decay of the moving average, for make_private", name="average")
        return {**self._parts.model.state_dict(), **{name: one.clone() for name, one in self._averaged.items()}}

    @property
    def finding(self) -> Finding | None:
        """What the canaries show when the training is over; None before, and without an audit."""
        return self._finding

    @property
    def noise_ratio(self) -> tuple[float, float, float] | None:
        """Measured over stated deviation of the noise, with an interval that is wrong once in a million times."""
        if not self._progress.noise_numbers:
            return None
        return noise_ratio(self._progress.noise_squares, self._progress.noise_numbers)

    @property
    def faults(self) -> list[str]:
        """What is wrong with noise or samples, in words, by checks that are wrong once in a million times each."""
        if self._canaries is None:
            return []
        return self._canaries.faults(self._progress.noise_squares, self._settings.schedule)

    @property
    def card(self) -> str:
        """The training in plain language: whom it protects, how, at what cost, and what the audit found."""
        audit = None if self._finding is None else self._audit_words
        return card_of(self._settings, self._progress, audit)

    @property
    def _audit_words(self) -> str:
        assert self._finding is not None
        assert self.noise_ratio is not None
        return audit_words(self._settings, self._finding, self.noise_ratio, self.faults)

    def _require_live(self) -> None:
        if os.getpid() != self._process:
            raise InvalidInput(
                "this training is that of another process, from which this one was forked; train there", name="training"
            )
        if self._ended_why:
            raise ended(self._ended_why, self._checkpoint)

    def _require_losses(self, losses: Any) -> Chunk:
        if not self._steps_left:
            raise Exhausted(
                f"all {self._settings.schedule.steps:,} steps of this training are done",
                accepted="charge another training for more",
            )
        if self._pending is None:
            raise InvalidInput("call step once for each batch of the loop over this training", name="step")
        chunk = self._pending[0]
        require_losses(losses, len(chunk.rows))
        return chunk

    def _count_changes(self) -> list[int]:
        return [one._version for one in self._parts.parameters.values()]

    def _require_unchanged(self) -> None:
        if self._count_changes() != self._versions:
            self._ended_why = "the weights were changed by something else than step, such as optimizer.step()"
            self._require_live()

    def __repr__(self) -> str:
        total = self._settings.schedule.steps
        return f"<private training: {self.steps:,} of {total:,} steps, epsilon {at_most(self.cost.epsilon)}>"
