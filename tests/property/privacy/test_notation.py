"""The notation of events of every kind: written and read back unchanged; whatever else stands there is refused."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.privacy import events
from tacit.privacy.errors import InvalidInput, NotationError
from tacit.privacy.figures import TOLERANCE, at_least, at_most, exactly, strictly_at_most
from tacit.privacy.notation import parse, write
from tests.property.privacy.strategies import any_event, events_of_kind

ALPHABET = "gausinxlpce0123456789.()+,=/?- \n"
finite = st.floats(allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize("kind", list(events.KINDS))
@settings(max_examples=40)
@given(data=st.data())
def test_an_event_read_from_its_notation_is_the_same_event(kind: str, data: st.DataObject) -> None:
    event = data.draw(events_of_kind(kind))
    again = parse(write(event), relation=event.relation)
    assert again == event
    assert again.to_json() == event.to_json()
    assert write(again) == write(event)


@given(any_event, st.integers(0, 20), st.sampled_from(["", " ", "\n\t "]))
def test_blanks_between_words_mean_nothing(event: events.Event, place: int, blank: str) -> None:
    words = write(event).replace("(", " ( ").replace(",", " , ").replace("=", " = ").split(" ")
    spaced = " ".join(words[:place]) + " " + blank + " ".join(words[place:])
    assert parse(spaced, relation=event.relation) == event


@given(st.text(ALPHABET, max_size=40) | st.text(max_size=20))
def test_a_text_is_an_event_or_refused_at_a_place_in_it(text: str) -> None:
    event = place = None
    try:
        event = parse(text)
    except NotationError as refusal:
        place = refusal.position
    assert event is None or parse(write(event)) == event
    assert place is None or 0 <= place <= len(text)


@given(any_event, st.data())
def test_a_damaged_notation_is_an_event_or_refused_as_invalid(event: events.Event, data: st.DataObject) -> None:
    text = write(event)
    place = data.draw(st.integers(0, len(text) - 1))
    damaged = text[:place] + data.draw(st.text(ALPHABET, max_size=2)) + text[place + 1 :]
    try:
        read = parse(damaged, relation=event.relation)
    except InvalidInput:
        return
    assert parse(write(read), relation=read.relation) == read


@given(finite, st.integers(1, 8))
def test_a_figure_read_back_lies_on_the_side_it_was_rounded_to(number: float, digits: int) -> None:
    assert float(at_least(number, digits)) <= number <= float(strictly_at_most(number, digits))
    assert number - TOLERANCE * abs(number) <= float(at_most(number, digits))
    assert float(exactly(number)) == number


@given(st.floats(min_value=1e-300, max_value=1e300), st.integers(2, 8))
def test_a_figure_is_near_its_number(number: float, digits: int) -> None:
    width = 10.0 ** (1 - digits) * (1 + 1e-9)
    assert math.isclose(float(at_most(number, digits)), number, rel_tol=width)
    assert math.isclose(float(at_least(number, digits)), number, rel_tol=width)
