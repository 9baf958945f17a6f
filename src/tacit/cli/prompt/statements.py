"""Where a statement ends: at a semicolon that stands neither in quotes nor in a comment."""

from __future__ import annotations

import re
from typing import Final

_PARTS: Final = re.compile(
    r"""
    (?P<end>;)
    | '(?:[^']|'')*(?P<open_text>'|\Z)
    | "(?:[^"]|"")*(?P<open_name>"|\Z)
    | --[^\n]*
    | /\*.*?(?P<open_comment>\*/|\Z)
    """,
    re.VERBOSE | re.DOTALL,
)


def is_dotted(text: str) -> bool:
    """Whether a text is a command of the prompt."""
    return text.lstrip().startswith(".")


def is_complete(text: str) -> bool:
    """Whether Enter ends the input: a command of the prompt, nothing at all, or statements that all have their ;."""
    return is_dotted(text) or not text.strip() or not _parted(text)[1].strip()


def is_quoted(text: str) -> bool:
    """Whether a text ends inside of quotes or of a comment."""
    last = next(iter([*_PARTS.finditer(text)][-1:]), None)
    if last is None or last.end() < len(text) or last["end"]:
        return False
    opened = [last[name] for name in ("open_text", "open_name", "open_comment")]
    return "" in opened or opened == [None, None, None]


def statements(text: str) -> list[str]:
    """Return the statements of a text without their semicolons; the last may lack its own."""
    done, rest = _parted(text)
    return [one for one in (part.strip() for part in (*done, rest)) if _says_something(one)]


def _parted(text: str) -> tuple[list[str], str]:
    """Return the parts that end with a semicolon, and what follows the last one."""
    done, start = [], 0
    for found in _PARTS.finditer(text):
        if found["end"]:
            done.append(text[start : found.start()])
            start = found.end()
    rest = text[start:]
    return (done, rest) if _says_something(rest) or not done else (done, "")


def _says_something(part: str) -> bool:
    """Whether a part is more than comments."""
    return bool(re.sub(r"--[^\n]*|/\*.*?(\*/|\Z)", "", part, flags=re.DOTALL).strip())
