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
from typing import Any, Final, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from tacit.accounting.conversions import Cost
from tacit.privacy import errors
from tacit.privacy.errors import NotATacitServer, Place, ServerFailed, TacitError
from tacit.wire.responses import CostResponse, ErrorBody, ErrorResponse

M = TypeVar("M", bound=BaseModel)

MESSAGE_MAX: Final = 10_000
UNKNOWN: Final = "T000"
"""The code of an error that the server itself did not foresee."""


def _place(value: Any) -> Place:
    line, column = value
    return Place(int(line), int(column))


def _cost(value: Any) -> Cost:
    return CostResponse.model_validate(value).cost


READ: Final[Mapping[str, Callable[[Any], Any]]] = {
    "asked": _cost,
    "remaining": _cost,
    "fits": _cost,
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


def error_of(body: ErrorBody, *, retry_after_s: float | None = None) -> TacitError:
    """Return the error that a server reports; its message is the sentence that the server wrote."""
    message, details = body.message[:MESSAGE_MAX], body.details
    kind = classes().get(body.code)
    if kind is None:
        told = f"code {body.code}" if body.code != UNKNOWN else "an error of its own"
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


def error_in(document: Any) -> ErrorBody | None:
    """Return the error of tacit that a document describes, or None if it describes none."""
    try:
        return ErrorResponse.model_validate(document).error
    except ValidationError:
        return None


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


def parsed(model: type[M], document: Any, what: str) -> M:
    """Return a document as a response, or raise NotATacitServer; fields that are not known are left out."""
    with understood(what):
        return model.model_validate(document)


def parsed_list(model: type[M], document: Any, what: str) -> list[M]:
    """Return a document as a list of responses, or raise NotATacitServer."""
    with understood(what):
        return TypeAdapter(list[model]).validate_python(document)  # type: ignore[valid-type]
