"""Explanations that show a program and what it prints: the output is written again whenever it changes.

A block of `python` that is followed by a block of `text` is run, and the text is what it printed, with long lines
wrapped.
"""

from __future__ import annotations

import re
import textwrap
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Final

EXPLANATIONS: Final = Path(__file__).parent / "explanation"
WIDTH: Final = 116
INDENT: Final = " " * 8
_WORKED: Final = re.compile(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def worked_pages() -> dict[Path, str]:
    """Return the explanations that show what a program prints, as they should be."""
    found = {}
    for path in sorted(EXPLANATIONS.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        if _WORKED.search(text):
            found[path] = _WORKED.sub(_with_output, text)
    return found


def _with_output(match: re.Match[str]) -> str:
    printed = StringIO()
    with redirect_stdout(printed):
        exec(compile(match[1], "example", "exec"), {"__name__": "example"})
    lines = [_wrapped(line) for line in printed.getvalue().splitlines()]
    return f"```python\n{match[1]}```\n\n```text\n" + "\n".join(lines) + "\n```"


def _wrapped(line: str) -> str:
    return textwrap.fill(line, WIDTH, subsequent_indent=INDENT, break_long_words=False, break_on_hyphens=False)
