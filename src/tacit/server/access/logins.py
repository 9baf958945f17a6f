"""Logins of browsers: sessions by cookie, and OpenID Connect.

Browser sessions: a cookie that stands for a person who logged in, and the proof that a page of ours made a request.

Promise: a cookie is 256 random bits, stored as a digest; it ends 12 hours after the login, after an hour without use,
at logout, and everywhere when the password changes or the person is removed. The CSRF token is made from the cookie by
a keyed digest, so it belongs to one session alone, and a page can show it again to whoever sends the cookie.

Logging in at another service (OpenID Connect): it says who somebody is, and tacit what they may do.

Promise: the authorization code flow with PKCE, a state that is used once and belongs to one browser, and a nonce; an ID
token counts only if the service signed it with an algorithm that is allowed here, for this server, for this login, and
has not expired. Its claims give a name and nothing else: rights come from grants alone. Needs the extra `oidc`
(authlib, which brings joserfc), imported at the first login. Not here: cookies and redirects (routes), people.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import secrets
import ssl
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from datetime import datetime
from functools import cache
from hmac import compare_digest
from threading import Lock
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from tacit.ledger.permits import time_of
from tacit.privacy.errors import Forged, InvalidInput, NotKnown, StorageUnavailable, Unavailable
from tacit.server.access.passwords import sha256
from tacit.server.access.people import grants_of, is_name
from tacit.server.access.roles import Actor
from tacit.server.database import Database, Execute

LASTS_US: Final = 12 * 3_600_000_000
IDLE_US: Final = 3_600_000_000
USE_NOTED_EVERY_US: Final = 60_000_000
BROWSERS_MAX: Final = 20
"""How many sessions one person has at most; the oldest makes room for a new one."""

COOKIE_LENGTH: Final = 43


@dataclass(frozen=True, slots=True)
class NewSession:
    """A session that has just begun: what goes into the cookie, and what the page sends along."""

    text: str
    csrf: str
    expires_at: datetime

    def __repr__(self) -> str:
        return f"NewSession(expires_at={self.expires_at!r})"


class Browsers:
    """Every session of a browser."""

    def __init__(self, database: Database, clock: Callable[[], int]) -> None:
        self._database = database
        self._clock = clock

    def begin(self, execute: Execute, person: str) -> NewSession:
        """Begin a session, and clear away those that have ended."""
        text, now = secrets.token_urlsafe(32), self._clock()
        execute("DELETE FROM browsers WHERE expires_at_us <= ? OR used_at_us <= ?", (now, now - IDLE_US))
        kept = "SELECT sha256 FROM browsers WHERE person = ? ORDER BY created_at_us DESC, sha256"
        for (oldest,) in execute(kept, (person,))[BROWSERS_MAX - 1 :]:
            execute("DELETE FROM browsers WHERE sha256 = ?", (oldest,))
        execute(
            "INSERT INTO browsers (sha256, person, created_at_us, used_at_us, expires_at_us) VALUES (?, ?, ?, ?, ?)",
            (sha256(text), person, now, now, now + LASTS_US),
        )
        return NewSession(text, csrf_of(text), time_of(now + LASTS_US))

    def actor(self, text: str) -> Actor:
        """Return whom a cookie stands for, or refuse it."""
        digest, now = sha256(text), self._clock()
        rows = self._database.read(
            "SELECT b.person, b.used_at_us, b.expires_at_us, p.is_active, g.role, g.dataset, g.table_name "
            "FROM browsers b JOIN people p ON p.name = b.person LEFT JOIN grants g ON g.person = p.name "
            "WHERE b.sha256 = ?",
            (digest,),
        )
        if len(text) != COOKIE_LENGTH or not rows:
            raise NotKnown("nobody is logged in here; log in")
        person, used_at_us, expires_at_us, is_active = rows[0][:4]
        if not is_active or now >= expires_at_us or now - used_at_us >= IDLE_US:
            raise NotKnown("the time since the login, or since the last use, is over; log in again")
        if now - used_at_us >= USE_NOTED_EVERY_US:
            with suppress(StorageUnavailable):  # it ends a minute early then, which is no reason to fail
                self._database.write(("UPDATE browsers SET used_at_us = ? WHERE sha256 = ?", (now, digest)))
        return Actor(person, grants_of(row[4:] for row in rows), is_session=True, csrf_sha256=sha256(csrf_of(text)))

    def end(self, text: str) -> None:
        """End the session of a cookie, if there is one."""
        self._database.write(("DELETE FROM browsers WHERE sha256 = ?", (sha256(text),)))


def csrf_of(cookie: str) -> str:
    """Return the CSRF token of a cookie: whoever knows it has seen a page of that session."""
    digest = hmac.new(cookie.encode("utf-8", "surrogatepass"), b"tacit csrf", hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def check_csrf(actor: Actor, text: str | None) -> None:
    """Refuse a browser's request that does not carry its session's token; tokens of programs need none."""
    if not actor.is_session:
        return
    given = sha256(text or "")
    if actor.csrf_sha256 is None or not hmac.compare_digest(given, actor.csrf_sha256):
        raise Forged("the page that sent this is not of this login; load it again and repeat what you did")


ALGORITHMS: Final = ("RS256", "PS256", "ES256", "EdDSA")
"""What a service may sign with; never a shared secret, and never nothing."""

SECRET_VARIABLE: Final = "TACIT_OIDC_CLIENT_SECRET"
STATE_LASTS_S: Final = 600
METADATA_LASTS_S: Final = 3600
KEYS_AGAIN_AFTER_S: Final = 60
LEEWAY_S: Final = 60
ANSWER_BYTES_MAX: Final = 2**20
TEXT_LENGTH_MAX: Final = 4096
_LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")
_AGAIN: Final = "begin the login again"


@dataclass(frozen=True, slots=True)
class OidcSettings:
    """Where the service is, and what of its claims is a person's name."""

    issuer: str
    client_id: str
    redirect_url: str
    client_secret: str = field(default="", repr=False)
    claim: str = "preferred_username"
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    algorithms: tuple[str, ...] = ("RS256", "ES256")
    creates_people: bool = False
    timeout_s: float = 10.0

    def __post_init__(self) -> None:
        for what in ("issuer", "redirect_url"):
            _require_safe(what, getattr(self, what))
        if not self.client_id:
            raise InvalidInput("oidc.client_id is what the log-in service calls this server", name="client_id")
        refused = sorted(set(self.algorithms) - set(ALGORITHMS))
        if refused or not self.algorithms:
            allowed = ", ".join(ALGORITHMS)
            raise InvalidInput(
                f"oidc.algorithms takes {allowed}, not {', '.join(refused) or 'nothing'}", name="algorithms"
            )
        if "openid" not in self.scopes:
            raise InvalidInput("oidc.scopes needs openid, or there is no ID token", name="scopes")
        if not 0 < self.timeout_s <= 60:
            raise InvalidInput("oidc.timeout_s lies above 0 and is 60 at most", name="timeout_s")

    @classmethod
    def of(cls, table: Mapping[str, Any], environment: Mapping[str, str] | None = None) -> OidcSettings:
        """Read settings as a configuration file has them; the secret may stand in TACIT_OIDC_CLIENT_SECRET instead."""
        known = {one.name for one in fields(cls)}
        unknown = sorted(set(table) - known)
        if unknown:
            raise InvalidInput(f"oidc.{unknown[0]} is no setting; there are {', '.join(sorted(known))}", name="oidc")
        missing = sorted({"issuer", "client_id", "redirect_url"} - set(table))
        if missing:
            raise InvalidInput(f"oidc.{missing[0]} is missing", name="oidc")
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in table.items()
        }
        secret = (os.environ if environment is None else environment).get(SECRET_VARIABLE)
        return cls(**(values | ({"client_secret": secret} if secret else {})))


class Oidc:
    """One log-in service; with a database, a state that one process has seen is refused by all."""

    def __init__(
        self, settings: OidcSettings, database: Database | None = None, *, clock_s: Callable[[], float] = time.time
    ) -> None:
        self.settings: Final = settings
        self._database = database
        self._clock_s = clock_s
        self._lock = Lock()
        self._used: dict[str, float] = {}
        self._metadata: tuple[float, dict[str, Any]] | None = None
        self._keys: tuple[float, Any] | None = None

    def start(self) -> tuple[str, str]:
        """Return where to send the browser, and what to keep in a cookie of its until it comes back."""
        challenge_of = _authlib("authlib.oauth2.rfc7636").create_s256_code_challenge
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        url = self._endpoint("authorization_endpoint")
        query = urlencode(
            {
                "response_type": "code",
                "client_id": self.settings.client_id,
                "redirect_uri": self.settings.redirect_url,
                "scope": " ".join(self.settings.scopes),
                "state": state,
                "nonce": nonce,
                "code_challenge": challenge_of(verifier),
                "code_challenge_method": "S256",
            }
        )
        expires_at = int(self._clock_s()) + STATE_LASTS_S
        return f"{url}{'&' if '?' in url else '?'}{query}", f"{state}.{nonce}.{verifier}.{expires_at}"

    def finish(self, query: Mapping[str, str], state_cookie: str) -> str:
        """Return the name of whom the service vouches for; NotKnown or Forged if it does not, or not for this login."""
        nonce, verifier = self._opened(query.get("state", ""), state_cookie)
        issuer = query.get("iss")
        if issuer is not None and issuer != self.settings.issuer:
            raise Forged(f"another log-in service answered; {_AGAIN}")
        code = query.get("code", "")
        if "error" in query or not 0 < len(code) <= TEXT_LENGTH_MAX:
            raise NotKnown(f"the log-in service did not vouch for anybody; {_AGAIN}")
        answer = self._exchange(code, verifier)
        return self._name(self._claims(answer, nonce))

    def _opened(self, state: str, cookie: str) -> tuple[str, str]:
        """Return nonce and verifier of a state that this browser was given and nobody has used."""
        parts = cookie.split(".")
        if len(cookie) > TEXT_LENGTH_MAX or len(parts) != 4 or not parts[3].isdecimal():
            raise Forged(f"this browser has begun no login, or long ago; {_AGAIN}")
        kept, nonce, verifier, expires_at = parts
        now = self._clock_s()
        if not compare_digest(sha256(kept), sha256(state)):
            raise Forged(f"the answer is to another login than this browser's; {_AGAIN}")
        if not now < int(expires_at) <= now + STATE_LASTS_S + LEEWAY_S or not self._is_first_use(sha256(kept), now):
            raise Forged(f"this login was used already, or took too long; {_AGAIN}")
        return nonce, verifier

    def _is_first_use(self, digest: str, now: float) -> bool:
        """Use a state up; only the first use finds it unused, in whichever process."""
        until = now + STATE_LASTS_S + 2 * LEEWAY_S
        if self._database is None:
            with self._lock:
                self._used = {one: end for one, end in self._used.items() if end > now}
                is_first = digest not in self._used
                self._used[digest] = until
                return is_first
        with self._database.transaction() as execute:
            execute("DELETE FROM used_states WHERE expires_at_us <= ?", (int(now * 1e6),))
            added = (
                "INSERT INTO used_states (sha256, expires_at_us) VALUES (?, ?) ON CONFLICT DO NOTHING RETURNING sha256"
            )
            return bool(execute(added, (digest, int(until * 1e6))))

    def _exchange(self, code: str, verifier: str) -> dict[str, Any]:
        settings = self.settings
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": settings.redirect_url,
            "client_id": settings.client_id,
            "code_verifier": verifier,
        }
        secret = {"client_secret": settings.client_secret} if settings.client_secret else {}
        return self._fetched("POST", self._endpoint("token_endpoint"), form | secret)

    def _claims(self, answer: Mapping[str, Any], nonce: str) -> Mapping[str, Any]:
        """Return the claims of an ID token, after everything about it was checked."""
        errors, claims_kind = _authlib("joserfc.errors"), _authlib("authlib.oidc.core").CodeIDToken
        text = answer.get("id_token")
        settings = self.settings
        options = {
            "iss": {"essential": True, "value": settings.issuer},
            "aud": {"essential": True, "value": settings.client_id},
            "nonce": {"essential": True, "value": nonce},
        }
        params = {"nonce": nonce, "client_id": settings.client_id}
        try:
            token = self._decoded(text if isinstance(text, str) else "")
            claims = claims_kind(token.claims, token.header, options, params)
            claims.validate(now=int(self._clock_s()), leeway=LEEWAY_S)
        except (errors.JoseError, ValueError, TypeError, KeyError):
            raise NotKnown(f"the log-in service's ID token does not hold for this login; {_AGAIN}") from None
        return dict(claims)

    def _decoded(self, text: str) -> Any:
        jwt, errors = _authlib("joserfc.jwt"), _authlib("joserfc.errors")
        algorithms = list(self.settings.algorithms)
        try:
            return jwt.decode(text, self._key_set(), algorithms=algorithms)
        except (errors.InvalidKeyIdError, errors.BadSignatureError):
            if not self._are_keys_old():
                raise
        return jwt.decode(text, self._key_set(again=True), algorithms=algorithms)

    def _name(self, claims: Mapping[str, Any]) -> str:
        name = claims.get(self.settings.claim)
        if self.settings.claim == "email" and claims.get("email_verified") is not True:
            raise NotKnown("the log-in service has not checked this e-mail address; check it there first")
        if not isinstance(name, str) or not is_name(name):
            raise NotKnown(f"the log-in service's claim {self.settings.claim} holds nothing that can be a name here")
        return name

    def _endpoint(self, name: str) -> str:
        metadata = self._discovered()
        url = metadata.get(name)
        if not isinstance(url, str):
            raise Unavailable(f"the log-in service does not say its {name}; check oidc.issuer")
        _require_safe(name, url)
        return url

    def _discovered(self) -> dict[str, Any]:
        now = self._clock_s()
        if self._metadata is None or now >= self._metadata[0]:
            url = self.settings.issuer.rstrip("/") + "/.well-known/openid-configuration"
            found = self._fetched("GET", url)
            if found.get("issuer") != self.settings.issuer:
                raise Unavailable(
                    "the log-in service calls itself otherwise than oidc.issuer does; correct the setting"
                )
            self._metadata = (now + METADATA_LASTS_S, found)
        return self._metadata[1]

    def _key_set(self, *, again: bool = False) -> Any:
        now = self._clock_s()
        if self._keys is None or again or now - self._keys[0] >= METADATA_LASTS_S:
            found = self._fetched("GET", self._endpoint("jwks_uri"))
            self._keys = (now, _authlib("joserfc.jwk").KeySet.import_key_set(found))
        return self._keys[1]

    def _are_keys_old(self) -> bool:
        return self._keys is not None and self._clock_s() - self._keys[0] >= KEYS_AGAIN_AFTER_S

    def _fetched(self, method: str, url: str, form: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Fetch one JSON object, within limits; what the service says in an error is not repeated."""
        import httpx

        try:
            with (
                httpx.Client(timeout=self.settings.timeout_s, follow_redirects=False, verify=_trusted()) as client,
                client.stream(method, url, data=form, headers={"Accept": "application/json"}) as response,
            ):
                body = b""
                for part in response.iter_bytes():
                    body += part
                    if len(body) > ANSWER_BYTES_MAX:
                        raise Unavailable("the log-in service answers with more than a megabyte; check oidc.issuer")
                status = response.status_code
        except httpx.HTTPError:
            raise Unavailable("the log-in service cannot be reached; try again, or log in another way") from None
        if method == "POST" and 400 <= status < 500:
            raise NotKnown(f"the log-in service did not take back what it gave; {_AGAIN}")
        try:
            found = json.loads(body) if status == 200 else None
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise Unavailable(f"the log-in service fails (status {status}); try again, or log in another way")
        return found


def _require_safe(what: str, url: object) -> None:
    """Refuse an address that others could listen to; this machine's own need no encryption."""
    parts = urlsplit(url if isinstance(url, str) else "")
    is_loopback = parts.scheme == "http" and parts.hostname in _LOOPBACK
    if not parts.hostname or not (parts.scheme == "https" or is_loopback):
        raise InvalidInput(f"oidc: {what} must be an https:// address", name=what)


@cache
def _trusted() -> ssl.SSLContext:
    """Return the certificates that the system trusts; they take longer to read than to use."""
    return ssl.create_default_context()


def _authlib(module: str) -> Any:
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError:
        raise Unavailable("logging in elsewhere needs authlib; run pip install 'tacit[oidc]'") from None
