"""Roots of the error tree, and the types that errors carry; `privacy.errors` draws the tree and re-exports them.

Promise: every error carries one sentence that can be written as UTF-8, a stable code, and the exit code of a command
that ends with it. Errors about a caller's value carry its name and the value.
"""

from __future__ import annotations

from typing import ClassVar, Final, NamedTuple, Protocol


class TacitError(Exception):
    """The base class of every error that tacit raises on purpose."""

    code: ClassVar[str] = "T000"
    exit_code: ClassVar[int] = 4

    def __init__(self, message: str) -> None:
        shown = message.encode("utf-8", "backslashreplace").decode()  # a quoted value may hold lone surrogates
        super().__init__(shown)
        self.message: Final = shown


class InvalidInput(TacitError):
    """The caller's value cannot be used."""

    code = "T100"
    exit_code = 2

    def __init__(self, message: str, *, name: str | None = None, value: object = None) -> None:
        super().__init__(message)
        self.name: Final = name
        self.value: Final = value


class Place(NamedTuple):
    """A position in a query: line and column, both counted from 1."""

    line: int
    column: int


def at_place(message: str, place: Place | None) -> str:
    """Return a message prefixed with its place in the query, if it has one."""
    return message if place is None else f"at {place.line}:{place.column}: {message}"


class CostLike(Protocol):
    """What errors about budgets show of a cost; `tacit.accounting.conversions.Cost` implements it."""

    @property
    def epsilon(self) -> float:
        """Pure epsilon, or epsilon at `delta`."""

    @property
    def delta(self) -> float:
        """The delta at which `epsilon` holds."""

    @property
    def rho(self) -> float:
        """Zero-concentrated privacy, infinity where none is known."""
