"""Checks of texts that people write (names, purposes, reasons, notes, keys) and of file paths.

Each check is named after what it returns. Such texts are stored for good and shown on screens, so they are short and
hold no control characters, line breaks or changes of the writing direction.

Suggestions for misspelt names; callers pass only names that the user may see.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from tacit.privacy.errors import EmptyInput, InvalidInput, TooLarge, WrongType

NAME_LENGTH_MAX: Final = 128
NOTE_LENGTH_MAX: Final = 2_000
KEY_LENGTH_MAX: Final = 256
PLAN_LENGTH_MAX: Final = 2**20
PATH_BYTES_MAX: Final = 4_000
FILE_NAME_BYTES_MAX: Final = 255


def name(what: str, value: object) -> str:
    """Return a name: short, not empty, without spaces at its ends."""
    text = _text(what, value, NAME_LENGTH_MAX)
    if not text:
        raise EmptyInput(f"{what} must not be empty", name=what)
    if text != text.strip():
        raise InvalidInput(f"{what} must not begin or end with a space, as {text!r} does", name=what, value=text)
    return text


def source_name(what: str, value: object) -> str:
    """Return the name of a table or a column in its source: any text in UTF-8 that is not empty."""
    if not isinstance(value, str):
        raise WrongType(f"{what} must be a text, not {type(value).__name__}", name=what, value=value)
    if not value:
        raise EmptyInput(f"{what} must not be empty", name=what)
    if not is_unicode(value):
        raise InvalidInput(f"{what} must be a text that can be written as UTF-8", name=what, value=value)
    return value


def is_unicode(value: str) -> bool:
    """Return whether a text can be encoded as UTF-8, that is, holds no lone surrogates."""
    return value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value)


def note(what: str, value: object, *, required: bool = False) -> str:
    """Return a short free text; raise for an empty one if it is `required`."""
    text = _text(what, value, NOTE_LENGTH_MAX)
    if required and not text.strip():
        raise EmptyInput(f"{what} must not be empty; it is stored in the journal", name=what)
    return text


def key(value: object) -> str:
    """Return an idempotency key."""
    text = _text("key", value, KEY_LENGTH_MAX)
    if not text:
        raise EmptyInput("an idempotency key must not be empty; leave it out to have none", name="key")
    return text


def plan(value: object) -> str:
    """Return the canonical text of a plan, which may have several lines."""
    if not isinstance(value, str):
        raise WrongType(f"a plan is a text, not {type(value).__name__}", name="plan", value=value)
    value = exact_text(value)
    if len(value) > PLAN_LENGTH_MAX:
        raise TooLarge(f"a plan takes at most {PLAN_LENGTH_MAX:,} characters, not {len(value):,}", name="plan")
    if not is_unicode(value):
        raise InvalidInput("a plan must be text that can be written as UTF-8", name="plan")
    return value


def head(what: str, value: object) -> tuple[int, str]:
    """Return the head of a journal: the number and the hash of its last record."""
    match value:
        case (int(number), str(digest)) if 0 <= number < 2**62:
            return int(number), exact_text(digest)
    raise WrongType(f"{what} is the number and the hash of a head, as in (12, '9f86…')", name=what, value=value)


def path(what: str, value: object) -> Path:
    """Return the path of a file or a folder that file systems and engines accept and terminals can show."""
    if not isinstance(value, str | Path):
        raise WrongType(f"{what} must be a path, not {type(value).__name__}", name=what, value=value)
    if isinstance(value, str):
        value = exact_text(value)
    if not value:
        raise EmptyInput(f"{what} must not be empty; use . for the current folder", name=what)
    text = str(value)
    if not is_unicode(text) or any(unicodedata.category(character) == "Cc" for character in text):
        raise InvalidInput(f"{what} must be a path in UTF-8 without control characters, not {text[:200]!r}", name=what)
    if len(text.encode()) > PATH_BYTES_MAX or any(len(one.encode()) > FILE_NAME_BYTES_MAX for one in text.split("/")):
        raise InvalidInput(
            f"{what} must be a path that file systems can have: {PATH_BYTES_MAX:,} bytes at most, and "
            f"{FILE_NAME_BYTES_MAX} for one name",
            name=what,
        )
    return Path(value)


def exact_text(value: str) -> str:
    """Return a text as a plain `str`; a subclass could override equality and so deceive a cache."""
    return str.__str__(value)


def _text(what: str, value: object, length_max: int) -> str:
    if not isinstance(value, str):
        raise WrongType(f"{what} must be a text, not {type(value).__name__}", name=what, value=value)
    value = exact_text(value)
    if len(value) > length_max:
        raise TooLarge(f"{what} takes at most {length_max:,} characters, not {len(value):,}", name=what)
    if value.isascii() and value.isprintable():
        return value
    for position, character in enumerate(value, 1):
        if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"):
            raise InvalidInput(
                f"{what} must not hold control characters, and has U+{ord(character):04X} at place {position}",
                name=what,
                value=value,
            )
    return value


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return "did you mean X?" for the closest known name, ignoring case, or `otherwise` if none is close."""
    names = {one.lower(): one for one in known}
    near = get_close_matches(name.lower(), names, n=1)
    return f"did you mean {names[near[0]]}?" if near else otherwise
