"""Errors that came over the wire, as the same classes that the embedded curator raises.

The classes are found by their stable codes in the tree of `tacit.privacy.errors`, and get the attributes that their
constructors name: what was asked, what is left, what would fit, where in the query. A code that is not known here is a
ServerFailed that names it; what is no document of tacit at all is told from it (`NotATacitServer`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

from tacit.client.values import cost_of
from tacit.privacy import errors
from tacit.privacy.errors import NotATacitServer, Place, ServerFailed, TacitError

MESSAGE_MAX: Final = 10_000
UNKNOWN: Final = "T000"
"""The code of an error that the server itself did not foresee."""


def _place(value: Any) -> Place:
    line, column = value
    return Place(int(line), int(column))


READ: Final[Mapping[str, Callable[[Any], Any]]] = {
    "asked": cost_of,
    "remaining": cost_of,
    "fits": cost_of,
    "place": _place,
    "retry_after_s": float,
}
"""How details are read that are more than a text or a number."""


@cache
def classes() -> dict[str, type[TacitError]]:
    """Return every class of error by its code, from the tree itself."""
    found: dict[str, type[TacitError]] = {}
    waiting: list[type[TacitError]] = [TacitError]
    while waiting:
        kind = waiting.pop()
        if vars(errors).get(kind.__name__) is kind:  # others' subclasses have no code of their own
            found.setdefault(kind.code, kind)
        waiting += kind.__subclasses__()
    del found[UNKNOWN]
    return found


def attributes(kind: type[TacitError]) -> dict[str, Any]:
    """Return what an error of a class carries besides its message, with what stands there if nothing is known."""
    found: dict[str, Any] = {}
    for one in kind.__mro__:
        if "__init__" in vars(one) and issubclass(one, TacitError):
            for name, parameter in inspect.signature(vars(one)["__init__"]).parameters.items():
                if name not in ("self", "message"):
                    found.setdefault(name, parameter.default)
    return found


def error_of(document: Mapping[str, Any], *, retry_after_s: float | None = None) -> TacitError:
    """Return the error that a document describes; its message is the sentence that the server wrote."""
    inner = document["error"]
    code, message, details = str(inner["code"]), str(inner["message"])[:MESSAGE_MAX], inner.get("details") or {}
    kind = classes().get(code)
    if kind is None:
        told = f"code {code}" if code != UNKNOWN else "an error of its own"
        return ServerFailed(f"the server failed with {told}: {message}")
    error = kind.__new__(kind, message)
    TacitError.__init__(error, message)  # the sentence is whole: constructors would add places and ways out again
    for name, default in attributes(kind).items():
        value = details.get(name)
        if value is None and name == "retry_after_s":
            value = retry_after_s
        setattr(error, name, default if value is None else READ.get(name, _as_it_is)(value))
    return error


def _as_it_is(value: Any) -> Any:
    return value


def is_error(document: Any) -> bool:
    """Whether a document describes an error of tacit."""
    inner = document.get("error") if isinstance(document, dict) else None
    return isinstance(inner, dict) and isinstance(inner.get("code"), str) and isinstance(inner.get("message"), str)


@contextmanager
def understood(what: str) -> Iterator[None]:
    """Say that an answer cannot be read, where reading it fails: it is not what this version of tacit knows."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        misread = True
    else:
        misread = False
    if misread:
        raise NotATacitServer(f"{what} is not what this version of tacit reads; is the server as new as the client?")
