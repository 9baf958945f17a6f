"""A ledger with a backup."""

from __future__ import annotations

from pathlib import Path

import pytest

from tacit.ledger import Ledger
from tests.faults.ledger.backups import TENTH


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a closed ledger of six records; `backup` beside it holds the first four."""
    with Ledger.open(tmp_path / "clinic") as ledger:
        ledger.create_budget("visits", epsilon=1.0)
        for _ in range(3):
            ledger.reserve("visits", TENTH)
        ledger.backup(tmp_path / "backup")
        ledger.reserve("visits", TENTH)
        ledger.reserve("visits", TENTH)
    return tmp_path / "clinic"
