"""The numbers of a plan's statements before noise, for benchmarks and tests; production never returns them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tacit.engines.protocol import Columns
from tacit.query import Plan


def exact(plan: Plan, found: Sequence[Columns]) -> dict[tuple[Any, ...], list[int]]:
    """Return the measures before noise, by group; groups of a grouping set begin with the keys that it keeps."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    for statement, columns in zip(plan.statements, found, strict=True):
        kept = plan.question.keys if statement.kept is None else statement.kept
        of_set = () if statement.kept is None else (statement.kept,)
        keys = [np.asarray(columns[f"k{index}"], dtype=object).tolist() for index in range(len(kept))]
        for row in range(len(next(iter(columns.values())))):
            key = tuple(column[row] for column in keys)
            values = groups.setdefault((*of_set, *key), [0] * len(plan.measures))
            for place, index in enumerate(statement.measures):
                values[index] = int(columns[f"m{place}"][row])
    return groups
