"""The durable ledger: every release is charged here before the data is touched.

    with Ledger.open("clinic") as ledger:
        ledger.create_budget("visits", epsilon=3.0, delta=1e-7)
        ledger.create_cap("visits", "ana", epsilon=1.0, delta=1e-8)
        permit = ledger.reserve("visits", events.Laplace(0.5), analyst="ana", purpose="visits by month")
        ...                                                  # run it: only now is the data touched
        ledger.commit(permit, answer, plan="SELECT ...", data_version="2024-05-01")

Promise: a permit is handed out only when every scope that it touches (the data set, the analyst, each epoch) has been
charged on disk, in one transaction. A crash afterwards leaves the charge in place: `reservations` lists what was never
committed. A ledger that does not verify admits nothing.

Not here: what an event costs (`accounts`), who may do what (the curator), and whether an answer is private
(mechanisms).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, Final, Unpack

from tacit.accounting.conversions import Cost
from tacit.ledger import administration, admission, kept_findings
from tacit.ledger.administration import Request
from tacit.ledger.admission import CapPrices, ChargeRequest
from tacit.ledger.answer_storage import ANSWER_BYTES_MAX, StorageQuota
from tacit.ledger.budget import measure
from tacit.ledger.caps import Cap, smallest_price
from tacit.ledger.filters import filter_of
from tacit.ledger.journal import Head
from tacit.ledger.kept_findings import KeptFinding
from tacit.ledger.ledger_budget import LedgerBudget
from tacit.ledger.permits import Permit, Reservation, Scope
from tacit.ledger.record_fields import document_of
from tacit.ledger.rows import ScopeRow
from tacit.ledger.stored_journal import NUMBER_MAX, JournalSettings, StoredJournal
from tacit.ledger.stores import Store
from tacit.ledger.transactions import LedgerTransaction
from tacit.privacy import texts
from tacit.privacy.arguments import instances
from tacit.privacy.errors import BudgetExceeded, EmptyInput, InvalidInput, TooLarge, WrongType
from tacit.privacy.events import CompoundEvent, Event, Pure
from tacit.privacy.numbers import exact, truth_value, whole
from tacit.privacy.units import Relation

EVENT_BYTES_MAX: Final = 2**20
CAPS_SEEN_MAX: Final = 10_000
CHARGED_MAX: Final = 1_000
"""How many analysts and groups, or epochs, one release can be charged to."""


class Ledger(StoredJournal):
    """Budgets, caps, epochs, permits, answers, requests and findings, in a folder or a database."""

    quota: StorageQuota | None = None
    """The limit on stored answers that is asked before a charge (`pipeline`); None for no limit."""

    def __init__(self, store: Store, **settings: Unpack[JournalSettings]) -> None:
        super().__init__(store, **settings)
        self._caps_seen: dict[Scope, Cap] = {}

    def create_budget(
        self,
        dataset: str,
        epsilon: object,
        delta: object = 0.0,
        *,
        filter: str | None = None,
        order: object = None,
        relation: Relation = Relation.ADD_REMOVE,
        per_epoch: bool = False,
        epsilon_min: object = None,
    ) -> LedgerBudget:
        """Set the cap of a data set, or replace it while nothing is charged; with `per_epoch` it holds for each epoch.

        `epsilon_min` is the least epsilon that a release costs, by default a ten-thousandth of the cap's.
        """
        name = texts.name("dataset", dataset)
        cap = _kept(Cap.of(epsilon, delta, filter=filter, order=order, relation=relation))
        each, least = truth_value("per_epoch", per_epoch), smallest_price(cap, epsilon_min)
        self._change(
            lambda transaction: administration.create_budget(transaction, name, cap, per_epoch=each, epsilon_min=least)
        )
        self._see({Scope(name): cap})
        return self.budget(name)

    def create_cap(
        self,
        dataset: str,
        analyst: str,
        epsilon: object,
        delta: object = 0.0,
        *,
        filter: str | None = None,
        order: object = None,
    ) -> LedgerBudget:
        """Set the cap of an analyst or a group, within the data set's."""
        name, who = texts.name("dataset", dataset), texts.name("analyst", analyst)
        cap = _within(self.row_of(Scope(name)).cap, epsilon, delta, filter, order)
        self._change(lambda transaction: administration.create_cap(transaction, name, who, cap))
        self._see({Scope(name, "analyst", who): cap})
        return self.budget(name, analyst=who)

    def create_caps(self, analyst: str, caps: Mapping[str, Cap]) -> None:
        """Set the caps of an analyst or a group on several data sets: all of them or none."""
        who = texts.name("analyst", analyst)
        named = _caps(caps)

        def create(transaction: LedgerTransaction) -> None:
            for dataset, cap in named.items():
                administration.create_cap(transaction, dataset, who, cap)

        self._change(create)

    def add_epoch(
        self,
        dataset: str,
        name: str,
        *,
        starts: date | None = None,
        ends: date | None = None,
        epsilon: object = None,
        delta: object = None,
    ) -> LedgerBudget:
        """Add an epoch from `starts` to before `ends`, with the data set's cap unless a smaller one is given."""
        outer, what = self.row_of(Scope(texts.name("dataset", dataset))).cap, texts.name("epoch", name)
        first, last = administration.epoch_bounds(starts, ends)
        own_epsilon, own_delta = outer.epsilon if epsilon is None else epsilon, outer.delta if delta is None else delta
        cap = _within(outer, own_epsilon, own_delta)
        self._change(lambda transaction: administration.add_epoch(transaction, dataset, what, cap, first, last))
        return self.budget(dataset, epoch=what)

    def scopes(self, dataset: str | None = None) -> list[Scope]:
        """Return the scopes that have a cap, of one data set or of all."""
        name = None if dataset is None else texts.name("dataset", dataset)
        return [row.scope for row in self._view(lambda transaction: transaction.rows.scopes(name))]

    def budget(self, dataset: str, *, analyst: str | None = None, epoch: str | None = None) -> LedgerBudget:
        """Return the budget of a data set, of an analyst on it, or of one of its epochs."""
        if analyst is not None and epoch is not None:
            raise InvalidInput("a budget is of an analyst or of an epoch; name one of them, not both", name="epoch")
        found = self.payer(dataset, analyst)
        if epoch is not None:
            found = LedgerBudget(self, Scope(found.scope.dataset, "epoch", texts.name("epoch", epoch)))
        self.row_of(found.scope)  # raises if there is no budget
        return found

    def payer(self, dataset: str, analyst: str | None = None) -> LedgerBudget:
        """Return the budget that a release is charged to: the analyst's on the data set, or the data set's own.

        Unlike `budget` it does not look the cap up; its methods raise NotPermitted for an analyst without one.
        """
        name = texts.name("dataset", dataset)
        if analyst is None:
            return LedgerBudget(self, Scope(name))
        return LedgerBudget(self, Scope(name, "analyst", texts.name("analyst", analyst)))

    def row_of(self, scope: Scope) -> ScopeRow:
        """Return the current cap and totals of a scope."""
        return self.rows_of(scope)[1][0]

    def rows_of(self, *scopes: Scope) -> tuple[Head, tuple[ScopeRow, ...]]:
        """Return the caps and totals of scopes in one snapshot, and where the journal ends in it."""
        for scope in scopes:
            if not isinstance(scope, Scope):
                raise WrongType(f"rows are read for a Scope, not for {type(scope).__name__}", name="scope", value=scope)

        def read(transaction: LedgerTransaction) -> tuple[Head, tuple[ScopeRow, ...]]:
            return transaction.rows.head(), tuple(map(transaction.scope, scopes))

        return self._view(read)

    def preview(
        self,
        dataset: str,
        event: Event,
        *,
        analyst: str | Sequence[str] | None = None,
        epochs: Sequence[str] = (),
        refundable: bool = False,
    ) -> Cost:
        """Return what `reserve` would charge the data set, and spend nothing."""
        prices = _prices(dataset, event, analyst, epochs, refundable=refundable)
        whole = self._view(lambda transaction: admission.scope_rows(transaction, prices.request))[0]
        return admission.charged_cost(whole, prices)

    def refusal(
        self, dataset: str, event: Event, *, analyst: str | Sequence[str] | None = None, epochs: Sequence[str] = ()
    ) -> BudgetExceeded | None:
        """Return what `reserve` would raise because too little is left, or None if the event fits; spends nothing."""
        prices = _prices(dataset, event, analyst, epochs)
        return admission.refusal_of(
            self._view(lambda transaction: admission.scope_rows(transaction, prices.request)), prices
        )

    def stated_delta_left(
        self, dataset: str, *, analyst: str | Sequence[str] | None = None, epochs: Sequence[str] = ()
    ) -> float:
        """Return the least that the caps of a charge have left for events that state a delta, as `Budget` does."""
        request = _prices(dataset, Pure(0.0), analyst, epochs).request
        rows = self._view(lambda transaction: admission.scope_rows(transaction, request))
        return min(filter_of(row.cap).stated_delta_left(row.totals) for row in rows if row.is_enforced)

    def reserve(
        self,
        dataset: str,
        event: Event,
        *,
        analyst: str | Sequence[str] | None = None,
        epochs: Sequence[str] = (),
        purpose: str = "",
        key: str | None = None,
        refundable: bool = False,
        plan: str | None = None,
        data_version: str | None = None,
    ) -> Permit:
        """Charge an event to the data set, each named analyst and each epoch, or raise and charge none.

        The same `key` with the same request gives the same permit and charges nothing again, until that permit is
        committed, refunded or annotated (AlreadySettled). `plan` and `data_version` are those of `commit`; name
        them with a key, so that the key cannot pay for another plan (KeyReused). A `refundable` event is charged step
        by step, and steps that are not run can be refunded (`refund`).
        """
        bound_to = _bound_to(plan, data_version)
        prices = _prices(dataset, event, analyst, epochs, bound_to, purpose, key, refundable=refundable)
        scopes = prices.request.scopes
        if not self._caps_seen.keys() >= set(scopes):
            self._see(
                self._change(lambda transaction: {row.scope: row.cap for row in transaction.known(scopes)}, scopes)
            )
        for scope in scopes:
            if (cap := self._caps_seen.get(scope)) is not None:
                prices.amounts(cap)  # found before the write lock is taken
        permit = self._change(lambda transaction: admission.reserve(transaction, prices, self._token), scopes)
        self._see(prices.caps)
        return permit

    def _see(self, caps: Mapping[Scope, Cap]) -> None:
        """Remember the caps of scopes, to price the next event before the write lock is taken."""
        if len(self._caps_seen) + len(caps) > CAPS_SEEN_MAX:
            self._caps_seen.clear()
        self._caps_seen.update(caps)

    def commit(
        self,
        permit: Permit | str,
        answer: bytes | None = None,
        plan: str | None = None,
        data_version: str | None = None,
        *,
        before: str | None = None,
    ) -> None:
        """Record that a run has ended; with a plan and a version of the data, store its answer for repetition.

        Commit before the answer is shown: a permit pays for one answer, and a second commit is refused (AlreadySettled)
        whatever its answer is. If two permits answer the same plan, the first answer is kept. With `before`, a permit
        whose last note (`annotate`) is another one is refused as well.
        """
        permit_id, (plan_sha256, version) = _permit_id(permit), _bound_to(plan, data_version)
        last = None if before is None else texts.note("before", before)
        if answer is not None:
            if not isinstance(answer, bytes):
                raise WrongType(f"an answer is kept as bytes, not {type(answer).__name__}", name="answer")
            if len(answer) > ANSWER_BYTES_MAX:
                raise TooLarge(f"an answer of at most {ANSWER_BYTES_MAX:,} bytes can be kept", name="answer")
        if plan is not None and answer is None:
            raise EmptyInput("a plan is stored with its answer; pass answer=, or leave plan= out", name="answer")
        self._change(lambda transaction: admission.commit(transaction, permit_id, answer, plan_sha256, version, last))

    def refund(self, permit: Permit | str, ran: Event | None) -> None:
        """Refund what a plan reserved for steps that were not run, once and before `commit`.

        `ran` is what was run; with None, which says that nothing was, every account gets all of it back.
        """
        permit_id, event = _permit_id(permit), None if ran is None else measure(ran).event
        reserved, caps = self._change(lambda transaction: admission.refundable(transaction, permit_id, event))
        returned = admission.refund_amounts(reserved, caps, event)
        self._change(lambda transaction: admission.refund(transaction, permit_id, event, returned))

    def annotate(self, permit: Permit | str, note: str, *, before: str | None = None) -> None:
        """Add a note to a reservation; it stays charged.

        With `before`, the note replaces that one and no other ("" for none): compare and set, so that of two writers at
        once the second is refused (AlreadySettled).
        """
        permit_id, text = _permit_id(permit), texts.note("note", note, required=True)
        last = None if before is None else texts.note("before", before)
        self._change(lambda transaction: admission.annotate(transaction, permit_id, text, last))

    def note(self, permit: Permit | str) -> str:
        """Return the last note of a permit (`annotate`), or an empty text."""
        permit_id = _permit_id(permit)
        return self._view(lambda transaction: transaction.permit(permit_id)[0].note)

    def reservations(self) -> list[Reservation]:
        """Return permits that were never committed, the oldest first: runs under way, and runs that died."""
        return self._view(admission.reservations)

    def open_notes(self, dataset: str) -> dict[str, str]:
        """Return the last notes of the permits of a data set that were never committed, by their ids."""
        name = texts.name("dataset", dataset)
        return self._view(lambda transaction: admission.open_notes(transaction, name))

    def released(self, plan: str, data_version: str) -> bytes | None:
        """Return the answer that was released for a plan on a version of the data, at no cost, or None."""
        digest, version = _plan_digest(plan), texts.name("data_version", data_version)
        return self._view(lambda transaction: admission.released(transaction, digest, version))

    def file_request(self, analyst: str, dataset: str, what: Event | Cost, reason: str) -> Request:
        """File a request to raise an analyst's cap by a cost, or by the cost of an event."""
        who, name = texts.name("analyst", analyst), texts.name("dataset", dataset)
        wanted, why = administration.requested(what), texts.note("reason", reason, required=True)
        cap = self._change(lambda transaction: administration.cap_row(transaction, who, name)).cap
        cost = administration.cost_of(wanted, cap)
        return self._change(
            lambda transaction: administration.file_request(transaction, who, name, cost, why, self._token)
        )

    def requests(self, *, only_open: bool = False) -> list[Request]:
        """Return requests, the oldest first."""
        only = truth_value("only_open", only_open)
        return self._view(lambda transaction: administration.list_requests(transaction, only_open=only))

    def decide(self, request: Request | str, granted: bool, by: str, note: str = "") -> Request:
        """Grant or decline a request; granting raises the analyst's cap, never above the data set's."""
        who, why, yes = texts.name("by", by), texts.note("note", note), truth_value("granted", granted)
        request_id = texts.name("request", request.id if isinstance(request, Request) else request)
        return self._change(lambda transaction: administration.decide(transaction, request_id, yes, who, why))

    def keep_finding(
        self, dataset: str, document: Mapping[str, Any], *, permit: Permit | str | None = None, by: str
    ) -> KeptFinding:
        """Keep what an attack found about a permit of a data set, or about the data set; it charges nothing.

        `document` is an object of JSON (`record_fields.document_of`). It stays in the journal and its exports for good:
        leave out what is about people.
        """
        name, who, found = texts.name("dataset", dataset), texts.name("by", by), document_of(document)
        permit_id = None if permit is None else _permit_id(permit)
        return self._change(
            lambda transaction: kept_findings.keep(transaction, name, found, permit_id, who, self._token)
        )

    def findings(
        self,
        dataset: str | Sequence[str] | None = None,
        permit: Permit | str | None = None,
        *,
        first: int = 1,
        limit: int | None = None,
    ) -> list[KeptFinding]:
        """Return the findings of one or several data sets, or of all, the oldest first; for one permit if it is named.

        `first` is the number of the record from which on they are returned, `limit` how many at most.
        """
        named = (dataset,) if isinstance(dataset, str) else dataset
        names = None
        if named is not None:
            listed = instances("dataset", named, str, "a name or a list of names")
            names = tuple(dict.fromkeys(texts.name("dataset", one) for one in listed))
        permit_id, start = None if permit is None else _permit_id(permit), min(whole("first", first), NUMBER_MAX)
        most = None if limit is None else whole("limit", limit)
        return self._view(lambda transaction: kept_findings.list_findings(transaction, names, permit_id, start, most))

    def finding(self, finding: str) -> KeptFinding:
        """Return a finding by its id."""
        finding_id = texts.name("finding", finding)
        return self._view(lambda transaction: kept_findings.find(transaction, finding_id))

    def permit(self, permit: Permit | str) -> Permit:
        """Return a permit by its id, with its event and what was charged for it."""
        permit_id = _permit_id(permit)
        return self._view(lambda transaction: admission.permit_of(transaction.permit(permit_id)[1]))


def _prices(
    dataset: str,
    event: Event,
    analyst: str | Sequence[str] | None,
    epochs: Sequence[str],
    bound_to: tuple[str | None, str | None] = (None, None),
    purpose: str = "",
    key: str | None = None,
    *,
    refundable: bool = False,
) -> CapPrices:
    """Check the arguments of a charge and return what prices it."""
    plain = measure(event).event
    if isinstance(plain, CompoundEvent) and len(plain.to_json()) > EVENT_BYTES_MAX:
        raise TooLarge(
            f"an event takes at most {EVENT_BYTES_MAX:,} bytes here; use Repeated for equal parts", name="event"
        )
    analysts = () if analyst is None else (analyst,) if isinstance(analyst, str) else analyst
    return CapPrices(
        ChargeRequest(
            texts.name("dataset", dataset),
            plain,
            _names("analyst", analysts),
            _names("epoch", (epochs,) if isinstance(epochs, str) else epochs),
            texts.note("purpose", purpose),
            None if key is None else texts.key(key),
            truth_value("refundable", refundable),
            *bound_to,
        )
    )


def _names(what: str, values: Sequence[str]) -> tuple[str, ...]:
    if isinstance(values, str | bytes) or not isinstance(values, Sequence):
        raise WrongType(f"{what} must be a name or a list of names, not {type(values).__name__}", name=what)
    if len(values) > CHARGED_MAX:
        raise TooLarge(f"a release is charged to at most {CHARGED_MAX:,} of a kind, not {len(values):,}", name=what)
    return tuple(dict.fromkeys(texts.name(what, value) for value in values))


def _caps(values: object) -> dict[str, Cap]:
    if not isinstance(values, Mapping) or not all(isinstance(cap, Cap) for cap in values.values()):
        raise WrongType("caps are a Cap for each data set, as in {name: Cap.of(epsilon)}", name="caps", value=values)
    return {texts.name("dataset", dataset): _kept(cap.checked) for dataset, cap in values.items()}


def _kept(cap: Cap) -> Cap:
    """Return a cap, or raise if no filter can keep it; computed before the write lock is taken."""
    return filter_of(cap).cap


def _within(whole: Cap, epsilon: object, delta: object, filter: str | None = None, order: object = None) -> Cap:
    """Return a cap within another one, with the same filter unless one is named."""
    if filter is None and order is None and whole.delta and exact("delta", delta):
        filter, order = whole.filter, whole.order
    return _kept(Cap.of(epsilon, delta, filter=filter, order=order, relation=whole.relation))


def _bound_to(plan: str | None, data_version: str | None) -> tuple[str | None, str | None]:
    """Return the digest of a plan and the version of its data, both or neither."""
    if (plan is None) != (data_version is None):
        raise EmptyInput("a plan and the version of its data go together; pass both or neither", name="plan")
    return (None, None) if plan is None else (_plan_digest(plan), texts.name("data_version", data_version))


def _plan_digest(plan: str) -> str:
    return hashlib.sha256(texts.plan(plan).encode()).hexdigest()


def _permit_id(permit: Permit | str) -> str:
    return texts.name("permit", permit.id if isinstance(permit, Permit) else permit)
