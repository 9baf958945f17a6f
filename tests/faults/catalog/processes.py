"""A process that adds tables to a shared catalog: `python -m tests.faults.catalog.processes FOLDER NAME COUNT`."""

import sys
from pathlib import Path

from tacit.curator.catalog import Catalog
from tacit.engines.protocol import Source
from tacit.privacy.tables import Column, Kind, Table


def main(folder: Path, name: str, count: int) -> None:
    """Add tables, one after another, while others do the same."""
    catalog = Catalog.open(folder)
    for number in range(count):
        catalog.add(Table(f"{name}{number}", (Column("x", Kind.TEXT),)), Source("csv", str(folder / f"{name}.csv")))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
