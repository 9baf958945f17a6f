"""`client.stats`: the statistics of `tacit.stats`, computed by the server.

    visits = client.table("visits")
    client.stats.mean(visits["age"], by=visits["ward"], epsilon=0.1)
    client.stats.previews.mean(visits["age"], epsilon=0.1)    # what it would cost; spends nothing

Promise: functions have the names, arguments and answers of `tacit.stats`; their data are columns of the server's tables
only, so no array of the caller is sent by mistake.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from tacit import stats
from tacit.client.answers import VALUES, RemoteAnswer, RemotePreview, answer_of
from tacit.client.resources import RemoteColumn, RemoteTable
from tacit.privacy.bounds import Bounds, Categories
from tacit.privacy.errors import InvalidInput, WrongType
from tacit.privacy.numbers import DEFAULT_LEVEL
from tacit.wire.responses import StatisticResponse
from tacit.wire.statistics import STATISTICS
from tacit.wire.values import column_reference, encode

COLUMNS: Final = ("values", "others", "times", "columns", "by")
"""The arguments that are columns."""

Send = Callable[[str, Mapping[str, Any], float, float | None, str | None], StatisticResponse]
"""Requests a statistic: its name, arguments, level, time limit and idempotency key."""
SendPreview = Callable[[str, Mapping[str, Any]], RemotePreview]
"""Requests the price of a statistic: its name and arguments."""
Result = TypeVar("Result", RemoteAnswer, RemotePreview)
RUN_OPTIONS: Final = ("timeout_s", "key", "purpose")
"""Arguments of a run, which a preview ignores."""


class Statistics:
    """The functions of `tacit.stats`, for the tables of a server."""

    def __init__(self, send: Send, preview: SendPreview) -> None:
        self._send: Final = send
        self.previews: Final = StatisticPreviews(preview)

    def __getattr__(self, name: str) -> Callable[..., RemoteAnswer]:
        require_statistic(name)

        def ask(*given: Any, level: float = DEFAULT_LEVEL, **named: Any) -> RemoteAnswer:
            stated = _bind_arguments(name, given, named)
            timeout_s, key = stated.pop("timeout_s", None), stated.pop("key", None)
            return answer_of(
                name, self._send(name, encode_arguments(stated), level, timeout_s, key), columns_in(stated)
            )

        return _like(name, ask)

    def __dir__(self) -> list[str]:
        return sorted(STATISTICS)

    def __repr__(self) -> str:
        return "<the statistics of a server>"


class StatisticPreviews:
    """The functions of `tacit.stats`; each returns its price and spends nothing."""

    def __init__(self, preview: SendPreview) -> None:
        self._preview: Final = preview

    def __getattr__(self, name: str) -> Callable[..., RemotePreview]:
        require_statistic(name)

        def ask(*given: Any, **named: Any) -> RemotePreview:
            stated = _bind_arguments(name, given, named)
            return self._preview(
                name, encode_arguments({one: value for one, value in stated.items() if one not in RUN_OPTIONS})
            )

        return _like(name, ask)

    def __dir__(self) -> list[str]:
        return sorted(STATISTICS)


def require_statistic(name: str) -> None:
    """Raise AttributeError unless a server computes a statistic."""
    if name not in STATISTICS:
        raise AttributeError(f"{name!r} is not available over REST; available: {', '.join(STATISTICS)}")


def _like(name: str, ask: Callable[..., Result]) -> Callable[..., Result]:
    """Return `ask` with the name, documentation and signature of the function in `tacit.stats`."""
    local = getattr(stats, name)
    ask.__name__, ask.__qualname__, ask.__doc__ = name, name, local.__doc__
    ask.__signature__ = inspect.signature(local)  # type: ignore[attr-defined]
    return ask


def _bind_arguments(name: str, given: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a statistic by name, without those that are None."""
    bound = inspect.signature(getattr(stats, name)).bind(*given, **named).arguments
    stated = {**{one: value for one, value in bound.items() if one != "options"}, **bound.get("options", {})}
    for one in ("budget", "unit", "analyst"):
        if one in stated:
            raise InvalidInput(
                f"the server knows budget, unit and analyst of a table; leave {one}= out",
                name=one,
            )
    return {one: value for one, value in stated.items() if value is not None}


def encode_arguments(stated: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments as JSON."""
    return {
        one: _encode_columns(one, value) if one in COLUMNS else encode(_facts(value), tagged=True)
        for one, value in stated.items()
    }


def columns_in(arguments: Mapping[str, Any]) -> dict[str, RemoteColumn]:
    """Return the columns among arguments by name, whose kinds tell dates from texts in the response."""
    found: dict[str, RemoteColumn] = {}
    waiting = list(arguments.values())
    while waiting:
        one = waiting.pop()
        if isinstance(one, RemoteColumn):
            found[one.name] = one
        elif isinstance(one, list | tuple):
            waiting += one
        elif isinstance(one, Mapping):
            waiting += one.values()
    if isinstance(about := arguments.get(VALUES), RemoteColumn):
        found[VALUES] = about
    return found


def _encode_columns(name: str, value: Any) -> Any:
    if isinstance(value, RemoteColumn):
        return column_reference(value.table, value.name, value.facts)
    if isinstance(value, RemoteTable) and name == "columns":
        return {column.name: _encode_columns(name, value[column.name]) for column in value.columns}
    if isinstance(value, Mapping) and name in ("columns", "by"):
        return {str(key): _encode_columns(name, one) for key, one in value.items()}
    if isinstance(value, list | tuple) and name == "by":
        return [_encode_columns(name, one) for one in value]
    raise WrongType(
        f"{name} must be a column of the server, such as client.table('visits')['age']; arrays are not sent, compute "
        "their statistics with tacit.stats",
        name=name,
    )


def _facts(value: Any) -> Any:
    """Return an argument with nested bounds and categories as lists."""
    if isinstance(value, Bounds):
        return [value.lower, value.upper]
    if isinstance(value, Categories):
        return list(value.values)
    if isinstance(value, Mapping):
        return {name: _facts(one) for name, one in value.items()}
    return [_facts(one) for one in value] if isinstance(value, list | tuple) else value
