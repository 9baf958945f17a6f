"""Tokens: shown once, stored as digests, narrowed, expiring, revoked for everybody at once, locked by nobody."""

import hashlib
import re
from datetime import timedelta
from pathlib import Path

import pytest

from tacit.ledger.clock import time_of
from tacit.privacy.errors import (
    InvalidInput,
    NotKnown,
    NotPermitted,
    OutOfRange,
    StorageBusy,
    TooLarge,
    UnknownName,
    WrongType,
)
from tacit.server.access import Access, Action, Grant, Hasher, Resource, Role
from tacit.server.database import SqliteDatabase
from tests.unit.server.access.places import PASSWORD, Clock, CountingHasher, Place


def test_a_token_stands_for_its_person(access: Access, place: Place) -> None:
    made = access.tokens.create("bob", label="laptop", days=30)
    assert re.fullmatch(r"tacit_[0-9a-f]{12}_[A-Za-z0-9_-]{43}", made.text)
    assert made.text.split("_")[1] == made.id
    actor = place.access().actor_of_token(made.text)
    assert (actor.name, actor.grants, actor.token_id, actor.is_session, actor.limit) == (
        *("bob", (Grant(Role.ANALYST, "visits"),), made.id, False, None),
    )
    (token,) = access.tokens.all("bob")
    assert (token.id, token.label, token.is_revoked) == (made.id, "laptop", False)
    assert token.expires_at == made.expires_at == token.created_at + timedelta(days=30)
    assert access.tokens.all() == [token]
    assert access.tokens.all("ana") == []


def test_what_is_shown_of_a_token_is_not_its_secret(access: Access) -> None:
    made = access.tokens.create("bob")
    secret = made.text[-43:]
    for shown in (repr(made), str(made), repr(access.tokens.all()), repr(access.actor_of_token(made.text))):
        assert secret not in shown


def test_a_token_narrows_and_never_widens(access: Access) -> None:
    owners = access.tokens.create("ana", role=Role.ANALYST, dataset="visits").text
    actor = access.actor_of_token(owners)
    access.require(actor, Action.QUESTION_ASK, Resource("visits", "visits"))
    for action, resource in (
        (Action.QUESTION_ASK, Resource("salaries", "salaries")),
        (Action.PEOPLE_WRITE, Resource()),
        (Action.TOKEN_WRITE, Resource(person="ana")),
    ):
        with pytest.raises(NotPermitted, match="with this token"):
            access.require(actor, action, resource)
    wider = access.actor_of_token(access.tokens.create("bob", role="owner").text)
    with pytest.raises(NotPermitted):
        access.require(wider, Action.PEOPLE_WRITE, Resource())


def test_a_token_expires(access: Access, clock: Clock) -> None:
    text = access.tokens.create("bob", days=1).text
    clock.move(days=1, seconds=-1)
    access.actor_of_token(text)
    clock.move(seconds=1)
    with pytest.raises(NotKnown, match="unknown, revoked or expired"):
        access.actor_of_token(text)


def test_a_revoked_token_ends_at_once_in_every_process(access: Access, place: Place) -> None:
    made, other = access.tokens.create("bob"), place.access()
    for server in (access, other):
        server.actor_of_token(made.text)
    compared = place.hasher.compared
    other.tokens.revoke(made.id)
    for server in (access, other):
        with pytest.raises(NotKnown):
            server.actor_of_token(made.text)
    assert place.hasher.compared == compared, "both remembered the token, and looked up that it was revoked"
    assert access.tokens.all("bob")[0].is_revoked
    access.tokens.revoke(made.id)
    with pytest.raises(UnknownName):
        access.tokens.revoke("0" * 12)
    with pytest.raises(UnknownName):
        access.tokens.one("\ud800")


def test_a_token_that_differs_in_one_character_is_another(access: Access) -> None:
    text = access.tokens.create("bob").text
    access.actor_of_token(text)
    for wrong in (text[:-1] + ("A" if text[-1] != "A" else "B"), text + "A", text[:-1], text.upper(), " " + text):
        with pytest.raises(NotKnown):
            access.actor_of_token(wrong)


@pytest.mark.parametrize("address", ["10.0.0.1", "10.0.0.2"])
def test_who_knows_the_identifier_of_a_token_cannot_lock_it(access: Access, place: Place, address: str) -> None:
    made = access.tokens.create("bob")
    for _ in range(200):
        with pytest.raises(NotKnown):
            access.actor_of_token(f"tacit_{made.id}_{'A' * 43}", "10.0.0.1")
    for server in (access, place.access()):
        assert server.actor_of_token(made.text, address).name == "bob"
    assert place.hasher.compared == 0
    assert access.database.read("SELECT COUNT(*) FROM failures") == [(0,)]


def test_only_a_digest_of_a_secret_is_stored(access: Access) -> None:
    made = access.tokens.create("bob")
    secret = made.text.split("_", 2)[2]
    assert access.database.read("SELECT secret_hash FROM tokens") == [(hashlib.sha256(secret.encode()).hexdigest(),)]
    with pytest.raises(NotKnown):
        access.actor_of_token(f"tacit_{made.id}_{hashlib.sha256(secret.encode()).hexdigest()[:43]}")


def test_unknown_tokens_cost_no_hash(access: Access, place: Place) -> None:
    for text in ("", "tacit", "tacit_0_0", f"tacit_{'0' * 12}_{'A' * 43}", "\ud800", "x" * 10_000):
        with pytest.raises(NotKnown):
            access.actor_of_token(text)
    assert place.hasher.compared == 0


def test_a_request_with_a_token_that_was_just_used_writes_nothing(
    access: Access, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = access.tokens.create("bob").text
    access.actor_of_token(text)

    def refuse() -> None:
        pytest.fail("a request would wait for the write lock")

    monkeypatch.setattr(access.database, "transaction", refuse)
    access.actor_of_token(text)


def test_the_last_use_is_noted_at_most_once_a_minute(access: Access, clock: Clock) -> None:
    text = access.tokens.create("bob").text
    assert access.tokens.all("bob")[0].last_used_at is None
    first = clock.now_us
    for seconds, noted_us in ((0, first), (59, first), (1, first + 60_000_000)):
        clock.move(seconds=seconds)
        access.actor_of_token(text)
        assert access.tokens.all("bob")[0].last_used_at == time_of(noted_us)


def test_tokens_and_cookies_are_known_while_the_database_cannot_be_written(tmp_path: Path) -> None:
    database, other, clock = SqliteDatabase(tmp_path, busy_timeout_s=0.05), SqliteDatabase(tmp_path), Clock()
    database.open()
    access = Access(database, clock=clock, hasher=CountingHasher())
    access.people.add("bob", PASSWORD)
    token, session = access.tokens.create("bob").text, access.login("bob", PASSWORD).text
    clock.move(seconds=61)
    with other.transaction():
        with pytest.raises(StorageBusy):
            access.people.add("eve")
        assert [access.actor_of_token(token).name, access.actor_of_session(session).name] == ["bob", "bob"]
    database.close()
    other.close()


def test_a_token_lasts_between_a_day_and_a_year(access: Access) -> None:
    for days in (0, 366, -1):
        with pytest.raises(OutOfRange, match="1 to 365 days"):
            access.tokens.create("bob", days=days)
    for wrong in (1.5, True, "7"):
        with pytest.raises(WrongType):
            access.tokens.create("bob", days=wrong)  # type: ignore[arg-type]


def test_other_settings_that_mean_nothing_are_refused(access: Access) -> None:
    with pytest.raises(InvalidInput, match="a role is one of owner, curator, analyst, auditor"):
        access.tokens.create("bob", role="king")
    with pytest.raises(TooLarge):
        access.tokens.create("bob", label="x" * 129)
    with pytest.raises(UnknownName):
        access.tokens.create("nobody")


def test_one_person_has_a_limited_number_of_tokens(access: Access, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.server.access.credentials.TOKENS_MAX", 2)
    first = access.tokens.create("bob")
    access.tokens.create("bob")
    with pytest.raises(TooLarge, match="revoke one that is not needed"):
        access.tokens.create("bob")
    access.tokens.revoke(first.id)
    access.tokens.create("bob")


def test_tokens_that_have_ended_are_kept_for_a_month_and_not_without_end(
    access: Access, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tacit.server.access.credentials.ENDED_MAX", 2)
    for _ in range(2):
        access.tokens.revoke(access.tokens.create("bob", days=1).id)
    with pytest.raises(TooLarge, match="created 2 tokens within a year"):
        access.tokens.create("bob")
    assert len(access.tokens.all("bob")) == 2
    clock.move(days=31)
    access.tokens.create("bob")
    assert len(access.tokens.all("bob")) == 1


def test_passwords_are_argon2id_hashes() -> None:
    hasher = Hasher()
    hashed = hasher.hash_password(PASSWORD)
    assert hashed.startswith("$argon2id$")
    assert hasher.matches(hashed, PASSWORD)
    assert not hasher.matches(hasher.dummy_hash, PASSWORD)
    assert hashed.split("$")[:4] == hasher.dummy_hash.split("$")[:4], "nobody's password takes as long"
    assert list(map(len, hashed.split("$"))) == list(map(len, hasher.dummy_hash.split("$")))
