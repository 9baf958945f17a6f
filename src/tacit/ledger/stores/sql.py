"""Rows in SQL tables, the same statements for every store.

Reads go to the database at once; writes are collected until the transaction ends and then sent together, each row once
and in the order that foreign keys need. Rows that the transaction wrote or read before come from memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar, Final, TypeAlias, TypeVar

from tacit.ledger.journal import Head, Record
from tacit.ledger.permits import Scope
from tacit.ledger.rows import AnswerRow, Body, FindingRow, PermitRow, RequestRow, ScopeRow
from tacit.ledger.stores.protocol import Transaction
from tacit.privacy.errors import (
    LedgerBusy,
    LedgerCorrupt,
    LedgerFull,
    LedgerReadOnly,
    LedgerTooNew,
    LedgerUnavailable,
    NotALedger,
)
from tacit.storage.connections import ErrorProfile

Columns: TypeAlias = list[tuple[Any, ...]]
Fetch: TypeAlias = Callable[[str, Sequence[Any]], Columns]
Statement: TypeAlias = tuple[str, tuple[Any, ...]]
Row = TypeVar("Row")

MIGRATIONS: Final = Path(__file__).parent / "migrations"
PROFILE: Final = ErrorProfile(
    noun="ledger",
    undone="nothing was charged",
    closed="nothing is admitted",
    doubt="nothing was released; what was charged stays charged, see reservations()",
    busy=LedgerBusy,
    corrupt=LedgerCorrupt,
    foreign=NotALedger,
    full=LedgerFull,
    read_only=LedgerReadOnly,
    too_new=LedgerTooNew,
    unavailable=LedgerUnavailable,
)
CONTENTS_AT_ONCE: Final = 8

CACHES_VERSION: Final = 2
"""The version of the cached rows; tables of another version are rebuilt from the journal when they are opened."""

_RECORD: Final = "number, at_us, behind_us, kind, body, previous, hash"
_SCOPE: Final = "dataset, key, definition, totals, record, seal"
_PERMIT: Final = "id, dataset, key, record, state, is_refunded, answer_sha256, note, seal"
_REQUEST: Final = "id, dataset, analyst, record, state, decision, seal"
_ANSWER: Final = "plan_sha256, data_version, permit, sha256, seal"
_FINDING: Final = "id, dataset, permit, record, seal"
_RECORD_TYPES: Final = (int, int, int, str, str, str, str)
_HEAD_TYPES: Final = (int, str, int, int)

_record_columns: Final = attrgetter(*_RECORD.split(", "))

HEAD: Final = "SELECT number, hash, at_us, checkpoint FROM head"
LAST: Final = f"SELECT {_RECORD} FROM journal ORDER BY number DESC LIMIT 1"
_MOVE_HEAD: Final = "UPDATE head SET number = ?, hash = ?, at_us = ?, checkpoint = ?"
_NOTE_CACHES: Final = f"UPDATE caches SET version = {CACHES_VERSION}"


def _insert(table: str, columns: str, otherwise: str = "") -> str:
    marks = ", ".join("?" * len(columns.split(", ")))
    return f"INSERT INTO {table} ({columns}) VALUES ({marks}){otherwise}"


def _upsert(table: str, columns: str, key: str, *changing: str) -> str:
    changes = ", ".join(f"{name} = excluded.{name}" for name in changing)
    return _insert(table, columns, f" ON CONFLICT ({key}) DO UPDATE SET {changes}")


_APPEND: Final = _insert("journal", _RECORD)
_PUT_SCOPE: Final = _upsert("scopes", _SCOPE, "key", "definition", "totals", "record", "seal")
_ADD_PERMIT: Final = _insert("permits", _PERMIT)
_PUT_PERMIT: Final = _upsert("permits", _PERMIT, "id", "state", "is_refunded", "answer_sha256", "note", "seal")
_PUT_REQUEST: Final = _upsert("requests", _REQUEST, "id", "state", "decision", "seal")
_PUT_ANSWER: Final = _insert("answers", _ANSWER)
_PUT_FINDING: Final = _insert("findings", _FINDING)
_PUT_CONTENT: Final = _insert("contents", "sha256, bytes", " ON CONFLICT (sha256) DO NOTHING")
_DROP_ANSWER: Final = "DELETE FROM answers WHERE plan_sha256 = ? AND data_version = ?"
_DROP_CONTENT: Final = "DELETE FROM contents WHERE sha256 = ?"
_CLEAR: Final = tuple(f"DELETE FROM {table}" for table in ("answers", "findings", "requests", "permits", "scopes"))


class SqlTransaction(Transaction):
    """One transaction's view of the tables."""

    scan: ClassVar[tuple[str, Any]] = (
        "SELECT sha256, sha256, bytes FROM contents WHERE sha256 > ? ORDER BY sha256 LIMIT ?",
        "",
    )
    """A statement that reads contents after a position, each with its position; and the position before the first."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._head: Head | None = None
        self._end: list[Record] = []
        self._appended: list[Record] = []
        self._scopes: dict[Scope, ScopeRow | None] = {}
        self._permits: dict[str, PermitRow | None] = {}
        self._new_permits: dict[tuple[str, str], str] = {}
        """Ids of permits that are new in this transaction, by data set and key."""
        self._requests: dict[str, RequestRow | None] = {}
        self._answers: dict[tuple[str, str], AnswerRow | None] = {}
        self._findings: dict[str, FindingRow | None] = {}
        self._is_cleared = False
        self._changed_scopes: dict[Scope, ScopeRow] = {}
        """Changed scopes; each is written once, in its final state."""
        self._changes: dict[object, Statement] = {}
        """The statement for every other changed row; the last change of a row counts."""

    def statements(self) -> Iterator[Statement]:
        """Yield the statements that write the changes."""
        if self._is_cleared:
            yield from ((statement, ()) for statement in _CLEAR)
        yield from ((_APPEND, _record_columns(record)) for record in self._appended)
        yield from ((_PUT_SCOPE, row.columns) for row in self._changed_scopes.values())
        yield from self._changes.values()
        if self._appended:
            head = self.head()
            yield _MOVE_HEAD, (head.number, head.hash, head.at_us, head.checkpoint)
        if self._is_cleared:
            yield _NOTE_CACHES, ()

    def head(self) -> Head:
        if self._head is None:
            self.set_end(self._fetch(HEAD, ()), self._fetch(LAST, ()))
        assert self._head is not None
        return self._head

    def end(self) -> list[Record]:
        self.head()
        return self._appended[-1:] or self._end

    def has_caches(self) -> bool:
        return self._is_cleared or self._fetch("SELECT version FROM caches", ()) == [(CACHES_VERSION,)]

    def append(self, record: Record, *, is_checkpoint: bool = False) -> None:
        checkpoint = record.number if is_checkpoint else self.head().checkpoint
        self._appended.append(record)
        self._head = Head(record.number, record.hash, record.at_us, checkpoint)
        self._end = [record]

    def records(self, first: int, limit: int) -> list[Record]:
        rows = self._fetch(f"SELECT {_RECORD} FROM journal WHERE number >= ? ORDER BY number LIMIT ?", (first, limit))
        new = [record for record in self._appended if record.number >= first]
        return ([_record(row) for row in rows] + new)[:limit]

    def records_of(self, kinds: Sequence[str], first: int = 1) -> list[Record]:
        is_new = self._appended and first >= self._appended[0].number
        where = f"number >= ? AND kind IN ({', '.join('?' * len(kinds))})"
        rows = (
            []
            if is_new
            else self._fetch(f"SELECT {_RECORD} FROM journal WHERE {where} ORDER BY number", (first, *kinds))
        )
        new = [record for record in self._appended if record.number >= first and record.kind in kinds]
        return [_record(row) for row in rows] + new

    def prefetch(self, scopes: Sequence[Scope]) -> None:
        missing = [scope for scope in scopes if scope not in self._scopes]
        if not missing:
            return
        self.set_scopes(missing, self._fetch(*select_scopes(missing)))

    def scope(self, scope: Scope) -> ScopeRow | None:
        if scope not in self._scopes:
            self.prefetch([scope])
        return self._scopes[scope]

    def scopes(self, dataset: str | None = None) -> list[ScopeRow]:
        where, values = ("", ()) if dataset is None else (" WHERE dataset = ?", (dataset,))
        rows = [] if self._is_cleared else self._fetch(f"SELECT {_SCOPE} FROM scopes{where}", values)
        stored = {row.scope: row for row in (ScopeRow.from_columns(*columns) for columns in rows)}
        here = {scope: row for scope, row in self._scopes.items() if row and dataset in (None, scope.dataset)}
        return [row for _, row in sorted((stored | here).items())]

    def put_scope(self, row: ScopeRow) -> None:
        self._scopes[row.scope] = self._changed_scopes[row.scope] = row

    def permit(self, permit_id: str) -> PermitRow | None:
        if permit_id not in self._permits:
            self._permits[permit_id] = _only(self._permit_rows("WHERE id = ?", permit_id))
        return self._permits[permit_id]

    def permit_by_key(self, dataset: str, key: str) -> PermitRow | None:
        if (dataset, key) in self._new_permits:
            return self._permits[self._new_permits[dataset, key]]
        row = _only(self._permit_rows("WHERE dataset = ? AND key = ?", dataset, key))
        if row is not None and (row.dataset, row.key) != (dataset, key):
            raise LedgerCorrupt(f"the key of the permit {row.id} is not the one that it is found by", differs="permit")
        return row

    def permits(self, *, only_open: bool = False) -> list[PermitRow]:
        rows = self._permit_rows("WHERE state = 'reserved'" if only_open else "")
        merged = {row.id: row for row in rows} | {row.id: row for row in self._permits.values() if row}
        found = [row for row in merged.values() if not only_open or row.state == "reserved"]
        return sorted(found, key=attrgetter("record"))

    def add_permit(self, row: PermitRow, reservation: Body) -> None:
        if row.key is not None:
            self._new_permits[row.dataset, row.key] = row.id
        self._permits[row.id] = row
        self._changes["permit", row.id] = (_ADD_PERMIT, row.columns)

    def put_permit(self, row: PermitRow) -> None:
        statement, _ = self._changes.get(("permit", row.id), (_PUT_PERMIT, ()))
        self._permits[row.id] = row
        self._changes["permit", row.id] = (statement, row.columns)

    def reservation(self, row: PermitRow) -> Body | None:
        return next((record.contents for record in self.records(row.record, 1) if record.number == row.record), None)

    def request(self, request_id: str) -> RequestRow | None:
        if request_id not in self._requests:
            self._requests[request_id] = _only(self._request_rows("WHERE id = ?", request_id))
        return self._requests[request_id]

    def requests(self, *, only_open: bool = False) -> list[RequestRow]:
        rows = self._request_rows("WHERE state = 'filed'" if only_open else "")
        merged = {row.id: row for row in rows} | {row.id: row for row in self._requests.values() if row}
        found = [row for row in merged.values() if not only_open or row.state == "filed"]
        return sorted(found, key=attrgetter("record"))

    def put_request(self, row: RequestRow) -> None:
        self._requests[row.id] = row
        self._changes["request", row.id] = (_PUT_REQUEST, row.columns)

    def answer(self, plan_sha256: str, data_version: str) -> AnswerRow | None:
        key = (plan_sha256, data_version)
        if key not in self._answers:
            self._answers[key] = _only(self._answer_rows("WHERE plan_sha256 = ? AND data_version = ?", *key))
        return self._answers[key]

    def answers(self) -> list[AnswerRow]:
        stored = {(row.plan_sha256, row.data_version): row for row in self._answer_rows()}
        return [row for row in (stored | self._answers).values() if row is not None]

    def put_answer(self, row: AnswerRow) -> None:
        self._answers[row.plan_sha256, row.data_version] = row
        self._changes["answer", row.plan_sha256, row.data_version] = (_PUT_ANSWER, row.columns)

    def drop_answer(self, plan_sha256: str, data_version: str) -> None:
        self._answers[plan_sha256, data_version] = None
        self._changes["answer", plan_sha256, data_version] = (_DROP_ANSWER, (plan_sha256, data_version))

    def finding(self, finding_id: str) -> FindingRow | None:
        if finding_id not in self._findings:
            self._findings[finding_id] = _only(self._finding_rows("WHERE id = ?", finding_id))
        return self._findings[finding_id]

    def findings(self, dataset: str | None = None) -> list[FindingRow]:
        rows = self._finding_rows() if dataset is None else self._finding_rows("WHERE dataset = ?", dataset)
        here = [row for row in self._findings.values() if row and dataset in (None, row.dataset)]
        return sorted({row.id: row for row in (*rows, *here)}.values(), key=attrgetter("record"))

    def put_finding(self, row: FindingRow) -> None:
        self._findings[row.id] = row
        self._changes["finding", row.id] = (_PUT_FINDING, row.columns)

    def content(self, sha256: str) -> bytes | None:
        if (change := self._changes.get(("content", sha256))) is not None:
            return change[1][1] if change[0] == _PUT_CONTENT else None
        rows = self._fetch("SELECT bytes FROM contents WHERE sha256 = ?", (sha256,))
        return bytes(rows[0][0]) if rows else None

    def contents(self) -> Iterator[tuple[str, bytes]]:
        statement, place = self.scan
        while rows := self._fetch(statement, (place, CONTENTS_AT_ONCE)):
            yield from ((sha256, bytes(content)) for _, sha256, content in rows)
            place = rows[-1][0]

    def damage(self) -> str | None:
        return None

    def put_content(self, sha256: str, content: bytes) -> None:
        self._changes["content", sha256] = (_PUT_CONTENT, (sha256, content))

    def drop_content(self, sha256: str) -> None:
        self._changes["content", sha256] = (_DROP_CONTENT, (sha256,))

    def clear_caches(self) -> None:
        self._is_cleared = True
        rows = ("_scopes", "_changed_scopes", "_permits", "_new_permits", "_requests", "_answers", "_findings")
        for name in (*rows, "_changes"):
            getattr(self, name).clear()

    def savepoint(self) -> dict[str, Any]:
        self.head()  # reads it now, so that undoing does not forget it
        return {name: value.copy() if type(value) in (dict, list) else value for name, value in vars(self).items()}

    def undo_to(self, savepoint: dict[str, Any]) -> None:
        vars(self).update(savepoint)

    def _permit_rows(self, where: str, *values: str) -> list[PermitRow]:
        return [PermitRow.from_columns(*row) for row in self._cached(f"SELECT {_PERMIT} FROM permits {where}", values)]

    def _request_rows(self, where: str, *values: str) -> list[RequestRow]:
        found = self._cached(f"SELECT {_REQUEST} FROM requests {where}", values)
        return [RequestRow.from_columns(*row) for row in found]

    def _answer_rows(self, where: str = "", *values: str) -> list[AnswerRow]:
        return [AnswerRow.from_columns(*row) for row in self._cached(f"SELECT {_ANSWER} FROM answers {where}", values)]

    def _finding_rows(self, where: str = "", *values: str) -> list[FindingRow]:
        found = self._cached(f"SELECT {_FINDING} FROM findings {where}", values)
        return [FindingRow.from_columns(*row) for row in found]

    def _cached(self, statement: str, values: Sequence[str]) -> Columns:
        return [] if self._is_cleared else self._fetch(statement, values)

    def set_end(self, head: Columns, last: Columns) -> None:
        """Set head and last record from the rows of the statements `HEAD` and `LAST`."""
        if len(head) != 1 or tuple(map(type, head[0])) != _HEAD_TYPES:
            raise LedgerCorrupt("the row with the end of the journal is missing or damaged", differs="head")
        self._end = [_record(row) for row in last]
        self._head = Head(*head[0])

    def set_scopes(self, scopes: Sequence[Scope], rows: Columns) -> None:
        """Set the rows of scopes, as the statement of `select_scopes` returned them."""
        self._scopes.update(dict.fromkeys(scopes))
        self._scopes.update({row.scope: row for row in (ScopeRow.from_columns(*columns) for columns in rows)})


def select_scopes(scopes: Sequence[Scope]) -> Statement:
    """Return the statement that reads the rows of scopes, one or more."""
    marks = ", ".join("?" * len(scopes))
    return f"SELECT {_SCOPE} FROM scopes WHERE key IN ({marks})", tuple(scope.key for scope in scopes)


def _record(columns: Sequence[Any]) -> Record:
    if tuple(map(type, columns)) != _RECORD_TYPES:
        raise LedgerCorrupt(
            f"the journal is damaged: record {columns[0]!r} holds values of another type; "
            "nothing is admitted until a backup is restored",
            record=columns[0] if isinstance(columns[0], int) else None,
            differs="contents",
        )
    return Record(*columns)


def _only(rows: list[Row]) -> Row | None:
    return rows[0] if rows else None
