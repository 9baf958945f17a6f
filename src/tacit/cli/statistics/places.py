"""The table that a statistic is about: one that is registered in the folder, or a file.

A registered table is paid from its budget, and a repeated question costs nothing. A file has no budget: it is asked in
a folder that is thrown away afterwards, with a budget of exactly what was said, and nothing remembers the charge. A
file that the folder knows as a table is refused: asking it beside its budget would be a way around it.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import click

from tacit.cli.catalog.place import opened_catalog, opened_curator
from tacit.curator import Curator
from tacit.curator.sources import ADDRESSES, SUFFIXES, describe, source_of
from tacit.curator.stating import column_named, table_of
from tacit.engines.protocol import Described, Source
from tacit.ledger import Budget
from tacit.privacy.errors import InvalidInput, NotAllowed, WrongKind
from tacit.privacy.tables import Kind, Limits, Table
from tacit.stats import Answer, RegisteredTable
from tacit.stats.asking import Asked, protected
from tacit.stats.plan import Plan

ONE_ROW: Final = Limits(rows_per_unit=1)
FORGOTTEN: Final = (
    "nothing remembers this charge, and each further question about the file adds to what is known of its people; "
    "to keep account, register it: {}"
)


@dataclass(frozen=True)
class Funding:
    """What a question about a file may cost; of epsilon and rho one is said."""

    epsilon: float | None
    rho: float | None
    delta: float

    @property
    def cap(self) -> float:
        """The epsilon of a budget that this fits into, and nothing more."""
        if self.rho is None:
            assert self.epsilon is not None
            return self.epsilon
        if not self.delta:
            raise click.UsageError("a file has no budget whose delta --rho could be held against; say --delta, too")
        from tacit.accounting.conversions import epsilon_of_rho
        from tacit.privacy.numbers import positive

        return epsilon_of_rho(float(positive("rho", self.rho)), 0.79 * self.delta)  # of delta, 8/10 are for this


@dataclass(frozen=True)
class Where:
    """Which table is meant, as it is typed."""

    table: str
    folder: Path
    unit: str | None
    each_row: bool
    columns: tuple[str, ...]
    """Every column that the statistic is about."""
    funding: Funding


class EachRow(RegisteredTable):
    """A file each row of which is a person: rows are numbered when the first statistic is answered, and not before."""

    def __init__(self, table: Table, budget: Budget, numbered: Callable[[], RegisteredTable]) -> None:
        self.table = table
        self._budget, self._numbered = budget, numbered

    @property
    def budget(self) -> Budget:
        """The budget of its data set."""
        return self._budget

    def answered(self, plan: Plan, asked: Asked, per_unit: int) -> Answer:
        """Answer a plan about rows."""
        found = self._numbered().answered(plan, asked, per_unit)
        words = protected(self.budget, per_unit, by_unit=False)
        return Answer(found.plan, found.noisy, found.cost, found.permit, words)


@dataclass
class Place:
    """A table that is ready to be asked."""

    curator: Curator
    table: RegisteredTable
    each_row: bool = False
    advice: str = ""
    """For a file: how its charges would be remembered."""

    @property
    def is_remembered(self) -> bool:
        """Whether a ledger keeps what is charged."""
        return not self.advice


@contextmanager
def opened_place(where: Where) -> Iterator[Place]:
    """Open the table that is meant; what is made for a file is gone afterwards."""
    if not is_registered(where) and is_file(where.table):
        with _opened_file(where) as place:
            yield place
        return
    if where.unit is not None or where.each_row:
        raise click.UsageError(f"{where.table} is no file: a registered table knows its unit; leave --unit out")
    with opened_curator(where.folder) as curator:
        yield Place(curator, curator.table(where.table))


def is_registered(where: Where) -> bool:
    """Return whether the folder has a table of this name."""
    if not any((where.folder / name).exists() for name in ("catalog.toml", "ledger.sqlite")):
        return False
    return where.table.lower() in opened_catalog(where.folder).tables


def is_file(text: str) -> bool:
    """Return whether a text is meant as a file, or as the address of a table in a database."""
    place = text.partition("#")[0].lower()
    return text.startswith(tuple(ADDRESSES)) or place.endswith(tuple(SUFFIXES)) or os.path.exists(text)


@contextmanager
def _opened_file(where: Where) -> Iterator[Place]:
    from tempfile import TemporaryDirectory

    source = _source(where)
    described = describe(source)
    unit = None if where.unit is None else column_named(where.table, described, where.unit).name
    wanted = [column_named(where.table, described, name) for name in where.columns]
    for one in wanted:
        if one.kind is None:
            raise WrongKind(f"{one.name} is of the type {one.type}, of which there are no statistics")
    own = [] if unit is None else [column_named(where.table, described, unit)]
    with (
        cleaned_up_when_stopped(),
        TemporaryDirectory(prefix="tacit-") as folder,
        opened_budget(Path(folder), where) as curator,
    ):
        columns = list(dict.fromkeys([*own, *wanted]))
        place = _registered(curator, where, source, columns, unit)
        place.advice = FORGOTTEN.format(_registering(where, source))
        yield place


@contextmanager
def cleaned_up_when_stopped() -> Iterator[None]:
    """Let a closed terminal or a kill end the command as Ctrl-C does: copies of rows must not outlive it."""
    import signal
    import threading

    def stop(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    names = [name for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():
        names = []
    before = {getattr(signal, name): signal.signal(getattr(signal, name), stop) for name in names}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def opened_budget(folder: Path, where: Where) -> Iterator[Curator]:
    """Open an empty folder with a budget for one question about a file."""
    (folder / "catalog.toml").touch()
    with opened_curator(folder) as curator:
        curator.set_budget(_name(where.table), where.funding.cap, where.funding.delta, epsilon_min=0)
        yield curator


def _source(where: Where) -> Source:
    """Return where the rows of a file are, or refuse one whose charges belong to a budget."""
    if (where.unit is None) == (not where.each_row):
        raise click.UsageError(
            f"say whom {where.table} protects: --unit COLUMN, whose values are the people, or --each-row, if every row "
            "is a person of its own" + ("; not both" if where.each_row else "")
        )
    source = source_of(where.table, folder=where.folder)
    if any((where.folder / name).exists() for name in ("catalog.toml", "ledger.sqlite")):
        catalog = opened_catalog(where.folder)
        for table in catalog.tables.values():
            if replace(catalog.source(table.name), csv=()) == source:
                raise NotAllowed(
                    f"{where.table} is the table {table.name} of this folder, and its budget pays",
                    accepted=f"tacit stats ... {shlex.quote(table.name)}, without --unit",
                )
    if where.each_row and source.form not in ("csv", "parquet", "duckdb"):
        raise InvalidInput("every row can be a person in files only; name the column of the people with --unit")
    return source


def _registered(
    curator: Curator, where: Where, source: Source, columns: Sequence[Described], unit: str | None
) -> Place:
    """State the file as a table of the folder, with the columns that are asked about and no others."""
    name = _name(where.table)
    if unit is not None:
        curator.register(table_of(name, columns, unit=unit), source)
        return Place(curator, curator.table(name))
    number = "row"
    while number in {one.name.lower() for one in columns}:
        number += "_"

    def numbered_rows() -> RegisteredTable:
        from tacit.engines.duckdb.numbering import numbered

        as_declared = table_of(name, columns, unit=None, public=True)
        rows = numbered(source, as_declared, number, curator.folder / "rows.parquet")
        curator.register(table, rows)
        return curator.table(name)

    numbers = Described(number, Kind.INTEGER, "BIGINT")
    table = table_of(name, [numbers, *columns], unit=number, limits=ONE_ROW)  # no two rows have one number
    return Place(curator, EachRow(table, curator.budget(name), numbered_rows), each_row=True)


def _name(text: str) -> str:
    """Return what a file is called as a table."""
    inner = text.partition("#")[2] or Path(text).name.partition(".")[0]
    return re.sub(r"\W+", "_", inner.rpartition(".")[2]).strip("_") or "rows"


def _registering(where: Where, source: Source) -> str:
    protects = f" --unit {shlex.quote(where.unit)}" if where.unit is not None else " --unit COLUMN"
    return f"tacit table add {_name(where.table)} {shlex.quote(where.table)}{protects}"
