"""A ledger with a budget and an analyst."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tacit.ledger import Ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """A ledger with the data set visits, on which ana has a cap; verified in full at the end."""
    with Ledger.open(tmp_path / "clinic") as opened:
        opened.create_budget("visits", epsilon=3.0, delta=1e-7)
        opened.create_cap("visits", "ana", epsilon=1.0, delta=1e-8)
        yield opened
        opened.verify(full=True)
