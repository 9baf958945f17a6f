"""Private rows, and exact sums of them, among all objects that can be reached from one."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import CellType, FrameType, ModuleType
from typing import Any, Final
from unittest.mock import patch

import numpy as np
import pandas as pd

from tacit.stats.array_sums import ArrayColumn, ArrayRows
from tacit.stats.preparation import StatisticInputs
from tacit.stats.rows import RowMatrix

ROWS: Final = 397
"""A number of rows that nothing else has."""
COPIED: Final = 4
"""Arrays of fewer numbers may equal an exact one by chance."""


def reachable(found: Any) -> Iterator[Any]:
    """Yield all objects that are reachable from one, without modules and types."""
    seen, todo = {id(found): found}, [found]
    while todo:
        one = todo.pop()
        yield one
        if type(one).__name__ == "function":
            others: list[Any] = [one.__closure__, one.__defaults__, one.__kwdefaults__]
        elif isinstance(one, np.ndarray):
            others = [one.base, *(one.tolist() if one.dtype == object else [])]
        else:
            others = [*gc.get_referents(one), *(vars(one).values() if hasattr(one, "__dict__") else [])]
        for other in others:
            if not isinstance(other, ModuleType | type | FrameType) and id(other) not in seen:
                seen[id(other)] = other
                todo.append(other)


def is_of_rows(one: Any) -> bool:
    """Return whether an object holds private rows."""
    if isinstance(one, ArrayColumn | ArrayRows | StatisticInputs | pd.DataFrame | pd.Series):
        return True
    if isinstance(one, np.ndarray):
        return ROWS in one.shape
    return isinstance(one, list | tuple | bytes) and not isinstance(one, CellType) and len(one) == ROWS


@contextmanager
def exact_arrays() -> Iterator[list[np.ndarray]]:
    """Yield a list of all that is read from private arrays inside."""
    found: list[np.ndarray] = []

    def kept(method: Any) -> Any:
        def reading(*given: Any, **named: Any) -> Any:
            result = method(*given, **named)
            is_matrix = isinstance(result, RowMatrix)
            parts = [result.steps, result.cells] if is_matrix else [result, *np.atleast_1d(result)]
            found.extend(part for part in parts if isinstance(part, np.ndarray))
            return result

        return reading

    with ExitStack() as patches:
        for name in ("sums", "matrix", "column"):
            patches.enter_context(patch.object(ArrayRows, name, kept(getattr(ArrayRows, name))))
        yield found


def private_parts(released: Any, exact: list[np.ndarray]) -> list[str]:
    """Return the types of the private objects that are reachable from what was released."""
    return [
        f"{type(one).__name__}{getattr(one, 'shape', '')}"
        for one in reachable(released)
        if is_of_rows(one) or (isinstance(one, np.ndarray) and any(_same(one, other) for other in exact))
    ]


def _same(one: np.ndarray, exact: np.ndarray) -> bool:
    return one is exact or (one.size >= COPIED and one.shape == exact.shape and np.array_equal(one, exact))
