"""Roots of the error tree in `privacy.errors`, and the types that errors carry.

The roots of the tree of errors in `privacy.errors`, from which they are imported.

Promise: every error carries one sentence that can be written as UTF-8, a stable code, and the exit code of a command
that ends with it. Those about a caller's value carry its name and the value.

Where in a query something stands, for the errors that point there.

What a cost looks like to whoever shows it: the kernel's errors know no accountant.
"""

from __future__ import annotations

from typing import ClassVar, Final, NamedTuple, Protocol


class TacitError(Exception):
    """The root of every error that tacit raises on purpose."""

    code: ClassVar[str] = "T000"
    exit_code: ClassVar[int] = 4

    def __init__(self, message: str) -> None:
        shown = message.encode("utf-8", "backslashreplace").decode()  # what it quotes may be no text that can be sent
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
    """A place in a query: line and column, both counted from 1."""

    line: int
    column: int


def placed(message: str, place: Place | None) -> str:
    """Return a message with its place before it, if it has one."""
    return message if place is None else f"at {place.line}:{place.column}: {message}"


class CostLike(Protocol):
    """What an error about budgets shows; `tacit.accounting.conversions.Cost` is one."""

    @property
    def epsilon(self) -> float:
        """Pure epsilon, or epsilon at `delta`."""

    @property
    def delta(self) -> float:
        """The delta that goes with epsilon."""

    @property
    def rho(self) -> float:
        """Zero-concentrated privacy, infinity where none is known."""
