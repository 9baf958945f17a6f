"""Browser sessions: a random cookie for a person who logged in, and its CSRF token.

Promise: a cookie is 256 random bits and only its digest is stored. A session ends 12 hours after the login, after an
hour without use, at logout, and in every browser when the password changes or the person is removed. The CSRF token is
a keyed digest of the cookie, so it is valid for one session only and can be computed again from the cookie.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from tacit.ledger.clock import time_of
from tacit.privacy.errors import Forged, NotKnown, StorageUnavailable
from tacit.server.access.passwords import sha256
from tacit.server.access.people import grants_of
from tacit.server.access.roles import Actor
from tacit.server.database import Database, Execute

LIFETIME_US: Final = 12 * 3_600_000_000
IDLE_US: Final = 3_600_000_000
USE_RECORDED_EVERY_US: Final = 60_000_000
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
