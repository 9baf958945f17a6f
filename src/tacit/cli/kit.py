"""What every command is made of: the common options, lazily loaded groups, and the screen that shows an answer.

A command takes its `Screen` with `click.pass_obj` and hands it the answer; the options and the place where the output
goes decide whether that becomes a table, plain lines or JSON.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import click

if TYPE_CHECKING:
    from rich.console import Console


FACTS_WIDTH_MAX: Final = 100
LABEL_WIDTH: Final = 17


class Fact(NamedTuple):
    """One line of an answer: a label, what is said, and whether that is what was asked for."""

    label: str
    text: str
    is_answer: bool = False


@dataclass
class Screen:
    """Where a command's answer goes: a terminal, a pipe, or a program that reads JSON."""

    as_json: bool = False

    @cached_property
    def console(self) -> Console:
        """The place for text with colour and boxes, which vanish by themselves in a pipe or under NO_COLOR."""
        from tacit.cli.console import AnswerConsole

        return AnswerConsole()

    def show_object(self, facts: Any) -> None:
        """Write `facts` as one JSON object."""
        click.echo(json.dumps(facts, ensure_ascii=False, allow_nan=False))

    def show_table(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Write a table: ruled on a terminal, one line a row with tabs between the fields in a pipe."""
        if not self.console.is_terminal:
            for row in rows:
                click.echo("\t".join(row))
            return
        from rich.box import SIMPLE_HEAD
        from rich.table import Table
        from rich.text import Text

        table = Table(*columns, box=SIMPLE_HEAD, header_style="bold")
        for row in rows:
            table.add_row(*map(Text, row))
        self.console.print(table)

    def show_facts(self, facts: Sequence[Fact]) -> None:
        """Write facts: in two columns on a terminal, one line a fact with a tab after its label in a pipe."""
        if not self.console.is_terminal:
            for fact in facts:
                click.echo(f"{fact.label}\t{fact.text}")
            return
        from rich.text import Text

        width = min(self.console.width, FACTS_WIDTH_MAX) - LABEL_WIDTH - 1
        self.console.print()
        for fact in facts:
            label = f" {fact.label:{LABEL_WIDTH - 1}}"
            for line in Text(fact.text, "bold cyan" if fact.is_answer else "").wrap(self.console, max(width, 20)):
                self.console.print(Text.assemble((label, "dim"), line), soft_wrap=True)
                label = " " * LABEL_WIDTH
        self.console.print()


class Command(click.Command):
    """A command with the options that all of them share."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.params += _common_options()


class Group(click.Group):
    """A group of commands with the options that all of them share; with no word after its name it shows its help."""

    command_class = Command

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.params += _common_options()

    def parse_args(self, context: click.Context, words: list[str]) -> list[str]:
        """Read the words after the group's name; with none there is nothing to do but to help."""
        if not words and not context.resilient_parsing:
            click.echo(context.get_help())
            context.exit()
        return super().parse_args(context, words)


class FolderGroup(Group):
    """A group whose commands are the modules of one package, each with a `command`, imported when it is needed."""

    def __init__(self, *arguments: Any, package: str, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.package = package

    def list_commands(self, context: click.Context) -> list[str]:
        folder = import_module(self.package).__path__
        return sorted(module.name.replace("_", "-") for module in iter_modules(folder))

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in self.list_commands(context):
            return None
        module = import_module(f"{self.package}.{name.replace('-', '_')}")
        return cast(click.Command, module.command)


def _common_options() -> list[click.Parameter]:
    return [
        click.Option(
            ["--json"], is_flag=True, expose_value=False, callback=_choose_json, help="Answer with one JSON object."
        ),
        click.Option(["--debug"], is_flag=True, expose_value=False, help="Show the traceback of an error."),
    ]


def _choose_json(context: click.Context, _option: click.Parameter, chosen: bool) -> None:
    screen = context.ensure_object(Screen)
    screen.as_json = screen.as_json or chosen
