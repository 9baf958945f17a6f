"""Error responses as the exceptions that the embedded curator raises.

Classes are found by their stable codes in the tree of `tacit.privacy.errors` and get the attributes that their
constructors name. An unknown code is a ServerFailed that names it; a response that is not of tacit's schema is a
NotATacitServer.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from tacit.privacy import errors
from tacit.privacy.errors import NotATacitServer, ServerFailed, TacitError
from tacit.wire.responses import ErrorBody, ErrorResponse
from tacit.wire.values import decode_detail

M = TypeVar("M", bound=BaseModel)

MESSAGE_MAX: Final = 10_000
UNKNOWN: Final = "T000"
"""The code of an unexpected error of the server."""


@cache
def error_classes() -> dict[str, type[TacitError]]:
    """Return all error classes by code."""
    found: dict[str, type[TacitError]] = {}
    waiting: list[type[TacitError]] = [TacitError]
    while waiting:
        kind = waiting.pop()
        if vars(errors).get(kind.__name__) is kind:  # subclasses of callers have no code of their own
            found.setdefault(kind.code, kind)
        waiting += kind.__subclasses__()
    del found[UNKNOWN]
    return found


def error_attributes(kind: type[TacitError]) -> dict[str, Any]:
    """Return the attributes of an error class besides its message, with their defaults."""
    found: dict[str, Any] = {}
    for one in kind.__mro__:
        if "__init__" in vars(one) and issubclass(one, TacitError):
            for name, parameter in inspect.signature(vars(one)["__init__"]).parameters.items():
                if name not in ("self", "message"):
                    found.setdefault(name, parameter.default)
    return found


def error_of(body: ErrorBody, *, retry_after_s: float | None = None) -> TacitError:
    """Return the exception of an error response, with the server's message."""
    message, details = body.message[:MESSAGE_MAX], body.details
    kind = error_classes().get(body.code)
    if kind is None:
        code = "an internal error" if body.code == UNKNOWN else f"the unknown code {body.code}"
        return ServerFailed(f"the server failed with {code}: {message}")
    error = kind.__new__(kind, message)
    TacitError.__init__(error, message)  # constructors would add to the message, which is complete
    for name, default in error_attributes(kind).items():
        value = details.get(name)
        if value is None and name == "retry_after_s":
            value = retry_after_s
        setattr(error, name, default if value is None else decode_detail(name, value))
    return error


def error_in(document: Any) -> ErrorBody | None:
    """Return the error in a document, or None if it is not an error response."""
    try:
        return ErrorResponse.model_validate(document).error
    except ValidationError:
        return None


@contextmanager
def require_readable(what: str) -> Iterator[None]:
    """Raise NotATacitServer, without the cause and its values, if the block fails to read a response."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        misread = True
    else:
        misread = False
    if misread:
        raise NotATacitServer(f"{what} cannot be read by this version of tacit; is the server as new as the client?")


def parse_response(model: type[M], document: Any, what: str) -> M:
    """Return a document as a response, without unknown fields, or raise NotATacitServer."""
    with require_readable(what):
        return model.model_validate(document)


def parse_list(model: type[M], document: Any, what: str) -> list[M]:
    """Return a document as a list of responses, or raise NotATacitServer."""
    with require_readable(what):
        return TypeAdapter(list[model]).validate_python(document)  # type: ignore[valid-type]
