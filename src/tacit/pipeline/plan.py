"""What a kind of release tells the pipeline, and how one release is asked for.

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
from tacit.mechanisms.randomness import SYSTEM, Source
from tacit.privacy import texts
from tacit.privacy.arguments import require_progress
from tacit.privacy.events import Event
from tacit.privacy.numbers import time_limit

T = TypeVar("T")


class Data(Protocol):
    """The rows that a plan was made for, in exactly one version."""

    @property
    def version(self) -> str | None:
        """A digest that changes with the rows or with what is declared of them; None if the caller holds the rows.

        Answers about data without a version are not kept: nothing says whether the next rows are the same.
        """
        ...

    def is_current(self) -> bool:
        """Return whether the rows have been those of `version` all the time since the plan was bound to them."""
        ...

    def cancel(self, thread: int) -> None:
        """Make what a thread runs on these rows raise Cancelled."""
        ...


@dataclass(frozen=True, slots=True)
class Work:
    """What the engine is asked to do, as far as it depends on no row; a server derives its time class from it."""

    statements: int = 1
    """How many statements run, each counted once for every table that it reads."""
    unit_steps: int = 0
    """How many steps one unit can add to them (docs/explanation/threat-model.md, "Time")."""


class CallerData:
    """Arrays and frames in the caller's own process."""

    version = None

    def is_current(self) -> bool:
        """Return True: nobody but the caller replaces them."""
        return True

    def cancel(self, thread: int) -> None:
        """Do nothing: the computation ends by itself."""


@dataclass(frozen=True, slots=True)
class Order:
    """How one release is asked for, beside what is asked."""

    purpose: str = ""
    """What the ledger notes; the plan's label if it is empty."""
    key: str | None = None
    """The same key with the same plan on the same data is charged once, however often it is asked."""
    timeout_s: float | None = None
    progress: Progress | None = None
    source: Source = SYSTEM
    """Where noise comes from; another one than the operating system is for simulations, and marks the release."""

    def __post_init__(self) -> None:
        texts.note("purpose", self.purpose)
        if self.key is not None:
            texts.key(self.key)
        object.__setattr__(self, "timeout_s", time_limit(self.timeout_s))
        require_progress(self.progress)


class ReleasePlan(Protocol[T]):
    """A release that is planned and priced from public facts alone; T is what it releases."""

    @property
    def event(self) -> Event:
        """All that the run releases, for the accountant."""
        ...

    @property
    def digest(self) -> str:
        """A text that is equal for plans that release the same from the same tables."""
        ...

    @property
    def label(self) -> str:
        """What is released, for people and for the ledger."""
        ...

    @property
    def answer_bytes(self) -> int | None:
        """How many bytes the numbers and keys of an encoded answer take at most; None where keys are selected."""
        ...

    @property
    def work(self) -> Work:
        """What the engine will be asked to do."""
        ...

    @property
    def data(self) -> Data:
        """The rows that it was made for."""
        ...

    def check(self) -> None:
        """Raise what `run` would raise whatever the rows are; called before the charge, looks at no row."""
        ...

    def run(self, order: Order) -> T:
        """Touch the rows and return the release, with noise; called after the charge, and by the pipeline alone."""
        ...

    def encode(self, answer: T) -> bytes:
        """Return the form in which the ledger keeps an answer."""
        ...

    def decode(self, kept: bytes) -> T:
        """Read an answer that the ledger kept."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Quote(Cost):
    """What a release would be charged, exactly; it equals the Cost that is then charged, and nothing is spent."""

    is_released: bool = False
    """Whether the same was released before, so that it costs nothing."""
    remaining: Mapping[str, Cost] = field(default_factory=dict)
    """What is left now of each budget that would pay, by the name of its data set."""
    refusal: str = ""
    """Why it would be refused now for want of budget, with what is left and what would fit; empty if it fits."""

    @property
    def fits(self) -> bool:
        """Whether what is left now pays for it."""
        return not self.refusal

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Cost):
            return NotImplemented
        return (self.epsilon, self.delta, self.rho) == (other.epsilon, other.delta, other.rho)

    def __hash__(self) -> int:
        return hash((self.epsilon, self.delta, self.rho))

    @property
    def facts(self) -> dict[str, Any]:
        """The fields of a quote, for the previews of each kind of release."""
        return {one.name: getattr(self, one.name) for one in fields(Quote)}


@dataclass(frozen=True, slots=True)
class Released(Generic[T]):
    """What a plan released, and what was charged for it: nothing, and no permit, if it was released before."""

    answer: T
    cost: Cost
    permit: Permit | None
