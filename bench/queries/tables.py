"""The invented tables as tacit registers them: who is protected, the public facts, and the limits."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, Final

import tacit
from bench.queries.data import FINE_GROUPS, GROUPS, LOWER, UPPER
from tacit.curator import PrivacyWarning
from tacit.privacy import Column, Kind

DELTA: Final = 1e-6
"""The delta of a query whose keys are not public."""
EPSILON_MAX: Final = 1e6
DELTA_MAX: Final = 1e-3
"""A budget larger than any run of the benchmark needs."""


def register(
    folder: Path, *, name: str, source: str, limits: dict[str, int], fine_keys: bool = False, delta: float = DELTA_MAX
) -> tacit.Curator:
    """Open a curator's folder with one table in it; with `fine_keys` the fine groups are public, too."""
    # No value is missing, which the peers take for granted.
    value = Column("value", Kind.REAL, tacit.Bounds(LOWER, UPPER), nullable=False)
    columns: dict[str, Any] = {"value": value, "grp": tacit.Categories(range(GROUPS))}
    if fine_keys:
        columns["grp_fine"] = tacit.Categories(range(FINE_GROUPS))
    curator = tacit.Curator(folder)
    curator.add_table(name, source, unit="user_id", columns=columns, limits=tacit.Limits(**limits))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)  # invented people need no protection
        curator.set_budget(name, epsilon=EPSILON_MAX, delta=delta, epsilon_min=0)
    return curator
