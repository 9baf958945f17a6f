"""`tacit init`: create a folder with an empty catalog and an empty ledger."""

from __future__ import annotations

from pathlib import Path

import click

from tacit.cli.backends import CATALOG, LEDGER
from tacit.cli.groups import Command
from tacit.cli.options import folder_flag
from tacit.cli.output import Screen


@click.command("init", cls=Command)
@click.argument("folder", default=".", type=click.Path(path_type=Path))
@click.pass_obj
def command(screen: Screen, folder: Path) -> None:
    """Create a folder with an empty catalog and an empty ledger.

    The catalog describes your tables, the ledger records what is charged to budgets. Existing files are not
    overwritten.
    """
    _require_new_folder(folder)
    from tacit.curator.catalog import Catalog
    from tacit.curator.locked_file import make_private_folder, open_folder_warning
    from tacit.ledger import Ledger

    try:
        make_private_folder(folder)
    except OSError as error:
        raise click.UsageError(f"{folder} cannot be created: {error.strerror}") from None
    Ledger.open(folder).close()
    Catalog.create(folder)
    if sentence := open_folder_warning(folder):
        click.echo(f"tacit: warning: {sentence}", err=True)
    words = folder_flag(folder)
    following = [
        f"tacit table add visits visits.csv --unit COLUMN{words}",
        f"tacit budget set visits --epsilon 1 --delta 1e-7{words}",
    ]
    if screen.as_json:
        files = {"catalog": str(folder / CATALOG), "ledger": str(folder / LEDGER)}
        screen.show_object({"folder": str(folder), **files, "next": following})
        return
    sentence = f"created {folder / CATALOG} (tables) and {folder / LEDGER} (budgets)"
    screen.console.print(sentence, soft_wrap=True)
    screen.console.print("next, register a table, whose COLUMN identifies people, and set its budget:")
    for line in following:
        screen.console.print(f"  {line}", soft_wrap=True)


def _require_new_folder(folder: Path) -> None:
    from tacit.privacy import texts
    from tacit.privacy.errors import NameTaken

    texts.path("folder", folder)
    if folder.exists() and not folder.is_dir():
        raise NameTaken(f"{folder} is a file; give another name for the folder", name="folder", value=str(folder))
    for name in (CATALOG, LEDGER):
        if (folder / name).exists():
            raise NameTaken(f"{folder / name} already exists; nothing was changed", name="folder", value=str(folder))
