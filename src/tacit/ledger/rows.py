"""What the tables beside the journal hold: scopes with their totals, permits, requests, released answers.

All of it but the answers is a cache of the journal, made by `replay` and compared with it when a ledger is opened. A
scope's row carries a seal, so that totals edited by hand are noticed when they are next read, and not only then.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, Protocol, TypeAlias

from tacit.ledger.amounts import Amounts, read, written
from tacit.ledger.caps import Cap
from tacit.ledger.filters import filter_of
from tacit.ledger.journal import canonical
from tacit.ledger.permits import Scope
from tacit.privacy import strict_json
from tacit.privacy.errors import InvalidInput, LedgerCorrupt, LedgerTooNew

PermitState: TypeAlias = Literal["reserved", "committed"]
RequestState: TypeAlias = Literal["filed", "granted", "declined"]


@dataclass(frozen=True, slots=True)
class ScopeRow:
    """A scope with its cap and what was charged to it, as of the record that changed it last."""

    scope: Scope
    cap: Cap
    totals: Amounts
    record: int
    per_epoch: bool = False
    """For a data set: the cap holds for each epoch, and the total over all of them is counted but not capped."""
    has_epochs: bool = False
    starts: str | None = None
    ends: str | None = None

    @property
    def is_enforced(self) -> bool:
        """Whether the cap is asked at admission."""
        return not self.per_epoch

    @property
    def definition(self) -> str:
        """All but the totals, in its written form."""
        return _definition(self.cap, self.per_epoch, self.has_epochs, self.starts, self.ends)

    @property
    def totals_text(self) -> str:
        """The totals in their written form."""
        return canonical(written(self.totals))

    def changed(self, totals: Amounts, record: int, *, scope: Scope | None = None) -> ScopeRow:
        """Return the row with other totals, as of another record."""
        return ScopeRow(
            scope or self.scope, self.cap, totals, record, self.per_epoch, self.has_epochs, self.starts, self.ends
        )

    @property
    def columns(self) -> tuple[str, str, str, int, str]:
        """The row as a table holds it: key, definition, totals, record, and the seal that binds them together."""
        bound = (self.scope.key, self.definition, self.totals_text, self.record)
        return (*bound, _seal(*bound))

    @classmethod
    def from_columns(cls, key: str, definition: str, totals: str, record: int, seal: str) -> ScopeRow:
        """Read a row and assert that it is as it was written."""
        if _seal(key, definition, totals, record) != seal:
            raise LedgerCorrupt(
                f"the totals of {key} were changed outside the ledger; nothing is admitted until they are rebuilt "
                "from the journal (Ledger.rebuild)",
                record=record,
                differs="totals",
            )
        return cls.from_parts(key, definition, totals, record)

    @classmethod
    def from_parts(cls, key: str, definition: str, totals: str, record: int) -> ScopeRow:
        """Build a row from texts that were checked to be as they were written."""
        try:
            facts, amounts = _facts(definition), read(strict_json.loads(totals))
        except InvalidInput as error:
            raise LedgerCorrupt(f"the row of {key} is damaged: {error.message}", record=record, differs="row") from None
        if not filter_of(facts.cap).counts(amounts):
            raise LedgerCorrupt(f"the totals of {key} are not those of its filter", record=record, differs="totals")
        return facts.changed(amounts, record, scope=Scope.from_key(key))


@lru_cache(maxsize=10_000)
def _definition(cap: Cap, per_epoch: bool, has_epochs: bool, starts: str | None, ends: str | None) -> str:
    facts = {"ends": ends, "has_epochs": has_epochs, "per_epoch": per_epoch, "starts": starts}
    return canonical({"cap": cap.to_dict(), **facts})


@lru_cache(maxsize=10_000)
def _facts(definition: str) -> ScopeRow:
    """Read what a row says beside its totals; scope, totals and record are still to be filled in."""
    facts = strict_json.loads(definition)
    if not isinstance(facts, dict):
        raise LedgerCorrupt("a scope is defined by something else than an object", differs="row")
    if facts.keys() != {"cap", "ends", "has_epochs", "per_epoch", "starts"}:
        raise LedgerTooNew("a scope is defined by facts that are not known here; a newer tacit may know them")
    return ScopeRow(scope=Scope(""), totals=(), record=0, **{**facts, "cap": Cap.from_dict(facts["cap"])})


@dataclass(frozen=True, slots=True)
class PermitRow:
    """Where a permit stands; what it permits is in its record."""

    id: str
    dataset: str
    key: str | None
    record: int
    state: PermitState = "reserved"
    is_refunded: bool = False
    answer_sha256: str | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class RequestRow:
    """Where a request for more budget stands; what is asked is in its record."""

    id: str
    dataset: str
    analyst: str
    record: int
    state: RequestState = "filed"
    decision: int | None = None


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """Which answer was released first for a plan on a version of the data; its bytes are kept under their digest."""

    plan_sha256: str
    data_version: str
    permit: str
    sha256: str


class Rows(Protocol):
    """The cached rows, in a store's tables or in memory."""

    def scope(self, scope: Scope) -> ScopeRow | None:
        """Return a scope's row."""

    def put_scope(self, row: ScopeRow) -> None:
        """Write a scope's row."""

    def permit(self, permit_id: str) -> PermitRow | None:
        """Return a permit's row."""

    def put_permit(self, row: PermitRow) -> None:
        """Write a permit's row."""

    def request(self, request_id: str) -> RequestRow | None:
        """Return a request's row."""

    def put_request(self, row: RequestRow) -> None:
        """Write a request's row."""

    def put_answer(self, row: AnswerRow) -> None:
        """Write which answer was released."""

    def drop_answer(self, plan_sha256: str, data_version: str) -> None:
        """Forget that an answer was released; asked again, it costs again."""


def _seal(key: str, definition: str, totals: str, record: int) -> str:
    written = f"{record}\n{key}\n{definition}\n{totals}"
    return hashlib.sha256(written.encode("utf-8", "surrogatepass")).hexdigest()
