"""What was refused and what was changed: who, what, to what, from where, when.

A record holds no question, no answer, no token and no password: names are kept as they are only where they look like
names, and as a short digest otherwise, for somebody may have typed a password where a name goes. A flood of the same
refusals within a minute is one record with a count; one of many different ones ends in a record for all the others.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from tacit.ledger.permits import time_of
from tacit.server.access.passwords import sha256
from tacit.server.access.roles import Resource
from tacit.server.database import Database, Execute

DONE: Final = "done"
"""The code of what was not refused."""

MINUTE_US: Final = 60_000_000
RESOURCES_MAX: Final = 10
"""How many records one actor gets for one action and code within a minute."""

REFUSALS_MAX: Final = 300
"""How many records refusals get within a minute, whoever makes them."""

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
    """One thing that was refused or changed, or several of the same within a minute."""

    number: int
    at: datetime
    actor: str
    action: str
    resource: Resource
    code: str
    address: str
    count: int = 1


class Audit:
    """The records, in the order in which things happened."""

    def __init__(self, database: Database, clock: Callable[[], int]) -> None:
        self._database = database
        self._clock = clock

    def note(self, actor: str, action: str, resource: Resource, code: str, address: str = "") -> None:
        """Write a record."""
        with self._database.transaction() as execute:
            self.add(execute, actor, action, resource, code, address)

    def add(self, execute: Execute, actor: str, action: str, resource: Resource, code: str, address: str = "") -> None:
        """Write a record together with the change that it is about."""
        now = self._clock()
        resource = Resource(*(None if part is None else shown(part) for part in _parts(resource)))
        actor = shown(actor)
        number = None
        if code != DONE:
            number, is_flood = self._same(execute, now, actor, action, resource, code)
            if number is None and is_flood:
                actor, resource, address = OTHERS, Resource(), ""
                number, _ = self._same(execute, now, actor, action, resource, code)
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
    def _same(
        execute: Execute, now: int, actor: str, action: str, resource: Resource, code: str
    ) -> tuple[int | None, bool]:
        """Return the record of the last minute that this one is the same as, and whether there are too many others."""
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


def shown(text: str) -> str:
    """Return a name as it is, and anything that may be a secret as a digest too short to guess it from."""
    if not text or text == OTHERS or _OWN_WORDS.fullmatch(text):
        return text
    mixes = all(any(test(one) for one in text) for test in (str.islower, str.isupper, str.isdigit))
    if _NAME.fullmatch(text) and not (text.startswith("tacit_") or (mixes and len(text) >= MIXED_LENGTH_MIN)):
        return text
    return f"?{sha256(text)[:8]}"


def shown_stranger(text: str) -> str:
    """Return the name that somebody unknown gave: only what can hardly be anything but a name is kept as it is."""
    return text if len(text) <= STRANGER_LENGTH_MAX and _PLAIN_NAME.fullmatch(text) else f"?{sha256(text)[:8]}"


def _parts(resource: Resource) -> tuple[str | None, str | None, str | None]:
    return resource.dataset, resource.table, resource.person


def _address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return shown(text[:64])


def _record(row: tuple[Any, ...]) -> AuditRecord:
    number, at_us, actor, action, dataset, table, person, code, address, count = row
    resource = Resource(dataset or None, table or None, person or None)
    return AuditRecord(number, time_of(at_us), actor, action, resource, code, address, count)
