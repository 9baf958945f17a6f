"""Audit records of refusals and changes: actor, action, resource, client address, time.

A record holds no query, answer, token or password. A name is stored as it is only if it looks like a name, and as a
short digest otherwise, since a password may have been typed in its place. Equal refusals within a minute share one
record with a count; where there are too many different ones, the rest share a record too.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from tacit.ledger.clock import time_of
from tacit.server.access.passwords import sha256
from tacit.server.access.roles import Resource
from tacit.server.database import Database, Execute

DONE: Final = "done"
"""The code of a record that is not a refusal."""

MINUTE_US: Final = 60_000_000
RESOURCES_MAX: Final = 10
"""Records of one actor, action and code within a minute."""

REFUSALS_MAX: Final = 300
"""Records of refusals within a minute, of all actors."""

OTHERS: Final = "(others)"
LIMIT_MAX: Final = 1000
MIXED_LENGTH_MIN: Final = 10
STRANGER_LENGTH_MAX: Final = 20
_NAME: Final = re.compile(r"\w[\w.@+ \-]{0,63}")
_PLAIN_NAME: Final = re.compile(r"[a-z]{1,12}([._@\-][a-z]{1,12})*\d{0,3}", re.IGNORECASE)
_OWN_WORDS: Final = re.compile(r"token [0-9a-f]{12}|\?[0-9a-f]{8}")
_COLUMNS: Final = "number, at_us, actor, action, dataset, table_name, person, code, address, count"


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """A refusal or a change; `count` equal refusals within a minute."""

    number: int
    at: datetime
    actor: str
    action: str
    resource: Resource
    code: str
    address: str
    count: int = 1


class Audit:
    """The audit records in the server's database."""

    def __init__(self, database: Database, clock: Callable[[], int]) -> None:
        self._database = database
        self._clock = clock

    def record(self, actor: str, action: str, resource: Resource, code: str, address: str = "") -> None:
        """Write a record in a transaction of its own."""
        with self._database.transaction() as execute:
            self.add(execute, actor, action, resource, code, address)

    def add(self, execute: Execute, actor: str, action: str, resource: Resource, code: str, address: str = "") -> None:
        """Write a record in the transaction of the change that it is about."""
        now = self._clock()
        resource = Resource(*(None if part is None else masked(part) for part in _parts(resource)))
        actor = masked(actor)
        number = None
        if code != DONE:
            number, is_flood = self._matching(execute, now, actor, action, resource, code)
            if number is None and is_flood:
                actor, resource, address = OTHERS, Resource(), ""
                number, _ = self._matching(execute, now, actor, action, resource, code)
        if number is not None:
            execute("UPDATE audit SET count = count + 1 WHERE number = ?", (number,))
            return
        places = [part or "" for part in _parts(resource)]
        ((last,),) = execute("SELECT COALESCE(MAX(number), 0) FROM audit", ())
        execute(
            f"INSERT INTO audit ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 1)",
            (last + 1, now, actor, action, *places, code, _address(address)),
        )

    def records(self, first: int = 1, limit: int = 100) -> list[AuditRecord]:
        """Return records from number `first` on."""
        rows = self._database.read(
            f"SELECT {_COLUMNS} FROM audit WHERE number >= ? ORDER BY number LIMIT ?",
            (max(first, 1), min(max(limit, 0), LIMIT_MAX)),
        )
        return [_record(row) for row in rows]

    def last(self) -> int:
        """Return the number of the newest record, or 0."""
        return int(self._database.read("SELECT COALESCE(MAX(number), 0) FROM audit")[0][0])

    @staticmethod
    def _matching(
        execute: Execute, now: int, actor: str, action: str, resource: Resource, code: str
    ) -> tuple[int | None, bool]:
        """Return the record of the last minute to count this refusal in, if any, and whether the limit is reached."""
        refusals = execute(
            "SELECT number, actor, action, code, dataset, table_name, person FROM audit "
            "WHERE at_us > ? AND at_us <= ? AND code <> ? ORDER BY number",
            (now - MINUTE_US, now, DONE),
        )
        alike = [row for row in refusals if row[1:4] == (actor, action, code)]
        same = [row for row in alike if row[4:] == tuple(part or "" for part in _parts(resource))]
        if same:
            return same[-1][0], False
        if len(alike) >= RESOURCES_MAX:
            return alike[-1][0], False
        return None, len(refusals) >= REFUSALS_MAX


def masked(text: str) -> str:
    """Return a name as it is, and a text that may be a secret as a digest too short to recover it."""
    if not text or text == OTHERS or _OWN_WORDS.fullmatch(text):
        return text
    mixes = all(any(test(one) for one in text) for test in (str.islower, str.isupper, str.isdigit))
    if _NAME.fullmatch(text) and not (text.startswith("tacit_") or (mixes and len(text) >= MIXED_LENGTH_MIN)):
        return text
    return f"?{sha256(text)[:8]}"


def masked_stranger(text: str) -> str:
    """Return the name of a failed login; it is masked unless it can hardly be a password."""
    return text if len(text) <= STRANGER_LENGTH_MAX and _PLAIN_NAME.fullmatch(text) else f"?{sha256(text)[:8]}"


def _parts(resource: Resource) -> tuple[str | None, str | None, str | None]:
    return resource.dataset, resource.table, resource.person


def _address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return masked(text[:64])


def _record(row: tuple[Any, ...]) -> AuditRecord:
    number, at_us, actor, action, dataset, table, person, code, address, count = row
    resource = Resource(dataset or None, table or None, person or None)
    return AuditRecord(number, time_of(at_us), actor, action, resource, code, address, count)
