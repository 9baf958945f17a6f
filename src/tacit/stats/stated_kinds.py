"""Kinds of columns that the arguments of a statistic state: bounds, edges and keys, which are public.

Numbers as bounds or edges state REAL, also if they are whole: bounds=(0, 10) is written for 2.5 as well as for 2, and
no row may be lost for that. kind="integer" or an array of that type declares whole numbers. Keys state the kind that
all of them have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Any, Final

import numpy as np

from tacit.privacy.bounds import Bounds, Categories
from tacit.privacy.errors import InvalidInput, TacitError
from tacit.privacy.tables import Kind

LEARN: Final = "learn"
"""What is given for bounds that are to be learnt from the data."""

_KEYS: Final = {"b": Kind.BOOLEAN, "i": Kind.INTEGER, "u": Kind.INTEGER, "U": Kind.TEXT, "T": Kind.TEXT}


def kind_of_bounds(stated: Any) -> Kind | None:
    """Return the kind that bounds state; None for what are no bounds, which are refused where they are used."""
    if isinstance(stated, str) and stated == LEARN:
        return Kind.REAL
    if isinstance(stated, Bounds):
        return _kind_of_end(stated.lower)
    if isinstance(stated, str) or not isinstance(stated, Sequence) or len(stated) != 2:
        return None
    return kind_of_edges(stated)


def kind_of_edges(stated: Any) -> Kind | None:
    """Return the kind that edges state; None if they state none, or several."""
    if isinstance(stated, np.ndarray):
        if stated.dtype.kind == "M":
            return kind_of_datetimes(stated.dtype)
        return Kind.REAL if stated.dtype.kind in "iuf" else None
    if isinstance(stated, str | Mapping | Iterator) or not isinstance(stated, Iterable):
        return None
    try:
        found = {_kind_of_end(Bounds(one, one).lower) for one in stated}
    except TacitError:
        return None
    return Kind.TIME if found == {Kind.DATE, Kind.TIME} else found.pop() if len(found) == 1 else None


def kind_of_keys(stated: Any) -> Kind | None:
    """Return the kind that all keys have but None among them; None if they have several."""
    if isinstance(stated, np.ndarray):
        return kind_of_edges(stated) if stated.dtype.kind == "M" else _KEYS.get(stated.dtype.kind)
    listed = stated.values if isinstance(stated, Categories) else stated
    if isinstance(listed, str | Mapping | Iterator) or not isinstance(listed, Iterable):
        return None
    found = {_kind_of_key(one) for one in listed if one is not None}
    return found.pop() if len(found) == 1 else None


def kinds_of_groups(by: Mapping[str, Any], keys: Any) -> dict[str, Kind | None]:
    """Return the kinds of the columns to group by; `keys` is a list for one column, a list of lists for several."""
    names = list(by)
    if len(names) == 1:
        return {names[0]: kind_of_keys(keys)}
    listed = list(keys) if isinstance(keys, Iterable) and not isinstance(keys, str | Mapping | Iterator) else []
    return {name: kind_of_keys(one) for name, one in zip(names, listed, strict=False)}


def declared_kind(stated: object) -> Kind:
    """Return a kind by its name, or raise InvalidInput."""
    try:
        return Kind(stated)  # type: ignore[arg-type]
    except ValueError:
        names = ", ".join(kind.value for kind in Kind)
        raise InvalidInput(f"kind is one of {names}", name="kind", value=stated) from None


def kind_of_datetimes(dtype: np.dtype[Any]) -> Kind:
    """Return the kind of a datetime64 type: DATE in units of days or more, TIME otherwise."""
    return Kind.DATE if np.datetime_data(dtype)[0] in ("Y", "M", "W", "D") else Kind.TIME


def _kind_of_end(end: object) -> Kind:
    if isinstance(end, datetime):
        return Kind.TIME
    return Kind.DATE if isinstance(end, date) else Kind.REAL


def _kind_of_key(key: object) -> Kind | None:
    match key:
        case bool():
            return Kind.BOOLEAN
        case int():
            return Kind.INTEGER
        case str():
            return Kind.TEXT
        case datetime():
            return Kind.TIME
        case date():
            return Kind.DATE
    return None
