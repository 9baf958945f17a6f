"""Tokens for programs: `tacit_<id>_<secret>`, shown once, stored as a digest, narrowed, expiring, revocable.

Promise: a token is worth what its person may do at this moment, within the token's own limit, until it expires or is
revoked; all of that is looked up at every request. A secret has 256 random bits, so nobody finds one by guessing, and
its SHA-256 digest is as good as a slow hash: comparing it takes microseconds. So wrong secrets cost nothing worth
counting, and whoever knows the identifier of a token cannot keep the right secret waiting.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NoReturn

from tacit.ledger.permits import time_of
from tacit.privacy import texts
from tacit.privacy.errors import (
    InvalidInput,
    NotKnown,
    OutOfRange,
    StorageUnavailable,
    TooLarge,
    UnknownName,
    WrongType,
)
from tacit.server.access.audit import DONE, Audit
from tacit.server.access.passwords import sha256
from tacit.server.access.people import grants_of, is_name, require_active
from tacit.server.access.roles import Action, Actor, Limit, Resource, Role
from tacit.server.database import Database

DAYS_MAX: Final = 365
LABEL_LENGTH_MAX: Final = 128
TOKENS_MAX: Final = 100
"""How many valid tokens one person has at most."""

ENDED_MAX: Final = 1_000
"""How many there are at most together with those that have ended, which are shown for another month."""

USE_NOTED_EVERY_US: Final = 60_000_000
_DAY_US: Final = 86_400_000_000
KEPT_AFTER_END_US: Final = 30 * _DAY_US
_ID: Final = re.compile(r"[0-9a-f]{12}", re.ASCII)
_TEXT: Final = re.compile(r"tacit_([0-9a-f]{12})_([A-Za-z0-9_-]{43})", re.ASCII)
_COLUMNS: Final = "id, person, label, created_at_us, expires_at_us, is_revoked, used_at_us, role, dataset"
UNKNOWN: Final = "the token is unknown, revoked or expired; ask an owner for another one, or log in and make one"


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token that was just made: the only time that its text is seen."""

    id: str
    text: str
    expires_at: datetime

    def __repr__(self) -> str:
        return f"NewToken(id={self.id!r})"


@dataclass(frozen=True, slots=True)
class Token:
    """What is known of a token; its secret is not."""

    id: str
    person: str
    label: str
    created_at: datetime
    expires_at: datetime
    is_revoked: bool
    last_used_at: datetime | None
    role: Role | None
    dataset: str | None


class Tokens:
    """Every token."""

    def __init__(self, database: Database, clock: Callable[[], int], audit: Audit) -> None:
        self._database = database
        self._clock = clock
        self._audit = audit

    def create(
        self, person: str, label: str, days: int, role: Role | str | None, dataset: str | None, by: str, address: str
    ) -> NewToken:
        """Make a token of a person."""
        limit = checked_limit(role, dataset)
        label = texts.note("label", label)
        if len(label) > LABEL_LENGTH_MAX:
            raise TooLarge(f"a label has at most {LABEL_LENGTH_MAX} characters", name="label")
        if isinstance(days, bool) or not isinstance(days, int):
            raise WrongType("days is a whole number", name="days", value=days)
        if not 1 <= days <= DAYS_MAX:
            raise OutOfRange(f"a token lasts 1 to {DAYS_MAX} days, not {days}", name="days", value=days)
        token_id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
        now = self._clock()
        expires_at_us = now + days * _DAY_US
        with self._database.transaction() as execute:
            require_active(execute, person)
            execute("DELETE FROM tokens WHERE expires_at_us <= ?", (now - KEPT_AFTER_END_US,))
            counted = (
                "SELECT COUNT(*), SUM(CASE WHEN is_revoked = 0 AND expires_at_us > ? THEN 1 ELSE 0 END) FROM tokens"
            )
            ((every, alive),) = execute(f"{counted} WHERE person = ?", (now, person))
            if every >= ENDED_MAX:
                raise TooLarge(f"{person} had {ENDED_MAX:,} tokens within a year; use those there are", name="person")
            if (alive or 0) >= TOKENS_MAX:
                raise TooLarge(
                    f"{person} has {TOKENS_MAX} tokens already; revoke those that nobody needs", name="person"
                )
            execute(
                "INSERT INTO tokens (id, person, label, secret_hash, role, dataset, created_at_us, expires_at_us, "
                "is_revoked) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0)",
                (token_id, person, label, sha256(secret), limit.role or "", limit.dataset or "", now, expires_at_us),
            )
            resource = Resource(limit.dataset, None, person)
            self._audit.add(execute, by, Action.TOKEN_WRITE, resource, DONE, address)
        return NewToken(token_id, f"tacit_{token_id}_{secret}", time_of(expires_at_us))

    def all(self, person: str | None = None) -> list[Token]:
        """Return the tokens of a person or of everybody, newest first."""
        if person is not None and not is_name(person):
            return []
        where, values = ("", ()) if person is None else (" WHERE person = ?", (person,))
        rows = self._database.read(f"SELECT {_COLUMNS} FROM tokens{where} ORDER BY created_at_us DESC, id", values)
        return [_token(*row) for row in rows]

    def one(self, token_id: str) -> Token:
        """Return one token."""
        rows = _ID.fullmatch(token_id) and self._database.read(
            f"SELECT {_COLUMNS} FROM tokens WHERE id = ?", (token_id,)
        )
        if not rows:
            raise UnknownName("there is no such token; see which there are: tacit access token list", name="id")
        return _token(*rows[0])

    def revoke(self, token_id: str, by: str, address: str) -> None:
        """End a token at once; one that has ended stays so."""
        person = self.one(token_id).person
        with self._database.transaction() as execute:
            execute("UPDATE tokens SET is_revoked = 1 WHERE id = ?", (token_id,))
            self._audit.add(execute, by, "token.revoke", Resource(person=person), DONE, address)

    def actor(self, text: str, address: str) -> Actor:
        """Return whom a token stands for, or refuse it."""
        match = _TEXT.fullmatch(text)
        rows = self._rows(match[1]) if match else []
        if match is None or not rows:
            self._audit.note("", "token.use", Resource(), NotKnown.code, address)
            raise NotKnown(UNKNOWN)
        token_id, secret = match[1], match[2]
        person, digest, role, dataset, expires_at_us, used_at_us, is_revoked, is_active = rows[0][:8]
        now = self._clock()
        is_right = hmac.compare_digest(sha256(secret).encode(), digest.encode())
        if is_revoked or not is_active or expires_at_us <= now or not is_right:
            self._refuse(token_id, person, address)
        if used_at_us is None or used_at_us <= now - USE_NOTED_EVERY_US:
            self._note_use(token_id, now)
        limit = Limit(Role(role) if role else None, dataset or None) if role or dataset else None
        return Actor(person, grants_of(row[8:] for row in rows), token_id, limit=limit)

    def _rows(self, token_id: str) -> list[tuple[Any, ...]]:
        return self._database.read(
            "SELECT t.person, t.secret_hash, t.role, t.dataset, t.expires_at_us, t.used_at_us, t.is_revoked, "
            "p.is_active, g.role, g.dataset, g.table_name FROM tokens t JOIN people p ON p.name = t.person "
            "LEFT JOIN grants g ON g.person = p.name WHERE t.id = ?",
            (token_id,),
        )

    def _note_use(self, token_id: str, now: int) -> None:
        earlier = now - USE_NOTED_EVERY_US
        noted = "UPDATE tokens SET used_at_us = ? WHERE id = ? AND (used_at_us IS NULL OR used_at_us <= ?)"
        with suppress(StorageUnavailable):  # when a token was used last is good to know, and no reason to fail
            self._database.write((noted, (now, token_id, earlier)))

    def _refuse(self, token_id: str, person: str, address: str) -> NoReturn:
        self._audit.note(f"token {token_id}", "token.use", Resource(person=person), NotKnown.code, address)
        raise NotKnown(UNKNOWN)


def checked_limit(role: Role | str | None, dataset: str | None) -> Limit:
    """Return what a token is narrowed to."""
    try:
        narrowed = None if role is None else Role(role)
    except ValueError:
        raise InvalidInput(f"a role is one of {', '.join(Role)}", name="role", value=role) from None
    return Limit(narrowed, None if dataset is None else texts.name("dataset", dataset))


def _token(
    token_id: str,
    person: str,
    label: str,
    created_at_us: int,
    expires_at_us: int,
    is_revoked: int,
    used_at_us: int | None,
    role: str,
    dataset: str,
) -> Token:
    return Token(
        token_id,
        person,
        label,
        time_of(created_at_us),
        time_of(expires_at_us),
        bool(is_revoked),
        None if used_at_us is None else time_of(used_at_us),
        Role(role) if role else None,
        dataset or None,
    )
