"""Login through an OpenID Connect provider, which proves a name; rights come from tacit's own grants.

Promise: the authorization code flow with PKCE, a state that is used once and bound to one browser, and a nonce. An ID
token is accepted only if the provider signed it with an allowed algorithm, for this server and this login, and it has
not expired. Of its claims only the name is used. Needs the extra `oidc` (authlib, which brings joserfc), imported at
the first login. Cookies and redirects are set by the routes.
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
from tacit.server.access.passwords import sha256
from tacit.server.access.people import is_name
from tacit.server.database import Database

ALGORITHMS: Final = ("RS256", "PS256", "ES256", "EdDSA")
"""Signature algorithms that can be allowed: asymmetric ones only."""

SECRET_VARIABLE: Final = "TACIT_OIDC_CLIENT_SECRET"
STATE_LIFETIME_S: Final = 600
METADATA_LIFETIME_S: Final = 3600
KEYS_RELOADED_AFTER_S: Final = 60
LEEWAY_S: Final = 60
RESPONSE_BYTES_MAX: Final = 2**20
TEXT_LENGTH_MAX: Final = 4096
_LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")
_RETRY: Final = "begin the login again"


@dataclass(frozen=True, slots=True)
class OidcSettings:
    """The provider, this server's registration with it, and the claim that holds a person's name."""

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
            raise InvalidInput(
                "oidc.client_id is empty; set it to the identifier of this server at the provider", name="client_id"
            )
        refused = sorted(set(self.algorithms) - set(ALGORITHMS))
        if refused or not self.algorithms:
            allowed = ", ".join(ALGORITHMS)
            raise InvalidInput(
                f"oidc.algorithms takes {allowed}, not {', '.join(refused) or 'nothing'}", name="algorithms"
            )
        if "openid" not in self.scopes:
            raise InvalidInput("oidc.scopes must contain openid", name="scopes")
        if not 0 < self.timeout_s <= 60:
            raise InvalidInput("oidc.timeout_s must be above 0 and at most 60", name="timeout_s")

    @classmethod
    def of(cls, table: Mapping[str, Any], environment: Mapping[str, str] | None = None) -> OidcSettings:
        """Return the settings of a TOML table, with the client secret of TACIT_OIDC_CLIENT_SECRET if that is set."""
        known = {one.name for one in fields(cls)}
        unknown = sorted(set(table) - known)
        if unknown:
            raise InvalidInput(
                f"oidc.{unknown[0]} is not a setting; the settings are {', '.join(sorted(known))}", name="oidc"
            )
        missing = sorted({"issuer", "client_id", "redirect_url"} - set(table))
        if missing:
            raise InvalidInput(f"oidc.{missing[0]} is missing", name="oidc")
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in table.items()
        }
        secret = (os.environ if environment is None else environment).get(SECRET_VARIABLE)
        return cls(**(values | ({"client_secret": secret} if secret else {})))


class Oidc:
    """A client of one provider; with a database, a state that was used in one process is refused by all."""

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
        """Return the URL to redirect the browser to, and the text of the cookie that binds the state to it."""
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
        expires_at = int(self._clock_s()) + STATE_LIFETIME_S
        return f"{url}{'&' if '?' in url else '?'}{query}", f"{state}.{nonce}.{verifier}.{expires_at}"

    def finish(self, query: Mapping[str, str], state_cookie: str) -> str:
        """Return the name that the provider proved, or raise NotKnown or Forged; `query` is the callback's."""
        nonce, verifier = self._check_state(query.get("state", ""), state_cookie)
        issuer = query.get("iss")
        if issuer is not None and issuer != self.settings.issuer:
            raise Forged(f"the response is from another issuer; {_RETRY}")
        code = query.get("code", "")
        if "error" in query or not 0 < len(code) <= TEXT_LENGTH_MAX:
            raise NotKnown(f"the provider did not authenticate the user; {_RETRY}")
        answer = self._exchange(code, verifier)
        return self._name(self._claims(answer, nonce))

    def _check_state(self, state: str, cookie: str) -> tuple[str, str]:
        """Return nonce and verifier of an unused state that belongs to this browser, or raise Forged."""
        parts = cookie.split(".")
        if len(cookie) > TEXT_LENGTH_MAX or len(parts) != 4 or not parts[3].isdecimal():
            raise Forged(f"no login was begun in this browser, or it has expired; {_RETRY}")
        kept, nonce, verifier, expires_at = parts
        now = self._clock_s()
        if not compare_digest(sha256(kept), sha256(state)):
            raise Forged(f"the response belongs to a login of another browser; {_RETRY}")
        if not now < int(expires_at) <= now + STATE_LIFETIME_S + LEEWAY_S or not self._is_first_use(sha256(kept), now):
            raise Forged(f"this login was used already, or took too long; {_RETRY}")
        return nonce, verifier

    def _is_first_use(self, digest: str, now: float) -> bool:
        """Mark a state as used; return whether it was unused before, in every process."""
        until = now + STATE_LIFETIME_S + 2 * LEEWAY_S
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
        return self._fetch("POST", self._endpoint("token_endpoint"), form | secret)

    def _claims(self, answer: Mapping[str, Any], nonce: str) -> Mapping[str, Any]:
        """Return the claims of the ID token after its signature, issuer, audience, nonce and expiry were checked."""
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
            token = self._decode(text if isinstance(text, str) else "")
            claims = claims_kind(token.claims, token.header, options, params)
            claims.validate(now=int(self._clock_s()), leeway=LEEWAY_S)
        except (errors.JoseError, ValueError, TypeError, KeyError):
            raise NotKnown(f"the ID token is not valid for this login; {_RETRY}") from None
        return dict(claims)

    def _decode(self, text: str) -> Any:
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
            raise NotKnown("the provider has not verified this e-mail address; verify it there first")
        if not isinstance(name, str) or not is_name(name):
            raise NotKnown(
                f"the claim {self.settings.claim} of the ID token is not a valid name; set oidc.claim to one that is"
            )
        return name

    def _endpoint(self, name: str) -> str:
        metadata = self._discover()
        url = metadata.get(name)
        if not isinstance(url, str):
            raise Unavailable(f"the provider's metadata has no {name}; check oidc.issuer")
        _require_safe(name, url)
        return url

    def _discover(self) -> dict[str, Any]:
        now = self._clock_s()
        if self._metadata is None or now >= self._metadata[0]:
            url = self.settings.issuer.rstrip("/") + "/.well-known/openid-configuration"
            found = self._fetch("GET", url)
            if found.get("issuer") != self.settings.issuer:
                raise Unavailable("the issuer in the provider's metadata differs from oidc.issuer; correct the setting")
            self._metadata = (now + METADATA_LIFETIME_S, found)
        return self._metadata[1]

    def _key_set(self, *, again: bool = False) -> Any:
        now = self._clock_s()
        if self._keys is None or again or now - self._keys[0] >= METADATA_LIFETIME_S:
            found = self._fetch("GET", self._endpoint("jwks_uri"))
            self._keys = (now, _authlib("joserfc.jwk").KeySet.import_key_set(found))
        return self._keys[1]

    def _are_keys_old(self) -> bool:
        return self._keys is not None and self._clock_s() - self._keys[0] >= KEYS_RELOADED_AFTER_S

    def _fetch(self, method: str, url: str, form: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Return the JSON object at a URL; errors do not quote the response."""
        import httpx

        try:
            with (
                httpx.Client(timeout=self.settings.timeout_s, follow_redirects=False, verify=_trusted()) as client,
                client.stream(method, url, data=form, headers={"Accept": "application/json"}) as response,
            ):
                body = b""
                for part in response.iter_bytes():
                    body += part
                    if len(body) > RESPONSE_BYTES_MAX:
                        raise Unavailable("the provider's response is larger than a megabyte; check oidc.issuer")
                status = response.status_code
        except httpx.HTTPError:
            raise Unavailable("the provider cannot be reached; try again, or log in with a password") from None
        if method == "POST" and 400 <= status < 500:
            raise NotKnown(f"the provider refused the authorization code; {_RETRY}")
        try:
            found = json.loads(body) if status == 200 else None
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise Unavailable(f"the provider failed with status {status}; try again, or log in with a password")
        return found


def _require_safe(what: str, url: object) -> None:
    """Raise InvalidInput unless a URL is https, or http on the loopback interface."""
    parts = urlsplit(url if isinstance(url, str) else "")
    is_loopback = parts.scheme == "http" and parts.hostname in _LOOPBACK
    if not parts.hostname or not (parts.scheme == "https" or is_loopback):
        raise InvalidInput(f"oidc: {what} must be an https:// address", name=what)


@cache
def _trusted() -> ssl.SSLContext:
    """Return the system's trusted certificates, read once: that takes longer than a request."""
    return ssl.create_default_context()


def _authlib(module: str) -> Any:
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError:
        raise Unavailable("OpenID Connect needs authlib; run pip install 'tacit[oidc]'") from None
