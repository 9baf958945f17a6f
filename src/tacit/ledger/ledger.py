"""The durable ledger: everything that leaves is charged here first.

    with Ledger.open("clinic") as ledger:
        ledger.create_budget("visits", epsilon=3.0, delta=1e-7)
        ledger.create_cap("visits", "ana", epsilon=1.0, delta=1e-8)
        permit = ledger.reserve("visits", events.Laplace(0.5), analyst="ana", purpose="visits by month")
        ...                                                  # run it: only now is the data touched
        ledger.commit(permit, answer, plan="SELECT ...", data_version="2024-05-01")

Promise: a permit is handed out only when every scope that it touches (the data set, the analyst, each epoch) has been
charged on disk, in one transaction. Whatever dies afterwards, the charge stands: `reservations` lists what was never
committed. A ledger that does not verify admits nothing.

Not here: what an event costs (accounts), who may do what (the curator), and whether an answer is private (mechanisms).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Final

from tacit.accounting.conversions import Cost
from tacit.ledger import administration, admission
from tacit.ledger.administration import Request
from tacit.ledger.admission import Ask, CapPrices
from tacit.ledger.book import Book, Token, system_token
from tacit.ledger.budget import measure
from tacit.ledger.caps import Cap, smallest_price
from tacit.ledger.filters import filter_of
from tacit.ledger.journal import Head, Record
from tacit.ledger.permits import ANSWER_BYTES_MAX, Permit, Reservation, Scope, StorageQuota
from tacit.ledger.refusals import no_budget
from tacit.ledger.rows import ScopeRow
from tacit.ledger.stores import Store
from tacit.ledger.transactions import Clock, LedgerTransaction, system_clock
from tacit.ledger.views import LedgerBudget
from tacit.privacy import texts
from tacit.privacy.errors import BudgetExceeded, EmptyInput, InvalidInput, TooLarge, WrongType
from tacit.privacy.events import CompoundEvent, Event
from tacit.privacy.numbers import exact, truth_value, whole
from tacit.privacy.units import Relation

EVENT_BYTES_MAX: Final = 2**20
CAPS_SEEN_MAX: Final = 10_000
CHARGED_MAX: Final = 1_000
"""How many analysts and groups, or epochs, one release can be charged to."""
NUMBER_MAX: Final = 2**62
"""Beyond the number of any record, and within what databases count."""


class Ledger(Book):
    """Budgets, caps, epochs, permits, answers and requests, in a folder or a database."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock = system_clock,
        token: Token = system_token,
        anchor: Path | str | None = None,
    ) -> None:
        super().__init__(store, clock=clock, token=token, anchor=anchor)
        self._caps_seen: dict[Scope, Cap] = {}
        self.quota: StorageQuota | None = None
        """Who is asked before a charge whether its answer may be stored (`pipeline`); without one, all may."""

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
        """Give a data set its cap, or another one while nothing is charged; with `per_epoch` each epoch has it.

        `epsilon_min` is the least epsilon that a release costs, a ten-thousandth of the cap's unless it is said.
        """
        name = texts.name("dataset", dataset)
        cap = _kept(Cap.of(epsilon, delta, filter=filter, order=order, relation=relation))
        each, least = truth_value("per_epoch", per_epoch), smallest_price(cap, epsilon_min)
        self._change(lambda work: administration.create_budget(work, name, cap, per_epoch=each, epsilon_min=least))
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
        """Give an analyst, or a group, a cap within the data set's."""
        name, who = texts.name("dataset", dataset), texts.name("analyst", analyst)
        cap = _within(self.row_of(Scope(name)).cap, epsilon, delta, filter, order)
        self._change(lambda work: administration.create_cap(work, name, who, cap))
        self._see({Scope(name, "analyst", who): cap})
        return self.budget(name, analyst=who)

    def create_caps(self, analyst: str, caps: Mapping[str, Cap]) -> None:
        """Give an analyst, or a group, caps on several data sets: all of them or none."""
        who = texts.name("analyst", analyst)
        named = _caps(caps)

        def create(work: LedgerTransaction) -> None:
            for dataset, cap in named.items():
                administration.create_cap(work, dataset, who, cap)

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
        """Add a stretch of time from `starts` up to `ends`, with the data set's cap unless a smaller one is given."""
        outer, what = self.row_of(Scope(texts.name("dataset", dataset))).cap, texts.name("epoch", name)
        first, last = administration.stretch(starts, ends)
        own_epsilon, own_delta = outer.epsilon if epsilon is None else epsilon, outer.delta if delta is None else delta
        cap = _within(outer, own_epsilon, own_delta)
        self._change(lambda work: administration.add_epoch(work, dataset, what, cap, first, last))
        return self.budget(dataset, epoch=what)

    def scopes(self, dataset: str | None = None) -> list[Scope]:
        """Return everything that has a cap, of one data set or of all."""
        name = None if dataset is None else texts.name("dataset", dataset)
        return [row.scope for row in self._view(lambda work: work.rows.scopes(name))]

    def budget(self, dataset: str, *, analyst: str | None = None, epoch: str | None = None) -> LedgerBudget:
        """Return the budget of a data set, of an analyst on it, or of one of its epochs."""
        if analyst is not None and epoch is not None:
            raise InvalidInput("a budget is of an analyst or of an epoch; name one of them, not both", name="epoch")
        found = self.account(dataset, analyst)
        if epoch is not None:
            found = LedgerBudget(self, Scope(found.scope.dataset, "epoch", texts.name("epoch", epoch)))
        self.row_of(found.scope)  # refuses what has no budget
        return found

    def account(self, dataset: str, analyst: str | None = None) -> LedgerBudget:
        """Return whom a release is charged to: the analyst within the data set, or the data set alone.

        Unlike `budget` it looks nothing up: what is charged or previewed there refuses an analyst without a cap.
        """
        name = texts.name("dataset", dataset)
        if analyst is None:
            return LedgerBudget(self, Scope(name))
        return LedgerBudget(self, Scope(name, "analyst", texts.name("analyst", analyst)))

    def row_of(self, scope: Scope) -> ScopeRow:
        """Return a scope as it is now: its cap and its totals."""
        return self.rows_of(scope)[1][0]

    def rows_of(self, *scopes: Scope) -> tuple[Head, tuple[ScopeRow, ...]]:
        """Return scopes as they are at one moment, and where the journal ends then."""
        for scope in scopes:
            if not isinstance(scope, Scope):
                raise WrongType(f"a row is that of a Scope, not of {type(scope).__name__}", name="scope", value=scope)

        def read(work: LedgerTransaction) -> tuple[Head, tuple[ScopeRow, ...]]:
            return work.rows.head(), tuple(_known(work, scope) for scope in scopes)

        return self._view(read)

    def preview(
        self,
        dataset: str,
        event: Event,
        *,
        analyst: str | Sequence[str] | None = None,
        epochs: Sequence[str] = (),
        plan: bool = False,
    ) -> Cost:
        """Return what `reserve` would charge the data set, and spend nothing."""
        quote = _quote(dataset, event, analyst, epochs, plan=plan)
        whole = self._view(lambda work: admission.scope_rows(work, quote.ask))[0]
        return admission.worth_charging(whole, quote)

    def refusal(
        self, dataset: str, event: Event, *, analyst: str | Sequence[str] | None = None, epochs: Sequence[str] = ()
    ) -> BudgetExceeded | None:
        """Return what `reserve` would raise because too little is left, or None if the event fits; spends nothing."""
        quote = _quote(dataset, event, analyst, epochs)
        return admission.refusal_of(self._view(lambda work: admission.scope_rows(work, quote.ask)), quote)

    def reserve(
        self,
        dataset: str,
        event: Event,
        *,
        analyst: str | Sequence[str] | None = None,
        epochs: Sequence[str] = (),
        purpose: str = "",
        key: str | None = None,
        plan: bool = False,
        question: str | None = None,
        data_version: str | None = None,
    ) -> Permit:
        """Charge an event to the data set, the analyst, the analyst's groups and each epoch, or raise and charge none.

        The same `key` with the same request gives the same permit and charges nothing again, until that permit is
        committed, refunded or annotated (AlreadySettled). `question` and `data_version` are what `commit` calls `plan`
        and `data_version`; whoever uses keys names them, so that a key cannot pay for another question (KeyReused).
        With `plan` the event is charged step by step, and what is not run can be returned (`refund`).
        """
        bound_to = _bound_to(question, data_version)
        quote = _quote(dataset, event, analyst, epochs, bound_to, purpose, key, plan=plan)
        scopes = quote.ask.scopes
        if not self._caps_seen.keys() >= set(scopes):
            self._see(self._change(lambda work: {row.scope: row.cap for row in work.known(scopes)}, scopes))
        for scope in scopes:
            if (cap := self._caps_seen.get(scope)) is not None:
                quote.amounts(cap)  # found before the write lock is taken
        permit = self._change(lambda work: admission.reserve(work, quote, self._token), scopes)
        self._see(quote.caps)
        return permit

    def _see(self, caps: Mapping[Scope, Cap]) -> None:
        """Remember which caps scopes were found to have."""
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
        """Note that the run came to its end; with a plan and a version of the data, keep its answer to give again.

        Commit before the answer is shown to anybody: a permit pays for one answer, and a second commit is refused
        (AlreadySettled) whatever its answer is. If two permits answer the same plan, the first answer is the one kept.
        With `before`, a permit of which something else was said last (`annotate`) is refused as well.
        """
        permit_id, (plan_sha256, version) = _permit_id(permit), _bound_to(plan, data_version)
        last = None if before is None else texts.note("before", before)
        if answer is not None:
            if not isinstance(answer, bytes):
                raise WrongType(f"an answer is kept as bytes, not {type(answer).__name__}", name="answer")
            if len(answer) > ANSWER_BYTES_MAX:
                raise TooLarge(f"an answer of at most {ANSWER_BYTES_MAX:,} bytes can be kept", name="answer")
        if plan is not None and answer is None:
            raise EmptyInput("a plan and a version are kept with an answer, and there is none", name="answer")
        self._change(lambda work: admission.commit(work, permit_id, answer, plan_sha256, version, last))

    def refund(self, permit: Permit | str, ran: Event) -> None:
        """Return what a plan reserved for steps that were not run, once and before `commit`; `ran` is what was run."""
        permit_id, event = _permit_id(permit), measure(ran).event
        reserved, caps = self._change(lambda work: admission.refundable(work, permit_id, event))
        returned = admission.returned(reserved, caps, event)
        self._change(lambda work: admission.refund(work, permit_id, event, returned))

    def annotate(self, permit: Permit | str, note: str, *, before: str | None = None) -> None:
        """Say what became of a reservation; it stays charged.

        With `before`, the note replaces that one and no other ("" is none): of two who say something at once, the
        second is refused (AlreadySettled).
        """
        permit_id, text = _permit_id(permit), texts.note("note", note, required=True)
        last = None if before is None else texts.note("before", before)
        self._change(lambda work: admission.annotate(work, permit_id, text, last))

    def note(self, permit: Permit | str) -> str:
        """Return what was said last of a permit (`annotate`), or nothing."""
        permit_id = _permit_id(permit)
        return self._view(lambda work: work.permit(permit_id)[0].note)

    def reservations(self) -> list[Reservation]:
        """Return permits that were never committed, the oldest first: runs under way, and runs that died."""
        return self._view(admission.reservations)

    def released(self, plan: str, data_version: str) -> bytes | None:
        """Return the answer that was released for a plan on a version of the data, at no cost, or None."""
        digest, version = _plan_digest(plan), texts.name("data_version", data_version)
        return self._view(lambda work: admission.released(work, digest, version))

    def file_request(self, analyst: str, dataset: str, what: Event | Cost, reason: str) -> Request:
        """Ask for more than the analyst's cap: for an event that did not fit, or for a cost."""
        who, name = texts.name("analyst", analyst), texts.name("dataset", dataset)
        wanted, why = administration.wanted(what), texts.note("reason", reason, required=True)
        cap = self._change(lambda work: administration.cap_row(work, who, name)).cap
        cost = administration.cost_of(wanted, cap)
        return self._change(lambda work: administration.file_request(work, who, name, cost, why, self._token))

    def requests(self, *, only_open: bool = False) -> list[Request]:
        """Return requests, the oldest first."""
        only = truth_value("only_open", only_open)
        return self._view(lambda work: administration.listed(work, only_open=only))

    def decide(self, request: Request | str, granted: bool, by: str, note: str = "") -> Request:
        """Grant or decline a request; granting raises the analyst's cap, never above the data set's."""
        who, why, yes = texts.name("by", by), texts.note("note", note), truth_value("granted", granted)
        request_id = texts.name("request", request.id if isinstance(request, Request) else request)
        return self._change(lambda work: administration.decide(work, request_id, yes, who, why))

    def history(self, first: int = 1) -> Iterator[Record]:
        """Yield the records from a number on, each checked."""
        return super().history(min(whole("first", first), NUMBER_MAX))


def _known(work: LedgerTransaction, scope: Scope) -> ScopeRow:
    row = work.rows.scope(scope)
    if row is None:
        raise no_budget(scope)
    return row


def _quote(
    dataset: str,
    event: Event,
    analyst: str | Sequence[str] | None,
    epochs: Sequence[str],
    bound_to: tuple[str | None, str | None] = (None, None),
    purpose: str = "",
    key: str | None = None,
    *,
    plan: bool = False,
) -> CapPrices:
    """Check what somebody asks for."""
    plain = measure(event).event
    if isinstance(plain, CompoundEvent) and len(plain.to_json()) > EVENT_BYTES_MAX:
        raise TooLarge(
            f"an event takes at most {EVENT_BYTES_MAX:,} bytes here; use Repeated for equal parts", name="event"
        )
    analysts = () if analyst is None else (analyst,) if isinstance(analyst, str) else analyst
    return CapPrices(
        Ask(
            texts.name("dataset", dataset),
            plain,
            _names("analyst", analysts),
            _names("epoch", (epochs,) if isinstance(epochs, str) else epochs),
            texts.note("purpose", purpose),
            None if key is None else texts.key(key),
            truth_value("plan", plan),
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
    """Return a cap, or refuse one that no filter can keep; its limits are found before the write lock is taken."""
    return filter_of(cap).cap


def _within(whole: Cap, epsilon: object, delta: object, filter: str | None = None, order: object = None) -> Cap:
    """Return a cap that is counted as the whole is, unless it says otherwise."""
    if filter is None and order is None and whole.delta and exact("delta", delta):
        filter, order = whole.filter, whole.order
    return _kept(Cap.of(epsilon, delta, filter=filter, order=order, relation=whole.relation))


def _bound_to(plan: str | None, data_version: str | None) -> tuple[str | None, str | None]:
    """Return the digest of a plan and the version of its data, both or neither."""
    if (plan is None) != (data_version is None):
        raise EmptyInput("to be given again, an answer needs its plan and the version of its data", name="plan")
    return (None, None) if plan is None else (_plan_digest(plan), texts.name("data_version", data_version))


def _plan_digest(plan: str) -> str:
    return hashlib.sha256(texts.plan(plan).encode()).hexdigest()


def _permit_id(permit: Permit | str) -> str:
    return texts.name("permit", permit.id if isinstance(permit, Permit) else permit)
