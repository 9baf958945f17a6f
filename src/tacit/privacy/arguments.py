"""Arguments that are objects: held against their type once, so that a wrong one is refused before anything is done.

Not here: numbers (`numbers`) and texts (`texts`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from tacit.privacy.errors import WrongType

T = TypeVar("T")


def instance(name: str, value: object, kind: type[T], words: str) -> T:
    """Return `value` if it is of a type; `words` says for people what is expected."""
    if not isinstance(value, kind):
        raise WrongType(f"{name} must be {words}, not {type(value).__name__}", name=name, value=value)
    return value


def instances(name: str, values: object, kind: type[T], words: str) -> tuple[T, ...]:
    """Return several values of a type; `words` says for people what is expected."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable) or getattr(values, "ndim", 1) != 1:
        raise WrongType(f"{name} must be {words}, not {type(values).__name__}", name=name, value=values)
    return tuple(instance(name, value, kind, words) for value in values)


def mapping(name: str, value: Mapping[str, T], words: str) -> Mapping[str, T]:
    """Return `value` if it is a mapping from texts; `words` says for people what is expected."""
    given: object = value
    if not isinstance(given, Mapping):
        raise WrongType(f"{name} must be {words}, not {type(value).__name__}", name=name, value=value)
    for key in value:
        instance(f"a name in {name}", key, str, "a text")
    return value


def by_name(name: str, stated: Mapping[str, T] | None) -> Mapping[str, T]:
    """Return what is stated of columns, by their names; None is nothing."""
    return {} if stated is None else mapping(name, stated, "a mapping by the names of columns")


def require_warn(warn: Callable[[str], None] | None) -> None:
    """Raise unless something can be given sentences that are warned of otherwise."""
    given: object = warn
    if given is not None and (isinstance(given, type) or not callable(given)):
        raise WrongType("warn must be a function of a sentence", name="warn", value=warn)


def require_progress(progress: Callable[[float], None] | None) -> None:
    """Raise unless something can be told how far a run has come."""
    if progress is not None and not callable(progress):
        raise WrongType("progress must be a function of the share that is done", name="progress", value=progress)
