"""Write the pages of docs that are made from the code, or show what it prints: `python -m docs.generate`.

A test fails when a page is not what this script would write.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from docs import import_graph
from docs.sql_reference import sql_page
from docs.worked_examples import worked_pages
from tacit.cli.app import app
from tacit.cli.commands.errors import error_entries

REFERENCE: Final = Path(__file__).resolve().parent / "reference"
HELP_WIDTH: Final = 100
NOTICE: Final = "<!-- Made by `make docs`; change the code instead. -->"


def pages() -> dict[Path, str]:
    """Return the text of every generated page."""
    return {
        REFERENCE / "commands.md": commands_page(),
        REFERENCE / "errors.md": errors_page(),
        REFERENCE / "sql.md": sql_page(NOTICE),
        import_graph.PAGE: import_graph.page(),
        **worked_pages(),
    }


def errors_page() -> str:
    """Tabulate the error tree."""
    rows = "\n".join(
        f"| {entry.code} | `{entry.name}` | `{entry.parent}` | {entry.exit_code} | {entry.meaning} |"
        for entry in error_entries()
    )
    return f"""# Errors

{NOTICE}

Every error that tacit raises on purpose is a `tacit.TacitError` with a code that never changes its meaning. The command
line writes it as one sentence on standard error, `tacit: CODE sentence`, or with `--json` as one object,
`{{"error": {{"code": "CODE", "message": "sentence"}}}}`, and ends with the error's exit code.

| code | error | is a | exit code | meaning |
| --- | --- | --- | --- | --- |
{rows}
"""


def commands_page() -> str:
    """Collect the help of every command."""
    sections = "\n".join(f"## {path}\n\n```\n{text}\n```\n" for path, text in command_helps())
    return f"""# Commands

{NOTICE}

Answers go to standard output, everything else to standard error. With `--json`, before or after the command's name,
the answer is one JSON object. Exit codes: 0 success, 2 usage error, 3 refused (privacy, budget, access or unsupported
SQL), 4 failure; 130 after Ctrl-C and 141 when the reader of the output has gone, as for other Unix tools. Colours
vanish in a pipe and under `NO_COLOR`.

{sections}"""


def command_helps() -> Iterator[tuple[str, str]]:
    """Yield the path and the help of the root command and of each below it."""
    root = click.Context(app, info_name="tacit", terminal_width=HELP_WIDTH, **app.context_settings)
    yield from _helps_below(app, root)


def _helps_below(command: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    yield context.command_path, command.get_help(context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            if child is not None:
                child_context = click.Context(child, info_name=name, parent=context, terminal_width=HELP_WIDTH)
                yield from _helps_below(child, child_context)


def main() -> None:
    """Write every page that has changed and name it."""
    for path, text in pages().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            click.echo(f"wrote {path.relative_to(REFERENCE.parents[1])}")


if __name__ == "__main__":
    main()
