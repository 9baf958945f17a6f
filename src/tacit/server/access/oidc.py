"""Logging in at another service (OpenID Connect): it says who somebody is, and tacit what they may do.

Promise: the authorization code flow with PKCE, a state that is used once and belongs to one browser, and a nonce; an ID
token counts only if the service signed it with an algorithm that is allowed here, for this server, for this login, and
has not expired. Its claims give a name and nothing else: rights come from grants alone. Needs the extra `oidc`
(authlib, which brings joserfc), imported at the first login. Not here: cookies and redirects (routes), people.
"""

from __future__ import annotations

import json
import os
import secrets
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from hmac import compare_digest
from threading import Lock
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from tacit.privacy.errors import Forged, InvalidInput, NotKnown, Unavailable
from tacit.server.access.hashing import sha256
from tacit.server.access.people import is_name
from tacit.server.database import Database

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
