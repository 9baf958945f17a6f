"""API tokens: `tacit_<id>_<secret>`, shown once, stored as a digest, restrictable, expiring, revocable.

Promise: a token gives the present rights of its person within the token's own restriction, until it expires or is
revoked; both are looked up at every request. A secret has 256 random bits, so a plain SHA-256 digest suffices and takes
microseconds to compare. Wrong secrets are therefore not throttled, and knowing a token's identifier is not enough to
delay its owner.

Browser sessions: a random cookie for a person who logged in, and its CSRF token.

Promise: a cookie is 256 random bits and only its digest is stored. A session ends 12 hours after the login, after an
hour without use, at logout, and in every browser when the password changes or the person is removed. The CSRF token is
a keyed digest of the cookie, so it is valid for one session only and can be computed again from the cookie.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NoReturn

from tacit.ledger.clock import time_of
from tacit.privacy import texts
from tacit.privacy.errors import (
    Forged,
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
from tacit.server.access.roles import Action, Actor, Resource, Role, TokenLimit
from tacit.server.database import Database, Execute

DAYS_MAX: Final = 365
LABEL_LENGTH_MAX: Final = 128
TOKENS_MAX: Final = 100
"""Valid tokens of one person."""

ENDED_MAX: Final = 1_000
"""Tokens of one person, including expired ones, which are listed for another month."""

USE_RECORDED_EVERY_US: Final = 60_000_000
_DAY_US: Final = 86_400_000_000
KEPT_AFTER_END_US: Final = 30 * _DAY_US
_ID: Final = re.compile(r"[0-9a-f]{12}", re.ASCII)
_TEXT: Final = re.compile(r"tacit_([0-9a-f]{12})_([A-Za-z0-9_-]{43})", re.ASCII)
_COLUMNS: Final = "id, person, label, created_at_us, expires_at_us, is_revoked, used_at_us, role, dataset"
UNKNOWN: Final = "the token is unknown, revoked or expired; ask an owner for another one, or log in and create one"


@dataclass(frozen=True, slots=True)
class NewToken:
    """A new token; its text cannot be read again later."""

    id: str
    text: str
    expires_at: datetime

    def __repr__(self) -> str:
        return f"NewToken(id={self.id!r})"


@dataclass(frozen=True, slots=True)
class Token:
    """A token without its secret."""

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
    """The tokens in the server's database."""

    def __init__(self, database: Database, clock: Callable[[], int], audit: Audit) -> None:
        self._database = database
        self._clock = clock
        self._audit = audit

    def create(
        self,
        person: str,
        *,
        label: str = "",
        days: int = 90,
        role: Role | str | None = None,
        dataset: str | None = None,
        by: str = "",
        address: str = "",
    ) -> NewToken:
        """Create a token; `role` and `dataset` restrict it to a part of the person's rights."""
        limit = token_limit(role, dataset)
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
                raise TooLarge(
                    f"{person} created {ENDED_MAX:,} tokens within a year; use an existing one", name="person"
                )
            if (alive or 0) >= TOKENS_MAX:
                raise TooLarge(
                    f"{person} has {TOKENS_MAX} tokens already; revoke one that is not needed", name="person"
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
        """Return the tokens of a person, or of all, newest first."""
        if person is not None and not is_name(person):
            return []
        where, values = ("", ()) if person is None else (" WHERE person = ?", (person,))
        rows = self._database.read(f"SELECT {_COLUMNS} FROM tokens{where} ORDER BY created_at_us DESC, id", values)
        return [_token(*row) for row in rows]

    def one(self, token_id: str) -> Token:
        """Return a token, or raise UnknownName."""
        rows = _ID.fullmatch(token_id) and self._database.read(
            f"SELECT {_COLUMNS} FROM tokens WHERE id = ?", (token_id,)
        )
        if not rows:
            raise UnknownName("there is no such token; list them with: tacit access token list", name="id")
        return _token(*rows[0])

    def revoke(self, token_id: str, *, by: str = "", address: str = "") -> None:
        """Revoke a token."""
        person = self.one(token_id).person
        with self._database.transaction() as execute:
            execute("UPDATE tokens SET is_revoked = 1 WHERE id = ?", (token_id,))
            self._audit.add(execute, by, "token.revoke", Resource(person=person), DONE, address)

    def actor(self, text: str, address: str) -> Actor:
        """Return the actor of a token, or record the attempt and raise NotKnown."""
        match = _TEXT.fullmatch(text)
        rows = self._rows(match[1]) if match else []
        if match is None or not rows:
            self._audit.record("", "token.use", Resource(), NotKnown.code, address)
            raise NotKnown(UNKNOWN)
        token_id, secret = match[1], match[2]
        person, digest, role, dataset, expires_at_us, used_at_us, is_revoked, is_active = rows[0][:8]
        now = self._clock()
        is_right = hmac.compare_digest(sha256(secret).encode(), digest.encode())
        if is_revoked or not is_active or expires_at_us <= now or not is_right:
            self._refuse(token_id, person, address)
        if used_at_us is None or used_at_us <= now - USE_RECORDED_EVERY_US:
            self._record_use(token_id, now)
        limit = TokenLimit(Role(role) if role else None, dataset or None) if role or dataset else None
        return Actor(person, grants_of(row[8:] for row in rows), token_id, limit=limit)

    def _rows(self, token_id: str) -> list[tuple[Any, ...]]:
        return self._database.read(
            "SELECT t.person, t.secret_hash, t.role, t.dataset, t.expires_at_us, t.used_at_us, t.is_revoked, "
            "p.is_active, g.role, g.dataset, g.table_name FROM tokens t JOIN people p ON p.name = t.person "
            "LEFT JOIN grants g ON g.person = p.name WHERE t.id = ?",
            (token_id,),
        )

    def _record_use(self, token_id: str, now: int) -> None:
        earlier = now - USE_RECORDED_EVERY_US
        update = "UPDATE tokens SET used_at_us = ? WHERE id = ? AND (used_at_us IS NULL OR used_at_us <= ?)"
        with suppress(StorageUnavailable):  # the time of last use is informative only
            self._database.write((update, (now, token_id, earlier)))

    def _refuse(self, token_id: str, person: str, address: str) -> NoReturn:
        self._audit.record(f"token {token_id}", "token.use", Resource(person=person), NotKnown.code, address)
        raise NotKnown(UNKNOWN)


def token_limit(role: Role | str | None, dataset: str | None) -> TokenLimit:
    """Return the restriction of a token, or raise InvalidInput."""
    try:
        restricted = None if role is None else Role(role)
    except ValueError:
        raise InvalidInput(f"a role is one of {', '.join(Role)}", name="role", value=role) from None
    return TokenLimit(restricted, None if dataset is None else texts.name("dataset", dataset))


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


LIFETIME_US: Final = 12 * 3_600_000_000
IDLE_US: Final = 3_600_000_000
SESSIONS_MAX: Final = 20
"""Sessions of one person; a new one beyond this ends the oldest."""

COOKIE_LENGTH: Final = 43


@dataclass(frozen=True, slots=True)
class NewSession:
    """A new session: the text of its cookie, and the CSRF token that pages send with requests that change something."""

    text: str
    csrf: str
    expires_at: datetime

    def __repr__(self) -> str:
        return f"NewSession(expires_at={self.expires_at!r})"


class BrowserSessions:
    """The sessions in the server's database."""

    def __init__(self, database: Database, clock: Callable[[], int]) -> None:
        self._database = database
        self._clock = clock

    def begin(self, execute: Execute, person: str) -> NewSession:
        """Insert a session and delete those that have ended."""
        text, now = secrets.token_urlsafe(32), self._clock()
        execute("DELETE FROM browsers WHERE expires_at_us <= ? OR used_at_us <= ?", (now, now - IDLE_US))
        kept = "SELECT sha256 FROM browsers WHERE person = ? ORDER BY created_at_us DESC, sha256"
        for (oldest,) in execute(kept, (person,))[SESSIONS_MAX - 1 :]:
            execute("DELETE FROM browsers WHERE sha256 = ?", (oldest,))
        execute(
            "INSERT INTO browsers (sha256, person, created_at_us, used_at_us, expires_at_us) VALUES (?, ?, ?, ?, ?)",
            (sha256(text), person, now, now, now + LIFETIME_US),
        )
        return NewSession(text, csrf_of(text), time_of(now + LIFETIME_US))

    def actor(self, text: str) -> Actor:
        """Return the actor of a session cookie, or raise NotKnown."""
        digest, now = sha256(text), self._clock()
        rows = self._database.read(
            "SELECT b.person, b.used_at_us, b.expires_at_us, p.is_active, g.role, g.dataset, g.table_name "
            "FROM browsers b JOIN people p ON p.name = b.person LEFT JOIN grants g ON g.person = p.name "
            "WHERE b.sha256 = ?",
            (digest,),
        )
        if len(text) != COOKIE_LENGTH or not rows:
            raise NotKnown("the session is not known; log in")
        person, used_at_us, expires_at_us, is_active = rows[0][:4]
        if not is_active or now >= expires_at_us or now - used_at_us >= IDLE_US:
            raise NotKnown("the session has expired; log in again")
        if now - used_at_us >= USE_RECORDED_EVERY_US:
            with suppress(StorageUnavailable):  # the session may then end up to a minute early
                self._database.write(("UPDATE browsers SET used_at_us = ? WHERE sha256 = ?", (now, digest)))
        return Actor(person, grants_of(row[4:] for row in rows), is_session=True, csrf_sha256=sha256(csrf_of(text)))

    def end(self, text: str) -> None:
        """Delete the session of a cookie, if there is one."""
        self._database.write(("DELETE FROM browsers WHERE sha256 = ?", (sha256(text),)))


def csrf_of(cookie: str) -> str:
    """Return the CSRF token of a session cookie."""
    digest = hmac.new(cookie.encode("utf-8", "surrogatepass"), b"tacit csrf", hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def check_csrf(actor: Actor, text: str | None) -> None:
    """Raise Forged if a request by session does not carry the CSRF token of that session."""
    if not actor.is_session:
        return
    given = sha256(text or "")
    if actor.csrf_sha256 is None or not hmac.compare_digest(given, actor.csrf_sha256):
        raise Forged("the CSRF token is missing or of another session; reload the page and repeat the request")
