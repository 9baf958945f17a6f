"""JSON read strictly: a key that stands twice in one object is refused.

Python's own reader lets the last of two equal keys win, so two readers can see two different events in one text.
"""

from __future__ import annotations

import json
from typing import Any, Final

from tacit.privacy.errors import InvalidInput


def loads(text: str | bytes) -> Any:
    """Return what a JSON text says, or raise InvalidInput."""
    try:
        return _DECODER.decode(text if isinstance(text, str) else text.decode())
    except (ValueError, RecursionError):
        raise InvalidInput("the text is not JSON") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise InvalidInput(f"the JSON text names {name!r} twice in one object; name it once")
        found[name] = value
    return found


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_once)
