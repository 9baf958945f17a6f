"""The roots of the tree of errors in `privacy.errors`, from which they are imported.

Promise: every error carries one sentence that can be written as UTF-8, a stable code, and the exit code of a command
that ends with it. Those about a caller's value carry its name and the value.
"""

from __future__ import annotations

from typing import ClassVar, Final


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
