"""Rows in SQL tables, the same statements for every store.

Reads go to the database at once; writes are kept until the transaction ends and then sent together, each row once and
in the order that foreign keys need. What was written or read before in the transaction is answered from memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from typing import Any, Final, TypeAlias, TypeVar

from tacit.ledger.journal import Head, Record
from tacit.ledger.permits import Scope
from tacit.ledger.rows import AnswerRow, PermitRow, RequestRow, ScopeRow
from tacit.ledger.stores.protocol import Transaction
from tacit.privacy.errors import LedgerCorrupt

Columns: TypeAlias = list[tuple[Any, ...]]
Fetch: TypeAlias = Callable[[str, Sequence[Any]], Columns]
Statement: TypeAlias = tuple[str, tuple[Any, ...]]

_RECORD: Final = "number, at_us, behind_us, kind, body, previous, hash"
_SCOPE: Final = "key, definition, totals, record, seal"
_PERMIT: Final = "id, dataset, key, record, state, is_refunded, answer_sha256, note"
_REQUEST: Final = "id, dataset, analyst, record, state, decision"
_ANSWER: Final = "plan_sha256, data_version, permit, sha256"

_record_columns: Final = attrgetter(*_RECORD.split(", "))
_permit_columns: Final = attrgetter(*_PERMIT.split(", "))
_request_columns: Final = attrgetter(*_REQUEST.split(", "))
_answer_columns: Final = attrgetter(*_ANSWER.split(", "))

_APPEND: Final = f"INSERT INTO journal ({_RECORD}) VALUES (?, ?, ?, ?, ?, ?, ?)"
END: Final = (
    f"SELECT h.number, h.hash, h.at_us, h.checkpoint, {', '.join('j.' + name for name in _RECORD.split(', '))} "
    "FROM head h LEFT JOIN journal j ON j.number BETWEEN h.number AND h.number + 1"
)
_MOVE_HEAD: Final = "UPDATE head SET number = ?, hash = ?, at_us = ?, checkpoint = ?"
_PUT_SCOPE: Final = (
    f"INSERT INTO scopes (dataset, {_SCOPE}) VALUES (?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (key) DO UPDATE SET definition = excluded.definition, totals = excluded.totals, "
    "record = excluded.record, seal = excluded.seal"
)
_PUT_PERMIT: Final = (
    f"INSERT INTO permits ({_PERMIT}) VALUES (?, ?, ?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (id) DO UPDATE SET state = excluded.state, is_refunded = excluded.is_refunded, "
    "answer_sha256 = excluded.answer_sha256, note = excluded.note"
)
_PUT_REQUEST: Final = (
    f"INSERT INTO requests ({_REQUEST}) VALUES (?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (id) DO UPDATE SET state = excluded.state, decision = excluded.decision"
)
_PUT_CONTENT: Final = "INSERT INTO contents (sha256, bytes) VALUES (?, ?) ON CONFLICT (sha256) DO NOTHING"
_PUT_ANSWER: Final = f"INSERT INTO answers ({_ANSWER}) VALUES (?, ?, ?, ?)"
_DROP_ANSWER: Final = "DELETE FROM answers WHERE plan_sha256 = ? AND data_version = ?"
_CLEAR: Final = tuple(f"DELETE FROM {table}" for table in ("answers", "requests", "permits", "scopes"))


@dataclass(slots=True)
class Pending:
    """What a transaction has read and written so far."""

    head: Head | None = None
    end: list[Record] = field(default_factory=list)
    appended: list[Record] = field(default_factory=list)
    scopes: dict[Scope, ScopeRow | None] = field(default_factory=dict)
    permits: dict[str, PermitRow | None] = field(default_factory=dict)
    requests: dict[str, RequestRow | None] = field(default_factory=dict)
    answers: dict[tuple[str, str], AnswerRow | None] = field(default_factory=dict)
    contents: dict[str, bytes] = field(default_factory=dict)
    is_cleared: bool = False
    changes: dict[object, Statement] = field(default_factory=dict)
    """What to write of each row that was changed; the last change of a row stands."""

    def copy(self) -> Pending:
        """Return the same, to go back to."""
        copies: dict[str, Any] = {one.name: copy(getattr(self, one.name)) for one in fields(self)}
        return Pending(**copies)


class SqlTransaction(Transaction):
    """One transaction's view of the tables."""

    def __init__(self, fetch: Fetch, end: Columns | None = None) -> None:
        self._fetch = fetch
        self._pending = Pending()
        if end is not None:
            self._read_end(end)

    def statements(self) -> Iterator[Statement]:
        """Yield what has to be executed for the changes to be on disk."""
        if self._pending.is_cleared:
            yield from ((statement, ()) for statement in _CLEAR)
        yield from ((_APPEND, _record_columns(record)) for record in self._pending.appended)
        yield from self._pending.changes.values()
        if self._pending.appended:
            head = self.head()
            yield _MOVE_HEAD, (head.number, head.hash, head.at_us, head.checkpoint)

    def head(self) -> Head:
        if self._pending.head is None:
            self._read_end(self._fetch(END, ()))
        assert self._pending.head is not None
        return self._pending.head

    def end(self) -> list[Record]:
        if self._pending.head is None:
            self._read_end(self._fetch(END, ()))
        return self._pending.end

    def append(self, record: Record, *, is_checkpoint: bool = False) -> None:
        checkpoint = record.number if is_checkpoint else self.head().checkpoint
        self._pending.appended.append(record)
        self._pending.head = Head(record.number, record.hash, record.at_us, checkpoint)
        self._pending.end = [record]

    def records(self, first: int, limit: int) -> list[Record]:
        rows = self._fetch(f"SELECT {_RECORD} FROM journal WHERE number >= ? ORDER BY number LIMIT ?", (first, limit))
        stored = [Record(*row) for row in rows]
        return [*stored, *(record for record in self._pending.appended if record.number >= first)][:limit]

    def prefetch(self, scopes: Sequence[Scope]) -> None:
        missing = [scope for scope in scopes if scope not in self._pending.scopes]
        if not missing:
            return
        marks = ", ".join("?" * len(missing))
        rows = self._fetch(f"SELECT {_SCOPE} FROM scopes WHERE key IN ({marks})", [scope.key for scope in missing])
        self._pending.scopes.update(dict.fromkeys(missing))
        self._pending.scopes.update({row.scope: row for row in (ScopeRow.from_columns(*columns) for columns in rows)})

    def scope(self, scope: Scope) -> ScopeRow | None:
        if scope not in self._pending.scopes:
            self.prefetch([scope])
        return self._pending.scopes[scope]

    def scopes(self, dataset: str | None = None) -> list[ScopeRow]:
        where, values = ("", ()) if dataset is None else (" WHERE dataset = ?", (dataset,))
        rows = [] if self._pending.is_cleared else self._fetch(f"SELECT {_SCOPE} FROM scopes{where}", values)
        stored = {row.scope: row for row in (ScopeRow.from_columns(*columns) for columns in rows)}
        here = {scope: row for scope, row in self._pending.scopes.items() if row and dataset in (None, scope.dataset)}
        return [row for _, row in sorted((stored | here).items())]

    def put_scope(self, row: ScopeRow) -> None:
        self._pending.scopes[row.scope] = row
        self._pending.changes["scope", row.scope] = (_PUT_SCOPE, (row.scope.dataset, *row.columns))

    def permit(self, permit_id: str) -> PermitRow | None:
        if permit_id not in self._pending.permits:
            found = self._permit_rows("WHERE id = ?", permit_id)
            self._pending.permits[permit_id] = found[0] if found else None
        return self._pending.permits[permit_id]

    def permit_by_key(self, dataset: str, key: str) -> PermitRow | None:
        for row in self._pending.permits.values():
            if row is not None and (row.dataset, row.key) == (dataset, key):
                return row
        found = self._permit_rows("WHERE dataset = ? AND key = ?", dataset, key)
        return found[0] if found else None

    def permits(self, *, only_open: bool = False) -> list[PermitRow]:
        stored = self._permit_rows("WHERE state = 'reserved'" if only_open else "")
        return [row for row in _merged(stored, self._pending.permits) if not only_open or row.state == "reserved"]

    def put_permit(self, row: PermitRow) -> None:
        self._pending.permits[row.id] = row
        columns = _permit_columns(row)
        self._pending.changes["permit", row.id] = (_PUT_PERMIT, (*columns[:5], int(row.is_refunded), *columns[6:]))

    def request(self, request_id: str) -> RequestRow | None:
        if request_id not in self._pending.requests:
            rows = self._fetch(f"SELECT {_REQUEST} FROM requests WHERE id = ?", (request_id,))
            self._pending.requests[request_id] = RequestRow(*rows[0]) if rows else None
        return self._pending.requests[request_id]

    def requests(self, *, only_open: bool = False) -> list[RequestRow]:
        where = "WHERE state = 'filed'" if only_open else ""
        stored = [RequestRow(*row) for row in self._fetch(f"SELECT {_REQUEST} FROM requests {where}", ())]
        return [row for row in _merged(stored, self._pending.requests) if not only_open or row.state == "filed"]

    def put_request(self, row: RequestRow) -> None:
        self._pending.requests[row.id] = row
        self._pending.changes["request", row.id] = (_PUT_REQUEST, _request_columns(row))

    def answer(self, plan_sha256: str, data_version: str) -> AnswerRow | None:
        key = plan_sha256, data_version
        if key not in self._pending.answers:
            rows = self._fetch(f"SELECT {_ANSWER} FROM answers WHERE plan_sha256 = ? AND data_version = ?", key)
            self._pending.answers[key] = AnswerRow(*rows[0]) if rows else None
        return self._pending.answers[key]

    def answers(self) -> list[AnswerRow]:
        return [AnswerRow(*row) for row in self._fetch(f"SELECT {_ANSWER} FROM answers", ())]

    def put_answer(self, row: AnswerRow) -> None:
        self._pending.answers[row.plan_sha256, row.data_version] = row
        self._pending.changes["answer", row.plan_sha256, row.data_version] = (_PUT_ANSWER, _answer_columns(row))

    def drop_answer(self, plan_sha256: str, data_version: str) -> None:
        self._pending.answers[plan_sha256, data_version] = None
        self._pending.changes["answer", plan_sha256, data_version] = (_DROP_ANSWER, (plan_sha256, data_version))

    def content(self, sha256: str) -> bytes | None:
        if sha256 in self._pending.contents:
            return self._pending.contents[sha256]
        rows = self._fetch("SELECT bytes FROM contents WHERE sha256 = ?", (sha256,))
        return bytes(rows[0][0]) if rows else None

    def put_content(self, sha256: str, content: bytes) -> None:
        self._pending.contents[sha256] = content
        self._pending.changes["content", sha256] = (_PUT_CONTENT, (sha256, content))

    def clear_caches(self) -> None:
        self._pending.is_cleared = True
        caches: tuple[dict[Any, Any], ...] = (
            self._pending.scopes,
            self._pending.permits,
            self._pending.requests,
            self._pending.answers,
            self._pending.changes,
        )
        for known in caches:
            known.clear()

    def savepoint(self) -> Pending:
        self.end()  # what was read before is no change to be undone
        return self._pending.copy()

    def undo_to(self, savepoint: object) -> None:
        assert isinstance(savepoint, Pending)
        self._pending = savepoint

    def _permit_rows(self, where: str, *values: str) -> list[PermitRow]:
        rows = self._fetch(f"SELECT {_PERMIT} FROM permits {where}", values)
        return [replace(PermitRow(*row), is_refunded=bool(row[5])) for row in rows]

    def _read_end(self, rows: Columns) -> None:
        if not rows or len({row[:4] for row in rows}) != 1:
            raise LedgerCorrupt("the ledger does not know where its journal ends", differs="head")
        self._pending.head = Head(*rows[0][:4])
        self._pending.end = [
            Record(*row[4:]) for row in sorted(rows, key=lambda row: row[4] or 0) if row[4] is not None
        ]


Row = TypeVar("Row", PermitRow, RequestRow)


def _merged(stored: Iterable[Row], pending: Mapping[str, Row | None]) -> list[Row]:
    """Return rows in the order of their records, as a transaction has left them."""
    rows = {row.id: row for row in stored} | {row.id: row for row in pending.values() if row is not None}
    return sorted(rows.values(), key=lambda row: row.record)
