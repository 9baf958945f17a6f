"""`tacit sql`: answer one query, or open a prompt for several."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from tacit.cli.groups import Command, format_option
from tacit.cli.options import YES, ServerAddress, confirm_cost, query_options, server_options
from tacit.cli.output import Screen, reporting_no_charge, show_facts_beside, show_hints, writing_answer
from tacit.privacy.numbers import DEFAULT_LEVEL


@click.command("sql", cls=Command)
@partial(query_options, is_required=False)
@server_options
@click.option("--analyst", help="The analyst whose budget is charged as well.")
@click.option("--purpose", default="", help="Purpose, recorded in the ledger; by default the query.")
@click.option(
    "--level",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=DEFAULT_LEVEL,
    show_default=True,
    help="Confidence level of intervals.",
)
@click.option("--yes", is_flag=True, help=YES)
@click.option("--timeout", type=click.FloatRange(0, min_open=True), metavar="SECONDS", help="Time limit.")
@click.option("--card", is_flag=True, help="Also describe the answer and its guarantee in plain language.")
@click.pass_obj
def command(
    screen: Screen,
    sql: str | None,
    folder: Path,
    options: dict[str, Any],
    analyst: str | None,
    purpose: str,
    level: float,
    yes: bool,
    timeout: float | None,
    card: bool,
    server: ServerAddress | None,
) -> None:
    """Answer a SQL query with noise and charge its cost.

    SQL is the query, @FILE to read it from a file, or - to read it from standard input. Without it, a prompt opens and
    previews each query. Numbers are shown with the half-width of their interval. Repeating a query costs nothing.

    \b
      tacit sql "SELECT sex, COUNT(*) AS n FROM visits GROUP BY sex" --epsilon 0.5
    """
    from tacit.cli import rendering
    from tacit.cli.backends import open_backend
    from tacit.cli.output import progress_bar

    if sql is None:
        settings = {"analyst": analyst, "purpose": purpose, "level": level, "timeout_s": timeout, "shows_card": card}
        _run_repl(screen, folder, server, options, settings)
        return
    with reporting_no_charge(), open_backend(folder, server, level) as backend:
        show_hints(screen, rendering.category_hints(sql, backend.tables(), options["keys"]))
        if not yes:
            confirm_cost(screen, backend.preview(sql, options, analyst))
        with progress_bar(screen) as progress:
            release = backend.sql(sql, options, analyst, purpose=purpose, timeout_s=timeout, progress=progress)
        remaining, payer = backend.remaining(release.datasets, analyst), backend.payer(analyst)
        lines = () if screen.as_json else backend.explain(sql, options)
        with writing_answer():
            if screen.as_json:
                screen.show_object(rendering.answer_object(release, remaining, level, payer))
                return
            rendering.show_answer(screen, release, level)
        if not release.rows:
            click.echo(f"tacit: {rendering.empty_answer_text(lines)}", err=True)
        facts = rendering.answer_facts(release, remaining, lines, payer)
        if screen.has_reader:
            screen.show_facts(facts)
        else:
            show_facts_beside(facts)
    if card:
        screen.say(release.card, err=not screen.has_reader)


command.params.insert(-2, format_option())


def _run_repl(
    screen: Screen, folder: Path, server: ServerAddress | None, options: dict[str, Any], settings: dict[str, Any]
) -> None:
    """Open the prompt; raise UsageError without a terminal."""
    if not screen.is_interactive:
        raise click.UsageError("give the query as an argument, or - to read it from standard input")
    from tacit.cli.backends import open_backend
    from tacit.cli.repl.prompt import run_repl

    with open_backend(folder, server, settings["level"]) as backend:
        run_repl(screen, backend, options, **settings)
