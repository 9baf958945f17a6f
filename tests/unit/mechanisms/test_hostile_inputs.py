"""Whatever is given to a mechanism, it answers or refuses by an error of the tree: no bare exception and no warning."""

from __future__ import annotations

import dataclasses
import inspect
import math
import warnings
from array import array
from collections import UserList, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tacit.mechanisms import (
    DiscreteGaussian,
    ExponentialDensity,
    Gaussian,
    KeySelection,
    Laplace,
    RandomizedResponse,
    ReportNoisyMax,
)
from tacit.privacy.errors import TacitError, WrongType
from tests.conformance.mechanisms.examples import EXAMPLES


class WholeNumber(int):
    """A subclass of int."""


class RealNumber(float):
    """A subclass of float."""


class OwnArray(np.ndarray[Any, Any]):
    """A subclass of numpy's arrays."""


def _fail(*_: Any, **__: Any) -> Any:
    raise RuntimeError("this object is broken")


def broken(**methods: Any) -> Any:
    """Return an object with the given attributes; functions among them are methods."""
    return type("Broken", (), methods)()


class BrokenSequence(Sequence[Any]):
    """A sequence with a length and without any parts."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: Any) -> Any:
        return _fail()


def nested(depth: int) -> list[Any]:
    found: list[Any] = [1]
    for _ in range(depth):
        found = [found]
    return found


def endless() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


HOSTILE: dict[str, Callable[[], Any]] = {
    **{
        repr(value)[:24]: (lambda value=value: value)
        for value in (
            *(math.nan, math.inf, -math.inf, 10**400, -(10**400), 2**62, 2**63, -(2**63), 1e308, -1e308, 5e-324, -0.0),
            *(
                None,
                "abc",
                "",
                b"abc",
                True,
                1j,
                date(2020, 1, 1),
                Fraction(1, 3),
                ...,
                slice(3),
                int,
                len,
                {1, 2},
                {0: 1},
            ),
            *(Decimal("1.5"), Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity")),
            *(np.float64("nan"), np.float16("inf"), np.longdouble(1), np.complex64(1), np.bool_(True), np.str_("a")),
            *(np.datetime64("2020"), np.datetime64("NaT"), np.timedelta64(3, "s"), np.void(b"abc")),
            *([], (), [[]], [math.nan] * 8, [1.0, math.inf] * 4, [2**62] * 8, [2**63, -1, 0, 0], [10**400, 1, 2, 3]),
            *([None] * 4, [1, None, 2, 3], ["a"] * 4, [1, "a", 2, 3], [b"a"] * 4, [True, False] * 4, [1, True, 0, 1]),
            *([1j] * 4, [[1], [1, 2]], [[1, 2], [3, 4]], [Fraction(1, 3)] * 4, [Decimal(1)] * 4, [1e308, -1e308] * 4),
            *(range(4), bytearray(b"abcd"), array("q", [1, 2, 3, 4]), array("d", [1, 2, 3, 4]), object()),
        )
    },
    "subclass of int": lambda: WholeNumber(3),
    "subclass of float": lambda: RealNumber(3.5),
    "subclasses in a list": lambda: [WholeNumber(1), RealNumber(1), WholeNumber(0), WholeNumber(1)],
    "subclass of arrays": lambda: np.arange(4).view(OwnArray),
    **{f"0-d {value!r}": (lambda value=value: np.array(value)) for value in (3, 3.5, math.nan, None, "a", True)},
    "0-d object": lambda: np.array(3, dtype=object),
    "0-d arrays in a list": lambda: [np.array(1)] * 4,
    **{f"empty {kind}": (lambda kind=kind: np.array([], dtype=kind)) for kind in ("f8", "i8", "O", "?", "U1", "M8[D]")},
    "empty rows": lambda: np.zeros((0, 3)),
    **{
        f"four of {kind}": (lambda kind=kind: np.ones(4, dtype=kind))
        for kind in ("?", "i1", "u8", ">i4", ">f8", "f2", "f4", "g", "c16", "m8[s]", "O", [("a", int)])
    },
    "four texts": lambda: np.array(["a", "b", "c", "d"]),
    "unsigned and signed": lambda: [np.uint64(1), np.int64(-1), np.uint64(2), np.int64(0)],
    "greatest unsigned": lambda: np.full(4, 2**64 - 1, dtype=np.uint64),
    "objects of several types": lambda: np.array([1, "a", None, 2.5], dtype=object),
    "objects, nested": lambda: np.array([[1, 2], [3]], dtype=object),
    "records": lambda: np.rec.array([(1, 2)] * 4),
    "masked": lambda: np.ma.masked_array([1, 2, 3, 4], mask=[0, 1, 0, 0]),
    "masked constant": lambda: np.ma.masked,
    "masked in a list": lambda: [1, np.ma.masked, 2, 3],
    "masked in a deque": lambda: deque([1, np.ma.masked, 2, 3]),
    "deque": lambda: deque([1, 2, 3, 4]),
    "UserList": lambda: UserList([1, 2, 3, 4]),
    "generator": lambda: (one for one in (1, 2, 3, 4)),
    "memoryview": lambda: memoryview(b"abcd"),
    "no array after all": lambda: broken(__array__=_fail),
    "no arrays in a list": lambda: [broken(__array__=_fail)] * 4,
    "no length": lambda: broken(__len__=_fail, __getitem__=_fail),
    "no iterator": lambda: broken(__iter__=_fail),
    "no float": lambda: broken(__float__=_fail),
    "no sequence": BrokenSequence,
    "no ratio": lambda: broken(as_integer_ratio=lambda self: ("a", "b")),
    "a ratio over zero": lambda: broken(as_integer_ratio=lambda self: (1, 0)),
    "no item": lambda: broken(shape=()),
    "a broken item": lambda: broken(shape=(), item=_fail),
    "a strange dtype": lambda: broken(dtype="x"),
    "no hash": lambda: [broken(__hash__=None)] * 4,
    "no repr": lambda: [broken(__repr__=_fail)] * 4,
    "no equality": lambda: [broken(__eq__=_fail, __hash__=lambda self: 1) for _ in range(4)],
    "nested too deeply": lambda: nested(5000),
    "nested without end": endless,
}
MECHANISMS = [
    *EXAMPLES,
    (RandomizedResponse(1.0, 3), ([0, 1, 2],), ([0, 1, 2],)),
    (RandomizedResponse(1.0, 2**32), ([0, 1, 2],), ([0, 1, 2],)),
    (Laplace(1, 0.5), (3,), ()),
    (Gaussian(1, sigma=2), (3,), ()),
    (Gaussian(1.0, rho=0.5), (3,), ()),
    (Laplace(1.0, 1, grid=1.0), (3,), ()),
    (DiscreteGaussian(1.5, sigma=1), (3,), ()),
    (ReportNoisyMax(1.0, 1), ([1, 2, 3.0],), (3,)),
    (KeySelection(1.0, 1e-6, relation="replace-one"), ([1],), ()),  # type: ignore[arg-type]
]
mechanisms = pytest.mark.parametrize(
    ("mechanism", "inputs", "level_inputs"), MECHANISMS, ids=[repr(mechanism)[:60] for mechanism, *_ in MECHANISMS]
)


@pytest.fixture(autouse=True)
def _warnings_are_errors() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def replaced(given: tuple[Any, ...], index: int, value: Any) -> list[Any]:
    return [value if place == index else one for place, one in enumerate(given)]


def not_called(expected: Any, value: Any) -> Any:
    """Return None in the place of a function that would be called: what it raises is the caller's own error."""
    return None if callable(expected) and callable(value) else value


def answers_or_refuses(call: Callable[..., Any], *given: Any) -> None:
    with suppress(TacitError):
        call(*given)


@mechanisms
def test_a_release_answers_or_refuses(mechanism: Any, inputs: Any, level_inputs: Any) -> None:
    for make in HOSTILE.values():
        for index in range(len(inputs)):
            answers_or_refuses(mechanism.release, *replaced(inputs, index, not_called(inputs[index], make())))


@mechanisms
def test_an_interval_answers_or_refuses(mechanism: Any, inputs: Any, level_inputs: Any) -> None:
    takes_value = "value" in inspect.signature(mechanism.interval).parameters
    for make in HOSTILE.values():
        answers_or_refuses(mechanism.interval, make(), *level_inputs)
        for index in range(len(level_inputs)):
            given = not_called(level_inputs[index], make())
            answers_or_refuses(mechanism.interval, 0.9, *replaced(level_inputs, index, given))
        if takes_value:
            answers_or_refuses(mechanism.interval, 0.9, make())


@mechanisms
def test_other_questions_are_answered_or_refused(mechanism: Any, inputs: Any, level_inputs: Any) -> None:
    for name in ("estimate", "posterior", "chance", "edges", "chosen", "first"):
        for make in HOSTILE.values() if hasattr(mechanism, name) else ():
            answers_or_refuses(getattr(mechanism, name), make())
    for make in HOSTILE.values() if hasattr(mechanism, "start") else ():
        answers_or_refuses(mechanism.start().ask, make())


@mechanisms
def test_a_parameter_is_used_or_refused(mechanism: Any, inputs: Any, level_inputs: Any) -> None:
    def used(**parameters: Any) -> None:
        made = type(mechanism)(**parameters)
        assert made.event
        made.interval(0.9, *level_inputs)
        made.release(*inputs)

    names = [field.name for field in dataclasses.fields(mechanism) if field.init]
    kept = {name: getattr(mechanism, name) for name in names if name != "sigma"}
    if getattr(mechanism, "epsilon", None) is None and getattr(mechanism, "rho", None) is None and "sigma" in names:
        kept["sigma"] = mechanism.sigma
    for make in HOSTILE.values():
        for name in names:
            answers_or_refuses(lambda name=name, make=make: used(**{**kept, name: make()}))


def test_a_log_density_may_return_anything() -> None:
    mechanism = ExponentialDensity(1, 0.5, 0.0, 1.0, cells=4)
    for make in HOSTILE.values():
        answers_or_refuses(mechanism.release, lambda points, make=make: make())
        answers_or_refuses(mechanism.interval, 0.9, lambda points, make=make: make())


@pytest.mark.parametrize("mechanism", [Laplace(1, 1), Laplace(1.0, 1), ReportNoisyMax(1, 1)], ids=repr)
def test_a_truth_value_in_a_list_is_refused_whatever_stands_beside_it(mechanism: Any) -> None:
    for values in ([True, False], [True, 2], [1, np.bool_(True)], [1.5, True], [[1], [True]], [np.array([True]), [2]]):
        with pytest.raises(WrongType):
            mechanism.release(values)


@pytest.mark.parametrize(
    "call",
    [
        Laplace(1, 1).release,
        Laplace(1.0, 1).release,
        ReportNoisyMax(1, 1).release,
        RandomizedResponse(1.0).release,
        KeySelection(1.0, 1e-6).release,
    ],
)
def test_whether_numbers_are_taken_does_not_depend_on_which_of_those_in_range_they_are(call: Any) -> None:
    """One container and type at a time, over numbers at the ends of the range and in it: all are taken, or none."""
    kinds: list[Callable[[int], Any]] = [int, float, np.int64, np.float64, np.uint8, np.bool_, Fraction, Decimal, str]
    holders: list[Callable[[list[Any]], Any]] = [list, tuple, np.array, lambda parts: np.array(parts, dtype=object)]
    for kind in kinds:
        for holder in holders:
            taken = set()
            for numbers in ([0, 0], [0, 1], [1, 1], [1, 0]):
                try:
                    call(holder([kind(number) for number in numbers]))
                    taken.add("answered")
                except TacitError as refused:
                    taken.add(refused.code)
            assert len(taken) == 1, (kind, holder, taken)
