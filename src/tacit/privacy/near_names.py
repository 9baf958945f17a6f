"""Suggestions for misspelt names, from names that whoever asks may see anyway."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return "did you mean X?" for the known name that is nearest, in any case; `otherwise` where none is near."""
    names = {one.lower(): one for one in known}
    near = get_close_matches(name.lower(), names, n=1)
    return f"did you mean {names[near[0]]}?" if near else otherwise
