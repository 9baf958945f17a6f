"""The folder that a command works in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from tacit.cli.kit import Screen

if TYPE_CHECKING:
    from tacit.curator import Curator
    from tacit.curator.catalog import Catalog

CATALOG: Final = "catalog.toml"
LEDGER: Final = "ledger.sqlite"

in_folder = click.option(
    "--folder", default=".", type=click.Path(path_type=Path), help="Where the catalog and the ledger lie."
)


def require_folder(folder: Path) -> None:
    """Refuse a folder that nobody has set up: a mistyped name must not become a second ledger."""
    from tacit.privacy.errors import UnknownName

    if not any((folder / name).exists() for name in (CATALOG, LEDGER)):
        raise UnknownName(
            f"there is neither a catalog nor a ledger in {folder}; make them with: tacit init {folder}",
            name="folder",
            value=str(folder),
        )


def opened_catalog(folder: Path) -> Catalog:
    """Open the catalog of a folder that was set up."""
    from tacit.curator.catalog import Catalog

    require_folder(folder)
    return Catalog.open(folder)


@contextmanager
def opened_curator(folder: Path) -> Iterator[Curator]:
    """Open a folder that was set up; what is doubtful about a setting is said on standard error."""
    import warnings

    from tacit.curator import Curator, PrivacyWarning

    require_folder(folder)
    with warnings.catch_warnings(record=True) as found, Curator(folder) as curator:
        warnings.simplefilter("always", PrivacyWarning)
        yield curator
    for warning in found:
        click.echo(f"tacit: warning: {warning.message}", err=True)


def said(screen: Screen, sentence: str, facts: dict[str, Any]) -> None:
    """Answer with a sentence, or with an object for programs."""
    if screen.as_json:
        screen.show_object(facts)
    else:
        screen.console.print(sentence, soft_wrap=True)


def hinted(screen: Screen, hints: list[str]) -> None:
    """Say what the user may want to know besides, on standard error; programs find it in the object."""
    if not screen.as_json:
        for hint in hints:
            click.echo(f"hint: {hint}", err=True)


def folder_words(folder: Path) -> str:
    """Return the option that names the folder in a command to type next, or nothing for the current one."""
    import shlex

    return "" if str(folder) == "." else f" --folder {shlex.quote(str(folder))}"
