"""Budgets on a screen: what is spent and what is left, as a bar and in figures that never claim too little spent."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from tacit.cli.kit import Screen
from tacit.privacy.figures import at_least, at_most, exactly

if TYPE_CHECKING:
    from tacit.ledger import Ledger, Scope

BAR_WIDTH: Final = 16
FULL, EMPTY = "█", "░"


def budget_objects(ledger: Ledger, dataset: str | None = None) -> list[dict[str, Any]]:
    """Return every budget, or those of one data set, with what is spent and left; first the whole, then its parts."""
    scopes = sorted(ledger.scopes(dataset), key=lambda scope: (scope.dataset, scope.kind != "dataset", scope.name))
    return [_object(ledger, scope) for scope in scopes]


def show_budgets(screen: Screen, budgets: list[dict[str, Any]]) -> None:
    """Show budgets: bars on a terminal, one line a budget with tabs in a pipe."""
    if not screen.console.is_terminal:
        screen.show_table((), [(row["scope"], *_figures(row)) for row in budgets])
        return
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, header_style="bold")
    for name in ("budget", "", "ε spent", "ε left", "of ε", "ε min", "δ", "filter"):
        table.add_column(name, justify="right" if name[:1] in "εoδ" and name else "left", no_wrap=True)
    for row in budgets:
        filled, style = _bar(row)
        bar = Text.assemble((FULL * filled, style), (EMPTY * (BAR_WIDTH - filled), "dim"))
        name = row["scope"] if row["kind"] == "dataset" else f"  {row['name']}"
        table.add_row(Text(name), bar, *map(Text, _figures(row)))
    screen.console.print(table)


def _object(ledger: Ledger, scope: Scope) -> dict[str, Any]:
    budget = ledger.budget(
        scope.dataset,
        analyst=scope.name if scope.kind == "analyst" else None,
        epoch=scope.name if scope.kind == "epoch" else None,
    )
    spent, left = budget.spent(), budget.remaining()
    return {
        "scope": str(scope),
        "dataset": scope.dataset,
        "kind": scope.kind,
        "name": scope.name or scope.dataset,
        "filter": budget.cap.filter,
        "relation": budget.cap.relation.value,
        "epsilon": budget.cap.epsilon,
        "epsilon_min": budget.epsilon_min,
        "delta": budget.cap.delta,
        "epsilon_spent": spent.epsilon if math.isfinite(spent.epsilon) else None,
        "epsilon_left": left.epsilon,
        "delta_left": left.delta,
        "rho_left": left.rho if math.isfinite(left.rho) else None,
    }


def _figures(row: dict[str, Any]) -> tuple[str, ...]:
    spent = "∞" if row["epsilon_spent"] is None else at_most(row["epsilon_spent"], 4)
    left, least = at_least(row["epsilon_left"], 4), at_most(row["epsilon_min"], 4)
    return spent, left, exactly(row["epsilon"]), least, exactly(row["delta"]), row["filter"]


def _bar(row: dict[str, Any]) -> tuple[int, str]:
    """Return how much of the bar is filled, and its colour; a budget with anything left is not shown as full."""
    spent, cap = row["epsilon_spent"], row["epsilon"]
    share = 1.0 if spent is None else min(max(spent / cap, 1 - row["epsilon_left"] / cap), 1.0)
    filled = math.ceil(share * BAR_WIDTH - 1e-9)
    if filled == BAR_WIDTH and row["epsilon_left"] > 0:
        filled -= 1
    return filled, "red" if share > 0.9 else "yellow" if share > 0.6 else "green"
