"""A budget in memory: the filter, its totals, and nothing else.

    budget = Budget(epsilon=1.0, delta=1e-6)
    permit = budget.charge(events.Laplace(0.1), purpose="ages")     # or BudgetExceeded, and nothing is spent
    budget.spent(), budget.remaining()

Promise: admission takes the same time after a hundred thousand charges as after one, the price does not depend on
their order, and threads may share the object. It is gone when the process ends; what must outlive it belongs into a
`Ledger`, whose budgets have the same methods.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from threading import Lock

from tacit.accounting.bounds import Cost
from tacit.accounting.meaning import delta_warning
from tacit.ledger.accounts import Measured
from tacit.ledger.amounts import Amounts, charged
from tacit.ledger.caps import Cap
from tacit.ledger.filters import Filter, filter_of
from tacit.ledger.permits import Permit
from tacit.ledger.refusals import not_priced, refusal
from tacit.ledger.reports import Report, Tally
from tacit.privacy.errors import AlreadySettled, BudgetExceeded, UnknownName, WrongType
from tacit.privacy.events import Event, exact_event, named_instead
from tacit.privacy.numbers import whole
from tacit.privacy.relations import Relation
from tacit.privacy.texts import name, note


class Budget:
    """A cap in (epsilon, delta), its filter named now, and what was charged to it."""

    def __init__(
        self,
        epsilon: object,
        delta: object = 0.0,
        *,
        filter: str | None = None,
        order: object = None,
        relation: Relation = Relation.ADD_REMOVE,
    ) -> None:
        self._filter: Filter = filter_of(Cap.of(epsilon, delta, filter=filter, order=order, relation=relation))
        self._totals: Amounts = self._filter.nothing
        self._tally = Tally(self._filter.cap.relation)
        self._lock = Lock()
        self._notes: dict[str, str] = {}

    @property
    def cap(self) -> Cap:
        """How much may be lost, and by which filter it is counted."""
        return self._read()[0].cap

    @property
    def name(self) -> str:
        """Whose budget this is, for people; empty for one that stands alone."""
        return ""

    @property
    def epsilon(self) -> float:
        """The cap's epsilon."""
        return self.cap.epsilon

    @property
    def delta(self) -> float:
        """The cap's delta."""
        return self.cap.delta

    @property
    def epsilon_min(self) -> float:
        """The least epsilon that a release costs; in memory there is none."""
        return 0.0

    @property
    def events(self) -> Mapping[Event, int]:
        """What was admitted, equal events counted together."""
        return self._counted().events

    def spent(self) -> Cost:
        """Return what the charges so far come to; never above the cap, which is what is promised."""
        filter_, totals = self._read()
        return filter_.spent(totals)

    def remaining(self) -> Cost:
        """Return the greatest pure epsilon that would be admitted now, and the delta and rho that are left."""
        filter_, totals = self._read()
        return filter_.remaining(totals)

    def preview(self, event: Event) -> Cost:
        """Return what `charge` would charge, and spend nothing."""
        filter_, _ = self._read()
        measured = measure(event)
        return filter_.cost(measured, filter_.price(measured))

    def charge(self, event: Event, purpose: str = "") -> Permit:
        """Admit an event and charge it, or raise BudgetExceeded and charge nothing."""
        measured, why = measure(event), note("purpose", purpose)
        amounts = self._filter.price(measured)
        cost = self._filter.cost(measured, amounts)
        with self._lock:
            if not self._filter.admits(self._totals, amounts):
                raise refused(self._filter, self._totals, measured, amounts, self.name)
            self._totals = charged(self._totals, amounts)
            self._tally.add(measured)
        return Permit(secrets.token_hex(16), measured.event, cost, datetime.now(UTC), purpose=why)

    @property
    def is_durable(self) -> bool:
        """Whether what is charged and noted outlives this process."""
        return False

    def reserve(self, event: Event, purpose: str = "") -> Permit:
        """Admit an event that is released in steps and charge all of it; `annotate` notes how far it came."""
        permit = self.charge(event, purpose)
        with self._lock:
            self._notes[permit.id] = ""
        return permit

    def annotate(self, permit: Permit | str, text: str, *, before: str) -> None:
        """Note how far a reserved release came, if `before` is what was noted last; otherwise AlreadySettled."""
        permit_id, kept, last = _permit_id(permit), note("note", text, required=True), note("before", before)
        with self._lock:
            if self._noted(permit_id) != last:
                raise AlreadySettled(f"permit {permit_id} was annotated otherwise meanwhile", name="permit")
            self._notes[permit_id] = kept

    def note(self, permit: Permit | str) -> str:
        """Return what was noted last of a reserved release, or nothing."""
        with self._lock:
            return self._noted(_permit_id(permit))

    def commit(self, permit: Permit | str) -> None:
        """Note that a reserved release came to its end; in memory nothing has to be kept of that."""
        self.note(permit)

    def _noted(self, permit_id: str) -> str:
        found = self._notes.get(permit_id)
        if found is None:
            raise UnknownName(
                "this budget gave no such permit; it may have been given by another process", name="permit"
            )
        return found

    def report(self) -> Report:
        """Return what was admitted so far and what it means."""
        with self._lock:
            totals, tally = self._totals, self._tally.copy()
        spent, remaining = self._filter.spent(totals), self._filter.remaining(totals)
        return Report(self.name, self.cap, spent, remaining, tally.events, tally.unlisted)

    def warnings(self, units: int | None = None) -> tuple[str, ...]:
        """Return what is doubtful about the cap, given how many units the data hold, if that is public."""
        found, cap = [], self.cap
        if cap.epsilon > 10:
            found.append(f"epsilon {cap.epsilon:g} lets an attacker be all but certain about a unit; 1 is usual")
        if units is not None:
            warning = delta_warning(cap.delta, whole("units", units))
            found += [warning] if warning else []
        return tuple(found)

    def _read(self) -> tuple[Filter, Amounts]:
        """Return the filter and the totals as they are now."""
        return self._filter, self._totals

    def _counted(self) -> Tally:
        """Return what was admitted, as it is now."""
        with self._lock:
            return self._tally.copy()

    def __repr__(self) -> str:
        cap = self.cap
        return f"Budget(epsilon={cap.epsilon:g}, delta={cap.delta:g}, filter={cap.filter!r})"


def _permit_id(permit: Permit | str) -> str:
    return name("permit", permit.id if isinstance(permit, Permit) else permit)


def measure(event: object) -> Measured:
    """Return an event ready to be priced, or refuse what is none."""
    if not isinstance(event, Event):
        raise WrongType(f"what is charged is an event, not {named_instead(event)}", name="event", value=event)
    return Measured(exact_event(event))


def refused(filter: Filter, totals: Amounts, measured: Measured, amounts: Amounts, scope: str) -> BudgetExceeded:
    """Return the error that says why a filter does not admit an event."""
    asked, remaining = filter.cost(measured, amounts), filter.remaining(totals)
    if all(amount is None for amount in amounts):
        return not_priced(measured.event, asked, remaining, scope, filter.cap.filter)
    return refusal(asked, remaining, scope)
