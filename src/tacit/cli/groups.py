"""Commands and groups of commands with the options that all of them share; groups load their commands lazily."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, cast

import click

from tacit.cli.output import FORMATS, Screen


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

    def resolve_command(
        self, context: click.Context, words: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is named; a misspelt one is refused with the name that is near."""
        if words and not context.resilient_parsing and self.get_command(context, words[0]) is None:
            from tacit.privacy.near_names import did_you_mean

            near = did_you_mean(words[0], self.list_commands(context))
            if near and not words[0].startswith("-"):
                raise click.UsageError(f"no such command '{words[0]}'; {near}", context)
        return super().resolve_command(context, words)

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
        return cast("click.Command", module.command)


def add_format_option(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command the option of commands whose answers are tables."""
    function.__click_params__ = [*getattr(function, "__click_params__", []), format_option()]  # type: ignore[attr-defined]
    return function


def format_option() -> click.Option:
    """Return the option of commands whose answers are tables of numbers."""
    return click.Option(
        ["--format"],
        type=click.Choice(FORMATS),
        expose_value=False,
        callback=_choose_format,
        help="Output format; by default a table on a terminal and CSV with a header in a pipe.",
    )


def _common_options() -> list[click.Parameter]:
    return [
        click.Option(
            ["--json"], is_flag=True, expose_value=False, callback=_choose_json, help="Print one JSON object."
        ),
        click.Option(["--debug"], is_flag=True, expose_value=False, help="Show the traceback of an error."),
    ]


def _choose_json(context: click.Context, _option: click.Parameter, chosen: bool) -> None:
    screen = context.ensure_object(Screen)
    screen.as_json = screen.as_json or chosen
    _require_one_format(screen)


def _choose_format(context: click.Context, _option: click.Parameter, chosen: str | None) -> None:
    screen = context.ensure_object(Screen)
    screen.chosen = chosen or ""
    screen.as_json = screen.as_json or chosen == "json"
    _require_one_format(screen)


def _require_one_format(screen: Screen) -> None:
    if screen.as_json and screen.chosen not in ("", "json"):
        raise click.UsageError(f"an answer has one format: --json or --format {screen.chosen}")
