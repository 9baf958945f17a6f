"""`tacit sql`: answer a question privately, or, without one, whatever is typed at a prompt."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import click

from tacit.cli.catalog.place import ServerAt, at_server
from tacit.cli.kit import Command, Screen
from tacit.cli.questions.asking import question


@click.command("sql", cls=Command)
@partial(question, is_required=False)
@at_server
@click.option("--analyst", help="Who asks; her own budget is charged, too.")
@click.option("--purpose", default="", help="What for, to be kept in the ledger; the query itself by default.")
@click.option("--level", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.95, show_default=True)
@click.option("--timeout", type=click.FloatRange(0, min_open=True), metavar="SECONDS", help="Stop after so long.")
@click.option("--card", is_flag=True, help="Say in plain language what was released.")
@click.pass_obj
def command(
    screen: Screen,
    sql: str | None,
    folder: Path,
    asked: dict[str, Any],
    analyst: str | None,
    purpose: str,
    level: float,
    timeout: float | None,
    card: bool,
    server: ServerAt | None,
) -> None:
    """Answer SQL about a private table, with noise, and charge it to the table's budget.

    The query is given as it is, from a file as @FILE, or from standard input as -; without one, a prompt takes one
    after another and previews each. Noisy numbers are shown with half the width of their interval. The same question
    again costs nothing.

    \b
      tacit sql "SELECT sex, COUNT(*) AS n FROM visits GROUP BY sex" --epsilon 0.5
    """
    from tacit.cli.questions import showing
    from tacit.cli.questions.remote import opened_answers
    from tacit.cli.questions.waiting import waited

    if sql is None:
        settings = {"analyst": analyst, "purpose": purpose, "level": level, "timeout_s": timeout, "shows_card": card}
        _converse(screen, folder, server, asked, settings)
        return
    with opened_answers(folder, server, level) as (place, answers):
        release = waited(
            screen,
            place,
            lambda progress: answers.sql(sql, asked, analyst, purpose=purpose, timeout_s=timeout, progress=progress),
        )
        remaining = answers.remaining(release.datasets, analyst)
        if screen.as_json:
            screen.show_object(showing.answer_object(release, remaining, level))
            return
        screen.show_table(release.columns, showing.table_rows(release, level))
        lines = answers.explain(sql, asked)
        if not release.rows:
            click.echo(f"tacit: {showing.why_empty(lines)}", err=True)
        if screen.console.is_terminal:
            screen.show_facts(showing.after(release, remaining, lines))
        else:
            for fact in showing.contents(release, lines):
                click.echo(f"{fact.label} {fact.text}", err=True)
    if card:
        click.echo(release.card, err=not screen.console.is_terminal)


def _converse(
    screen: Screen, folder: Path, server: ServerAt | None, asked: dict[str, Any], settings: dict[str, Any]
) -> None:
    """Open the prompt, where somebody types and reads."""
    if screen.as_json or not (sys.stdin.isatty() and screen.console.is_terminal):
        raise click.UsageError("give the query as an argument, or - to read it from standard input")
    from tacit.cli.prompt.loop import converse
    from tacit.cli.questions.remote import opened_answers

    with opened_answers(folder, server, settings["level"]) as (_, answers):
        converse(screen, answers, asked, **settings)
