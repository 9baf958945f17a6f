"""Where in a query something stands, for the errors that point there."""

from __future__ import annotations

from typing import NamedTuple


class Place(NamedTuple):
    """A place in a query: line and column, both counted from 1."""

    line: int
    column: int


def placed(message: str, place: Place | None) -> str:
    """Return a message with its place before it, if it has one."""
    return message if place is None else f"at {place.line}:{place.column}: {message}"
