"""Names and texts as they stand in SQL; whatever they hold, they stay one name or one text."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable


def quoted(name: str) -> str:
    """Return an identifier in quotes."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text in quotes."""
    return "'" + text.replace("'", "''") + "'"


def listed(texts: Iterable[str]) -> str:
    """Return a list of texts."""
    return "[" + ", ".join(map(literal, texts)) + "]"


def digest(*parts: object) -> str:
    """Return a digest that tells sequences of texts and numbers apart."""
    return hashlib.sha256("\0".join(map(repr, parts)).encode("utf-8", "surrogatepass")).hexdigest()
