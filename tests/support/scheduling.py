"""Which worker runs which tests: those of a file together, and all that use Spark one after another in one Java."""

from __future__ import annotations

from typing import Final

import pytest
from xdist.scheduler import LoadFileScheduling

SPARK: Final = "spark"
LONG: Final = ("tests/faults/engines", "tests/property/query", "tests/statistical", "tests/faults/server")
"""Folders whose files take longest, and are begun first, so that no worker is left alone with one at the end."""


class SparkOnce(LoadFileScheduling):
    """A file a time for each worker; tests with Spark in their name are one unit."""

    def _split_scope(self, nodeid: str) -> str:
        return SPARK if SPARK in nodeid else super()._split_scope(nodeid)


def rank(item: pytest.Item) -> int:
    """Return the place of a test's file among all: Spark first, then the long ones."""
    return 0 if SPARK in item.nodeid else 1 if item.nodeid.startswith(LONG) else 2
