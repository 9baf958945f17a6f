"""Identifiers and texts in SQL, escaped whatever they hold; checks of column names; digests."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from tacit.privacy.errors import InvalidInput


def quoted(name: str) -> str:
    """Return an identifier in double quotes."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text as an SQL string."""
    return "'" + text.replace("'", "''") + "'"


def list_literal(texts: Iterable[str]) -> str:
    """Return texts as an SQL list of strings."""
    return "[" + ", ".join(map(literal, texts)) + "]"


def require_distinct(place: str, names: Iterable[str]) -> None:
    """Raise InvalidInput if two columns have the same name, ignoring case: SQL could not tell them apart."""
    known: dict[str, str] = {}
    for name in names:
        if (other := known.get(name.lower())) is not None:
            called = f"called {name}" if other == name else f"that SQL cannot tell apart, {other} and {name}"
            raise InvalidInput(f"{place} has two columns {called}; rename one of them", name="columns")
        known[name.lower()] = name


def digest(*parts: object) -> str:
    """Return a SHA-256 digest of a sequence of texts and numbers; different sequences have different digests."""
    return hashlib.sha256("\0".join(map(repr, parts)).encode("utf-8", "surrogatepass")).hexdigest()
