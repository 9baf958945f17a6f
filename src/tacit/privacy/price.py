"""What a cost looks like to whoever shows it: the kernel's errors know no accountant."""

from __future__ import annotations

from typing import Protocol


class Price(Protocol):
    """What an error about budgets shows; `tacit.accounting.bounds.Cost` is one."""

    @property
    def epsilon(self) -> float:
        """Pure epsilon, or epsilon at `delta`."""

    @property
    def delta(self) -> float:
        """The delta that goes with epsilon."""

    @property
    def rho(self) -> float:
        """Zero-concentrated privacy, infinity where none is known."""
