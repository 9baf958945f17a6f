"""Random units with few rows, of which the last is another one in the neighbouring data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st


class Moved(AssertionError):
    """Neighbours are further apart than the noise was made for."""


@dataclass(frozen=True)
class World:
    """The rows of each unit; the last unit is the one that differs, in the neighbour it has `instead`."""

    others: list[list[Any]]
    differs: list[Any]
    instead: list[Any]
    per_unit: int


@st.composite
def worlds(draw: st.DrawFn, row: st.SearchStrategy[Any]) -> World:
    """Draw a world and its neighbour; all units but the one that differs have no more rows than are counted."""
    per_unit = draw(st.integers(1, 3))
    others = draw(st.lists(st.lists(row, max_size=per_unit), max_size=4))
    many = st.lists(row, max_size=6)
    return World(others, draw(many), draw(many), per_unit)
