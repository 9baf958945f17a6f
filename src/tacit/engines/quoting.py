"""Names and texts as they stand in SQL; whatever they hold, they stay one name or one text."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from tacit.privacy.errors import InvalidInput


def quoted(name: str) -> str:
    """Return an identifier in quotes."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text in quotes."""
    return "'" + text.replace("'", "''") + "'"


def listed(texts: Iterable[str]) -> str:
    """Return a list of texts."""
    return "[" + ", ".join(map(literal, texts)) + "]"


def require_distinct(place: str, names: Iterable[str]) -> None:
    """Raise InvalidInput if two columns have one name, in any case, for SQL could not tell them apart."""
    known: dict[str, str] = {}
    for name in names:
        if (other := known.get(name.lower())) is not None:
            called = f"called {name}" if other == name else f"that SQL cannot tell apart, {other} and {name}"
            raise InvalidInput(f"{place} has two columns {called}; give one of them another name", name="columns")
        known[name.lower()] = name


def digest(*parts: object) -> str:
    """Return a digest that tells sequences of texts and numbers apart."""
    return hashlib.sha256("\0".join(map(repr, parts)).encode("utf-8", "surrogatepass")).hexdigest()
