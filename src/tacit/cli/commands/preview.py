"""`tacit preview`: the cost and the expected interval widths of a query, without running it."""

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
@click.option("--analyst", help="The analyst whose budget would be charged as well.")
@add_format_option
@click.option(
    "--explain",
    is_flag=True,
    help="Also show step by step how the query is answered, with the SQL that the engine runs.",
)
@click.pass_obj
def command(
    screen: Screen,
    sql: str,
    folder: Path,
    options: dict[str, Any],
    analyst: str | None,
    explain: bool,
    server: ServerAddress | None,
) -> None:
    """Show what a query would cost, without running it.

    Also shows how wide the 95 % intervals would be. The cost is exactly what tacit sql would charge.

    \b
      tacit preview "SELECT sex, COUNT(*) AS n FROM visits GROUP BY sex" --epsilon 0.5
    """
    from tacit.cli import rendering
    from tacit.cli.backends import open_backend

    with open_backend(folder, server, DEFAULT_LEVEL) as backend:
        show_hints(screen, rendering.category_hints(sql, backend.tables(), options["keys"]))
        preview = backend.preview(sql, options, analyst)
    if screen.as_json:
        screen.show_object(
            {
                **rendering.quote_object(preview),
                "widths": dict(preview.widths),
                "explained": [{"about": line.label, "text": line.text} for line in preview.lines],
            }
        )
        return
    facts = rendering.preview_facts(preview)
    if explain:
        facts += [Fact(line.label, line.text) for line in preview.lines]
    if screen.has_reader:
        screen.show_facts(facts)
    else:
        screen.show_records(("fact", "value"), [(fact.label, fact.text) for fact in facts])
