"""Confirmation of a cost above half of the remaining budget, before it is charged.

Repeated answers cost nothing and need no confirmation; a cost that exceeds the budget is refused by the ledger.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Protocol

import click

from tacit.cli.output import Screen
from tacit.privacy.figures import at_most, left_over

if TYPE_CHECKING:
    from tacit import Cost


SHARE: Final = 0.5
YES: Final = "Spend more than half of the remaining budget without asking for confirmation."


class Previewed(Protocol):
    """A cost, the remaining budgets that would be charged, and whether it fits."""

    @property
    def epsilon(self) -> float:
        """The epsilon that would be charged."""

    @property
    def remaining(self) -> Mapping[str, Cost]:
        """The remaining budget of each data set."""

    @property
    def fits(self) -> bool:
        """Whether the cost fits into the budgets."""


def confirm_cost(screen: Screen, preview: Previewed, analyst: str | None = None) -> None:
    """Ask for confirmation of a cost above half of the remaining budget; raise UsageError without a terminal."""
    large = [(name, left) for name, left in preview.remaining.items() if preview.epsilon > SHARE * left.epsilon]
    if not large or not preview.fits:
        return
    name, left = large[0]
    whose = f"for {analyst} on {name}" if analyst else f"on {name}"
    sentence = f"this costs ε {at_most(preview.epsilon)} of the remaining ε {left_over(left.epsilon)} {whose}"
    if screen.as_json or not (sys.stdin.isatty() and screen.console.is_terminal):
        raise click.UsageError(f"{sentence}, which is more than half; nothing was charged; add --yes to confirm")
    if not click.confirm(f"{sentence}; continue?"):
        raise click.Abort("nothing was charged")
