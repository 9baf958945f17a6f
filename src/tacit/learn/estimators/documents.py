"""Fitted estimators as JSON: parameters, public facts, fitted arrays, cost and card; no code is read from a document.

Arrays keep their type, and floats are written so that they are read back exactly. A value that JSON lacks is an object
with one key that names its type: `array`, `number` (infinite), `date`, `time`, `mapping`, `bounds`, `categories`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from itertools import cycle, islice, pairwise
from typing import Any, Final

import numpy as np

from tacit.learn.estimators.model_plan import Features
from tacit.privacy.bounds import Bounds, Categories
from tacit.privacy.errors import InvalidInput, WrongType
from tacit.privacy.tables import Kind
from tacit.stats.column_reader import MODULES
from tacit.stats.rows import ColumnSteps, Cut

FORMAT: Final = "tacit estimator 1"
_DTYPES: Final = frozenset("biufUO")
_DTYPE: Final = re.compile(r"[|<>=]?([biufUO])\d{0,9}")
_STEP: Final = re.compile(r"\d{1,400}(/\d{1,400})?")


def encode(value: Any) -> Any:
    """Return a value as JSON has it, or raise WrongType."""
    match value:
        case None | bool() | int() | str():
            return value
        case np.generic():
            return encode(value.item())
        case float() | Fraction() | Decimal():
            number = float(value)
            return number if math.isfinite(number) else {"number": str(number)}
        case datetime():
            return {"time": value.isoformat()}
        case date():
            return {"date": value.isoformat()}
        case np.ndarray() if value.dtype.kind in _DTYPES:
            return {"array": encode(value.tolist()), "dtype": value.dtype.str if value.dtype.kind != "O" else "O"}
        case Bounds():
            return {"bounds": [encode(value.lower), encode(value.upper)]}
        case Categories():
            return {"categories": encode(value.values)}
        case Mapping():
            return {"mapping": [[encode(key), encode(one)] for key, one in value.items()]}
        case list() | tuple() | range():
            return [encode(one) for one in value]
    if type(value).__module__.partition(".")[0] in MODULES and hasattr(value, "tolist"):  # a column of a frame
        return encode(value.tolist())
    raise WrongType(
        f"a {type(value).__name__} cannot be written into a document; give a number, a text, a list or a mapping",
        name="document",
        value=value,
    )


def decode(written: Any) -> Any:
    """Return the value that `encode` wrote; tuples come back as lists."""
    match written:
        case None | bool() | int() | float() | str():
            return written
        case list():
            return [decode(one) for one in written]
        case {"array": listed, "dtype": str(dtype)} if (found := _DTYPE.fullmatch(dtype)) is not None:
            made = np.array(decode(listed), dtype=np.str_ if found[1] == "U" else np.dtype(dtype))
            if made.dtype.kind == "O" and any(isinstance(one, list | dict | np.ndarray) for one in made.flat):
                raise InvalidInput("an array has rows of several lengths", name="document")
            return made
        case {"number": str(text)}:
            return float(text)
        case {"time": str(text)}:
            return datetime.fromisoformat(text)
        case {"date": str(text)}:
            return date.fromisoformat(text)
        case {"bounds": [low, high]}:
            return Bounds(decode(low), decode(high))
        case {"categories": list(listed)}:
            return Categories(decode(listed))
        case {"mapping": list(pairs)}:
            return {decode(key): decode(one) for key, one in pairs}
    raise InvalidInput("the document has a value that no estimator writes", name="document")


def encode_features(features: Features) -> list[dict[str, Any]]:
    """Return the public facts of the features."""
    found: list[dict[str, Any]] = []
    for one, kind in zip(features.columns, features.kinds, strict=True):
        if isinstance(one, Cut):
            facts = {"values": encode(one.values), "edges": encode(one.edges)}
        else:
            facts = {"lower": one.lower, "upper": one.upper, "step": str(one.step), "shift": one.shift}
        found.append({"column": one.column, "kind": kind.value, **facts})
    return found


def decode_features(written: list[dict[str, Any]]) -> Features:
    """Return the features that `encode_features` wrote."""
    columns: list[ColumnSteps | Cut] = []
    kinds = tuple(Kind(one["kind"]) for one in written)
    for one, kind in zip(written, kinds, strict=True):
        if "values" in one:
            columns.append(Cut(one["column"], tuple(decode(one["values"])), tuple(decode(one["edges"]))))
            continue
        if _STEP.fullmatch(one["step"]) is None:
            raise InvalidInput("a step is no fraction", name="document")
        step, is_boolean = Fraction(one["step"]), kind is Kind.BOOLEAN
        columns.append(ColumnSteps(one["column"], one["lower"], one["upper"], step, one["shift"], is_boolean))
    return Features(tuple(columns), kinds)


def example_rows(features: Features, at_least: int) -> dict[str, list[Any]]:
    """Return made-up rows as columns: each category, each edge and values beyond them, repeated for as many rows."""
    values = {one.column: _examples(one, kind) for one, kind in zip(features.columns, features.kinds, strict=True)}
    count = max(at_least, *map(len, values.values()))
    return {name: list(islice(cycle(listed), count)) for name, listed in values.items()}


def _examples(one: ColumnSteps | Cut, kind: Kind) -> list[Any]:
    if isinstance(one, Cut) and one.values:
        unlisted = ["".join(map(str, one.values)) + "?"] if kind is Kind.TEXT else []
        return [*one.values, *unlisted]
    if kind is Kind.BOOLEAN:
        return [False, True]
    if not kind.is_number:
        raise InvalidInput(f"{one.column} has no categories", name="document")
    edges = [float(edge) for edge in (one.edges if isinstance(one, Cut) else (one.lower, one.upper))]  # type: ignore[arg-type]
    if not all(map(math.isfinite, edges)) or any(low >= high for low, high in pairwise(edges)):
        raise InvalidInput("edges do not rise", name="document")
    numbers = [edges[0] - 1, *edges, edges[-1] + 1]
    return [math.floor(number) for number in numbers] if kind is Kind.INTEGER else numbers


def require_fitted(name: str, found: Any, shape: tuple[int, ...]) -> None:
    """Raise InvalidInput unless a fitted attribute is an array of finite numbers of a shape."""
    if not isinstance(found, np.ndarray) or found.dtype.kind not in "iuf" or found.shape != shape:
        raise InvalidInput(f"{name} is no array of the shape {shape}", name="document")
    if not np.isfinite(found).all():
        raise InvalidInput(f"{name} has numbers that are not finite", name="document")
