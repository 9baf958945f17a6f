"""Suggestions for misspelt names; callers pass only names that the user may see."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return "did you mean X?" for the closest known name, ignoring case, or `otherwise` if none is close."""
    names = {one.lower(): one for one in known}
    near = get_close_matches(name.lower(), names, n=1)
    return f"did you mean {names[near[0]]}?" if near else otherwise
