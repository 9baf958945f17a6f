"""The rows of the tables beside the journal: scopes with their totals, permits, requests, answers, findings.

All of them are a cache of the journal, written by `replay`: scopes are compared with it when a ledger is opened, all
tables when it is verified in full. Every row carries a seal, a hash over all of its columns that is checked whenever
the row is read, so that a row that was changed by hand or by a failing disk decides nothing.
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
"""The contents of a record."""
Columns: TypeAlias = tuple[Any, ...]
PermitState: TypeAlias = Literal["reserved", "committed"]
RequestState: TypeAlias = Literal["filed", "granted", "declined"]
REBUILD: Final = "the tables are rebuilt from the journal (tacit ledger rebuild --by NAME --reason TEXT)"
"""The remedy for tables that differ from the journal, for messages."""
_SEALED: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=True, check_circular=False, default=repr)
"""Encodes any value that a damaged table may hold."""
CHECKED_MAX: Final = 10_000
_checked: Final[dict[str, tuple[Columns, ScopeRow]]] = {}
"""For each scope key the columns, seal included, that were written or checked last, and their row."""


@dataclass(frozen=True, slots=True)
class ScopeRow:
    """A scope with its cap and totals, as of the record that changed it last."""

    scope: Scope
    cap: Cap
    totals: Amounts
    record: int
    per_epoch: bool = False
    """For a data set: the cap holds for each epoch, and the total over all of them is counted but not capped."""
    has_epochs: bool = False
    starts: str | None = None
    ends: str | None = None
    stated_epsilon_min: float | None = None
    """For a data set: `epsilon_min` as its record states it; None where it does not."""

    @property
    def epsilon_min(self) -> float:
        """The least epsilon that a release from the data set costs."""
        return smallest_price(self.cap) if self.stated_epsilon_min is None else self.stated_epsilon_min

    @property
    def is_unspent(self) -> bool:
        """Whether the cap can be replaced: nothing was charged, and no epoch was added."""
        return not self.has_epochs and self.totals == filter_of(self.cap).nothing

    @property
    def is_enforced(self) -> bool:
        """Whether the cap is checked at admission."""
        return not self.per_epoch

    @property
    def definition(self) -> str:
        """All but the totals, as stored."""
        return _definition(self.cap, self.per_epoch, self.has_epochs, self.starts, self.ends, self.stated_epsilon_min)

    @property
    def totals_text(self) -> str:
        """The totals, as stored."""
        return canonical(amounts_to_json(self.totals))

    def changed(self, totals: Amounts, record: int, *, scope: Scope | None = None) -> ScopeRow:
        """Return the row with other totals, as of another record."""
        return ScopeRow(
            *(scope or self.scope, self.cap, totals, record, self.per_epoch),
            *(self.has_epochs, self.starts, self.ends, self.stated_epsilon_min),
        )

    @property
    def columns(self) -> Columns:
        """The columns of the table, with the seal."""
        scope = self.scope
        columns = sealed("scope", scope.dataset, scope.key, self.definition, self.totals_text, self.record)
        _remember(columns, self)
        return columns

    @classmethod
    def from_columns(cls, *columns: Any) -> ScopeRow:
        """Read a row and check its seal, unless its columns are those that were written or checked last."""
        known, row = _checked.get(columns[1], ((), None))
        if row is not None and columns == known and type(columns[4]) is int:  # 7.0 and True equal an int as well
            return row
        dataset, key, definition, totals, record = unsealed("scope", columns)
        row = cls.from_parts(key, definition, totals, record)
        if row.scope.dataset != dataset:
            raise _changed("scope", key)
        _remember(columns, row)
        return row

    @classmethod
    def from_parts(cls, key: str, definition: str, totals: str, record: int) -> ScopeRow:
        """Build a row from texts whose seal or hash was checked."""
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
    """Return a row with the fields of a definition; scope, totals and record are to be filled in."""
    facts = strict_json.loads(definition)
    if not isinstance(facts, dict):
        raise LedgerCorrupt("the definition of a scope is not an object", differs="row")
    if facts.keys() - {"epsilon_min"} != {"cap", "ends", "has_epochs", "per_epoch", "starts"}:
        raise LedgerTooNew("the definition of a scope has unknown fields; use a newer tacit")
    least = facts.pop("epsilon_min", None)
    cap = Cap.from_dict(facts.pop("cap"))
    return ScopeRow(scope=Scope(""), cap=cap, totals=(), record=0, stated_epsilon_min=least, **facts)


@dataclass(frozen=True, slots=True)
class PermitRow:
    """The state of a permit; its event is in its record."""

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
        """The columns of the table, with the seal."""
        return sealed(
            "permit",
            *(self.id, self.dataset, self.key, self.record),
            *(self.state, int(self.is_refunded), self.answer_sha256, self.note),
        )

    @classmethod
    def from_columns(cls, *columns: Any) -> PermitRow:
        """Read a row and check its seal."""
        permit, dataset, key, record, state, is_refunded, answer_sha256, note = unsealed("permit", columns)
        return cls(permit, dataset, key, record, state, bool(is_refunded), answer_sha256, note)


@dataclass(frozen=True, slots=True)
class RequestRow:
    """The state of a request for more budget; its cost is in its record."""

    id: str
    dataset: str
    analyst: str
    record: int
    state: RequestState = "filed"
    decision: int | None = None

    @property
    def columns(self) -> Columns:
        """The columns of the table, with the seal."""
        return sealed("request", self.id, self.dataset, self.analyst, self.record, self.state, self.decision)

    @classmethod
    def from_columns(cls, *columns: Any) -> RequestRow:
        """Read a row and check its seal."""
        return cls(*unsealed("request", columns))


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """The answer that was released for a plan on a version of the data; its bytes are stored under their digest."""

    plan_sha256: str
    data_version: str
    permit: str
    sha256: str

    @property
    def columns(self) -> Columns:
        """The columns of the table, with the seal."""
        return sealed("answer", self.plan_sha256, self.data_version, self.permit, self.sha256)

    @classmethod
    def from_columns(cls, *columns: Any) -> AnswerRow:
        """Read a row and check its seal."""
        return cls(*unsealed("answer", columns))


@dataclass(frozen=True, slots=True)
class FindingRow:
    """Where a finding is: its record, which holds the document, and the data set and permit that it is about."""

    id: str
    dataset: str
    permit: str | None
    record: int

    @property
    def columns(self) -> Columns:
        """The columns of the table, with the seal."""
        return sealed("finding", self.id, self.dataset, self.permit, self.record)

    @classmethod
    def from_columns(cls, *columns: Any) -> FindingRow:
        """Read a row and check its seal."""
        return cls(*unsealed("finding", columns))


class CachedRows(Protocol):
    """The cached rows, in a store's tables or in memory."""

    def scope(self, scope: Scope) -> ScopeRow | None:
        """Return a scope's row."""

    def put_scope(self, row: ScopeRow) -> None:
        """Write a scope's row."""

    def permit(self, permit_id: str) -> PermitRow | None:
        """Return a permit's row."""

    def add_permit(self, row: PermitRow, reservation: Body) -> None:
        """Write the row of a new permit with the body of its record; raise if its id or key is used."""

    def put_permit(self, row: PermitRow) -> None:
        """Write the row of a permit that exists."""

    def reservation(self, row: PermitRow) -> Body | None:
        """Return the body of a permit's record; rows in memory keep only those of open plans."""

    def request(self, request_id: str) -> RequestRow | None:
        """Return a request's row."""

    def put_request(self, row: RequestRow) -> None:
        """Write a request's row."""

    def answer(self, plan_sha256: str, data_version: str) -> AnswerRow | None:
        """Return the row of the answer to a plan on a version of the data."""

    def put_answer(self, row: AnswerRow) -> None:
        """Write the row of a released answer."""

    def drop_answer(self, plan_sha256: str, data_version: str) -> None:
        """Remove the row of a released answer; asked again, it is charged again."""

    def finding(self, finding_id: str) -> FindingRow | None:
        """Return a finding's row."""

    def put_finding(self, row: FindingRow) -> None:
        """Write a finding's row."""


def sealed(what: str, *columns: Any) -> Columns:
    """Return columns with their seal appended."""
    return (*columns, _seal(what, columns))


def unsealed(what: str, columns: Columns) -> Columns:
    """Return columns without their seal, or raise LedgerCorrupt if it does not fit."""
    *bound, seal = columns
    if _seal(what, bound) != seal:
        raise _changed(what, bound[1 if what == "scope" else 0])
    return tuple(bound)


def _seal(what: str, columns: Sequence[Any]) -> str:
    return hashlib.sha256(_SEALED.encode([what, *columns]).encode("ascii")).hexdigest()


def _changed(what: str, name: object) -> LedgerCorrupt:
    return LedgerCorrupt(
        f"the row of the {what} {str(name)[:200]} was changed outside the ledger; nothing is admitted until {REBUILD}",
        differs=what,
    )
