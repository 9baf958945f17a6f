"""`python -m gallery [EXHIBIT]...`: run scripts of the folder, by default all."""

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
@click.argument("exhibits", nargs=-1, type=click.Choice(names()), metavar="[EXHIBIT]...")
@click.option("--folder", default=PLOTS, type=click.Path(file_okay=False, path_type=Path), help="Folder of the plots.")
@click.option("--small", is_flag=True, help="End within a minute, with fewer people and runs.")
def main(exhibits: tuple[str, ...], folder: Path, small: bool) -> None:
    """Run the scripts of the exhibits, by default all, and write their plots into a folder."""
    for name in exhibits or names():
        show(exhibit(name, small), folder, is_small=small)
    click.echo(f"plots are in {folder}", err=True)


if __name__ == "__main__":
    main(prog_name="python -m gallery")
