"""Helpers for tests of ledgers that are replaced by other files."""

from pathlib import Path
from typing import Final

from tacit.privacy import events

TENTH: Final = events.Laplace(0.1)


def database(folder: Path) -> Path:
    """Return the file of a folder's ledger."""
    return folder / "ledger.sqlite"
