"""`tacit preview`: what a question would cost and how exact its answer would be, without asking it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tacit.cli.groups import Command, add_format_option
from tacit.cli.options import ServerAddress, query_options, server_options
from tacit.cli.output import Fact, Screen, show_hints
from tacit.privacy.numbers import DEFAULT_LEVEL


@click.command("preview", cls=Command)
@query_options
@server_options
@click.option("--analyst", help="The analyst who would ask.")
@add_format_option
@click.option(
    "--explain", is_flag=True, help="Show step by step how it is answered, with the SQL that the engine runs."
)
@click.pass_obj
def command(
    screen: Screen,
    sql: str,
    folder: Path,
    asked: dict[str, Any],
    analyst: str | None,
    explain: bool,
    server: ServerAddress | None,
) -> None:
    """Show exactly what a query would cost and how wide its intervals would be; spends nothing.

    \b
      tacit preview "SELECT sex, COUNT(*) AS n FROM visits GROUP BY sex" --epsilon 0.5
    """
    from tacit.cli import rendering
    from tacit.cli.backends import open_backend

    with open_backend(folder, server, DEFAULT_LEVEL) as backend:
        show_hints(screen, rendering.category_hints(sql, backend.tables()))
        preview = backend.preview(sql, asked, analyst)
    if screen.as_json:
        screen.show_object(
            {
                "cost": rendering.cost_object(preview),
                "widths": dict(preview.widths),
                "is_released": preview.is_released,
                "fits": preview.fits,
                "refusal": preview.refusal,
                "remaining": {name: rendering.cost_object(cost) for name, cost in preview.remaining.items()},
                "explained": [{"about": line.label, "text": line.text} for line in preview.lines],
            }
        )
        return
    facts = [Fact("cost", rendering.cost_text(preview), True), *rendering.budget_facts(preview)]
    facts += rendering.plan_facts(preview.lines)
    for name, width in preview.widths.items():
        facts.append(Fact(name, f"± {width:,.4g} (95 %)" if width is not None else "depends on the data"))
    if explain:
        facts += [Fact(line.label, line.text) for line in preview.lines]
    if screen.has_reader:
        screen.show_facts(facts)
    else:
        screen.show_records(("fact", "value"), [(fact.label, fact.text) for fact in facts])
