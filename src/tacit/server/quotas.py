"""Storage quotas: bytes of stored answers, of one person and in total.

The ledger keeps every answer, because the same query is answered from it at no cost. So the size that a plan predicts
is reserved before the charge, or refused (T713) if it does not fit, and replaced by the real size after the run. The
reservation of a process that died expires when its query would have timed out; an answer that it stored is then not
counted. People who manage a budget have no cap of their own and count in the total only.

The stored JSON of releases and jobs is a copy: `Pruning` deletes the oldest beyond the same limits.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from typing import Final, Literal

from tacit.privacy.errors import AnswersFull
from tacit.server.database import Database, Execute
from tacit.server.settings import ServerLimits

GRACE_S: Final = 600.0
"""How long after its time limit a query still counts as running."""
PRUNED_PART: Final = 64
"""A table is pruned each time that 1 / PRUNED_PART of a person's limit was written to it."""
COUNTED_MAX: Final = 10_000
"""People for whom the bytes since the last pruning are counted in memory."""
KEYS: Final = {"releases": "permit", "jobs": "id"}
ENDED: Final = {"releases": "TRUE", "jobs": "state <> 'running'"}
"""The condition on rows that may be deleted."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Bytes and number of stored answers."""

    bytes: int
    answers: int


class AnswerQuota:
    """Reserves and counts bytes of stored answers; as `ledger.quota` it is called before every charge."""

    def __init__(self, database: Database, limits: ServerLimits) -> None:
        self._database, self._limits = database, limits

    def reserve(self, analyst: str | None, size: int) -> str:
        """Reserve bytes for an answer and return the id of the reservation, or raise AnswersFull."""
        person, now_us, name = analyst or "", time.time_ns() // 1000, secrets.token_hex(12)
        died_us = now_us - int((self._limits.question_s + GRACE_S) * 1e6)
        with self._database.transaction() as execute:
            execute("DELETE FROM answer_reservations WHERE at_us < ?", (died_us,))
            own = _used_bytes(execute, person)
            if person and own + size > self._limits.answer_bytes_each:
                raise _full(f"the stored answers of {person}", own, size, self._limits.answer_bytes_each, "_each")
            total = _used_bytes(execute, None)
            if total + size > self._limits.answer_bytes:
                raise _full("all stored answers", total, size, self._limits.answer_bytes, "")
            execute("INSERT INTO answer_reservations VALUES (?, ?, ?, ?)", (name, person, size, now_us))
        return name

    def settle(self, reservation: str, size: int) -> None:
        """Replace a reservation by the size of the stored answer, 0 if none was stored."""
        with self._database.transaction() as execute:
            rows = execute("SELECT person FROM answer_reservations WHERE id = ?", (reservation,))
            execute("DELETE FROM answer_reservations WHERE id = ?", (reservation,))
            if rows and size:
                execute(
                    "INSERT INTO answer_bytes (person, bytes, answers) VALUES (?, ?, 1) ON CONFLICT (person) DO UPDATE "
                    "SET bytes = answer_bytes.bytes + excluded.bytes, answers = answer_bytes.answers + 1",
                    (rows[0][0], size),
                )

    def usage(self) -> dict[str, Usage]:
        """Return what is stored, by person; the empty name stands for those who manage budgets."""
        rows = self._database.read("SELECT person, bytes, answers FROM answer_bytes ORDER BY person")
        return {person: Usage(int(size), int(answers)) for person, size, answers in rows}


class Pruning:
    """Keeps the stored documents of a table within the limits of each person and of all."""

    def __init__(self, table: Literal["releases", "jobs"], limits: ServerLimits) -> None:
        self._table, self._limits = table, limits
        self._added: dict[str, int] = {}

    def prune(self, execute: Execute, person: str, size: int) -> None:
        """Delete the oldest documents beyond the limits, after `size` bytes were written."""
        added = self._added.get(person)
        if added is not None and added + size <= self._limits.answer_bytes_each // PRUNED_PART:
            self._added[person] = added + size
            return
        self._remove(execute, " AND person = ?", (person,), self._limits.answer_bytes_each)
        self._remove(execute, "", (), self._limits.answer_bytes)
        if len(self._added) >= COUNTED_MAX:
            self._added.clear()
        self._added[person] = 0

    def _remove(self, execute: Execute, where: str, values: tuple[str, ...], most: int) -> None:
        key, ended = KEYS[self._table], ENDED[self._table]
        execute(
            f"DELETE FROM {self._table} WHERE {key} IN (SELECT {key} FROM (SELECT {key}, SUM(bytes) OVER "
            f"(ORDER BY asked_at_us DESC, {key}) AS upto FROM {self._table} WHERE {ended}{where}) AS ranked "
            "WHERE upto > ?)",
            (*values, most),
        )


def _used_bytes(execute: Execute, person: str | None) -> int:
    """Return the bytes stored or reserved, of a person or of all."""
    where, values = ("", ()) if person is None else (" WHERE person = ?", (person,))
    return sum(
        int(execute(f"SELECT COALESCE(SUM(bytes), 0) FROM {table}{where}", values)[0][0])
        for table in ("answer_bytes", "answer_reservations")
    )


def _full(what: str, taken: int, size: int, most: int, ending: str) -> AnswersFull:
    return AnswersFull(
        f"{what} take {_mib(taken)} of {_mib(most)} MiB, and this answer may take {_mib(size)}; nothing was charged. "
        "Ask for fewer groups or numbers, repeat an answered query, or ask the owner to raise "
        f"limits.answer_bytes{ending}"
    )


def _mib(size: int) -> str:
    return f"{size / 2**20:,.1f}"
