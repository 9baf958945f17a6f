"""Confirmation of a price that takes more than half of what is left, before it is charged.

Answers that were released before cost nothing and need none; what does not fit is refused by the ledger.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Protocol

import click

from tacit.cli.output import Screen
from tacit.privacy.figures import at_least, at_most

if TYPE_CHECKING:
    from tacit import Cost


SHARE: Final = 0.5
YES: Final = "Do not ask before spending more than half of what is left of a budget; needed in scripts."


class Previewed(Protocol):
    """A price, what is left of the budgets that would pay it, and whether it fits."""

    @property
    def epsilon(self) -> float:
        """What would be charged."""

    @property
    def remaining(self) -> Mapping[str, Cost]:
        """What is left of each data set."""

    @property
    def fits(self) -> bool:
        """Whether that pays."""


def confirm_cost(screen: Screen, price: Previewed, analyst: str | None = None) -> None:
    """Ask for confirmation of a price above half of what is left; raise UsageError where there is no terminal."""
    large = [(name, left) for name, left in price.remaining.items() if price.epsilon > SHARE * left.epsilon]
    if not large or not price.fits:
        return
    name, left = large[0]
    whose = f"for {analyst} on {name}" if analyst else f"on {name}"
    sentence = f"this costs ε {at_most(price.epsilon)} of the ε {at_least(left.epsilon)} that is left {whose}"
    if screen.as_json or not (sys.stdin.isatty() and screen.console.is_terminal):
        raise click.UsageError(f"{sentence}, more than half; nothing was charged, add --yes to confirm")
    click.confirm(f"{sentence}; continue?", abort=True)
