"""Events: what is refused when one is made or read."""

import json
from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from tacit.privacy import Relation, events
from tacit.privacy.errors import (
    EmptyInput,
    InvalidInput,
    MixedRelations,
    NotFinite,
    NotPositive,
    OutOfRange,
    TooLarge,
    UnknownEvent,
    WrongType,
)

PURE = events.Pure(1.0)
REPLACING = events.Pure(1.0, under=Relation.REPLACE_ONE)
WRITTEN = {"kind": "pure", "version": 1, "epsilon": 1.0, "relation": "add-remove"}


def nested(depth: int) -> dict[str, Any]:
    record: dict[str, Any] = WRITTEN
    for _ in range(depth - 1):
        record = {"kind": "repeated", "version": 1, "count": 2, "event": record}
    return record


def test_the_written_form_of_an_event_is_this() -> None:
    event = events.Sampled(0.01, events.Gaussian(1.1))
    assert event.to_json() == (
        '{"event":{"kind":"gaussian","relation":"add-remove","sigma":1.1,"version":1},'
        '"kind":"sampled","rate":0.01,"version":1}'
    )


def test_every_kind_stands_under_its_own_name() -> None:
    assert all(kind.kind == name for name, kind in events.KINDS.items())


def test_no_kind_was_ever_removed() -> None:
    assert set(events.KINDS) >= {
        "approximate", "composed", "discrete-gaussian", "discrete-laplace", "disjoint", "exponential", "gaussian",
        "grouped", "laplace", "noisy-max", "pure", "randomized-response", "repeated", "sampled",
        "sampled-without-replacement", "selected", "shuffled", "tree-aggregation", "zero-concentrated",
    }  # fmt: skip


def test_an_event_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        PURE.epsilon = 0.0  # type: ignore[misc]


def test_the_relation_is_add_remove_unless_stated() -> None:
    assert PURE.relation is Relation.ADD_REMOVE
    assert events.Pure(1.0, under="replace-one").relation is Relation.REPLACE_ONE  # type: ignore[arg-type]


def test_a_compound_event_takes_the_relation_of_its_parts() -> None:
    assert events.Repeated(events.Composed([REPLACING, REPLACING]), 3).relation is Relation.REPLACE_ONE


@pytest.mark.parametrize("compound", [events.Composed, events.Disjoint])
def test_events_under_two_relations_are_not_composed(compound: Any) -> None:
    with pytest.raises(MixedRelations, match="add-remove and replace-one"):
        compound([PURE, events.Repeated(REPLACING, 2)])


@pytest.mark.parametrize("compound", [events.Composed, events.Disjoint])
def test_a_composition_of_nothing_is_refused(compound: Any) -> None:
    with pytest.raises(EmptyInput):
        compound([])


def test_a_part_that_is_no_event_is_refused() -> None:
    with pytest.raises(WrongType, match="not from float"):
        events.Composed([PURE, 1.0])  # type: ignore[list-item]
    with pytest.raises(WrongType, match="not from str"):
        events.Repeated("pure", 2)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "refusal"),
    [
        (lambda: events.Pure(-1), OutOfRange),
        (lambda: events.Pure(float("nan")), NotFinite),
        (lambda: events.Pure("1"), WrongType),
        (lambda: events.Pure(True), WrongType),
        (lambda: events.Pure(1, under="neighbours"), InvalidInput),
        (lambda: events.Approximate(1, 1), OutOfRange),
        (lambda: events.Approximate(1, -1e-9), OutOfRange),
        (lambda: events.Gaussian(0), NotPositive),
        (lambda: events.DiscreteGaussian(1, sensitivity=0), NotPositive),
        (lambda: events.DiscreteGaussian(1, scalar=1), WrongType),
        (lambda: events.DiscreteLaplace(1, steps=0), OutOfRange),
        (lambda: events.DiscreteLaplace(1, steps=1.5), WrongType),
        (lambda: events.RandomizedResponse(1, categories=1), OutOfRange),
        (lambda: events.Shuffled(1, 0), OutOfRange),
        (lambda: events.Sampled(0, PURE), NotPositive),
        (lambda: events.Sampled(1.1, PURE), OutOfRange),
        (lambda: events.SampledWithoutReplacement(3, 2, PURE), OutOfRange),
        (lambda: events.Repeated(PURE, 0), OutOfRange),
        (lambda: events.Grouped(PURE, 0), OutOfRange),
        (lambda: events.NoisyMax(0), NotPositive),
        (lambda: events.TreeAggregation(1, 0), OutOfRange),
        (lambda: events.Selected(PURE, -1, 0.5), OutOfRange),
        (lambda: events.Selected(PURE, 1, 1), OutOfRange),
    ],
)
def test_a_parameter_outside_its_range_is_refused(make: Any, refusal: type[InvalidInput]) -> None:
    with pytest.raises(refusal):
        make()


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "perfect"},
        {"kind": None},
        {"kind": ["pure"]},
        {"version": 2},
        {"version": "1"},
        {"version": True},
        {"note": "harmless"},
    ],
)
def test_a_record_that_is_not_exactly_known_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(UnknownEvent):
        events.from_dict({**WRITTEN, **change})


@pytest.mark.parametrize("missing", ["kind", "version", "epsilon", "relation"])
def test_a_record_with_a_missing_key_is_refused(missing: str) -> None:
    with pytest.raises(UnknownEvent):
        events.from_dict({key: value for key, value in WRITTEN.items() if key != missing})


@pytest.mark.parametrize("epsilon", ["1", None, True, [1], {"kind": "pure"}])
def test_a_record_with_a_parameter_of_another_type_is_refused(epsilon: object) -> None:
    with pytest.raises(WrongType):
        events.from_dict({**WRITTEN, "epsilon": epsilon})


def test_a_record_under_an_unknown_relation_is_refused() -> None:
    with pytest.raises(InvalidInput, match="add-remove or replace-one"):
        events.from_dict({**WRITTEN, "relation": "add-two"})


@pytest.mark.parametrize("text", ["", "nonsense", "[]", "1", "null", '"pure"', "[" * 100_000, '{"kind": NaN}'])
def test_a_text_that_is_no_event_is_refused(text: str) -> None:
    with pytest.raises(UnknownEvent):
        events.from_json(text)


def test_parts_that_are_no_list_are_refused() -> None:
    with pytest.raises(UnknownEvent, match="a list"):
        events.from_dict({"kind": "composed", "version": 1, "events": WRITTEN})


@pytest.mark.parametrize("written", ["NaN", "Infinity", "1e999"])
def test_a_number_that_is_not_finite_is_refused_in_the_written_form(written: str) -> None:
    with pytest.raises(NotFinite):
        events.from_json(json.dumps(WRITTEN).replace("1.0", written))


def test_events_nested_to_the_limit_are_read_and_one_deeper_is_refused() -> None:
    assert events.from_dict(nested(events.EVENT_DEPTH_MAX)).to_dict() == nested(events.EVENT_DEPTH_MAX)
    with pytest.raises(TooLarge):
        events.from_dict(nested(events.EVENT_DEPTH_MAX + 1))


def test_events_nested_to_the_limit_are_made_and_one_deeper_is_refused() -> None:
    event: events.Event = PURE
    for _ in range(events.EVENT_DEPTH_MAX - 1):
        event = events.Repeated(event, 2)
    with pytest.raises(TooLarge):
        events.Composed([PURE, event])


def test_a_composition_of_more_parts_than_the_limit_is_refused() -> None:
    with pytest.raises(TooLarge, match="use Repeated"):
        events.Composed([PURE] * (events.EVENT_PARTS_MAX + 1))


def test_a_written_form_longer_than_the_limit_is_refused_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "EVENT_BYTES_MAX", 10)
    with pytest.raises(TooLarge, match="10 bytes"):
        events.from_json(json.dumps(WRITTEN))
