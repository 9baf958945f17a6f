"""People: added once, removed for good and at once; the last owner stays; passwords are worth the name."""

import pytest

from tacit.privacy.errors import InvalidInput, NameTaken, NotKnown, NotPermitted, TooLarge, UnknownName
from tacit.server.access import Access, Action, Grant, Resource, Role
from tests.unit.server.access.places import PASSWORD, Clock, Place


def test_nobody_is_there_at_first(place: Place) -> None:
    access = place.access()
    assert access.people.is_empty()
    access.people.add("ana")
    assert not access.people.is_empty()
    assert place.access().people.all() == access.people.all()


def test_grants_are_kept_and_withdrawn(access: Access, place: Place) -> None:
    access.people.grant("bob", Grant(Role.CURATOR, "clinic", "visits"))
    access.people.grant("bob", Grant(Role.CURATOR, "clinic", "visits"))
    expected = (Grant(Role.ANALYST, "visits"), Grant(Role.CURATOR, "clinic", "visits"))
    assert place.access().people.one("bob").grants == expected
    assert {one.name: one.grants for one in access.people.all()}["bob"] == expected
    access.people.withdraw("bob", Grant(Role.ANALYST, "visits"))
    assert access.people.one("bob").grants == expected[1:]
    with pytest.raises(UnknownName, match="bob has no grant curator on clinic"):
        access.people.withdraw("bob", Grant(Role.CURATOR, "clinic"))


def test_a_grant_that_is_withdrawn_is_gone_for_the_next_request(access: Access, place: Place) -> None:
    token = access.tokens.create("bob").text
    asks = (Action.QUESTION_ASK, Resource("visits", "visits"))
    access.require(access.actor_of_token(token), *asks)
    place.access().people.withdraw("bob", Grant(Role.ANALYST, "visits"))
    actor = access.actor_of_token(token)
    with pytest.raises(NotPermitted, match=r"bob has no permission for question.ask on visits.visits; ask an owner"):
        access.require(actor, *asks)


def test_somebody_who_is_removed_has_no_rights_at_once(access: Access, place: Place) -> None:
    token, session = access.tokens.create("bob").text, access.login("bob", PASSWORD).text
    access.actor_of_token(token)
    access.actor_of_session(session)
    place.access().people.remove("bob")
    with pytest.raises(NotKnown):
        access.actor_of_token(token)
    with pytest.raises(NotKnown):
        access.actor_of_session(session)
    with pytest.raises(NotKnown):
        access.login("bob", PASSWORD)
    with pytest.raises(NotKnown):
        access.session_for("bob", create=True)
    for change in (lambda: access.tokens.create("bob"), lambda: access.people.grant("bob", Grant(Role.OWNER))):
        with pytest.raises(UnknownName, match="was removed"):
            change()
    person = access.people.one("bob")
    assert (person.is_active, person.grants) == (False, ())
    assert [one.is_revoked for one in access.tokens.all("bob")] == [True]
    with pytest.raises(NameTaken, match="choose another name"):
        access.people.add("Bob", PASSWORD)


def test_the_last_owner_stays(access: Access) -> None:
    for change in (lambda: access.people.remove("ana"), lambda: access.people.withdraw("ana", Grant(Role.OWNER))):
        with pytest.raises(NotPermitted, match="ana is the last owner"):
            change()
    assert access.people.one("ana").grants == (Grant(Role.OWNER),)
    access.people.grant("bob", Grant(Role.OWNER))
    access.people.withdraw("ana", Grant(Role.OWNER))
    with pytest.raises(NotPermitted, match="bob is the last owner"):
        access.people.remove("bob")
    access.people.remove("ana")


def test_names_that_cannot_stand_in_an_address_are_refused(access: Access, clock: Clock) -> None:
    for name in ("", " ana", "a/b", "a b", "-ana", "anä", "tacit_x", "a" * 65, "a\x00", "\ud800", "a\n"):
        with pytest.raises(InvalidInput):
            access.people.add(name, PASSWORD)
        with pytest.raises(UnknownName):
            access.people.one(name)
        with pytest.raises(UnknownName):
            access.people.grant(name, Grant(Role.OWNER))
        with pytest.raises(NotKnown):
            access.login(name, PASSWORD)
        clock.move(hours=1)
        assert access.tokens.all(name) == []


def test_a_name_that_differs_only_by_capitals_is_taken(access: Access) -> None:
    with pytest.raises(NameTaken, match="a person bob exists already"):
        access.people.add("BOB")


def test_passwords_that_are_easily_guessed_are_refused_and_not_repeated(access: Access) -> None:
    for password, sentence in (
        ("short", "at least 12 characters"),
        ("elevenchars", "at least 12 characters"),
        ("Christopher.Robin", "equals the name"),
        ("abababababababab", "too few different characters"),
        ("x" * 1025, "at most 1,024"),
        ("0123456789ab\ud800", "UTF-8"),
    ):
        with pytest.raises((InvalidInput, TooLarge), match=sentence) as found:
            access.people.add("christopher.robin", password)
        assert password not in str(found.value)
        assert found.value.value is None


def test_a_new_password_ends_every_session(access: Access, place: Place) -> None:
    sessions = [access.login("bob", PASSWORD).text for _ in range(2)]
    token = access.tokens.create("bob").text
    place.access().people.set_password("bob", "another good password")
    for text in sessions:
        with pytest.raises(NotKnown):
            access.actor_of_session(text)
    assert access.actor_of_token(token).name == "bob"
    with pytest.raises(NotKnown):
        access.login("bob", PASSWORD)
    access.login("bob", "another good password")


def test_a_hash_of_older_parameters_is_renewed_at_login(access: Access, place: Place) -> None:
    from argon2 import PasswordHasher

    old = PasswordHasher(time_cost=2, memory_cost=8, parallelism=1).hash(PASSWORD)
    access.database.write(("UPDATE people SET password_hash = ? WHERE name = 'bob'", (old,)))
    access.login("bob", PASSWORD)
    assert access.people.password_hash("bob") != old
    access.login("bob", PASSWORD)
