"""Values of findings as JSON, and strictly back as the types of their fields.

Numbers that are not finite are written as null and read as NaN, and control characters as escapes.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import is_dataclass
from enum import StrEnum
from types import UnionType
from typing import Any, Final, cast, get_args, get_origin, get_type_hints

from tacit.privacy.errors import InvalidInput, WrongType

CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\ufffe\uffff]")
"""Characters that could control a terminal or break a file of another format."""
UNREADABLE: Final = (KeyError, TypeError, ValueError, InvalidInput)
"""What a document raises in which a field is missing, unknown or of another type."""


def writable(value: Any) -> Any:
    """Return values of JSON with null for NaN and infinity, and texts as Unicode without control characters."""
    if isinstance(value, dict):
        return {writable(name): writable(one) for name, one in value.items()}
    if isinstance(value, list):
        return [writable(one) for one in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return CONTROL.sub(lambda one: ascii(one[0])[1:-1], value.encode("utf-8", "replace").decode())
    return value


def plain(value: Any) -> Any:
    """Return a value of numpy, or a date, as JSON."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    return str(value)


def read_as(kind: Any, value: Any) -> Any:
    """Return a value of JSON as one of a type, or raise one of `UNREADABLE`."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is UnionType:
        if value is None and type(None) in parts:
            return None
        for part in parts:
            with suppress(*UNREADABLE):
                return read_as(part, value)
    elif origin is tuple and isinstance(value, list):
        kinds = parts[:1] * len(value) if parts[1:] == (...,) else parts
        return tuple(read_as(one, item) for one, item in zip(kinds, value, strict=True))
    elif is_dataclass(kind) and isinstance(value, dict):
        types = get_type_hints(kind)
        return cast(Any, kind)(**{name: read_as(types[name], item) for name, item in value.items()})
    elif isinstance(kind, type) and issubclass(kind, StrEnum):
        return kind(value)
    elif kind is str and type(value) is str:
        value.encode()  # raises for a lone surrogate
        if not CONTROL.search(value):
            return value
    elif kind is float:
        if value is None:
            return math.nan
        if type(value) in (int, float) and abs(value) <= sys.float_info.max:
            return value
    elif kind is Any or type(value) is kind or (origin is Mapping and isinstance(value, dict)):
        return value
    raise WrongType("the value is of another type", name="finding")
