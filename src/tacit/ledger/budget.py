"""A budget in memory, and reports of what it admitted.

    budget = Budget(epsilon=1.0, delta=1e-6)
    permit = budget.charge(events.Laplace(0.1), purpose="ages")     # or BudgetExceeded, and nothing is spent
    budget.spent(), budget.remaining()

Promise: the time of an admission and the size of the object do not grow with the number of charges, prices do not
depend on their order, and threads may share the object. A forked process cannot change it, since it would spend it
beside its parent. It ends with the process; budgets that must outlive it belong into a `Ledger`, whose budgets have the
same methods.

A report has three readings of what was admitted:

    guaranteed   the cap: kept by the filter whatever was asked, in whatever order, whenever the run stops
    bound        by loss distributions (PLD), from below and above; valid if parameters did not depend on answers
    meaning      what an attacker gains, under the same condition as the bound

Only the first decides an admission. The other two are computed when they are first read, may take seconds, and are None
where they cannot be computed.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Lock
from typing import Any, Final, Self, TypeVar

import numpy as np

from tacit.accounting import Meaning, epsilon, meaning
from tacit.accounting.conversions import Bound, Cost
from tacit.accounting.meaning import delta_warning
from tacit.ledger.accounts import FAILURES, Measured, steps
from tacit.ledger.amounts import (
    Amounts,
    add_amounts,
    add_charge,
    ceil_float,
    ceil_units,
    subtract_amounts,
)
from tacit.ledger.answer_storage import StorageQuota
from tacit.ledger.caps import Cap
from tacit.ledger.filters import Filter, filter_of
from tacit.ledger.permits import Permit, Scope
from tacit.ledger.refusals import not_priced, refusal
from tacit.privacy.arguments import mapping
from tacit.privacy.errors import AlreadySettled, BudgetExceeded, EmptyInput, InvalidInput, UnknownName, WrongType
from tacit.privacy.events import (
    Composed,
    Converted,
    Event,
    Repeated,
    ZeroConcentrated,
    canonical_event,
    describe_non_event,
)
from tacit.privacy.figures import at_most
from tacit.privacy.numbers import whole
from tacit.privacy.texts import name, note
from tacit.privacy.units import Relation

Computed = TypeVar("Computed")

DELTA_WARNED: Final = 1e-3
"""From this delta on a budget is warned of: one person in a thousand could be shown whole within the promise."""

DISTINCT_MAX: Final = 1024
"""How many distinct events are counted one by one; the rest is kept as its total rho."""

LABELS: Final = {
    "guaranteed": "guaranteed by the filter for any adaptive sequence of releases",
    "bound": "valid if parameters did not depend on answers",
    "meaning": "an attacker's best, valid if parameters did not depend on answers",
}


class Tally:
    """Admitted events, equal ones counted together; its size does not grow with the number of admissions."""

    def __init__(self, relation: Relation) -> None:
        self._relation = relation
        self._counts: dict[Event, int] = {}
        self._rho_units = 0
        self.unlisted = 0
        """How many events are in no entry of `events`, because they have no rho to add."""

    def add(self, measured: Measured, count: int = 1) -> None:
        """Count an event."""
        event = measured.event
        if event in self._counts or len(self._counts) < DISTINCT_MAX:
            self._counts[event] = self._counts.get(event, 0) + count
            return
        rho, delta = measured.concentrated
        units = ceil_units(rho)
        if units is None or delta:
            self.unlisted += count
        else:
            self._rho_units += count * units

    def remove(self, measured: Measured) -> None:
        """Forget an event that was added and not run, if it is listed."""
        left = self._counts.pop(measured.event, 0) - 1
        if left > 0:
            self._counts[measured.event] = left

    def copy(self) -> Tally:
        """Return a copy, to be read while other threads go on counting."""
        other = Tally(self._relation)
        other._counts, other._rho_units, other.unlisted = dict(self._counts), self._rho_units, self.unlisted
        return other

    @property
    def events(self) -> dict[Event, int]:
        """Events with how often each was admitted; beyond the limit, one event with the total rho of the rest."""
        if not self._rho_units:
            return dict(self._counts)
        return {**self._counts, ZeroConcentrated(ceil_float(self._rho_units), under=self._relation): 1}


@dataclass(frozen=True)
class Report:
    """What a budget has admitted so far, and three readings of it (see the module)."""

    scope: str
    cap: Cap
    spent: Cost
    remaining: Cost
    events: Mapping[Event, int]
    unlisted: int
    epsilon_min: float = 0.0
    """The least epsilon that a release costs."""
    _computed: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def guaranteed(self) -> Cost:
        """The cap, which the filter keeps whenever the run stops."""
        return Cost(self.cap.epsilon, self.cap.delta, self.spent.rho)

    @property
    def event(self) -> Event | None:
        """All admitted events as one, or None if there are none or some are unlisted."""
        if self.unlisted or not self.events:
            return None
        parts = [Repeated(event, count) if count > 1 else event for event, count in self.events.items()]
        return Composed(tuple(parts))

    @property
    def bound(self) -> Bound | None:
        """Lower and upper bound on epsilon at the cap's delta; valid if parameters did not depend on answers."""
        return self._once("bound", lambda whole: epsilon(whole, self.cap.delta))

    @property
    def meaning(self) -> Meaning | None:
        """What an attacker gains; valid if parameters did not depend on answers."""
        return self._once("meaning", lambda whole: meaning(whole, self.cap.delta))

    def _once(self, name: str, compute: Callable[[Event], Computed]) -> Computed | None:
        if name not in self._computed:
            whole = self.event
            self._computed[name] = None if whole is None else _or_none(lambda: compute(whole))
        computed: Computed | None = self._computed[name]
        return computed

    def __str__(self) -> str:
        at_delta = f"at delta {self.cap.delta:g}"
        lines = [f"epsilon {self.cap.epsilon:g} {at_delta}: {LABELS['guaranteed']}"]
        if self.epsilon_min:
            lines.append(f"a release costs at least epsilon {at_most(self.epsilon_min, 4)}")
        if self.bound is not None:
            lower, upper, _ = self.bound
            lines.append(f"epsilon between {lower:.4g} and {upper:.4g} {at_delta}: {LABELS['bound']}")
        known = self.meaning
        if known is not None and (sentence := _or_none(lambda: known.sentence)) is not None:
            lines.append(f"{sentence} ({LABELS['meaning']})")
        return "\n".join(lines)


def _or_none(compute: Callable[[], Computed]) -> Computed | None:
    """Return the result, or None where arithmetic fails."""
    try:
        with np.errstate(all="ignore"):
            return compute()
    except FAILURES:
        return None


class Budget:
    """A cap in (epsilon, delta) with its filter, and the total of what was charged to it."""

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
        self._refundable: dict[str, Measured] = {}
        self._process = os.getpid()

    def __deepcopy__(self, _memo: object) -> Self:
        """Return the budget itself: what copies of its holder spend, such as clones of an estimator, is added up."""
        return self

    def __copy__(self) -> Self:
        """Return the budget itself, as a deep copy is."""
        return self

    def __reduce__(self) -> Any:
        """Raise: a copy in another process would spend what is not added up."""
        raise WrongType(
            "a budget in memory cannot be pickled, since copies would each spend it; keep a fitted estimator with "
            "to_document(), and use n_jobs=1 in searches",
            name="budget",
        )

    @property
    def cap(self) -> Cap:
        """The cap and its filter."""
        return self._read()[0].cap

    @property
    def name(self) -> str:
        """The scope of the budget, for messages; empty for one in memory."""
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
        """Admitted events, each with its number of admissions."""
        return self._read_tally().events

    def spent(self) -> Cost:
        """Return the total of the charges so far; never above the cap."""
        filter_, totals = self._read()
        return filter_.spent(totals)

    def remaining(self, after: Event | None = None) -> Cost:
        """Return the greatest pure epsilon, up to the cap's, that would be admitted, and what is left of delta and rho.

        With `after`, once that event were charged: epsilon falls by more than the event's own where its delta uses up
        what the plain sum has for deltas. Where delta is large beside a small epsilon, a pure epsilon above the cap's
        may be admitted as well, as a rho.
        """
        filter_, totals = self._read()
        return left_of(filter_, totals, after)

    def stated_delta_left(self) -> float:
        """Return what is left of the tenth of delta for events that state one; infinity where they cost no delta.

        They cost none once the plain sum is exceeded, which alone counts them (`Filter.stated_delta_left`).
        """
        filter_, totals = self._read()
        return filter_.stated_delta_left(totals)

    def preview(self, event: Event) -> Cost:
        """Return what `charge` would charge, and spend nothing."""
        filter_, _ = self._read()
        measured = measure(event)
        return filter_.cost(measured, filter_.price(measured))

    def refusal(self, event: Event) -> BudgetExceeded | None:
        """Return what `charge` would raise because too little is left, or None if the event fits; spends nothing."""
        filter_, totals = self._read()
        measured = measure(event)
        amounts = filter_.price(measured)
        return None if filter_.admits(totals, amounts) else refusal_for(filter_, totals, measured, amounts, self.name)

    def charge(self, event: Event, purpose: str = "") -> Permit:
        """Admit an event and charge it, or raise BudgetExceeded and charge nothing."""
        self._require_own()
        measured, why = measure(event), note("purpose", purpose)
        amounts = self._filter.price(measured)
        cost = self._filter.cost(measured, amounts)
        with self._lock:
            if not self._filter.admits(self._totals, amounts):
                raise refusal_for(self._filter, self._totals, measured, amounts, self.name)
            self._totals = add_charge(self._totals, amounts)
            self._tally.add(measured)
        return Permit(secrets.token_hex(16), measured.event, cost, datetime.now(UTC), purpose=why)

    @property
    def is_durable(self) -> bool:
        """Whether charges and notes outlive this process."""
        return False

    @property
    def dataset(self) -> str:
        """The data set of the budget; empty for one in memory."""
        return ""

    @property
    def payer(self) -> str | None:
        """The analyst whose cap is charged beside the data set's, if there is one."""
        return None

    @property
    def quota(self) -> StorageQuota | None:
        """The limit on stored answers; in memory none are stored."""
        return None

    def released(self, plan: str, data_version: str) -> bytes | None:
        """Return the answer that was released for a plan on a version of the data; in memory none is stored."""
        return None

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
        """Charge an event before it is run; `commit` records its end, `annotate` its progress.

        `key`, `plan` and `data_version` are as for `Ledger.reserve`; a budget in memory keeps no keys. With
        `refundable` a ledger charges the event step by step where its filter does, for `refund`.
        """
        if key is not None:
            raise InvalidInput("a budget in memory keeps no keys; leave key= out, or use a ledger's", name="key")
        permit = self.charge(event, purpose)
        with self._lock:
            self._notes[permit.id] = ""
            if refundable is True:
                self._refundable[permit.id] = measure(permit.event)
        return permit

    def refund(self, permit: Permit | str, ran: Event | None) -> None:
        """Refund the steps of a refundable event that were not run, as `Ledger.refund`.

        In memory the whole event is refunded if none was run, and nothing else; nobody goes on with its note.
        """
        self._require_own()
        permit_id = _permit_id(permit)
        with self._lock:
            if ran is not None or (measured := self._refundable.pop(permit_id, None)) is None:
                return
            self._notes[permit_id] = "refunded"
            self._totals = subtract_amounts(self._totals, self._filter.price(measured))
            self._tally.remove(measured)

    def annotate(self, permit: Permit | str, text: str, *, before: str) -> None:
        """Set the note of a reserved release if `before` is its last note; otherwise raise AlreadySettled."""
        self._require_own()
        permit_id, kept, last = _permit_id(permit), note("note", text, required=True), note("before", before)
        with self._lock:
            if self._last_note(permit_id) != last:
                raise AlreadySettled(
                    f"permit {permit_id} was annotated meanwhile; read its note and try again", name="permit"
                )
            self._notes[permit_id] = kept

    def open_notes(self) -> dict[str, str]:
        """Return the last notes of the data set's reserved releases by permit; in memory there is no data set."""
        return {}

    def note(self, permit: Permit | str) -> str:
        """Return the last note of a reserved release, or an empty text."""
        with self._lock:
            return self._last_note(_permit_id(permit))

    def commit(
        self,
        permit: Permit | str,
        answer: bytes | None = None,
        plan: str | None = None,
        data_version: str | None = None,
        *,
        before: str | None = None,
    ) -> None:
        """Record that a reserved release has ended; the arguments are as for `Ledger.commit`, which stores answers.

        In memory a permit without a note is forgotten.
        """
        self._require_own()
        permit_id, last = _permit_id(permit), None if before is None else note("before", before)
        with self._lock:
            noted = self._last_note(permit_id)
            if last is not None and noted != last:
                raise AlreadySettled(
                    f"permit {permit_id} was annotated meanwhile; read its note and try again", name="permit"
                )
            self._refundable.pop(permit_id, None)
            if not noted:
                del self._notes[permit_id]

    def _require_own(self) -> None:
        """Raise in a forked process, whose copy of the budget would be spent beside its parent's."""
        if os.getpid() != self._process:
            why = "this budget in memory is that of another process, from which this one was forked"
            raise InvalidInput(f"{why}; processes share a budget in a ledger: tacit.ledger.Ledger.open(folder)")

    def _last_note(self, permit_id: str) -> str:
        found = self._notes.get(permit_id)
        if found is None:
            raise UnknownName(
                "this budget gave no such permit; it may have been given by another process", name="permit"
            )
        return found

    def report(self) -> Report:
        """Return a report of what was admitted so far."""
        with self._lock:
            totals, tally = self._totals, self._tally.copy()
        spent, remaining = self._filter.spent(totals), self._filter.remaining(totals)
        return Report(self.name, self.cap, spent, remaining, tally.events, tally.unlisted)

    def warnings(self, units: int | None = None) -> tuple[str, ...]:
        """Return warnings about the cap, given the number of units in the data if that is public."""
        found, cap = [], self.cap
        if cap.epsilon > 10:
            found.append(f"epsilon {cap.epsilon:g} lets an attacker be nearly certain about a unit; 1 is usual")
        warning = None if units is None else delta_warning(cap.delta, whole("units", units))
        if warning is None and cap.delta >= DELTA_WARNED:
            warning = (
                f"delta {cap.delta:g} is the probability with which everything about a unit may be shown; choose it "
                "well below 1 / number of people, such as 1e-7"
            )
        return tuple(found + ([warning] if warning else []))

    def _read(self) -> tuple[Filter, Amounts]:
        """Return the filter and the current totals."""
        return self._filter, self._totals

    def _read_tally(self) -> Tally:
        """Return the current counts of admitted events."""
        with self._lock:
            return self._tally.copy()

    def __repr__(self) -> str:
        cap = self.cap
        return f"Budget(epsilon={cap.epsilon:g}, delta={cap.delta:g}, filter={cap.filter!r})"


def _permit_id(permit: Permit | str) -> str:
    return name("permit", permit.id if isinstance(permit, Permit) else permit)


def measure(event: object) -> Measured:
    """Check an event and return it ready to be priced."""
    if not isinstance(event, Event):
        raise WrongType(f"only an event can be charged, not {describe_non_event(event)}", name="event", value=event)
    return Measured(canonical_event(event))


def left_of(filter: Filter, totals: Amounts, after: Event | None) -> Cost:
    """Return what a filter still admits with these totals, or once an event were charged too."""
    return filter.remaining(totals if after is None else add_amounts(totals, filter.price(measure(after))))


def refusal_for(
    filter: Filter, totals: Amounts, measured: Measured, amounts: Amounts, scope: Scope | str, to_delta: str = ""
) -> BudgetExceeded:
    """Return the error for an event that a filter does not admit."""
    asked, remaining = filter.cost(measured, amounts), filter.remaining(totals)
    if all(amount is None for amount in amounts):
        return not_priced(measured.event, asked, remaining, scope, filter.cap.filter, to_delta)
    stated = any(isinstance(step, Converted) for step in steps(measured.event))
    left = (filter.sum_left(totals), filter.stated_delta_left(totals)) if stated else None
    has_price = not stated or filter.has_open_price(totals, amounts)
    return refusal(asked, remaining, scope, to_delta, sum_left=left, is_pure=not filter.cap.delta, has_price=has_price)


def check_analyst_budgets(name: str, budgets: Mapping[str, Budget]) -> Mapping[str, Budget]:
    """Return the budgets of an analyst, or raise unless there is a Budget for at least one data set."""
    if not mapping("budgets", budgets, "a Budget for each data set"):
        raise EmptyInput("an analyst needs a budget on at least one data set", name="budgets")
    for dataset, budget in budgets.items():
        if not isinstance(budget, Budget):
            raise WrongType(f"the budget of {name} on {dataset} must be a Budget", name="budgets", value=budget)
    return budgets
