"""Browsers: cookies that end, CSRF tokens of one session alone, and logins that tell guessers nothing."""

import threading
from pathlib import Path

import pytest

from tacit.privacy.errors import Forged, NotKnown, Throttled
from tacit.server.access import Access, Actor, Grant, Role, csrf_of
from tacit.server.access.passwords import address_key, delay_s
from tests.unit.server.access.places import PASSWORD, Clock, Place, sqlite_place


def fail(access: Access, times: int, name: str = "bob", address: str = "10.0.0.1") -> None:
    for _ in range(times):
        with pytest.raises(NotKnown, match="the name or the password is wrong"):
            access.login(name, "not the password", address)


def test_a_cookie_stands_for_the_person_who_logged_in(access: Access, place: Place) -> None:
    session = access.login("bob", PASSWORD, "10.0.0.1")
    actor = place.access().actor_of_session(session.text)
    assert (actor.name, actor.grants, actor.is_session) == ("bob", (Grant(Role.ANALYST, "visits"),), True)
    assert (len(session.text), session.text in repr(session), session.csrf in repr(session)) == (43, False, False)
    assert session.text not in repr(actor)
    access.logout(session.text)
    with pytest.raises(NotKnown, match="log in"):
        access.actor_of_session(session.text)


def test_a_cookie_that_nobody_was_given_stands_for_nobody(access: Access) -> None:
    for text in ("", "x", "A" * 43, "\ud800" * 43, "A" * 5_000):
        with pytest.raises(NotKnown):
            access.actor_of_session(text)


def test_a_session_ends_after_an_hour_without_use(access: Access, clock: Clock) -> None:
    text = access.login("bob", PASSWORD).text
    for _ in range(3):
        clock.move(hours=1, seconds=-61)
        access.actor_of_session(text)
    clock.move(hours=1)
    with pytest.raises(NotKnown, match="expired; log in again"):
        access.actor_of_session(text)


def test_a_session_ends_after_twelve_hours_however_much_it_is_used(access: Access, clock: Clock) -> None:
    session = access.login("bob", PASSWORD)
    for _ in range(23):
        clock.move(hours=0.5)
        access.actor_of_session(session.text)
    clock.move(hours=0.5)
    assert session.expires_at.timestamp() * 1e6 == clock.now_us
    with pytest.raises(NotKnown):
        access.actor_of_session(session.text)


def test_the_csrf_token_of_another_session_is_refused(access: Access) -> None:
    own, other = access.login("bob", PASSWORD), access.login("bob", PASSWORD)
    actor = access.actor_of_session(own.text)
    access.check_csrf(actor, own.csrf)
    assert csrf_of(own.text) == own.csrf
    for wrong in (other.csrf, "", None, own.csrf[:-1], own.text, actor.csrf_sha256):
        with pytest.raises(Forged, match="reload the page"):
            access.check_csrf(actor, wrong)
    with pytest.raises(Forged):
        access.check_csrf(Actor("bob", is_session=True), "")


def test_a_token_of_a_program_needs_no_csrf_token(access: Access) -> None:
    access.check_csrf(access.actor_of_token(access.tokens.create("bob").text), None)


def test_one_person_has_a_limited_number_of_sessions_and_the_oldest_makes_room(
    access: Access, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tacit.server.access.credentials.SESSIONS_MAX", 2)
    texts = []
    for _ in range(3):
        texts.append(access.login("bob", PASSWORD).text)
        clock.move(seconds=1)
    with pytest.raises(NotKnown):
        access.actor_of_session(texts[0])
    for text in texts[1:]:
        access.actor_of_session(text)


def test_sessions_that_have_ended_are_cleared_away(access: Access, clock: Clock) -> None:
    access.login("bob", PASSWORD)
    clock.move(hours=2)
    access.login("ana", PASSWORD)
    assert access.database.read("SELECT person FROM browsers") == [("ana",)]


def test_unknown_people_and_wrong_passwords_take_the_same_hashes_and_sentences(access: Access, place: Place) -> None:
    access.people.add("tokens.only")
    access.people.add("gone", PASSWORD)
    access.people.remove("gone")
    counts, sentences = [], set()
    for number, name in enumerate(("bob", "nobody", "tokens.only", "gone", "not/a name", "")):
        before = place.hasher.compared
        with pytest.raises(NotKnown) as found:
            access.login(name, "not the password", f"10.0.1.{number}")
        counts.append(place.hasher.compared - before)
        sentences.add(str(found.value))
    assert (counts, len(sentences)) == ([1] * 6, 1)


def test_nobodys_password_lets_nobody_in_even_if_it_were_found(
    access: Access, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    access.people.add("tokens.only")
    monkeypatch.setattr(place.hasher, "matches", lambda _hashed, _text: True)
    for name in ("nobody", "tokens.only"):
        with pytest.raises(NotKnown):
            access.login(name, "x", "10.0.1.1")


def test_waiting_doubles_from_the_fifth_failure_on_up_to_a_quarter_of_an_hour() -> None:
    assert [delay_s(count) for count in range(1, 10)] == [0, 0, 0, 0, 1, 2, 4, 8, 16]
    assert delay_s(14) == 512
    assert [delay_s(15), delay_s(10**9)] == [900, 900]


def test_after_five_failures_the_right_password_has_to_wait_too(access: Access, place: Place, clock: Clock) -> None:
    fail(access, 5)
    compared = place.hasher.compared
    with pytest.raises(Throttled, match="in 1 s") as found:
        access.login("bob", PASSWORD, "10.0.0.1")
    assert found.value.retry_after_s == 1
    assert place.hasher.compared == compared, "who has to wait costs no hash"
    clock.move(seconds=1)
    fail(access, 1)
    clock.move(seconds=1)
    with pytest.raises(Throttled) as found:
        access.login("bob", PASSWORD, "10.0.0.1")
    assert found.value.retry_after_s == 1
    clock.move(seconds=1)
    access.login("bob", PASSWORD, "10.0.0.1")


def test_a_stranger_who_knows_a_name_does_not_lock_its_person_out(access: Access, place: Place, clock: Clock) -> None:
    for number in range(20):
        fail(access, 5, address=f"10.0.1.{number}")
    for server in (access, place.access()):
        server.login("bob", PASSWORD, "10.0.0.2")
    with pytest.raises(Throttled):
        access.login("bob", PASSWORD, "10.0.1.3")


def test_forged_pages_do_not_lock_a_session(access: Access) -> None:
    session = access.login("bob", PASSWORD, "10.0.0.1")
    actor = access.actor_of_session(session.text)
    for _ in range(50):
        with pytest.raises(Forged):
            access.check_csrf(actor, "forged", "10.0.0.9")
    access.check_csrf(access.actor_of_session(session.text), session.csrf, "10.0.0.9")


def test_two_processes_count_together(access: Access, place: Place) -> None:
    other = place.access()
    for turn in range(5):
        fail((access, other)[turn % 2], 1)
    for server in (access, other):
        with pytest.raises(Throttled):
            server.login("bob", PASSWORD, "10.0.0.1")


def test_an_address_that_guesses_at_many_names_has_to_wait(access: Access, clock: Clock) -> None:
    for number in range(5):
        fail(access, 1, f"name{number}", "2001:db8::1")
    with pytest.raises(Throttled):
        access.login("bob", PASSWORD, "2001:db8::ffff")
    access.login("bob", PASSWORD, "2001:db8:0:1::1")
    assert address_key("::ffff:10.0.0.1") == address_key("10.0.0.1") != address_key("10.0.0.2")


def test_a_good_login_forgets_the_failures_of_the_name_and_not_those_of_the_address(access: Access) -> None:
    fail(access, 4)
    access.login("bob", PASSWORD, "10.0.0.1")
    with pytest.raises(NotKnown):
        access.login("ana", "not the password", "10.0.0.1")
    with pytest.raises(Throttled):
        access.login("ana", PASSWORD, "10.0.0.1")
    access.login("bob", PASSWORD, "10.0.0.2")


def test_failures_are_forgotten_after_a_day(access: Access, clock: Clock) -> None:
    fail(access, 4)
    clock.move(days=1)
    fail(access, 1)
    assert access.database.read("SELECT DISTINCT count FROM failures") == [(1,)]


def test_guesses_at_one_name_at_once_are_looked_at_one_after_another(tmp_path: Path) -> None:
    place = sqlite_place(tmp_path)
    access = place.access()
    access.people.add("bob", PASSWORD)
    refused: list[str] = []

    def guess() -> None:
        try:
            access.login("bob", "not the password", "10.0.0.1")
        except (NotKnown, Throttled) as error:
            refused.append(error.code)

    threads = [threading.Thread(target=guess) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (place.hasher.compared, sorted(refused)) == (5, ["T401"] * 5 + ["T402"] * 7)
    place.close()


def test_a_password_that_is_too_long_is_wrong_and_not_cut(access: Access) -> None:
    longest = ("correct horse " * 100)[:1024]
    access.people.set_password("bob", longest)
    access.login("bob", longest)
    with pytest.raises(NotKnown):
        access.login("bob", longest + "x")


def test_who_another_service_vouches_for_is_known_here_or_made_without_grants(access: Access) -> None:
    assert access.actor_of_session(access.session_for("bob").text).name == "bob"
    with pytest.raises(NotKnown, match="ask an owner to add you"):
        access.session_for("eve")
    actor = access.actor_of_session(access.session_for("eve", create=True).text)
    assert (actor.name, actor.grants) == ("eve", ())
    access.session_for("eve", create=True)
    with pytest.raises(NotKnown):
        access.session_for("\ud800")
