"""How many bytes of answers are stored, of one person and of all; and how much is kept beside the ledger.

The ledger keeps every answer for good, for the same question again is answered with it at no cost. So the size that a
plan predicts is reserved before the charge and refused (T713) where it does not fit; after the run, the real size takes
its place. A reservation whose process died is dropped when the question would have timed out; what it stored is then
not counted. Those who keep a budget are charged on no cap of their own, and count in the total only. Answers that were
released before this was counted are not in it.

Documents of releases and jobs are copies: the oldest are removed (`prune`) where they pass the same limits.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from typing import Final, Literal

from tacit.privacy.errors import AnswersFull
from tacit.server.database import Database, Execute
from tacit.server.settings import Limits

GRACE_S: Final = 600.0
"""How long after its time limit a question still counts as under way."""
PRUNED_PART: Final = 64
"""Documents are pruned when so small a part of the limit was written since the last time."""
COUNTED_MAX: Final = 10_000
"""For how many people it is counted what was written since the last time."""
KEYS: Final = {"releases": "permit", "jobs": "id"}
ENDED: Final = {"releases": "TRUE", "jobs": "state <> 'running'"}
"""Which rows may be removed."""


@dataclass(frozen=True, slots=True)
class Usage:
    """How much of the answers that are stored is a person's, or everybody's."""

    bytes: int
    answers: int


class AnswerQuota:
    """The bytes of answers that people have had stored; as `ledger.quota`, every charge asks it first."""

    def __init__(self, database: Database, limits: Limits) -> None:
        self._database, self._limits = database, limits

    def reserve(self, analyst: str | None, size: int) -> str:
        """Set bytes apart for an answer, or raise AnswersFull; return what `settle` takes."""
        person, now_us, name = analyst or "", time.time_ns() // 1000, secrets.token_hex(12)
        died_us = now_us - int((self._limits.question_s + GRACE_S) * 1e6)
        with self._database.transaction() as execute:
            execute("DELETE FROM answer_reservations WHERE at_us < ?", (died_us,))
            own = _taken(execute, person)
            if person and own + size > self._limits.answer_bytes_each:
                raise _full(f"the stored answers of {person}", own, size, self._limits.answer_bytes_each, "_each")
            total = _taken(execute, None)
            if total + size > self._limits.answer_bytes:
                raise _full("all stored answers", total, size, self._limits.answer_bytes, "")
            execute("INSERT INTO answer_reservations VALUES (?, ?, ?, ?)", (name, person, size, now_us))
        return name

    def settle(self, reservation: str, size: int) -> None:
        """Count an answer that was stored; of size 0, that none was."""
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
        """Return what is stored, by person; under an empty name, of those who keep budgets."""
        rows = self._database.read("SELECT person, bytes, answers FROM answer_bytes ORDER BY person")
        return {person: Usage(int(size), int(answers)) for person, size, answers in rows}


class Pruning:
    """Keeps the documents in a table within limits, the newest of each person and of all."""

    def __init__(self, table: Literal["releases", "jobs"], limits: Limits) -> None:
        self._table, self._limits = table, limits
        self._added: dict[str, int] = {}

    def prune(self, execute: Execute, person: str, size: int) -> None:
        """Remove the oldest documents that do not fit, after one of so many bytes was written."""
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


def _taken(execute: Execute, person: str | None) -> int:
    """Return the bytes that are stored or reserved, of a person or of all."""
    where, values = ("", ()) if person is None else (" WHERE person = ?", (person,))
    return sum(
        int(execute(f"SELECT COALESCE(SUM(bytes), 0) FROM {table}{where}", values)[0][0])
        for table in ("answer_bytes", "answer_reservations")
    )


def _full(what: str, taken: int, size: int, most: int, ending: str) -> AnswersFull:
    return AnswersFull(
        f"{what} take {_mib(taken)} of {_mib(most)} MiB, and this one could take {_mib(size)}; nothing was charged. "
        "Ask for fewer groups or numbers, ask again what was answered before, or let the owner raise "
        f"limits.answer_bytes{ending}"
    )


def _mib(size: int) -> str:
    return f"{size / 2**20:,.1f}"
