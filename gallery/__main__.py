"""`python -m gallery`: run every script of the folder."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Final

import click

from gallery.common import PLOTS, Exhibit, show

NOT_SCRIPTS: Final = frozenset({"__init__", "__main__", "common"})


def names() -> list[str]:
    """Return the names of all scripts."""
    return sorted(path.stem for path in Path(__file__).parent.glob("*.py") if path.stem not in NOT_SCRIPTS)


def exhibit(name: str, small: bool) -> Exhibit:
    """Run one script."""
    made: Exhibit = import_module(f"gallery.{name}").run(small)
    return made


@click.command()
@click.argument("folder", default=PLOTS, type=click.Path(file_okay=False, path_type=Path))
@click.option("--small", is_flag=True, help="End within a minute, with fewer people and runs.")
def main(folder: Path, small: bool) -> None:
    """Run every script and write the plots into FOLDER."""
    for name in names():
        show(exhibit(name, small), folder)
    click.echo(f"plots are in {folder}", err=True)


if __name__ == "__main__":
    main(prog_name="python -m gallery")
