"""Releases in several steps under one charge: the progress of each is noted with its permit.

Promise: a step leaves when its number and a digest of the whole state are noted with the permit, by compare and set
(`annotate` with `before`). So of copies of a state only one can continue: a copy that is behind, or that had other
steps, does not have the digest that was noted last, and is refused. In a ledger the note is a record of its journal.

A step is stored before it is noted. A process that is killed in between leaves a state that is one step ahead of the
note; nothing of that step was released, and the next process that opens the state notes it first. A release of which a
step can be seen before it is stored notes the step before it is run (`move`; `learn.dpsgd.checkpoints`).

The digest covers a random secret in the state, so that notes, which auditors read, tell nothing of steps and noise.
"""

from __future__ import annotations

import hashlib

from tacit.ledger import Budget
from tacit.pipeline import notes
from tacit.pipeline.notes import StepNote
from tacit.privacy.errors import AlreadySettled


def start_digest(start: bytes) -> str:
    """Return the digest of a state before its first step."""
    return hashlib.sha256(start).hexdigest()


def step_digest(digest: str, record: bytes) -> str:
    """Return the digest of a state after a step."""
    return hashlib.sha256(digest.encode() + record).hexdigest()


class StepAnchor:
    """The note on the permit of one stepwise release."""

    def __init__(self, budget: Budget, permit: str, horizon: int) -> None:
        self._budget, self._permit, self._horizon = budget, permit, horizon

    def begin(self, digest: str) -> None:
        """Note a state without steps."""
        self._budget.annotate(self._permit, str(self._note(0, digest)), before="")

    def advance(self, steps: int, digest: str, before: str, *, since: int | None = None) -> None:
        """Note that a step is released, or raise AlreadySettled if another copy of the state is ahead.

        `since` is the number of steps that was noted before, where it is not one less.
        """
        self.move((steps - 1 if since is None else since, before), (steps, digest))
        if steps == self._horizon:
            self._budget.commit(self._permit)

    def move(self, before: tuple[int, str], after: tuple[int, str]) -> None:
        """Note a number of steps and a digest in the place of those before, or raise AlreadySettled; commit nothing."""
        try:
            self._replace(self._note(*before), self._note(*after))
        except AlreadySettled:
            raise self.stale(before[0]) from None

    @property
    def steps(self) -> int:
        """The number of steps that was noted last; 0 if there is none."""
        found = notes.read(self._budget.note(self._permit))
        return found.number if isinstance(found, StepNote) else 0

    def is_at(self, steps: int, digest: str) -> bool:
        """Whether a state is the one that was noted last."""
        return notes.read(self._budget.note(self._permit)) == self._note(steps, digest)

    def require(self, steps: int, digest: str, before: str, *, since: int | None = None) -> None:
        """Raise AlreadySettled unless a state is the noted one, or the one after it, which is then noted."""
        if self.is_at(steps, digest):
            return
        if not self.is_at(steps - 1 if since is None else since, before):
            raise self.stale(steps)
        self.advance(steps, digest, before, since=since)

    def _note(self, steps: int, digest: str) -> StepNote:
        return StepNote(steps, self._horizon, digest)

    def _replace(self, last: StepNote, note: StepNote) -> None:
        """Note a step in the place of the last one, which an older ledger holds as a sentence."""
        try:
            self._budget.annotate(self._permit, str(note), before=str(last))
        except AlreadySettled:
            self._budget.annotate(self._permit, str(note), before=last.sentence)

    def stale(self, steps: int) -> AlreadySettled:
        """Return the refusal of a state that is not the one that was noted last."""
        found = notes.read(self._budget.note(self._permit))
        noted = f"step {found.number}" if isinstance(found, StepNote) else "none of its steps"
        return AlreadySettled(
            f"this state has {steps} steps, and is not the one that was noted last with its budget ({noted}): it was "
            "copied or restored, and would release the same noise again; continue with the newest state, or start a "
            "new release",
            name="state",
        )
