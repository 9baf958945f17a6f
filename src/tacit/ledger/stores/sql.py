"""Rows in SQL tables, the same statements for every store.

Reads go to the database at once; writes are kept until the transaction ends and then sent together, each row once and
in the order that foreign keys need. What was written or read before in the transaction is answered from memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any, Final, TypeAlias

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
_RESERVED: Final = "'reserved'"
_CLEAR: Final = tuple(f"DELETE FROM {table}" for table in ("answers", "requests", "permits", "scopes"))


class SqlTransaction(Transaction):
    """One transaction's view of the tables."""

    def __init__(self, fetch: Fetch, end: Columns | None = None) -> None:
        self._fetch = fetch
        self._head: Head | None = None
        self._end: list[Record] = []
        self._appended: list[Record] = []
        self._scopes: dict[Scope, ScopeRow | None] = {}
        self._permits: dict[str, PermitRow | None] = {}
        self._requests: dict[str, RequestRow | None] = {}
        self._is_cleared = False
        self._changes: dict[object, Statement] = {}
        """What to write of each row that was changed; the last change of a row stands."""
        if end is not None:
            self._read_end(end)

    def statements(self) -> Iterator[Statement]:
        """Yield what has to be executed for the changes to be on disk."""
        if self._is_cleared:
            yield from ((statement, ()) for statement in _CLEAR)
        yield from ((_APPEND, _record_columns(record)) for record in self._appended)
        yield from self._changes.values()
        if self._appended:
            head = self.head()
            yield _MOVE_HEAD, (head.number, head.hash, head.at_us, head.checkpoint)

    def head(self) -> Head:
        if self._head is None:
            self._read_end(self._fetch(END, ()))
        assert self._head is not None
        return self._head

    def end(self) -> list[Record]:
        if self._head is None:
            self._read_end(self._fetch(END, ()))
        return self._end

    def append(self, record: Record, *, is_checkpoint: bool = False) -> None:
        checkpoint = record.number if is_checkpoint else self.head().checkpoint
        self._appended.append(record)
        self._head = Head(record.number, record.hash, record.at_us, checkpoint)

    def records(self, first: int, limit: int) -> list[Record]:
        rows = self._fetch(f"SELECT {_RECORD} FROM journal WHERE number >= ? ORDER BY number LIMIT ?", (first, limit))
        return [Record(*row) for row in rows]

    def prefetch(self, scopes: Sequence[Scope]) -> None:
        missing = [scope for scope in scopes if scope not in self._scopes]
        marks = ", ".join("?" * len(missing))
        rows = self._fetch(f"SELECT {_SCOPE} FROM scopes WHERE key IN ({marks})", [scope.key for scope in missing])
        self._scopes.update(dict.fromkeys(missing))
        self._scopes.update({row.scope: row for row in (ScopeRow.from_columns(*columns) for columns in rows)})

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
        self._scopes[row.scope] = row
        self._changes["scope", row.scope] = (_PUT_SCOPE, (row.scope.dataset, *row.columns))

    def permit(self, permit_id: str) -> PermitRow | None:
        if permit_id not in self._permits:
            found = self._permit_rows("WHERE id = ?", permit_id)
            self._permits[permit_id] = found[0] if found else None
        return self._permits[permit_id]

    def permit_by_key(self, dataset: str, key: str) -> PermitRow | None:
        found = self._permit_rows("WHERE dataset = ? AND key = ?", dataset, key)
        return found[0] if found else None

    def permits(self, *, only_open: bool = False) -> list[PermitRow]:
        return self._permit_rows(f"{'WHERE state = ' + _RESERVED if only_open else ''} ORDER BY record")

    def put_permit(self, row: PermitRow) -> None:
        self._permits[row.id] = row
        columns = _permit_columns(row)
        self._changes["permit", row.id] = (_PUT_PERMIT, (*columns[:5], int(row.is_refunded), *columns[6:]))

    def request(self, request_id: str) -> RequestRow | None:
        if request_id not in self._requests:
            rows = self._fetch(f"SELECT {_REQUEST} FROM requests WHERE id = ?", (request_id,))
            self._requests[request_id] = RequestRow(*rows[0]) if rows else None
        return self._requests[request_id]

    def requests(self, *, only_open: bool = False) -> list[RequestRow]:
        where = "WHERE state = 'filed' " if only_open else ""
        rows = self._fetch(f"SELECT {_REQUEST} FROM requests {where}ORDER BY record", ())
        return [RequestRow(*row) for row in rows]

    def put_request(self, row: RequestRow) -> None:
        self._requests[row.id] = row
        self._changes["request", row.id] = (_PUT_REQUEST, _request_columns(row))

    def answer(self, plan_sha256: str, data_version: str) -> AnswerRow | None:
        where = "WHERE plan_sha256 = ? AND data_version = ?"
        rows = self._fetch(f"SELECT {_ANSWER} FROM answers {where}", (plan_sha256, data_version))
        return AnswerRow(*rows[0]) if rows else None

    def answers(self) -> list[AnswerRow]:
        return [AnswerRow(*row) for row in self._fetch(f"SELECT {_ANSWER} FROM answers", ())]

    def put_answer(self, row: AnswerRow) -> None:
        self._changes["answer", row.plan_sha256, row.data_version] = (_PUT_ANSWER, _answer_columns(row))

    def drop_answer(self, plan_sha256: str, data_version: str) -> None:
        self._changes["answer", plan_sha256, data_version] = (_DROP_ANSWER, (plan_sha256, data_version))

    def content(self, sha256: str) -> bytes | None:
        rows = self._fetch("SELECT bytes FROM contents WHERE sha256 = ?", (sha256,))
        return bytes(rows[0][0]) if rows else None

    def put_content(self, sha256: str, content: bytes) -> None:
        self._changes["content", sha256] = (_PUT_CONTENT, (sha256, content))

    def clear_caches(self) -> None:
        self._is_cleared = True
        for known in (self._scopes, self._permits, self._requests, self._changes):
            known.clear()

    def _permit_rows(self, where: str, *values: str) -> list[PermitRow]:
        rows = self._fetch(f"SELECT {_PERMIT} FROM permits {where}", values)
        return [replace(PermitRow(*row), is_refunded=bool(row[5])) for row in rows]

    def _read_end(self, rows: Columns) -> None:
        if not rows or len({row[:4] for row in rows}) != 1:
            raise LedgerCorrupt("the ledger does not know where its journal ends", differs="head")
        self._head = Head(*rows[0][:4])
        self._end = [Record(*row[4:]) for row in sorted(rows, key=lambda row: row[4] or 0) if row[4] is not None]
