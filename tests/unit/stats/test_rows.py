"""Partitions of a column: what is refused before anything is charged."""

from __future__ import annotations

import pytest

from tacit.privacy.errors import TooWide
from tacit.stats.rows import EDGES_MAX, Cut


def test_more_edges_than_are_compared_one_by_one_are_equally_far_apart() -> None:
    even = tuple(float(edge) for edge in range(2 * EDGES_MAX))
    assert Cut("x", edges=even).cells == 2 * EDGES_MAX - 1
    with pytest.raises(TooWide, match="equally far apart"):
        Cut("x", edges=(*even[:-1], even[-1] + 0.5))
