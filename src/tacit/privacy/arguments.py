"""Type checks of arguments that are objects, made before any work is done.

Each function returns the value it checked. Numbers are checked in `numbers`, texts in `texts`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from tacit.privacy.errors import WrongType

T = TypeVar("T")


def instance(name: str, value: object, kind: type[T], words: str) -> T:
    """Return `value` if it is an instance of `kind`; `words` names the expected type in the error message."""
    if not isinstance(value, kind):
        raise WrongType(f"{name} must be {words}, not {type(value).__name__}", name=name, value=value)
    return value


def instances(name: str, values: object, kind: type[T], words: str) -> tuple[T, ...]:
    """Return the values of an iterable as a tuple if all are instances of `kind`; `words` is for the error message."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable) or getattr(values, "ndim", 1) != 1:
        raise WrongType(f"{name} must be {words}, not {type(values).__name__}", name=name, value=values)
    return tuple(instance(name, value, kind, words) for value in values)


def mapping(name: str, value: Mapping[str, T], words: str) -> Mapping[str, T]:
    """Return `value` if it is a mapping with text keys; `words` names the expected type in the error message."""
    given: object = value
    if not isinstance(given, Mapping):
        raise WrongType(f"{name} must be {words}, not {type(value).__name__}", name=name, value=value)
    for key in value:
        instance(f"a name in {name}", key, str, "a text")
    return value


def column_mapping(name: str, stated: Mapping[str, T] | None) -> Mapping[str, T]:
    """Return a mapping from column names, empty for None."""
    return {} if stated is None else mapping(name, stated, "a mapping by the names of columns")


def require_warn(warn: Callable[[str], None] | None) -> None:
    """Raise unless `warn` is None or a function, which then receives the text of each warning."""
    given: object = warn
    if given is not None and (isinstance(given, type) or not callable(given)):
        raise WrongType("warn must be a function of a sentence", name="warn", value=warn)


def require_progress(progress: Callable[[float], None] | None) -> None:
    """Raise unless `progress` is None or a function, which then receives the completed share of a run."""
    if progress is not None and not callable(progress):
        raise WrongType("progress must be a function of the share that is done", name="progress", value=progress)
