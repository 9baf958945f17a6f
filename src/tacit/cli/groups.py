"""Command and group classes with the options that all commands share; groups import their commands lazily."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, cast

import click

from tacit.cli.output import FORMATS, Screen


class Command(click.Command):
    """A command with the shared options."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.params += _common_options()


class Group(click.Group):
    """A group of commands with the shared options; without a subcommand it shows its help."""

    command_class = Command

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.params += _common_options()

    def resolve_command(
        self, context: click.Context, words: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the named command; raise UsageError with the nearest name for a misspelt one."""
        if words and not context.resilient_parsing and self.get_command(context, words[0]) is None:
            from tacit.privacy.texts import did_you_mean

            near = did_you_mean(words[0], self.list_commands(context))
            if near and not words[0].startswith("-"):
                raise click.UsageError(f"no such command '{words[0]}'; {near}", context)
        return super().resolve_command(context, words)

    def parse_args(self, context: click.Context, words: list[str]) -> list[str]:
        """Parse the words after the group's name; show the help if there are none."""
        if not words and not context.resilient_parsing:
            click.echo(context.get_help())
            context.exit()
        return super().parse_args(context, words)


class FolderGroup(Group):
    """A group whose commands are the modules of one package, each with a `command`, imported on use."""

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
    """Add --format to a command."""
    function.__click_params__ = [*getattr(function, "__click_params__", []), format_option()]  # type: ignore[attr-defined]
    return function


def format_option() -> click.Option:
    """Return the option --format of commands whose answers are tables."""
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
        click.Option(["--debug"], is_flag=True, expose_value=False, help="Show the traceback of errors."),
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
        raise click.UsageError(f"give --json or --format {screen.chosen}, not both")
