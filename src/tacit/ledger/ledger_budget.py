"""A scope of a durable ledger, with the methods of a budget in memory.

Nothing is cached here: every read returns the current state of the ledger, and the numbers of one report come from one
snapshot. `charge` reserves and commits at once, for callers that run the event right after.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile
from typing import TYPE_CHECKING

from tacit.accounting.conversions import Cost
from tacit.ledger.accounts import Measured
from tacit.ledger.amounts import Amounts
from tacit.ledger.answer_storage import StorageQuota
from tacit.ledger.budget import Budget, Report, Tally, left_of
from tacit.ledger.filters import Filter, filter_of
from tacit.ledger.journal import Record
from tacit.ledger.permits import Permit, Scope
from tacit.ledger.rows import ScopeRow
from tacit.privacy.errors import BudgetExceeded, UnknownName
from tacit.privacy.events import Event, from_dict
from tacit.privacy.units import Relation

if TYPE_CHECKING:
    from tacit.ledger.ledger import Ledger


class LedgerBudget(Budget):
    """The budget of a data set, of an analyst on it, or of one of its epochs, in a durable ledger."""

    def __init__(self, ledger: Ledger, scope: Scope) -> None:
        self._ledger = ledger
        self.scope = scope

    @property
    def name(self) -> str:
        return str(self.scope)

    def remaining(self, after: Event | None = None) -> Cost:
        """Return what would be admitted now, or once an event were charged, by this cap and by the data set's."""
        _, (here, whole) = self._ledger.rows_of(self.scope, Scope(self.scope.dataset))
        return _remaining(here, whole, after)

    def stated_delta_left(self) -> float:
        """Return the least that this cap and the data set's have left for events that state a delta."""
        return self._ledger.stated_delta_left(self.scope.dataset, analyst=self.payer, epochs=self._epochs)

    def report(self) -> Report:
        """Return a report of what was admitted so far, read in one snapshot."""
        head, (here, whole) = self._ledger.rows_of(self.scope, Scope(self.scope.dataset))
        records = takewhile(lambda record: record.number <= head.number, self._ledger.history())
        tally = tally_of(records, self.scope, here.cap.relation)
        spent = filter_of(here.cap).spent(here.totals)
        left, least = _remaining(here, whole), whole.epsilon_min
        return Report(self.name, here.cap, spent, left, tally.events, tally.unlisted, epsilon_min=least)

    def preview(self, event: Event) -> Cost:
        """Return what `charge` would charge the data set, and spend nothing."""
        return self._ledger.preview(self.scope.dataset, event, analyst=self.payer, epochs=self._epochs)

    def charge(self, event: Event, purpose: str = "") -> Permit:
        """Admit an event and charge it for good, or raise BudgetExceeded and charge nothing."""
        permit = self.reserve(event, purpose)
        self._ledger.commit(permit)
        return permit

    @property
    def is_durable(self) -> bool:
        return True

    def refusal(self, event: Event) -> BudgetExceeded | None:
        return self._ledger.refusal(self.scope.dataset, event, analyst=self.payer, epochs=self._epochs)

    @property
    def dataset(self) -> str:
        return self.scope.dataset

    @property
    def payer(self) -> str | None:
        return self.scope.name if self.scope.kind == "analyst" else None

    @property
    def _epochs(self) -> tuple[str, ...]:
        return (self.scope.name,) if self.scope.kind == "epoch" else ()

    @property
    def quota(self) -> StorageQuota | None:
        return self._ledger.quota

    def released(self, plan: str, data_version: str) -> bytes | None:
        return self._ledger.released(plan, data_version)

    def reserve(
        self,
        event: Event,
        purpose: str = "",
        *,
        key: str | None = None,
        plan: str | None = None,
        data_version: str | None = None,
        refundable: bool = False,
    ) -> Permit:
        """Admit an event and charge it, or raise BudgetExceeded and charge nothing."""
        return self._ledger.reserve(
            self.scope.dataset,
            event,
            analyst=self.payer,
            epochs=self._epochs,
            purpose=purpose,
            key=key,
            refundable=refundable,
            plan=plan,
            data_version=data_version,
        )

    def refund(self, permit: Permit | str, ran: Event | None) -> None:
        self._ledger.refund(permit, ran)

    def annotate(self, permit: Permit | str, text: str, *, before: str) -> None:
        self._ledger.annotate(permit, text, before=before)

    def open_notes(self) -> dict[str, str]:
        return self._ledger.open_notes(self.scope.dataset)

    def note(self, permit: Permit | str) -> str:
        """Return the last note of a release that this data set paid for; raise UnknownName for one of another."""
        if (paid := self._ledger.permit(permit)).dataset != self.scope.dataset:
            raise UnknownName(f"permit {paid.id} was charged to another data set than {self.scope.dataset}")
        return self._ledger.note(permit)

    def commit(
        self,
        permit: Permit | str,
        answer: bytes | None = None,
        plan: str | None = None,
        data_version: str | None = None,
        *,
        before: str | None = None,
    ) -> None:
        self._ledger.commit(permit, answer, plan, data_version, before=before)

    @property
    def epsilon_min(self) -> float:
        """The least epsilon that a release from the data set costs."""
        return self._ledger.row_of(Scope(self.scope.dataset)).epsilon_min

    @property
    def is_enforced(self) -> bool:
        """Whether the cap is checked at admission; that of a data set with a budget for each epoch is not."""
        return self._ledger.row_of(self.scope).is_enforced

    def _read(self) -> tuple[Filter, Amounts]:
        row = self._ledger.row_of(self.scope)
        return filter_of(row.cap), row.totals

    def _read_tally(self) -> Tally:
        return tally_of(self._ledger.history(), self.scope, self.cap.relation)


def _remaining(here: ScopeRow, whole: ScopeRow, after: Event | None = None) -> Cost:
    """Return what is left of a scope's cap, limited by what is left of its data set's."""
    left = left_of(filter_of(here.cap), here.totals, after)
    if here.scope == whole.scope or not whole.is_enforced:
        return left
    most = left_of(filter_of(whole.cap), whole.totals, after)
    return Cost(min(left.epsilon, most.epsilon), min(left.delta, most.delta), min(left.rho, most.rho))


def tally_of(records: Iterable[Record], scope: Scope, relation: Relation) -> Tally:
    """Count the events that a scope was charged for; of a plan that was stopped early, the part that was run."""
    tally, key = Tally(relation), scope.key
    plans: dict[str, Event] = {}
    for record in records:
        if record.kind == "reserved" and key in (body := record.contents)["charged"]:
            event = from_dict(body["event"])
            if body["is_plan"]:
                plans[body["permit"]] = event
            else:
                tally.add(Measured(event))
        elif record.kind == "refunded" and key in (body := record.contents)["returned"]:
            if body["ran"] is None:
                del plans[body["permit"]]
            else:
                plans[body["permit"]] = from_dict(body["ran"])
    for event in plans.values():
        tally.add(Measured(event))
    return tally
