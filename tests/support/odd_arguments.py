"""Every parameter of a callable, one after another, with values that it was not made for."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import date, datetime
from fractions import Fraction
from typing import Any, Final

import numpy as np

from tacit.accounting import Cost
from tacit.privacy import events
from tacit.privacy.errors import TacitError
from tacit.query import PlanOptions, QueryOptions

ODD: Final[tuple[Any, ...]] = (
    None, True, 0, -1, 3, 2**70, 10**400, 0.5, -0.0, float("nan"), float("inf"), Fraction(1, 3), 1j,
    "", "x", " x ", "²", "a\0", "\ud800", "x" * 5000, b"", b"x",
    [], {}, set(), (), [None], ["x"], [3], [[1], [2]], [1, "a"], ["\ud800"], {"x": 1}, {"age": 1}, {3: None},
    {"\ud800": ["x"]}, {"age": []}, {"age": None}, {"visits": 1.0}, (0, 1), (1, 0),
    np.zeros(3), np.zeros((2, 2)), np.array(5), object(), object, len, range(3), iter([1, 2]),
    date(2024, 1, 1), datetime.max, Cost(1.0, 0.0, 0.0), Cost("1", 0.0, -5), events.Laplace(0.1),  # type: ignore[arg-type]
)  # fmt: skip
"""What people, and servers that pass on what they were sent, put into the place of an argument."""

OPTIONS: Final[Mapping[str, Collection[str]]] = {
    "Unpack[PlanOptions]": PlanOptions.__annotations__,
    "Unpack[QueryOptions]": QueryOptions.__annotations__,
}
"""The arguments behind `**options`, by its annotation."""
DEFAULTS: Final = {"other": False, "purpose": ""}
"""Those that are not None."""


def working(call: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments with which a call works: those that are given, and the defaults of all other parameters."""
    found = {}
    for name, one in inspect.signature(call).parameters.items():
        if one.kind in (one.VAR_KEYWORD, one.VAR_POSITIONAL):
            found |= {option: given.get(option, DEFAULTS.get(option)) for option in OPTIONS.get(one.annotation, ())}
            continue
        assert name in given or one.default is not one.empty, f"{name} of {call} is not tried: give it a value"
        found[name] = given.get(name, one.default)
    return found


def odd_calls(call: Callable[..., Any], given: Mapping[str, Any]) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield calls with one odd argument each, and how they are written."""
    usual = working(call, given)
    shown = getattr(call, "__qualname__", repr(call))
    for name in usual:
        for odd in ODD:
            yield f"{shown}({name}={odd!r:.60})", lambda name=name, odd=odd: call(**usual | {name: odd})
    if any(one.kind is one.VAR_POSITIONAL for one in inspect.signature(call).parameters.values()):
        for odd in ODD:
            yield f"{shown}({odd!r:.60})", lambda odd=odd: call(odd)


def failure(call: Callable[[], Any]) -> TacitError | None:
    """Return the coded error that a call ends in, or None if it works; any other exception is raised."""
    try:
        found = call()
        if inspect.isgenerator(found):
            list(found)
    except TacitError as error:
        refused = error
    else:
        return None
    assert refused.message
    assert refused.code != "T000"
    return refused


def uncoded(call: Callable[..., Any], given: Mapping[str, Any]) -> list[str]:
    """Return the calls with one odd argument that end in an error without a code."""
    bare = []
    for shown, attempt in odd_calls(call, given):
        try:
            failure(attempt)
        except Exception as error:
            bare.append(f"{shown}: {type(error).__name__}: {error}")
    return bare


def public(kind: type) -> set[str]:
    """Return the names of the public methods of a class."""
    return {name for name, one in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")}
