"""`tacit completion`: the shell script that completes commands and options."""

from __future__ import annotations

from typing import Final

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

from tacit.cli.groups import Command
from tacit.cli.output import Screen

SHELLS: Final[dict[str, type[ShellComplete]]] = {"bash": BashComplete, "fish": FishComplete, "zsh": ZshComplete}


@click.command("completion", cls=Command)
@click.argument("shell", type=click.Choice(list(SHELLS)))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the completion script for a shell.

    Add the line for your shell to its start-up file:

    \b
      bash   eval "$(tacit completion bash)"
      fish   tacit completion fish | source
      zsh    eval "$(tacit completion zsh)"
    """
    script = SHELLS[shell](context.find_root().command, {}, "tacit", "_TACIT_COMPLETE").source()
    screen = context.ensure_object(Screen)
    if screen.as_json:
        screen.show_object({"shell": shell, "script": script})
    else:
        click.echo(script)
