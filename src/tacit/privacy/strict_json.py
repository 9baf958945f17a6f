"""Strict JSON parsing: an object with a repeated key is refused.

The standard library keeps the last of two equal keys, so two parsers could read different events from one text.
"""

from __future__ import annotations

import json
from typing import Any, Final

from tacit.privacy.errors import InvalidInput


def loads(text: str | bytes) -> Any:
    """Return the value of a JSON text, or raise InvalidInput."""
    try:
        return _DECODER.decode(text if isinstance(text, str) else text.decode())
    except (ValueError, RecursionError):
        raise InvalidInput("the text is not JSON") from None


def _object_without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise InvalidInput(f"the JSON text names {name!r} twice in one object; name it once")
        found[name] = value
    return found


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_object_without_duplicates)
