"""Lines and sections of a TOML text, for errors that name a line and for edits that leave other lines unchanged.

Headers and keys are matched line by line, without parsing, so a multi-line string that looks like TOML can mislead it:
callers that edit read the outcome again and compare.
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
    """A header with the comment right above it, and everything below it up to the next header."""

    path: Keys
    text: str


def line_of(text: str, path: Keys) -> int | None:
    """Return the number of the line that states the key `path`, or else the nearest key that contains it."""
    found, depth = None, 0
    for number, stated in _statements(text):
        common = min(len(stated), len(path))
        if common > depth and stated[:common] == path[:common]:
            found, depth = number, common
    return found


def sections(text: str) -> list[Section]:
    """Split a text at its headers; the first part has no header, and the parts join to the text."""
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
    """Return the dotted key of one line of TOML, outermost part first."""
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
