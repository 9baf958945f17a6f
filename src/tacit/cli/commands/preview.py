"""`tacit preview`: what a question would cost and how exact its answer would be, without asking it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tacit.cli.catalog.place import ServerAt, at_server
from tacit.cli.kit import Command, Fact, Screen
from tacit.cli.questions.asking import question


@click.command("preview", cls=Command)
@question
@at_server
@click.option("--analyst", help="Who would ask.")
@click.option("--explain", is_flag=True, help="Say pass by pass what would be done, with the SQL that the engine runs.")
@click.pass_obj
def command(
    screen: Screen,
    sql: str,
    folder: Path,
    asked: dict[str, Any],
    analyst: str | None,
    explain: bool,
    server: ServerAt | None,
) -> None:
    """Say exactly what a question would be charged, and how wide its intervals would be; spends nothing.

    \b
      tacit preview "SELECT sex, COUNT(*) AS n FROM visits GROUP BY sex" --epsilon 0.5
    """
    from tacit.cli.questions import showing
    from tacit.cli.questions.remote import opened_answers

    with opened_answers(folder, server, 0.95) as (place, _):
        preview = place.preview(sql, **asked, analyst=analyst)
    if screen.as_json:
        screen.show_object(
            {
                "cost": showing.cost_object(preview),
                "widths": dict(preview.widths),
                "is_released": preview.is_released,
                "explained": [{"about": line.label, "text": line.text} for line in preview.lines],
            }
        )
        return
    facts = [Fact("cost", showing.cost_in_words(preview), True)]
    facts += showing.plan_facts(preview.lines)
    for name, width in preview.widths.items():
        facts.append(Fact(name, f"± {width:,.4g} (95 %)" if width is not None else "depends on the data"))
    if explain:
        facts += [Fact(line.label, line.text) for line in preview.lines]
    screen.show_facts(facts)
