"""The invented tables as tacit registers them: whom they protect, what is public about them, and the limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import tacit
from bench.queries.data import FINE_GROUPS, GROUPS, LOWER, UPPER

DELTA: Final = 1e-6
EPSILON_MAX: Final = 1e6
"""A budget that no run of the benchmark comes near to."""


def register(
    folder: Path, *, name: str, source: str, limits: dict[str, int], public_keys: bool = True
) -> tacit.Curator:
    """Open a curator's folder with one table in it; without public keys nothing is said about the fine groups."""
    columns: dict[str, Any] = {"value": tacit.Bounds(LOWER, UPPER), "grp": tacit.Categories(range(GROUPS))}
    if name == "events" and public_keys:
        columns["grp_fine"] = tacit.Categories(range(FINE_GROUPS))
    curator = tacit.Curator(folder)
    curator.add_table(name, source, unit="user_id", columns=columns, limits=tacit.Limits(**limits))
    curator.set_budget(name, epsilon=EPSILON_MAX, delta=DELTA)
    return curator
