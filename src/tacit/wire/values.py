"""Values as JSON: one encoder, one decoder, one nesting limit.

JSON has no dates, no infinity and no NaN. In requests, where nothing else tells the kind of a value, a date is
`{"date": "2024-01-31"}` and a time `{"time": "2024-01-31T12:00:00"}`, so that a text stays one (`tagged`); NaN and
infinity are refused. In responses dates and times are ISO texts, told from others by the kind of their column, and
what is not a finite number is null. Times are in UTC, without a zone.

The attributes of errors in the `details` of an error response: which are sent, and how they are read back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from fractions import Fraction
from typing import Any, Final

import numpy as np

from tacit.mechanisms.mechanism import Interval
from tacit.privacy.bounds import Bounds, Categories
from tacit.privacy.errors import BudgetExceeded, InvalidInput, Place, TacitError, TooLarge, WrongType
from tacit.privacy.numbers import exact
from tacit.privacy.tables import Kind
from tacit.wire.responses import CostResponse

DEPTH_MAX: Final = 8
"""Nesting depth of a value in a request."""

MOMENTS: Final = (Kind.DATE, Kind.TIME)

Facts = Bounds | Categories
Resolve = Callable[[str, str, Facts | None], Any]
"""Returns the column of a table by both names, with the facts that are stated for one request."""

_FACTS: Final = ("bounds", "categories")


def encode(value: Any, *, tagged: bool = False, depth: int = 0) -> Any:
    """Return a value as JSON; `tagged` marks dates and times as such, for requests.

    The nesting limit is for requests only: an answer that was charged is sent in any case.
    """
    if tagged:
        _require_shallow(depth)
    match value:
        case None | bool() | str() | int():
            return value
        case datetime():
            text = _time_text(value)
            return {"time": text} if tagged else text
        case date():
            return {"date": value.isoformat()} if tagged else value.isoformat()
        case float() if not tagged:
            return value if math.isfinite(value) else None
        case Mapping():
            return {str(name): encode(one, tagged=tagged, depth=depth + 1) for name, one in value.items()}
        case np.ndarray() | np.generic():
            return encode(value.tolist(), tagged=tagged, depth=depth)
        case Sequence() | set() | frozenset() | range() if not isinstance(value, bytes | bytearray):
            return [encode(one, tagged=tagged, depth=depth + 1) for one in value]
    if hasattr(value, "tolist"):  # an array of another library
        return encode(value.tolist(), tagged=tagged, depth=depth + 1)
    if isinstance(value, float | Fraction) or hasattr(value, "__float__"):
        return encode_number("a value", value)
    raise WrongType(f"a value of type {type(value).__name__} cannot be sent", name="arguments", value=value)


def decode(value: Any, *, column: Resolve | None = None, size_max: int | None = None, depth: int = 0) -> Any:
    """Return a value of a request, with its dates and times.

    `column` resolves {"table": ..., "column": ...}, which may hold "bounds" or "categories" for this one request. Lists
    and objects have at most `size_max` elements.
    """
    _require_shallow(depth)
    if size_max is not None and isinstance(value, list | dict) and len(value) > size_max:
        raise TooLarge(f"a value may have at most {size_max:,} elements", name="arguments")
    match value:
        case {"date": str() as text, **rest} if not rest:
            return _parse_moment(date, text)
        case {"time": str() as text, **rest} if not rest:
            return _parse_moment(datetime, text)
        case {"table": str() as table, "column": str() as name, **rest} if column is not None and {*_FACTS} >= {*rest}:
            return column(table, name, _facts(decode(rest, size_max=size_max, depth=depth + 1)))
        case dict():
            return {name: decode(one, column=column, size_max=size_max, depth=depth + 1) for name, one in value.items()}
        case list():
            return [decode(one, column=column, size_max=size_max, depth=depth + 1) for one in value]
    return value


def column_reference(table: str, column: str, facts: Facts | None = None) -> dict[str, Any]:
    """Return a column of a table for a request, with the facts that are stated for this one request."""
    reference = {"table": table, "column": column}
    if isinstance(facts, Bounds):
        return {**reference, "bounds": encode([facts.lower, facts.upper], tagged=True)}
    return reference if facts is None else {**reference, "categories": encode(facts.values, tagged=True)}


def encode_number(name: str, value: object) -> int | float | None:
    """Return a numeric argument as JSON; raise NotFinite or WrongType if it is not a number."""
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    return float(exact(name, value))


def decode_cell(value: Any, kind: Kind | None) -> Any:
    """Return a value of a response column."""
    if value is None:
        return None
    match kind:
        case Kind.DATE:
            return date.fromisoformat(value)
        case Kind.TIME:
            return datetime.fromisoformat(value)
        case Kind.REAL:
            return float(value)
    return value


def decode_interval(ends: Sequence[Any] | None, kind: Kind | None = None) -> Interval | None:
    """Return an interval of a response; its numbers are not converted, as that of an integer may have real ends."""
    if ends is None:
        return None
    low, high = ends
    moments = kind if kind in MOMENTS else None
    return Interval(decode_cell(low, moments), decode_cell(high, moments))


def kind_of(values: Sequence[Any]) -> Kind:
    """Return the kind of a response column, by its first value that is not null."""
    for value in values:
        match value:
            case None:
                continue
            case bool() | np.bool_():
                return Kind.BOOLEAN
            case int() | np.integer():
                return Kind.INTEGER
            case float() | np.floating():
                return Kind.REAL
            case datetime():
                return Kind.TIME
            case date():
                return Kind.DATE
        break
    return Kind.TEXT


def _facts(stated: Mapping[str, Any]) -> Facts | None:
    match stated:
        case _ if not stated:
            return None
        case {"bounds": [lower, upper], **rest} if not rest:
            return Bounds(lower, upper)
        case {"categories": list() as values, **rest} if not rest:
            return Categories(values)
    raise InvalidInput("a column may have two bounds or a list of categories", name="arguments")


def _require_shallow(depth: int) -> None:
    if depth > DEPTH_MAX:
        raise TooLarge(f"a value may be nested {DEPTH_MAX} levels deep at most", name="arguments")


def _time_text(value: datetime) -> str:
    moment = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo is not None else value
    return moment.isoformat()


def _parse_moment(kind: type[date], text: str) -> date:
    try:
        return kind.fromisoformat(text)
    except ValueError:
        raise InvalidInput(f"a {kind.__name__} must be in ISO 8601 format, such as 2024-01-31", name="value") from None


_COSTS: Final = ("asked", "remaining", "fits")


def encode_details(error: TacitError) -> dict[str, Any]:
    """Return the attributes of an error that callers can use."""
    found: dict[str, Any] = {}
    if isinstance(error, BudgetExceeded):
        for name in _COSTS:
            price = getattr(error, name)
            found[name] = None if price is None else CostResponse.of(price).model_dump()
        found["scope"] = error.scope
    if isinstance(error, InvalidInput) and error.name is not None:
        found["name"] = error.name
    if (accepted := getattr(error, "accepted", "")) != "":
        found["accepted"] = accepted
    if (place := getattr(error, "place", None)) is not None:
        found["place"] = list(place)
    if (after_s := getattr(error, "retry_after_s", None)) is not None:
        found["retry_after_s"] = after_s
    return found


def decode_detail(name: str, value: Any) -> Any:
    """Return an attribute of an error; texts are taken as they are."""
    return _DECODERS[name](value) if name in _DECODERS else value


def _place(value: Any) -> Place:
    line, column = value
    return Place(int(line), int(column))


_DECODERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    **dict.fromkeys(_COSTS, lambda value: CostResponse.model_validate(value).cost),
    "place": _place,
    "retry_after_s": float,
}
