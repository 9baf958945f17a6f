"""Logging in elsewhere: only an ID token of that service, for this server and this login, names somebody."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from joserfc.jwk import RSAKey

from tacit.privacy.errors import Forged, InvalidInput, NotKnown, TacitError, Unavailable
from tacit.server.access.oidc import SECRET_VARIABLE, Oidc, OidcSettings
from tacit.server.database import open_database
from tests.unit.server.access.provider import CLIENT_ID, CLIENT_SECRET, Provider, encoded

REDIRECT = "https://tacit.example/v1/oidc/callback"


@pytest.fixture(scope="module")
def started() -> Iterator[Provider]:
    provider = Provider()
    yield provider
    provider.close()


@pytest.fixture
def provider(started: Provider, monkeypatch: pytest.MonkeyPatch) -> Provider:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    started.claims, started.metadata, started.raw_token = {}, {}, None
    started.header = {"alg": "RS256", "kid": "first"}
    started.published, started.token_status, started.padding = [started.key], 200, 0
    started.asked.clear()
    return started


def settings(provider: Provider, **changes: Any) -> OidcSettings:
    return OidcSettings(provider.issuer, CLIENT_ID, REDIRECT, CLIENT_SECRET, **changes)


def log_in(provider: Provider, oidc: Oidc | None = None, **changes: Any) -> str:
    oidc = oidc or Oidc(settings(provider, **changes))
    url, cookie = oidc.start()
    return oidc.finish(provider.authorize(url), cookie)


def test_whom_the_service_vouches_for_is_named(provider: Provider) -> None:
    oidc = Oidc(settings(provider))
    url, cookie = oidc.start()
    asked = provider.authorize(url)
    sent = provider.codes[asked["code"]]
    assert (sent["response_type"], sent["code_challenge_method"], sent["tenant"]) == ("code", "S256", "clinic")
    assert (sent["client_id"], sent["redirect_uri"]) == (CLIENT_ID, REDIRECT)
    assert CLIENT_SECRET not in url + cookie + repr(oidc.settings)
    assert oidc.finish(asked, cookie) == "bob"
    assert log_in(provider, oidc) == "bob"
    assert provider.asked.count("/realm/keys") == 1, "keys and addresses are fetched once an hour"


def test_states_nonces_and_verifiers_are_new_each_time(provider: Provider) -> None:
    oidc = Oidc(settings(provider))
    first, second = (set(oidc.start()[1].split(".")[:3]) for _ in range(2))
    assert len(first) == len(second) == 3
    assert not first & second


@pytest.mark.parametrize(
    "lie",
    [
        {"nonce": "another"},
        {"nonce": None},
        {"aud": "somebody-else"},
        {"aud": ["somebody-else", "and-another"]},
        {"aud": "somebody-else", "azp": CLIENT_ID},
        {"aud": None},
        {"iss": "https://evil.example"},
        {"iss": None},
        {"exp": int(time.time()) - 120},
        {"exp": None},
        {"exp": "tomorrow"},
        {"nbf": int(time.time()) + 3600},
        {"iat": int(time.time()) + 3600},
        {"sub": None},
    ],
    ids=lambda lie: "-".join(f"{name} {type(value).__name__}" for name, value in lie.items()),
)
def test_an_id_token_that_does_not_hold_for_this_login_names_nobody(provider: Provider, lie: dict[str, Any]) -> None:
    provider.claims = lie
    with pytest.raises(NotKnown, match="is not valid for this login"):
        log_in(provider)


def test_an_id_token_without_a_signature_names_nobody(provider: Provider) -> None:
    provider.header = {"alg": "none"}
    with pytest.raises(NotKnown):
        log_in(provider)


def test_an_id_token_signed_with_what_everybody_knows_names_nobody(provider: Provider) -> None:
    """The public key as a shared secret: the oldest trick with tokens."""
    provider.header, provider.shared = {"alg": "HS256"}, provider.key.as_pem(private=False)
    shared = {"kty": "oct", "k": encoded(provider.shared).decode()}
    for published in ([provider.key], [provider.key, shared], [shared]):
        provider.published = published
        with pytest.raises(NotKnown):
            log_in(provider)
    provider.shared = b"0123456789abcdef0123456789abcdef"
    provider.published = [{"kty": "oct", "k": encoded(provider.shared).decode()}]
    with pytest.raises(NotKnown):
        log_in(provider)


@pytest.mark.filterwarnings("ignore::joserfc.errors.SecurityWarning")
def test_an_algorithm_that_is_not_allowed_here_names_nobody(provider: Provider) -> None:
    provider.header = {"alg": "PS256", "kid": "first"}
    with pytest.raises(NotKnown):
        log_in(provider)
    assert log_in(provider, algorithms=("PS256",)) == "bob"


def test_an_id_token_of_another_key_names_nobody(provider: Provider) -> None:
    real, provider.key = provider.key, RSAKey.generate_key(2048, {"kid": "first"})
    try:
        with pytest.raises(NotKnown):
            log_in(provider)
    finally:
        provider.key = real


def test_new_keys_of_the_service_are_fetched_but_not_at_every_failure(provider: Provider) -> None:
    now = [time.time()]
    oidc = Oidc(settings(provider), clock_s=lambda: now[0])
    assert log_in(provider, oidc) == "bob"
    real, provider.key = provider.key, RSAKey.generate_key(2048, {"kid": "second"})
    provider.header, provider.published = {"alg": "RS256", "kid": "second"}, [provider.key]
    try:
        with pytest.raises(NotKnown):
            log_in(provider, oidc)
        now[0] += 61
        assert log_in(provider, oidc) == "bob"
    finally:
        provider.key = real


@pytest.mark.parametrize("text", ["", "a.b", "a.b.c", "x" * 100_000, 7])
def test_what_is_no_token_names_nobody(provider: Provider, text: Any) -> None:
    provider.raw_token = text
    with pytest.raises(NotKnown):
        log_in(provider)


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_state_is_used_once_in_whichever_process(provider: Provider, is_shared: bool, tmp_path: Path) -> None:
    databases = [open_database(tmp_path) if is_shared else None for _ in range(2)]
    one = Oidc(settings(provider), databases[0])
    other = Oidc(settings(provider), databases[1]) if is_shared else one
    url, cookie = one.start()
    answer = provider.authorize(url)
    assert one.finish(answer, cookie) == "bob"
    with pytest.raises(Forged, match="was used already"):
        other.finish(answer, cookie)
    for database in databases:
        if database is not None:
            database.close()


def test_the_answer_to_another_browsers_login_is_refused(provider: Provider) -> None:
    oidc = Oidc(settings(provider))
    (theirs, _), (_, own) = oidc.start(), oidc.start()
    answer = provider.authorize(theirs)
    for cookie in (own, "", "x", "a.b.c.d", "a.b.c.٣", "." * 3, "x" * 10_000):
        with pytest.raises(Forged):
            oidc.finish(answer, cookie)
    with pytest.raises(Forged):
        oidc.finish({"code": answer["code"]}, own)
    assert "/realm/token" not in provider.asked, "nothing is asked of the service for a forged answer"


def test_a_login_that_takes_too_long_is_refused(provider: Provider) -> None:
    now = [time.time()]
    oidc = Oidc(settings(provider), clock_s=lambda: now[0])
    url, cookie = oidc.start()
    now[0] += 601
    with pytest.raises(Forged, match="took too long"):
        oidc.finish(provider.authorize(url), cookie)


def test_another_service_that_answers_is_noticed(provider: Provider) -> None:
    oidc = Oidc(settings(provider))
    url, cookie = oidc.start()
    with pytest.raises(Forged, match="from another issuer"):
        oidc.finish(provider.authorize(url) | {"iss": "https://evil.example"}, cookie)


def test_a_refusal_of_the_service_is_said_in_our_words(provider: Provider) -> None:
    oidc = Oidc(settings(provider))
    url, cookie = oidc.start()
    state = provider.authorize(url)["state"]
    with pytest.raises(NotKnown, match="did not authenticate") as found:
        oidc.finish({"state": state, "error": "access_denied", "error_description": "<script>"}, cookie)
    assert "script" not in str(found.value)
    url, cookie = oidc.start()
    provider.authorize(url)
    with pytest.raises(NotKnown, match="refused the authorization code"):
        oidc.finish({"state": cookie.split(".")[0], "code": "made up"}, cookie)


def test_the_verifier_of_another_login_is_refused_by_the_service(provider: Provider) -> None:
    oidc = Oidc(settings(provider))
    url, cookie = oidc.start()
    state, nonce, _, end = cookie.split(".")
    with pytest.raises(NotKnown):
        oidc.finish(provider.authorize(url), f"{state}.{nonce}.{'A' * 43}.{end}")


def test_another_claim_may_be_the_name_and_an_unchecked_address_is_none(provider: Provider) -> None:
    provider.claims = {"email": "ana@clinic.org", "email_verified": True, "upn": "no name", "id": 7}
    assert log_in(provider, claim="email") == "ana@clinic.org"
    for claim in ("upn", "id", "missing"):
        with pytest.raises(NotKnown, match=f"claim {claim} of the ID token"):
            log_in(provider, claim=claim)
    for doubt in (False, "true", None):
        provider.claims["email_verified"] = doubt
        with pytest.raises(NotKnown, match="has not verified this e-mail address"):
            log_in(provider, claim="email")


def test_a_service_that_fails_is_said_and_holds_nobody_up(provider: Provider) -> None:
    provider.token_status = 500
    with pytest.raises(Unavailable, match="failed with status 500"):
        log_in(provider)
    provider.token_status, provider.padding = 200, 2**20
    with pytest.raises(Unavailable, match="larger than a megabyte"):
        log_in(provider)
    nowhere = OidcSettings("http://127.0.0.1:9", CLIENT_ID, REDIRECT)
    with pytest.raises(Unavailable, match="cannot be reached"):
        Oidc(nowhere).start()


@pytest.mark.parametrize(
    "metadata",
    [
        {"issuer": "https://evil.example"},
        {"authorization_endpoint": None},
        {"authorization_endpoint": "http://evil.example/authorize"},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"token_endpoint": "http://evil.example/token"},
        {"jwks_uri": "file:///etc/passwd"},
    ],
    ids=str,
)
def test_addresses_that_others_could_listen_to_are_refused(provider: Provider, metadata: dict[str, Any]) -> None:
    provider.metadata = metadata
    with pytest.raises(TacitError):
        log_in(provider)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"issuer": "http://login.example"}, "issuer must be an https:// address"),
        ({"redirect_url": "tacit.example"}, "redirect_url must be an https:// address"),
        ({"client_id": ""}, "oidc.client_id"),
        ({"algorithms": ["HS256"]}, "not HS256"),
        ({"algorithms": ["none"]}, "not none"),
        ({"algorithms": []}, "not nothing"),
        ({"scopes": ["profile"]}, "must contain openid"),
        ({"timeout_s": 0}, "timeout_s"),
        ({"isuer": "x"}, "oidc.isuer is not a setting"),
    ],
)
def test_settings_that_are_unsafe_or_mistyped_are_refused(changes: dict[str, Any], sentence: str) -> None:
    good = {"issuer": "https://login.example", "client_id": "tacit", "redirect_url": REDIRECT}
    assert OidcSettings.of(good, {SECRET_VARIABLE: "s"}).client_secret == "s"
    assert OidcSettings.of(good, {}).algorithms == ("RS256", "ES256")
    with pytest.raises(InvalidInput, match=sentence):
        OidcSettings.of(good | changes, {})
    with pytest.raises(InvalidInput, match=r"oidc\.issuer is missing"):
        OidcSettings.of({"client_id": "x", "redirect_url": REDIRECT}, {})
