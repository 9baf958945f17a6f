"""A scope of a durable ledger, with the methods of a budget in memory.

What is read is what the ledger holds at that moment, whoever wrote it. `charge` reserves and commits at once, for
callers who run the event themselves right after.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tacit.accounting.bounds import Cost
from tacit.ledger.accounts import Measured
from tacit.ledger.amounts import Amounts
from tacit.ledger.budget import Budget
from tacit.ledger.filters import Filter, filter_of
from tacit.ledger.journal import Record
from tacit.ledger.permits import Permit, Scope
from tacit.ledger.reports import Tally
from tacit.privacy.events import Event, from_dict
from tacit.privacy.relations import Relation

if TYPE_CHECKING:
    from tacit.ledger.ledger import Ledger


class LedgerBudget(Budget):
    """The budget of a data set, of an analyst on it, or of one of its epochs, in a durable ledger."""

    def __init__(self, ledger: Ledger, scope: Scope) -> None:
        self._ledger = ledger
        self.scope = scope
        cap = ledger.row_of(scope).cap
        super().__init__(cap.epsilon, cap.delta, filter=cap.filter, order=cap.order, relation=cap.relation)

    @property
    def name(self) -> str:
        return str(self.scope)

    def remaining(self) -> Cost:
        """Return what would be admitted now, here and by the data set's own cap."""
        here = super().remaining()
        whole = self._ledger.budget(self.scope.dataset)
        if self.scope.kind == "dataset" or not whole.is_enforced:
            return here
        left = whole.remaining()
        return Cost(min(here.epsilon, left.epsilon), min(here.delta, left.delta), min(here.rho, left.rho))

    def charge(self, event: Event, purpose: str = "") -> Permit:
        """Admit an event and charge it for good, or raise BudgetExceeded and charge nothing."""
        analyst = self.scope.name if self.scope.kind == "analyst" else None
        epochs = (self.scope.name,) if self.scope.kind == "epoch" else ()
        permit = self._ledger.reserve(self.scope.dataset, event, analyst=analyst, epochs=epochs, purpose=purpose)
        self._ledger.commit(permit)
        return permit

    @property
    def is_enforced(self) -> bool:
        """Whether the cap is asked at admission; that of a data set with a budget for each epoch is not."""
        return self._ledger.row_of(self.scope).is_enforced

    def _read(self) -> tuple[Filter, Amounts]:
        row = self._ledger.row_of(self.scope)
        self._filter = filter_of(row.cap)  # a cap may have been raised meanwhile
        return self._filter, row.totals

    def _counted(self) -> Tally:
        return tally_of(self._ledger.history(), self.scope, self.cap.relation)


def tally_of(records: Iterable[Record], scope: Scope, relation: Relation) -> Tally:
    """Count what a scope was charged for; of a plan that was stopped early, what was run."""
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
            plans[body["permit"]] = from_dict(body["ran"])
    for event in plans.values():
        tally.add(Measured(event))
    return tally
