"""Which line of a TOML file says what, for sentences that name a line and for edits that leave all others alone.

A plain look at headers and keys, not a parser: it may be deceived by a text of several lines that looks like TOML.
Whoever edits by it reads the outcome again and compares.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

Keys: TypeAlias = tuple[str, ...]

_PART: Final = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')"""
_KEY: Final = re.compile(rf"\s*({_PART}(?:\s*\.\s*{_PART})*)\s*=")


@dataclass(frozen=True, slots=True)
class Section:
    """A header with what stands below it up to the next one, and the comment right above it."""

    path: Keys
    text: str


def line_of(text: str, path: Keys) -> int | None:
    """Return the number of the line that states `path`, or else of the nearest statement that holds it."""
    found, depth = None, 0
    for number, stated in _statements(text):
        together = min(len(stated), len(path))
        if together > depth and stated[:together] == path[:together]:
            found, depth = number, together
    return found


def sections(text: str) -> list[Section]:
    """Cut a file at its headers; the parts joined together are the file. The first part has no header."""
    lines = re.findall(r"[^\n]*\n|[^\n]+$", text)
    starts: list[tuple[int, Keys]] = [(0, ())]
    for number, line in enumerate(lines):
        if (path := _header(line)) is not None:
            start = number
            while start > starts[-1][0] and lines[start - 1].lstrip().startswith("#"):
                start -= 1
            starts.append((start, path))
    ends = [start for start, _ in starts[1:]] + [len(lines)]
    return [Section(path, "".join(lines[start:end])) for (start, path), end in zip(starts, ends, strict=True)]


def _statements(text: str) -> Iterator[tuple[int, Keys]]:
    header: Keys = ()
    for number, line in enumerate(text.split("\n"), 1):
        if (path := _header(line)) is not None:
            header = path
            yield number, path
        elif (match := _KEY.match(line)) and (keys := _keys(f"{match[1]} = 0")):
            yield number, (*header, *keys)


def _header(line: str) -> Keys | None:
    return _keys(line) if line.lstrip().startswith("[") else None


def _keys(line: str) -> Keys | None:
    """Return the keys that one line of TOML names, from the outermost to the innermost."""
    try:
        inside: object = tomllib.loads(line)
    except (tomllib.TOMLDecodeError, RecursionError):
        return None
    keys: list[str] = []
    while True:
        if isinstance(inside, list) and inside:
            inside = inside[0]
        if not isinstance(inside, dict) or not inside:
            return tuple(keys) or None
        ((key, inside),) = inside.items()
        keys.append(key)
