"""Values as JSON has them, and back: dates and times are texts, what is not a number is null.

On the way in a date is `{"date": "2024-01-31"}` and a time `{"time": "2024-01-31T12:00:00"}`, so that a text stays one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from math import isfinite
from typing import Any, Final

import numpy as np

from tacit.privacy.errors import InvalidInput, TooLarge

DEPTH_MAX: Final = 8


def written(value: Any) -> Any:
    """Return a value that JSON has."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(name): written(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [written(one) for one in value]
    return value


def kind_of(values: Sequence[Any]) -> str:
    """Return the kind of a column of an answer, by the first value that is there."""
    for value in values:
        match value:
            case None:
                continue
            case bool() | np.bool_():
                return "boolean"
            case int() | np.integer():
                return "integer"
            case float() | np.floating():
                return "real"
            case datetime():
                return "time"
            case date():
                return "date"
        return "text"
    return "text"


def read(value: Any, depth: int = 0) -> Any:
    """Return what a caller wrote, with its dates and times."""
    if depth > DEPTH_MAX:
        raise TooLarge(f"a value is nested {DEPTH_MAX} deep at most", name="value")
    match value:
        case {"date": str() as text, **rest} if not rest:
            return _moment(date, text)
        case {"time": str() as text, **rest} if not rest:
            return _moment(datetime, text)
        case dict():
            return {name: read(one, depth + 1) for name, one in value.items()}
        case list():
            return [read(one, depth + 1) for one in value]
    return value


def _moment(kind: type[date], text: str) -> date:
    try:
        return kind.fromisoformat(text)
    except ValueError:
        raise InvalidInput(f"{kind.__name__}s are written as in ISO 8601, such as 2024-01-31", name="value") from None
