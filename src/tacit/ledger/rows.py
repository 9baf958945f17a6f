"""What the tables beside the journal hold: scopes with their totals, permits, requests, released answers.

All of it is a cache of the journal, made by `replay`: scopes are compared with it when a ledger is opened, everything
when all of it is verified. Every row carries a seal, a hash over all of its columns that is checked whenever the row is
read, so that what was changed by hand or by a failing disk decides nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal, Protocol, TypeAlias

from tacit.ledger.amounts import Amounts, amounts_from_json, amounts_to_json
from tacit.ledger.caps import Cap, smallest_price
from tacit.ledger.filters import filter_of
from tacit.ledger.journal import canonical
from tacit.ledger.permits import Scope
from tacit.privacy import strict_json
from tacit.privacy.errors import InvalidInput, LedgerCorrupt, LedgerTooNew

Body: TypeAlias = Mapping[str, Any]
"""What a record says."""
Columns: TypeAlias = tuple[Any, ...]
PermitState: TypeAlias = Literal["reserved", "committed"]
RequestState: TypeAlias = Literal["filed", "granted", "declined"]
_SEALED: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=True, check_circular=False, default=repr)
"""Writes whatever a damaged table may hold."""
CHECKED_MAX: Final = 10_000
_checked: Final[dict[str, tuple[Columns, ScopeRow]]] = {}
"""For each scope key the columns, seal included, that were written or checked last, and the row that they hold."""


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
    epsilon_min: float | None = None
    """For a data set: the least epsilon that a release costs; None where its record does not say (`epsilon_least`)."""

    @property
    def epsilon_least(self) -> float:
        """The least epsilon that a release from a data set costs."""
        return smallest_price(self.cap) if self.epsilon_min is None else self.epsilon_min

    @property
    def is_unspent(self) -> bool:
        """Whether nothing was charged, so that another cap may take the place of this one; epochs have promises too."""
        return not self.has_epochs and self.totals == filter_of(self.cap).nothing

    @property
    def is_enforced(self) -> bool:
        """Whether the cap is asked at admission."""
        return not self.per_epoch

    @property
    def definition(self) -> str:
        """All but the totals, in its written form."""
        return _definition(self.cap, self.per_epoch, self.has_epochs, self.starts, self.ends, self.epsilon_min)

    @property
    def totals_text(self) -> str:
        """The totals in their written form."""
        return canonical(amounts_to_json(self.totals))

    def changed(self, totals: Amounts, record: int, *, scope: Scope | None = None) -> ScopeRow:
        """Return the row with other totals, as of another record."""
        return ScopeRow(
            *(scope or self.scope, self.cap, totals, record, self.per_epoch),
            *(self.has_epochs, self.starts, self.ends, self.epsilon_min),
        )

    @property
    def columns(self) -> Columns:
        """The row as a table holds it."""
        scope = self.scope
        columns = sealed("scope", scope.dataset, scope.key, self.definition, self.totals_text, self.record)
        _remember(columns, self)
        return columns

    @classmethod
    def from_columns(cls, *columns: Any) -> ScopeRow:
        """Read a row and assert that it is as it was written; exactly the columns of last time need no second check."""
        known, row = _checked.get(columns[1], ((), None))
        if row is not None and columns == known and type(columns[4]) is int:  # 7.0 and True equal an int, too
            return row
        dataset, key, definition, totals, record = unsealed("scope", columns)
        row = cls.from_parts(key, definition, totals, record)
        if row.scope.dataset != dataset:
            raise _changed("scope", key)
        _remember(columns, row)
        return row

    @classmethod
    def from_parts(cls, key: str, definition: str, totals: str, record: int) -> ScopeRow:
        """Build a row from texts that were checked to be as they were written."""
        try:
            facts, amounts = _facts(definition), amounts_from_json(strict_json.loads(totals))
        except InvalidInput as error:
            raise LedgerCorrupt(f"the row of {key} is damaged: {error.message}", record=record, differs="row") from None
        if not filter_of(facts.cap).counts(amounts):
            raise LedgerCorrupt(f"the totals of {key} are not those of its filter", record=record, differs="totals")
        return facts.changed(amounts, record, scope=Scope.from_key(key))


def _remember(columns: Columns, row: ScopeRow) -> None:
    if len(_checked) >= CHECKED_MAX:
        _checked.clear()
    _checked[columns[1]] = columns, row


@lru_cache(maxsize=10_000)
def _definition(
    cap: Cap,
    per_epoch: bool,
    has_epochs: bool,
    starts: str | None,
    ends: str | None,
    epsilon_min: float | None,
) -> str:
    facts = {"ends": ends, "has_epochs": has_epochs, "per_epoch": per_epoch, "starts": starts}
    least = {} if epsilon_min is None else {"epsilon_min": epsilon_min}
    return canonical({"cap": cap.to_dict(), **facts, **least})


@lru_cache(maxsize=10_000)
def _facts(definition: str) -> ScopeRow:
    """Read what a row says beside its totals; scope, totals and record are still to be filled in."""
    facts = strict_json.loads(definition)
    if not isinstance(facts, dict):
        raise LedgerCorrupt("a scope is defined by something else than an object", differs="row")
    if facts.keys() - {"epsilon_min"} != {"cap", "ends", "has_epochs", "per_epoch", "starts"}:
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

    @property
    def columns(self) -> Columns:
        """The row as a table holds it."""
        return sealed(
            "permit",
            *(self.id, self.dataset, self.key, self.record),
            *(self.state, int(self.is_refunded), self.answer_sha256, self.note),
        )

    @classmethod
    def from_columns(cls, *columns: Any) -> PermitRow:
        """Read a row and assert that it is as it was written."""
        permit, dataset, key, record, state, is_refunded, answer_sha256, note = unsealed("permit", columns)
        return cls(permit, dataset, key, record, state, bool(is_refunded), answer_sha256, note)


@dataclass(frozen=True, slots=True)
class RequestRow:
    """Where a request for more budget stands; what is asked is in its record."""

    id: str
    dataset: str
    analyst: str
    record: int
    state: RequestState = "filed"
    decision: int | None = None

    @property
    def columns(self) -> Columns:
        """The row as a table holds it."""
        return sealed("request", self.id, self.dataset, self.analyst, self.record, self.state, self.decision)

    @classmethod
    def from_columns(cls, *columns: Any) -> RequestRow:
        """Read a row and assert that it is as it was written."""
        return cls(*unsealed("request", columns))


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """Which answer was released first for a plan on a version of the data; its bytes are kept under their digest."""

    plan_sha256: str
    data_version: str
    permit: str
    sha256: str

    @property
    def columns(self) -> Columns:
        """The row as a table holds it."""
        return sealed("answer", self.plan_sha256, self.data_version, self.permit, self.sha256)

    @classmethod
    def from_columns(cls, *columns: Any) -> AnswerRow:
        """Read a row and assert that it is as it was written."""
        return cls(*unsealed("answer", columns))


class CachedRows(Protocol):
    """The cached rows, in a store's tables or in memory."""

    def scope(self, scope: Scope) -> ScopeRow | None:
        """Return a scope's row."""

    def put_scope(self, row: ScopeRow) -> None:
        """Write a scope's row."""

    def permit(self, permit_id: str) -> PermitRow | None:
        """Return a permit's row."""

    def add_permit(self, row: PermitRow, reservation: Body) -> None:
        """Write the row of a new permit, which was given by a record with this body; raise if its id or key is used."""

    def put_permit(self, row: PermitRow) -> None:
        """Write the row of a permit that exists."""

    def reservation(self, row: PermitRow) -> Body | None:
        """Return the body of the record that gave a permit; None if it is not known and was for no plan."""

    def request(self, request_id: str) -> RequestRow | None:
        """Return a request's row."""

    def put_request(self, row: RequestRow) -> None:
        """Write a request's row."""

    def answer(self, plan_sha256: str, data_version: str) -> AnswerRow | None:
        """Return which answer was released for a plan on a version of the data."""

    def put_answer(self, row: AnswerRow) -> None:
        """Write which answer was released."""

    def drop_answer(self, plan_sha256: str, data_version: str) -> None:
        """Forget that an answer was released; asked again, it costs again."""


def sealed(what: str, *columns: Any) -> Columns:
    """Return columns with the seal that binds them together."""
    return (*columns, _seal(what, columns))


def unsealed(what: str, columns: Columns) -> Columns:
    """Return columns without their seal, or raise if they are not as they were written."""
    *bound, seal = columns
    if _seal(what, bound) != seal:
        raise _changed(what, bound[1 if what == "scope" else 0])
    return tuple(bound)


def _seal(what: str, columns: Sequence[Any]) -> str:
    return hashlib.sha256(_SEALED.encode([what, *columns]).encode("ascii")).hexdigest()


def _changed(what: str, name: object) -> LedgerCorrupt:
    return LedgerCorrupt(
        f"the row of the {what} {str(name)[:200]} was changed outside the ledger; nothing is admitted until the tables "
        "are rebuilt from the journal (Ledger.rebuild)",
        differs=what,
    )
