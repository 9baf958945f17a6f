"""`client.stats`: the statistics of `tacit.stats`, computed where the rows are.

    visits = client.table("visits")
    client.stats.mean(visits["age"], by=visits["ward"], epsilon=0.1)
    client.stats.previews.mean(visits["age"], epsilon=0.1)    # what it would cost; spends nothing

Promise: functions have the names, arguments and answers of `tacit.stats`; what they are about is columns of the
server's tables and nothing else, so no array of the caller leaves this machine by mistake.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from tacit import stats
from tacit.client.answers import ABOUT, RemoteAnswer, RemotePreview, answer_of
from tacit.client.resources import RemoteColumn, RemoteTable
from tacit.privacy.bounds import Bounds, Categories
from tacit.privacy.errors import InvalidInput, WrongType
from tacit.privacy.numbers import DEFAULT_LEVEL
from tacit.wire.responses import StatisticResponse
from tacit.wire.values import column_reference, encode

NAMES: Final = tuple(
    name
    for name in stats.__all__
    if inspect.isfunction(getattr(stats, name)) and name not in ("prepare", "preview", "workload")
)
"""The statistics that a server computes; those of workloads that are objects of this process it cannot."""

COLUMNS: Final = ("values", "others", "times", "columns", "by")
"""The arguments that are columns."""

Send = Callable[[str, Mapping[str, Any], float, float | None, str | None], StatisticResponse]
"""Sends the name of a statistic, its arguments and a level, waits so many seconds, and returns the response.

The last is the key; without one a new one is made.
"""
Preview = Callable[[str, Mapping[str, Any]], RemotePreview]
"""Sends the name of a statistic and its arguments, and returns what it would cost."""
Asked = TypeVar("Asked", RemoteAnswer, RemotePreview)
RUN: Final = ("timeout_s", "key", "purpose")
"""What is said of a run, and not of a plan."""


class Statistics:
    """The functions of `tacit.stats`, for the tables of a server."""

    def __init__(self, send: Send, preview: Preview) -> None:
        self._send: Final = send
        self.previews: Final = StatisticPreviews(preview)

    def __getattr__(self, name: str) -> Callable[..., RemoteAnswer]:
        require_known(name)

        def ask(*given: Any, level: float = DEFAULT_LEVEL, **named: Any) -> RemoteAnswer:
            stated = _stated(name, given, named)
            timeout_s, key = stated.pop("timeout_s", None), stated.pop("key", None)
            return answer_of(name, self._send(name, documents(stated), level, timeout_s, key), columns_in(stated))

        return _like(name, ask)

    def __dir__(self) -> list[str]:
        return sorted(NAMES)

    def __repr__(self) -> str:
        return "<the statistics of a server>"


class StatisticPreviews:
    """The functions of `tacit.stats`; each returns what it would cost, and spends nothing."""

    def __init__(self, preview: Preview) -> None:
        self._preview: Final = preview

    def __getattr__(self, name: str) -> Callable[..., RemotePreview]:
        require_known(name)

        def ask(*given: Any, **named: Any) -> RemotePreview:
            stated = _stated(name, given, named)
            return self._preview(name, documents({one: value for one, value in stated.items() if one not in RUN}))

        return _like(name, ask)

    def __dir__(self) -> list[str]:
        return sorted(NAMES)


def require_known(name: str) -> None:
    """Raise AttributeError for what no server computes."""
    if name not in NAMES:
        raise AttributeError(f"a server computes {', '.join(NAMES)}; not {name!r}")


def _like(name: str, ask: Callable[..., Asked]) -> Callable[..., Asked]:
    """Return a function with the signature of the one in `tacit.stats`, and with `level=` besides."""
    local = getattr(stats, name)
    ask.__name__, ask.__qualname__, ask.__doc__ = name, name, local.__doc__
    ask.__signature__ = inspect.signature(local)  # type: ignore[attr-defined]
    return ask


def _stated(name: str, given: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a statistic was told, by name."""
    bound = inspect.signature(getattr(stats, name)).bind(*given, **named).arguments
    stated = {**{one: value for one, value in bound.items() if one != "options"}, **bound.get("options", {})}
    for one in ("budget", "unit", "analyst"):
        if one in stated:
            raise InvalidInput(
                f"a table of a server has its own budget and unit, and its token says who asks; leave {one}= out",
                name=one,
            )
    return {one: value for one, value in stated.items() if value is not None}


def documents(stated: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments for the wire."""
    return {
        one: _about(one, value) if one in COLUMNS else encode(_facts(value), tagged=True)
        for one, value in stated.items()
    }


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
        return column_reference(value.table, value.name, value.facts)
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
