"""What every mechanism keeps, whoever wrote it: the kit to hold a new one to.

A new mechanism is added to EXAMPLES in `examples.py` with a private input; everything here must then hold for it.
"""

import dataclasses
import inspect
from typing import Any

import numpy as np
import pytest

import tacit.mechanisms
from tacit.mechanisms import (
    InterquartileRange,
    Mechanism,
    StableMode,
)
from tacit.mechanisms.simulation import SeededSource, is_simulated
from tacit.privacy import events
from tacit.privacy.events import from_json
from tests.conformance.mechanisms.examples import EXAMPLES

mechanisms = pytest.mark.parametrize(
    ("mechanism", "inputs", "level_inputs"), EXAMPLES, ids=[type(example[0]).__name__ for example in EXAMPLES]
)


def test_every_public_mechanism_is_held_to_the_kit() -> None:
    public = {getattr(tacit.mechanisms, name) for name in tacit.mechanisms.__all__}
    concrete = {one for one in public if isinstance(one, type) and issubclass(one, Mechanism)} - {Mechanism}
    assert concrete == {type(mechanism) for mechanism, *_ in EXAMPLES}


@mechanisms
def test_it_is_frozen_hashable_and_equal_to_its_like(mechanism: Any, inputs: Any, level_inputs: Any) -> None:
    fields = {field.name: getattr(mechanism, field.name) for field in dataclasses.fields(mechanism)}
    name = next(iter(fields))
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(mechanism, name, fields[name])
    like = dataclasses.replace(mechanism)
    assert mechanism == like
    assert hash(mechanism) == hash(like)
    assert mechanism.event == like.event


@mechanisms
def test_a_copy_with_another_parameter_is_another_mechanism(mechanism: Any, inputs: Any, level_inputs: Any) -> None:
    names = {field.name for field in dataclasses.fields(mechanism) if field.init}
    name = "sensitivity" if "sensitivity" in names else "epsilon"
    changed = dataclasses.replace(mechanism, **{name: 2 * getattr(mechanism, name)})
    assert getattr(changed, name) == 2 * getattr(mechanism, name)
    assert changed != mechanism
    made = {field: getattr(mechanism, field) for field in names - {"sigma"}} | {name: getattr(changed, name)}
    assert changed == type(mechanism)(**made)


@mechanisms
def test_it_says_what_it_promises(mechanism: Any, inputs: Any, level_inputs: Any) -> None:
    module = inspect.getmodule(type(mechanism))
    assert module is not None
    assert "Promise" in (module.__doc__ or "")
    assert type(mechanism).__doc__


@mechanisms
def test_its_event_can_be_written_and_read_and_names_its_relation(
    mechanism: Any, inputs: Any, level_inputs: Any
) -> None:
    event = mechanism.event
    assert isinstance(event, events.Event)
    assert from_json(event.to_json()) == event
    assert event.relation is mechanism.relation


@mechanisms
def test_its_event_does_not_depend_on_what_it_released(mechanism: Any, inputs: Any, level_inputs: Any) -> None:
    before = mechanism.event
    mechanism.release(*inputs)
    assert mechanism.event == before


@mechanisms
def test_a_release_is_random_and_a_seed_replays_it(mechanism: Any, inputs: Any, level_inputs: Any) -> None:
    def draw(seed: int) -> str:
        source = SeededSource(seed)
        return repr([mechanism.release(*inputs, source=source) for _ in range(40)])

    assert draw(1) == draw(1)
    if not isinstance(
        mechanism, StableMode | InterquartileRange
    ):  # on these records both release what they found, nearly always
        assert draw(1) != draw(2)


@mechanisms
def test_what_is_released_with_a_seed_says_so_and_nothing_else_does(
    mechanism: Any, inputs: Any, level_inputs: Any
) -> None:
    simulated = mechanism.release(*inputs, source=SeededSource(1))
    assert is_simulated(simulated)
    assert "simulated" in repr(simulated)
    assert not is_simulated(mechanism.release(*inputs))


@mechanisms
def test_it_leaves_its_input_as_it_was(mechanism: Any, inputs: Any, level_inputs: Any) -> None:
    arrays = [np.asarray(one) if isinstance(one, list) else one for one in inputs]
    before = [one.copy() if isinstance(one, np.ndarray) else one for one in arrays]
    mechanism.release(*arrays)
    for one, old in zip(arrays, before, strict=True):
        if isinstance(one, np.ndarray):
            assert np.array_equal(one, old)


@mechanisms
def test_its_interval_grows_with_the_level(mechanism: Any, inputs: Any, level_inputs: Any) -> None:
    if isinstance(mechanism, StableMode):  # the value itself, whatever the level
        return
    narrow, wide = (mechanism.interval(level, *level_inputs) for level in (0.5, 0.99))
    assert narrow.low <= narrow.high
    assert wide.low <= narrow.low
    assert narrow.high <= wide.high
