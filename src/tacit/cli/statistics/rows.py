"""An answer as rows: for what each number stands, the number, and between which ends it lies."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date
from typing import Any, NamedTuple

import numpy as np

from tacit.cli.catalog.views import shown
from tacit.cli.questions.showing import cell
from tacit.stats import Answer
from tacit.stats.workloads import Table


class Span(NamedTuple):
    """The ends of an interval."""

    low: Any
    high: Any


@dataclass(frozen=True)
class Row:
    """One number of an answer."""

    keys: tuple[Any, ...]
    value: Any
    span: Span | None

    @property
    def has_width(self) -> bool:
        """Whether half of the interval is a number."""
        return self.span is not None and all(isinstance(end, int | float) for end in (self.value, *self.span))


def rows_of(answer: Answer | Table, level: float) -> list[Row]:
    """Return an answer, or a table of counts, as rows with the intervals of a level."""
    span = answer.interval(level)
    values = _list(answer.values if isinstance(answer, Table) else answer.value)
    ends: list[Span | None] = [None] * len(values)
    if span is not None:
        ends = [Span(low, high) for low, high in zip(_list(span.low), _list(span.high), strict=True)]
    keys = answer.keys if answer.keys is not None else [()]
    return [Row(tuple(key), value, one) for key, value, one in zip(keys, values, ends, strict=True)]


def key(value: Any) -> str:
    """Return a part of a key for people; numbers in it are names, so 2024 has no comma in it."""
    if value is None:
        return "missing"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.6g}" if isinstance(value, float) else shown(str(value))


def figures(row: Row) -> tuple[str, str]:
    """Return a value with half its interval, and the interval, with as many digits as the noise leaves."""
    if row.span is None:
        return shown(cell(row.value)), "–"
    half = (row.span.high - row.span.low) / 2 if row.has_width else 0.0
    if not 1e-9 < half < 1e15:
        return cell(row.value, row.span if row.has_width else None), f"{cell(row.span.low)} to {cell(row.span.high)}"
    if all(isinstance(end, int) for end in (row.value, *row.span)):
        return f"{row.value:,} ± {half:,.15g}", f"{row.span.low:,} to {row.span.high:,}"
    decimals = 0 if isinstance(row.value, int) and half >= 1 else max(0, 1 - math.floor(math.log10(half)))
    value, half, low, high = (f"{number:,.{decimals}f}" for number in (row.value, half, *row.span))
    return f"{value} ± {half}", f"{low} to {high}"


def field(value: Any) -> str:
    """Return a value for a pipe, with all its digits and nothing else."""
    found = plain(value)
    if isinstance(found, bool):
        return str(found).lower()
    return "" if found is None else repr(found) if isinstance(found, float) else shown(str(found))


def plain(value: Any) -> Any:
    """Return a value that JSON has."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value.isoformat() if isinstance(value, date) else value


def _list(value: Any) -> list[Any]:
    if isinstance(value, np.ndarray):
        return list(value.ravel().tolist())
    return list(value) if isinstance(value, list | tuple) else [value]
