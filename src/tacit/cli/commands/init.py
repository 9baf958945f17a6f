"""`tacit init`: make a folder with an empty catalog and an empty ledger."""

from __future__ import annotations

from pathlib import Path

import click

from tacit.cli.connections import CATALOG, LEDGER
from tacit.cli.groups import Command
from tacit.cli.options import folder_flag
from tacit.cli.output import Screen


@click.command("init", cls=Command)
@click.argument("folder", default=".", type=click.Path(path_type=Path))
@click.pass_obj
def command(screen: Screen, folder: Path) -> None:
    """Make a folder with an empty catalog and an empty ledger.

    The catalog says what is public about your tables, the ledger what was spent. What is there already is never
    written over.
    """
    _require_new_folder(folder)
    from tacit.curator.catalog import Catalog
    from tacit.curator.catalog_file import make_private, warning_if_open
    from tacit.ledger import Ledger

    try:
        make_private(folder)
    except OSError as error:
        raise click.UsageError(f"{folder} cannot be made: {error.strerror}") from None
    Ledger.open(folder).close()
    Catalog.create(folder)
    if sentence := warning_if_open(folder):
        click.echo(f"tacit: warning: {sentence}", err=True)
    words = folder_flag(folder)
    following = [
        f"tacit table add visits visits.parquet{words}",
        f"tacit budget set visits --epsilon 1 --delta 1e-7{words}",
    ]
    if screen.as_json:
        files = {"catalog": str(folder / CATALOG), "ledger": str(folder / LEDGER)}
        screen.show_object({"folder": str(folder), **files, "next": following})
        return
    sentence = f"made {folder / CATALOG}, for what is public, and {folder / LEDGER}, for what is spent"
    screen.console.print(sentence, soft_wrap=True)
    screen.console.print("next, register a table with its unit, and set its budget:")
    for line in following:
        screen.console.print(f"  {line}", soft_wrap=True)


def _require_new_folder(folder: Path) -> None:
    from tacit.privacy import texts
    from tacit.privacy.errors import NameTaken

    texts.path("folder", folder)
    if folder.exists() and not folder.is_dir():
        raise NameTaken(f"{folder} is a file; choose another name for the folder", name="folder", value=str(folder))
    for name in (CATALOG, LEDGER):
        if (folder / name).exists():
            raise NameTaken(f"{folder / name} is there already; nothing was changed", name="folder", value=str(folder))
