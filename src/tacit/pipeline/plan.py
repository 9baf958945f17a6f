"""The interface of a kind of release (`ReleasePlan`), and the options of one release.

A new kind of release is one class with the members of `ReleasePlan`; it has no code of its own for charges, keys,
failures, interrupts or repeated answers. ARCHITECTURE.md has a worked example, and `tests/conformance/pipeline` holds
every kind to the same rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Generic, Protocol, TypeVar

from tacit.accounting.conversions import Cost
from tacit.engines.protocol import Progress
from tacit.ledger import Permit
from tacit.mechanisms.randomness import SYSTEM, RandomSource
from tacit.privacy import texts
from tacit.privacy.arguments import require_progress
from tacit.privacy.errors import InvalidInput
from tacit.privacy.events import Event
from tacit.privacy.numbers import time_limit

T = TypeVar("T")


class Data(Protocol):
    """The rows of a plan, in exactly one version."""

    @property
    def version(self) -> str | None:
        """A digest that changes with the rows or with what is declared of them; None if the caller holds the rows.

        Answers about data without a version are not stored: it is not known whether the next rows are the same.
        """
        ...

    def is_current(self) -> bool:
        """Return whether the rows are still those of `version` and have been since the plan was bound to them."""
        ...

    def cancel(self, thread: int) -> None:
        """Make the run of a thread on these rows raise Cancelled."""
        ...


@dataclass(frozen=True, slots=True)
class Work:
    """The work of the engine as far as it depends on no row; a server derives the time class from it."""

    statements: int = 1
    """Number of statements, each counted once for every table that it reads."""
    unit_steps: int = 0
    """Number of steps that one unit can add to them (docs/explanation/threat-model.md, "Time")."""


class CallerData:
    """Arrays and frames in the caller's process."""

    version = None

    def is_current(self) -> bool:
        """Return True: only the caller replaces them."""
        return True

    def cancel(self, thread: int) -> None:
        """Do nothing: the computation ends by itself."""


class UnstoredPlan(Generic[T]):
    """What plans about the caller's own rows share: their answers are not stored."""

    answer_bytes: int | None = None
    work = Work()
    data = CallerData()

    def encode(self, answer: T) -> bytes:
        """Return nothing."""
        return b""

    def decode(self, kept: bytes) -> T:
        """Raise: no answer was stored."""
        raise InvalidInput("answers about the caller's rows are not stored")


@dataclass(frozen=True, slots=True)
class ReleaseOptions:
    """Options of one release that do not change what is released."""

    purpose: str = ""
    """The purpose in the ledger; the plan's label if it is empty."""
    key: str | None = None
    """Idempotency key: the same key with the same plan on the same data is charged once."""
    timeout_s: float | None = None
    progress: Progress | None = None
    source: RandomSource = SYSTEM
    """The source of randomness; any but the operating system's is for simulations, and marks the release."""

    def __post_init__(self) -> None:
        texts.note("purpose", self.purpose)
        if self.key is not None:
            texts.key(self.key)
        object.__setattr__(self, "timeout_s", time_limit(self.timeout_s))
        require_progress(self.progress)


class ReleasePlan(Protocol[T]):
    """A release that is planned and priced without the data; T is the type of its answer."""

    @property
    def event(self) -> Event:
        """The privacy event of the whole run."""
        ...

    @property
    def digest(self) -> str:
        """A text that is equal for plans with the same answer from the same tables."""
        ...

    @property
    def label(self) -> str:
        """A description of the release, for messages and the ledger."""
        ...

    @property
    def answer_bytes(self) -> int | None:
        """Upper bound on the bytes of numbers and keys in an encoded answer; None where keys are selected."""
        ...

    @property
    def work(self) -> Work:
        """The work of the engine."""
        ...

    @property
    def data(self) -> Data:
        """The rows that the plan is bound to."""
        ...

    def check(self) -> None:
        """Raise any error of `run` that does not depend on rows; called before the charge, and reads no row."""
        ...

    def run(self, options: ReleaseOptions) -> T:
        """Read the rows and return the answer, with noise; called after the charge, and by the pipeline alone."""
        ...

    def encode(self, answer: T) -> bytes:
        """Return the bytes that the ledger stores for an answer."""
        ...

    def decode(self, kept: bytes) -> T:
        """Return the answer from the bytes of `encode`."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Quote(Cost):
    """The exact cost of a release, before it is charged; equal to the Cost that is then charged."""

    is_released: bool = False
    """Whether the same answer was released before, so that it costs nothing."""
    remaining: Mapping[str, Cost] = field(default_factory=dict)
    """What is left of each budget that would be charged, by the name of its data set."""
    leaves: Mapping[str, Cost] = field(default_factory=dict)
    """What would be left of each of them afterwards: less by more than the cost where deltas are used up."""
    refusal: str = ""
    """Why it would be refused for lack of budget, with what is left and what would fit; empty if it fits."""
    analyst: str | None = None
    """Whose cap `remaining` takes into account; None if only the budget of the data set is charged."""

    @property
    def fits(self) -> bool:
        """Whether the remaining budget covers it."""
        return not self.refusal

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Cost):
            return NotImplemented
        return (self.epsilon, self.delta, self.rho) == (other.epsilon, other.delta, other.rho)

    def __hash__(self) -> int:
        return hash((self.epsilon, self.delta, self.rho))

    @property
    def facts(self) -> dict[str, Any]:
        """The fields of a quote, for subclasses that add their own."""
        return {one.name: getattr(self, one.name) for one in fields(Quote)}


@dataclass(frozen=True, slots=True)
class Released(Generic[T]):
    """An answer with its cost and permit; if it was released before, the cost is zero and the permit None."""

    answer: T
    cost: Cost
    permit: Permit | None
