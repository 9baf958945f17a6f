"""Helpers for tests that charge a ledger with the data set visits."""

from typing import Final

from tacit.ledger import Ledger
from tacit.privacy import events

TENTH: Final = events.Laplace(0.1)


def spent(ledger: Ledger, **scope: str) -> float:
    """Return the epsilon that was spent on visits, or on one of its scopes."""
    return ledger.budget("visits", **scope).spent().epsilon  # type: ignore[arg-type]
