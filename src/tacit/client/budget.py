"""A budget that is elsewhere: the methods of `tacit.Budget` that read, each asking the server anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tacit.accounting.bounds import Bound, Cost
from tacit.client.failures import understood
from tacit.client.values import cost_of, number_of
from tacit.ledger.caps import Cap
from tacit.privacy.errors import LedgerCorrupt, NotATacitServer

Read = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class RemoteReport:
    """What a budget has admitted so far and what that means; `str` says it in words."""

    scope: str
    spent: Cost
    remaining: Cost
    guaranteed: Cost
    events: Mapping[str, int]
    """What was admitted, in the notation of `tacit account`, equal events counted together."""
    unlisted: int
    bound: Bound | None
    meaning: str | None
    text: str

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> RemoteReport:
        """Read what the server answered."""
        with understood("the report"):
            bound = document["bound"]
            return cls(
                str(document["scope"]),
                cost_of(document["spent"]),
                cost_of(document["remaining"]),
                cost_of(document["guaranteed"]),
                {str(one["event"]): int(one["count"]) for one in document["events"]},
                int(document["unlisted"]),
                None
                if bound is None
                else Bound(number_of(bound["lower"]), number_of(bound["upper"]), str(bound["method"])),
                document["meaning"],
                str(document["text"]),
            )

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class BudgetState:
    """A budget as it was at a moment."""

    name: str
    dataset: str
    analyst: str | None
    epoch: str | None
    cap: Cap
    spent: Cost
    remaining: Cost
    epsilon_min: float
    is_enforced: bool

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> BudgetState:
        """Read what the server answered."""
        with understood("the budget"):
            return cls(
                str(document["scope"]),
                str(document["dataset"]),
                document["analyst"],
                document["epoch"],
                cap_of(document["cap"]),
                cost_of(document["spent"]),
                cost_of(document["remaining"]),
                float(document["epsilon_min"]),
                bool(document["is_enforced"]),
            )


class RemoteBudget:
    """The budget of a data set, of an analyst on it, or of one of its epochs, in the ledger of a server.

    What is read is what the ledger holds at that moment, whoever was charged in between.
    """

    def __init__(self, read: Read, report: Read, first: BudgetState | None = None) -> None:
        self._read, self._report = read, report
        known = self.state() if first is None else first
        self.name: Final = known.name
        """Whose budget this is, for people."""
        self.dataset: Final = known.dataset
        self.analyst: Final = known.analyst
        self.epoch: Final = known.epoch
        self.epsilon_min: Final = known.epsilon_min
        """The least epsilon that a release from the data set costs."""
        self.is_enforced: Final = known.is_enforced
        """Whether the cap is asked at admission; that of a data set with a budget for each epoch is not."""
        self.cap: Final = known.cap
        """How much may be lost, and by which filter it is counted."""

    def state(self) -> BudgetState:
        """Return all that is known of it now, from one moment."""
        return BudgetState.read(self._read())

    @property
    def epsilon(self) -> float:
        """The cap's epsilon."""
        return self.cap.epsilon

    @property
    def delta(self) -> float:
        """The cap's delta."""
        return self.cap.delta

    def spent(self) -> Cost:
        """Return what the charges so far come to; never above the cap, which is what is promised."""
        return self.state().spent

    def remaining(self) -> Cost:
        """Return the greatest pure epsilon that would be admitted now, and the delta and rho that are left."""
        return self.state().remaining

    def report(self) -> RemoteReport:
        """Return what was admitted so far and what it means; the server may take seconds to find that."""
        return RemoteReport.read(self._report())

    def __repr__(self) -> str:
        return f"RemoteBudget({self.name!r}, epsilon={self.epsilon:g}, delta={self.delta:g})"


def cap_of(document: Mapping[str, Any]) -> Cap:
    """Read a cap."""
    try:
        return Cap.from_dict({name: document[name] for name in ("delta", "epsilon", "filter", "order", "relation")})
    except LedgerCorrupt:
        raise NotATacitServer("the cap of a budget is not what this version of tacit reads") from None
