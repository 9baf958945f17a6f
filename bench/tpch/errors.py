"""Relative error of a private answer by group."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, Final

Row = Mapping[str, Any]

AGREES: Final = 1e-5
"""Relative tolerance of answers without noise, because values are added on a grid."""
ROUNDED: Final = 1e-6
"""Absolute tolerance, because Spark rounds a quotient of fixed-point sums to six decimals."""
EMPTY: Final = 0.5
"""Below this, a count or a sum without noise counts as zero."""


@dataclass(frozen=True, slots=True)
class Distance:
    """The median of the relative errors, and the share of the groups of the exact answer that were shown."""

    error: float | None
    shown: float


def distance(answers: Iterable[Sequence[Row]], exact: Sequence[Row], keys: Sequence[str]) -> Distance:
    """Compare answers to one question with the exact one, group by group; what is exactly 0 has no relative error."""
    pairs = []
    for answer in answers:
        by_key = {_key(row, keys): row for row in answer}
        pairs += [(by_key.get(_key(row, keys)), row) for row in exact]
    errors = [error for mine, row in pairs if mine is not None for error in _errors(mine, row, keys)]
    shown = sum(mine is not None for mine, _ in pairs) / len(pairs) if pairs else 0.0
    return Distance(statistics.median(errors) if errors else None, shown)


def agree(found: Sequence[Row], exact: Sequence[Row], keys: Sequence[str]) -> bool:
    """Return whether two answers without noise agree; a group in only one of them must have counts and sums of zero."""
    by_key = {_key(row, keys): row for row in exact}
    for row in found:
        other = by_key.pop(_key(row, keys), None)
        numbers = [_number(row[name]) or 0.0 for name in row if name not in keys]
        if other is None:
            if all(abs(number) > EMPTY for number in numbers):
                return False
        elif any(error > AGREES for error in _errors(row, other, keys, ROUNDED)):
            return False
    return not by_key


def _errors(mine: Row, exact: Row, keys: Sequence[str], rounded: float = 0.0) -> Iterator[float]:
    for name, value in mine.items():
        true = _number(exact[name]) if name not in keys else None
        number = _number(value)
        if true:
            yield max(0.0, abs((number or 0.0) - true) - rounded) / abs(true)


def _number(value: Any) -> float | None:
    if value is None or isinstance(value, str | date):
        return None
    number = float(value)
    return number if math.isfinite(number) else None


def _key(row: Row, keys: Sequence[str]) -> tuple[Any, ...]:
    return tuple(_plain(row[name]) for name in keys)


def _plain(value: Any) -> Any:
    """Return a key in a form common to all engines: integers as int, texts without padding."""
    if isinstance(value, Decimal | float) and value == int(value):
        return int(value)
    return value.rstrip() if isinstance(value, str) else value
