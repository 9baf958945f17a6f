"""The audit: every refusal and change is there, once, without anything secret; the files hold hashes only."""

from pathlib import Path

import pytest

from tacit.privacy.errors import Forged, NotKnown, NotPermitted, TacitError, Throttled
from tacit.server.access import DONE, Access, Action, Actor, Grant, Resource, Role
from tacit.server.access.audit import OTHERS, REFUSALS_MAX, RESOURCES_MAX, masked, masked_stranger
from tests.unit.server.access.places import PASSWORD, Clock, Place, sqlite_place

SECRETS = [
    "Tr0ub4dor&3-password",
    "SELECT age FROM visits WHERE name = 'Ana'",
    "tacit_0123456789ab_" + "A" * 43,
    "hunter2hunter2hunter2Hunter2",
    "eyJhbGciOiJSUzI1NiJ9.e30.c2ln",
    "correct horse battery staple!",
]


def kinds(access: Access) -> list[tuple[str, str, str, str]]:
    return [(one.actor, one.action, str(one.resource), one.code) for one in access.audit.records()]


def test_changes_are_recorded_with_who_made_them(place: Place) -> None:
    access = place.access()
    access.people.add("ana", by="root", address="10.0.0.1")
    access.people.grant("ana", Grant(Role.OWNER), by="root")
    access.people.add("bob", PASSWORD, by="ana")
    access.people.grant("bob", Grant(Role.ANALYST, "visits"), by="ana")
    token = access.tokens.create("bob", dataset="visits", by="ana")
    access.tokens.revoke(token.id, by="ana")
    access.people.set_password("bob", PASSWORD, by="bob")
    access.login("bob", PASSWORD)
    access.people.withdraw("bob", Grant(Role.ANALYST, "visits"), by="ana")
    access.people.remove("bob", by="ana")
    assert kinds(access) == [
        ("root", "people.write", "person ana", DONE),
        ("root", "grant.owner", "person ana", DONE),
        ("ana", "people.write", "person bob", DONE),
        ("ana", "grant.analyst", "person bob on visits", DONE),
        ("ana", "token.write", "person bob on visits", DONE),
        ("ana", "token.revoke", "person bob", DONE),
        ("bob", "password.write", "person bob", DONE),
        ("bob", "login", "everything", DONE),
        ("ana", "withdraw.analyst", "person bob on visits", DONE),
        ("ana", "people.remove", "person bob", DONE),
    ]
    assert access.audit.records()[0].address == "10.0.0.1"
    assert [one.number for one in access.audit.records(first=4, limit=2)] == [4, 5]
    assert access.audit.last() == 10


def test_refusals_are_recorded(access: Access) -> None:
    session, token = access.login("bob", PASSWORD), access.tokens.create("bob")
    actor = access.actor_of_session(session.text)
    before = access.audit.last()
    with pytest.raises(NotPermitted):
        access.require(actor, Action.LEDGER_READ, Resource("visits"), "10.0.0.7")
    with pytest.raises(Forged):
        access.check_csrf(actor, "no", "10.0.0.7")
    with pytest.raises(NotKnown):
        access.login("bob", "no", "10.0.0.7")
    with pytest.raises(NotKnown):
        access.actor_of_token(f"tacit_{token.id}_{'A' * 43}", "10.0.0.7")
    with pytest.raises(NotKnown):
        access.actor_of_token("nothing", "10.0.0.7")
    with pytest.raises(NotKnown):
        access.actor_of_session("nothing", "10.0.0.7")
    records = access.audit.records(before + 1)
    assert [(one.actor, one.action, one.code) for one in records] == [
        ("bob", "ledger.read", "T400"),
        ("bob", "session.use", "T403"),
        ("bob", "login", "T401"),
        (f"token {token.id}", "token.use", "T401"),
        ("", "token.use", "T401"),
        ("", "session.use", "T401"),
    ]
    assert {one.address for one in records} == {"10.0.0.7"}


def test_who_has_to_wait_is_recorded_too(access: Access) -> None:
    for _ in range(7):
        with pytest.raises((NotKnown, Throttled)):
            access.login("bob", "no", "10.0.0.7")
    assert [(one.code, one.count) for one in access.audit.records()[-2:]] == [("T401", 5), ("T402", 2)]


def test_a_flood_of_the_same_refusals_is_one_record_a_minute(access: Access, clock: Clock) -> None:
    before = access.audit.last()
    bob = Actor("bob")
    for _ in range(50):
        with pytest.raises(NotPermitted):
            access.require(bob, Action.QUESTION_ASK, Resource("visits"))
    clock.move(seconds=60)
    with pytest.raises(NotPermitted):
        access.require(bob, Action.QUESTION_ASK, Resource("visits"))
    assert [one.count for one in access.audit.records(before + 1)] == [50, 1]


def test_a_flood_of_different_refusals_is_capped_for_one_actor_and_for_all(access: Access) -> None:
    before = access.audit.last()
    for number in range(30):
        access.audit.record("bob", Action.QUESTION_ASK, Resource(f"d{number}"), "T400", "10.0.0.1")
    records = access.audit.records(before + 1)
    assert (len(records), sum(one.count for one in records)) == (RESOURCES_MAX, 30)


def test_a_flood_of_strangers_ends_in_one_record_for_the_others(tmp_path: Path) -> None:
    place = sqlite_place(tmp_path)
    access = place.access()
    for number in range(REFUSALS_MAX + 20):
        access.audit.record(f"stranger{number}", "login", Resource(), "T401", "10.0.0.1")
    records = access.audit.records(1, 1000)
    assert len(records) == REFUSALS_MAX + 1
    assert (records[-1].actor, records[-1].count) == (OTHERS, 20)
    place.close()


def test_changes_are_never_merged(access: Access) -> None:
    before = access.audit.last()
    for _ in range(3):
        access.tokens.create("bob")
    assert [one.count for one in access.audit.records(before + 1)] == [1, 1, 1]


@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_in_any_place_is_in_no_record_and_in_no_file(secret: str, tmp_path: Path) -> None:
    place = sqlite_place(tmp_path)
    access = place.access()
    access.people.add("bob", PASSWORD)
    token, session = access.tokens.create("bob"), access.login("bob", PASSWORD)
    actor = access.actor_of_session(session.text)
    attempts = [
        lambda: access.login(secret, secret, secret),
        lambda: access.login("bob", secret, "10.0.0.1"),
        lambda: access.actor_of_token(secret, secret),
        lambda: access.actor_of_token(f"tacit_{token.id}_{'A' * 43}"),
        lambda: access.actor_of_session(secret, secret),
        lambda: access.check_csrf(actor, secret, secret),
        lambda: access.require(actor, Action.CATALOG_READ, Resource(secret, secret, secret), secret),
        lambda: access.audit.record(secret, Action.CATALOG_READ, Resource(secret, secret, secret), "T400", secret),
        lambda: access.people.add(secret, secret),
        lambda: access.session_for(secret),
        lambda: access.people.set_password("bob", secret),
    ]
    for attempt in attempts:
        try:
            attempt()
        except TacitError:
            continue
    assert secret not in repr(access.audit.records())
    place.close()
    content = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    for text in (secret, PASSWORD, token.text, token.text[-43:], session.text, session.csrf):
        assert text.encode() not in content
    assert b"$argon2id$" in content


def test_a_password_typed_where_the_name_goes_is_in_no_record(access: Access) -> None:
    for number, password in enumerate(("hunter2hunter2", "correcthorsebattery", "12345678")):
        with pytest.raises(NotKnown):
            access.login(password, "", f"10.0.2.{number}")
        assert password not in repr(access.audit.records())
    with pytest.raises(NotKnown):
        access.login("eve", "", "10.0.3.1")
    assert access.audit.records()[-1].actor == "eve"


@pytest.mark.parametrize("name", ["visits", "visits_2024q1", "Clinic.North", "ana@clinic.org", "größen", "two words"])
def test_names_of_data_and_people_are_stored_as_they_are(name: str) -> None:
    assert masked(name) == name


@pytest.mark.parametrize("name", ["ana", "ana.maria", "bob7", "ana@clinic.org"])
def test_a_strangers_plain_name_is_shown(name: str) -> None:
    assert masked_stranger(name) == name


@pytest.mark.parametrize("name", [*SECRETS, "hunter2hunter2", "12345678", "correcthorsebattery", ""])
def test_a_strangers_name_that_may_be_a_secret_is_a_short_digest(name: str) -> None:
    assert len(masked_stranger(name)) == 9
    assert masked_stranger(name).startswith("?")
