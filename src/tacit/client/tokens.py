"""The token that says who asks: read once, sent with each request, and shown nowhere.

Promise: no repr, error or log of the client holds its text, and it is sent to the one address that it was given for.
Not here: what it is worth (the server's access).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from tacit.privacy.errors import EmptyInput, InvalidInput

VARIABLE: Final = "TACIT_TOKEN"
FILE: Final = "file:"
LENGTH_MAX: Final = 4096


class Token:
    """A secret text; what shows objects shows that there is one, and no more."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        if not 0 < len(text) <= LENGTH_MAX or not all("!" <= letter <= "~" for letter in text):
            # the value is left out on purpose: it is a secret, or a part of one
            raise InvalidInput("a token is one word of plain letters, as the server showed it once", name="token")
        self._text: Final = text

    @classmethod
    def of(cls, given: str | None) -> Token:
        """Return the token that was given, as it is or as "file:PATH"; without one, that of TACIT_TOKEN."""
        text = os.environ.get(VARIABLE, "") if given is None else given
        if not isinstance(text, str):
            raise InvalidInput(f"a token is a text, not {type(text).__name__}", name="token")
        if text.startswith(FILE):
            return cls(_read(Path(text.removeprefix(FILE))))
        if not text:
            raise EmptyInput(
                f'say who asks: token="tacit_...", token="file:PATH", or the environment variable {VARIABLE}',
                name="token",
            )
        return cls(text.strip())

    @property
    def header(self) -> str:
        """What goes into the header Authorization."""
        return f"Bearer {self._text}"

    def __repr__(self) -> str:
        return "Token(...)"

    def __reduce__(self) -> str:
        raise InvalidInput("a token is not written into files of others; connect anew where it is needed", name="token")


def _read(path: Path) -> str:
    try:
        with path.expanduser().open(encoding="ascii") as file:
            text = file.read(LENGTH_MAX + 2).strip()
    except (OSError, UnicodeDecodeError):
        raise InvalidInput(f"the file of the token, {path}, cannot be read", name="token") from None
    if not text:
        raise EmptyInput(f"the file of the token, {path}, is empty", name="token")
    return text
