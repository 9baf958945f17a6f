"""`client.stats`: the statistics of `tacit.stats`, computed where the rows are.

    visits = client.table("visits")
    client.stats.mean(visits["age"], by=visits["ward"], epsilon=0.1)

Promise: functions have the names, arguments and answers of `tacit.stats`; what they are about is columns of the
server's tables and nothing else, so no array of the caller leaves this machine by mistake.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final

from tacit import stats
from tacit.client.answer import ABOUT, RemoteAnswer
from tacit.client.release import LEVEL
from tacit.client.tables import RemoteColumn, RemoteTable
from tacit.client.values import tagged
from tacit.privacy.bounds import Bounds, Categories
from tacit.privacy.errors import InvalidInput, WrongType

NAMES: Final = tuple(name for name in stats.__all__ if inspect.isfunction(getattr(stats, name)) and name != "workload")
"""The statistics that a server computes; those of workloads that are objects of this process it cannot."""

COLUMNS: Final = ("values", "others", "times", "columns", "by")
"""The arguments that are columns."""

Send = Callable[[str, Mapping[str, Any], float, float | None, str | None], Mapping[str, Any]]
"""Sends the name of a statistic, its arguments and a level, waits so many seconds, and returns the document.

The last is the key; without one a new one is made.
"""


class Statistics:
    """The functions of `tacit.stats`, for the tables of a server."""

    def __init__(self, send: Send) -> None:
        self._send: Final = send

    def __getattr__(self, name: str) -> Callable[..., RemoteAnswer]:
        if name not in NAMES:
            raise AttributeError(f"a server computes {', '.join(NAMES)}; not {name!r}")
        return _named(name, self._send)

    def __dir__(self) -> list[str]:
        return sorted(NAMES)

    def __repr__(self) -> str:
        return "<the statistics of a server>"


def _named(name: str, send: Send) -> Callable[..., RemoteAnswer]:
    """Return a function with the signature of the one in `tacit.stats`, and with `level=` besides."""
    local = getattr(stats, name)

    def ask(*given: Any, level: float = LEVEL, **named: Any) -> RemoteAnswer:
        stated = _stated(name, given, named)
        timeout_s, key = stated.pop("timeout_s", None), stated.pop("key", None)
        return RemoteAnswer(name, send(name, documents(stated), level, timeout_s, key), columns_in(stated))

    ask.__name__, ask.__qualname__, ask.__doc__ = name, name, local.__doc__
    ask.__signature__ = inspect.signature(local)  # type: ignore[attr-defined]
    return ask


def _stated(name: str, given: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a statistic was told, by name."""
    bound = inspect.signature(getattr(stats, name)).bind(*given, **named).arguments
    stated = {**{one: value for one, value in bound.items() if one != "asked"}, **bound.get("asked", {})}
    for one in ("budget", "unit", "analyst"):
        if one in stated:
            raise InvalidInput(
                f"a table of a server has its own budget and unit, and its token says who asks; leave {one}= out",
                name=one,
            )
    return {one: value for one, value in stated.items() if value is not None}


def documents(stated: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments for the wire."""
    return {one: _about(one, value) if one in COLUMNS else tagged(_facts(value)) for one, value in stated.items()}


def columns_in(arguments: Mapping[str, Any]) -> dict[str, RemoteColumn]:
    """Return the columns that a statistic is about, by name, so that dates among its keys can be told from texts."""
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
    if isinstance(about := arguments.get(ABOUT), RemoteColumn):
        found[ABOUT] = about
    return found


def _about(name: str, value: Any) -> Any:
    if isinstance(value, RemoteColumn):
        return {"table": value.table, "column": value.name}
    if isinstance(value, RemoteTable) and name == "columns":
        return {column.name: _about(name, value[column.name]) for column in value.columns}
    if isinstance(value, Mapping) and name in ("columns", "by"):
        return {str(key): _about(name, one) for key, one in value.items()}
    if isinstance(value, list | tuple) and name == "by":
        return [_about(name, one) for one in value]
    raise WrongType(
        f"{name} is a column of a table of the server, client.table('visits')['age']; arrays are not sent, their "
        "statistics are computed here by tacit.stats",
        name=name,
    )


def _facts(value: Any) -> Any:
    """Return bounds and categories, wherever they stand, as what a catalog writes."""
    if isinstance(value, Bounds):
        return [value.lower, value.upper]
    if isinstance(value, Categories):
        return list(value.values)
    if isinstance(value, Mapping):
        return {name: _facts(one) for name, one in value.items()}
    return [_facts(one) for one in value] if isinstance(value, list | tuple) else value
