"""Blocks of code and links in the pages of the documentation."""

import re
from pathlib import Path
from typing import Final

from tests.style.rules import ROOT

LINK: Final = re.compile(r"\]\((?!https?://)([^)#]+)")
_BLOCK: Final = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(language: str, guide: Path = ROOT / "README.md") -> list[str]:
    """Return the blocks of code of a page in a language."""
    return [text for kind, text in _BLOCK.findall(guide.read_text(encoding="utf-8")) if kind == language]
