"""Answers of SQL as responses, as CSV and Arrow; their cache, and their store by permit."""

from __future__ import annotations

import csv
import io
import json
import threading
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from importlib.util import find_spec
from itertools import islice
from typing import Any, Final

from cachetools import LRUCache

from tacit.accounting.conversions import Cost
from tacit.ledger.clock import time_of
from tacit.privacy.errors import TooWide, Unavailable
from tacit.privacy.tables import Kind
from tacit.query import Plan, Release
from tacit.query.allocation import group_counts
from tacit.server.database import Database
from tacit.server.quotas import Pruning
from tacit.server.settings import ServerLimits
from tacit.wire.responses import ColumnResponse, CostResponse, PaidResponse, ReleaseResponse, cost_responses
from tacit.wire.values import MOMENTS, encode, kind_of

DOCUMENT_BYTES_MAX: Final = 2**24
"""A larger answer is not stored here; the same query is answered from the ledger at no cost."""

CACHED_ANSWERS_MAX: Final = 512
CACHED_ROWS_MAX: Final = 1_000
FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r", "\n")
"""First characters of texts that spreadsheets read as formulas."""


def release_response(
    release: Release, level: float, remaining: Mapping[str, Cost], rows_max: int, analyst: str | None = None
) -> ReleaseResponse:
    """Return the response of an answer, with its first `rows_max` rows and the analyst whose cap was charged.

    An answer with a public number of rows above that was refused before the charge (`require_rows`).
    """
    rows, card = release.rows[:rows_max], release.card
    if len(rows) < len(release.rows):
        card += (
            f" The server shows {rows_max:,} of {len(release.rows):,} rows; LIMIT and OFFSET show the others at no "
            "further cost."
        )
    return ReleaseResponse(
        columns=[ColumnResponse(name=name, kind=kind_of([row[name] for row in rows])) for name in release.columns],
        rows=encode(rows),
        intervals=encode(release.intervals(level)[:rows_max]),
        level=level,
        cost=CostResponse.of(release.cost),
        remaining=cost_responses(remaining),
        analyst=analyst,
        permit=release.permit.id if release.permit is not None else None,
        permits=[permit.id for permit in release.permits],
        datasets=list(release.datasets),
        counted=release.counted,
        warnings=list(release.warnings),
        card=card,
        simulated=release.simulated,
    )


def require_rows(plan: Plan, rows_max: int) -> None:
    """Raise TooWide if the number of rows of an answer is public and above the limit."""
    question = plan.question
    if plan.domains is None or question.after or question.distinct or question.having is not None:
        return  # the number of rows depends on what is released
    groups = sum(group_counts(plan.domains, question.sets)) if question.sets else plan.groups or 0
    count = max(0, groups - question.offset)
    if question.limit is not None:
        count = min(count, question.limit)
    if count > rows_max:
        raise TooWide(
            f"the answer has {count:,} rows, and the limit of the server is {rows_max:,}",
            accepted="ask for fewer groups, or page with LIMIT and OFFSET at no further cost",
        )


def as_csv(answer: ReleaseResponse) -> bytes:
    """Return the rows of an answer as CSV, with the ends of the intervals in further columns.

    Texts that a spreadsheet would read as formulas are prefixed with an apostrophe.
    """
    out = io.StringIO()
    names = [column.name for column in answer.columns]
    noisy = [name for name in names if any(row.get(name) for row in answer.intervals)]
    writer = csv.writer(out, lineterminator="\r\n")  # with another terminator, texts with \r would not be quoted
    writer.writerow(map(_cell, [*names, *(f"{name}_{end}" for name in noisy for end in ("low", "high"))]))
    for row, spans in zip(answer.rows, answer.intervals, strict=True):
        ends = [end for name in noisy for end in (spans.get(name) or (None, None))]
        writer.writerow(map(_cell, [*(row[name] for name in names), *ends]))
    return out.getvalue().encode()


def _cell(value: Any) -> Any:
    """Return a value that no spreadsheet executes; values and column names are not trusted."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA_STARTS) else value


def require_arrow() -> None:
    """Raise Unavailable unless pyarrow is installed."""
    if find_spec("pyarrow") is None:
        raise Unavailable("answers as Arrow need pyarrow on the server; ask for JSON or CSV")


def as_arrow(answer: ReleaseResponse) -> bytes:
    """Return the rows of an answer as an Arrow IPC stream."""
    import pyarrow as pa

    kinds = {
        Kind.BOOLEAN: pa.bool_(),
        Kind.INTEGER: pa.int64(),
        Kind.REAL: pa.float64(),
        Kind.TEXT: pa.string(),
        Kind.DATE: pa.date32(),
        Kind.TIME: pa.timestamp("us"),
    }
    arrays = {}
    for column in answer.columns:
        values, kind = [row[column.name] for row in answer.rows], kinds[column.kind]
        is_text = column.kind in MOMENTS
        arrays[column.name] = pa.array(values, pa.string()).cast(kind) if is_text else pa.array(values, kind)
    table, sink = pa.table(arrays), io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return sink.getvalue()


class ReleaseCache:
    """The most recently returned answers, so that repeating one takes no computing."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers: LRUCache[Hashable, ReleaseResponse] = LRUCache(CACHED_ANSWERS_MAX)

    def get(self, key: Hashable) -> ReleaseResponse | None:
        """Return a cached answer, or None."""
        with self._lock:
            return self._answers.get(key)

    def put(self, key: Hashable, answer: ReleaseResponse) -> None:
        """Cache an answer, unless it is large."""
        if len(answer.rows) <= CACHED_ROWS_MAX:
            with self._lock:
                self._answers[key] = answer


class ReleaseStore:
    """The answers that were charged, in the server's database."""

    def __init__(self, database: Database, limits: ServerLimits) -> None:
        self._database, self._pruning = database, Pruning("releases", limits)

    def put(self, person: str, answer: ReleaseResponse) -> None:
        """Store an answer under its permit, and delete the oldest beyond the quota."""
        if answer.permit is None or len(text := json.dumps(answer.model_dump())) > DOCUMENT_BYTES_MAX:
            return
        row = (answer.permit, person, json.dumps(answer.datasets), time.time_ns() // 1000, text, len(text))
        with self._database.transaction() as execute:
            execute(
                "INSERT INTO releases (permit, person, datasets, asked_at_us, document, bytes) "
                "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (permit) DO NOTHING",
                row,
            )
            self._pruning.prune(execute, person, len(text))

    def paid_by(self, permit: str) -> tuple[str, list[str]] | None:
        """Return who paid for an answer and from which data sets, or None if it is not stored."""
        rows = self._database.read("SELECT person, datasets FROM releases WHERE permit = ?", (permit,))
        return (rows[0][0], json.loads(rows[0][1])) if rows else None

    def find(self, permit: str) -> ReleaseResponse | None:
        """Return an answer, or None if it is not stored."""
        rows = self._database.read("SELECT document FROM releases WHERE permit = ?", (permit,))
        return ReleaseResponse.model_validate(json.loads(rows[0][0])) if rows else None

    def list_paid(self, is_visible: Callable[[str, list[str]], bool], limit: int) -> list[PaidResponse]:
        """Return permits, payers, costs and cards of the newest answers whose person and data sets are visible."""
        rows = self._database.read("SELECT permit, person, datasets FROM releases ORDER BY asked_at_us DESC")
        seen = (permit for permit, person, datasets in rows if is_visible(person, json.loads(datasets)))
        permits = tuple(islice(seen, limit))
        if not permits:
            return []
        found = self._database.read(
            "SELECT permit, person, datasets, asked_at_us, document FROM releases "
            f"WHERE permit IN ({', '.join('?' * len(permits))}) ORDER BY asked_at_us DESC",
            permits,
        )
        return [_paid(row) for row in found]


def _paid(row: Sequence[Any]) -> PaidResponse:
    permit, person, datasets, asked_at_us, text = row
    document = json.loads(text)
    return PaidResponse(
        permit=permit,
        person=person,
        datasets=json.loads(datasets),
        asked_at=time_of(asked_at_us),
        cost=document["cost"],
        card=document["card"],
    )
