"""`tacit stats`: one statistic of a table, with noise, charged to its budget."""

from __future__ import annotations

import click

from tacit.cli.groups import Group
from tacit.cli.output import Screen


class StatisticsGroup(Group):
    """A group whose commands are the entries of the registry of statistics."""

    def list_commands(self, context: click.Context) -> list[str]:
        from tacit.cli.statistics.registry import STATISTICS

        return [one.name for one in STATISTICS]

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        from tacit.cli.statistics.command import command_of
        from tacit.cli.statistics.registry import statistic

        entry = statistic(name)
        return None if entry is None else command_of(entry)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """List the statistics by family."""
        from tacit.cli.statistics.registry import STATISTICS

        for family in dict.fromkeys(one.family for one in STATISTICS):
            with formatter.section(family):
                formatter.write_dl([(one.name, one.explanation) for one in STATISTICS if one.family == family])


@click.group("stats", cls=StatisticsGroup, invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> None:
    """Compute a statistic with noise and charge its cost.

    Numbers are shown with the half-width of their interval. Repeating a statistic costs nothing.

    \b
      tacit stats mean visits age --by sex --rows-per-unit 3 --epsilon 0.5
      tacit stats mean visits.csv age --bounds 0:120 --each-row --epsilon 0.5
    """
    if context.invoked_subcommand is not None:
        return
    screen = context.ensure_object(Screen)
    if not screen.as_json:
        click.echo(context.get_help())
        return
    from tacit.cli.statistics.registry import STATISTICS

    screen.show_object(
        {"statistics": [{"name": one.name, "about": one.family, "explanation": one.explanation} for one in STATISTICS]}
    )
