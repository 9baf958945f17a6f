"""Events of every kind: written and read back unchanged, and read strictly."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.privacy import Relation, events
from tacit.privacy.errors import InvalidInput, MixedRelations, UnknownEvent
from tests.property.privacy.strategies import COMPOUND, SIMPLE, any_event, events_of_kind, events_under

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def test_every_kind_of_event_is_tried() -> None:
    assert {*SIMPLE, *COMPOUND} == set(events.KINDS)


@pytest.mark.parametrize("kind", list(events.KINDS))
@settings(max_examples=40)
@given(data=st.data())
def test_an_event_read_from_its_written_form_is_the_same_event(kind: str, data: st.DataObject) -> None:
    event = data.draw(events_of_kind(kind))
    again = events.from_json(event.to_json())
    assert again == event
    assert type(again) is type(event) is events.KINDS[kind]
    assert again.relation is event.relation
    assert again.to_json() == event.to_json()


@given(any_event, st.text(min_size=1))
def test_an_event_with_one_key_more_is_refused(event: events.Event, key: str) -> None:
    written = event.to_dict()
    if key not in written:
        with pytest.raises(UnknownEvent):
            events.from_dict({**written, key: 1})


@given(any_event, st.integers().filter(lambda version: version != 1))
def test_an_event_of_another_version_is_refused(event: events.Event, version: int) -> None:
    with pytest.raises(UnknownEvent):
        events.from_dict({**event.to_dict(), "version": version})


@given(any_event, st.data())
def test_whatever_replaces_a_parameter_is_read_as_an_event_or_refused_as_invalid(
    event: events.Event, data: st.DataObject
) -> None:
    written = event.to_dict()
    written[data.draw(st.sampled_from(sorted(written)))] = data.draw(json_values)
    try:
        read = events.from_json(json.dumps(written))
    except InvalidInput:
        return
    assert events.from_json(read.to_json()) == read


@given(json_values)
def test_whatever_is_no_event_is_refused_as_unknown(value: object) -> None:
    with pytest.raises(UnknownEvent):
        events.from_dict(value)


@given(events_under(Relation.ADD_REMOVE), events_under(Relation.REPLACE_ONE), st.booleans())
def test_events_under_two_relations_never_compose(added: events.Event, replaced: events.Event, flip: bool) -> None:
    with pytest.raises(MixedRelations):
        events.Composed([replaced, added] if flip else [added, replaced])
