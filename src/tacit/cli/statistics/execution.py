"""A statistic from what was typed to the answer on the screen, for a table of the folder, a file, or a server's table.

Nothing is charged before everything that was typed has been read, the columns have been found, and the path of the plot
has been checked. The answer is shown before it is plotted, so that a full disk loses no answer.

A registered table is paid from its budget, and a repeated question costs nothing. A file has no budget: it is asked in
a temporary folder (`tacit.curator.file_table`), and nothing records the charge. A file that the folder knows as a table
is refused: asking it beside its budget would be a way around the budget.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from tacit.cli.confirmation import confirm_cost
from tacit.cli.connections import is_set_up, open_catalog, open_client, open_curator, warnings_on_stderr
from tacit.cli.options import ServerAddress, folder_flag
from tacit.cli.output import Fact, Screen, progress_bar
from tacit.cli.statistics.parsing import LEARN, stated_facts
from tacit.cli.statistics.presentation import Presentation
from tacit.curator.file_table import FILES, OneTimeBudget, open_file_table
from tacit.curator.registration import column_named
from tacit.curator.table_sources import ADDRESSES, SUFFIXES, describe, source_of
from tacit.engines.protocol import Source
from tacit.privacy.errors import InvalidInput, NotAllowed, NotInCatalog, WrongKind
from tacit.privacy.near_names import did_you_mean

if TYPE_CHECKING:
    from tacit import Cost
    from tacit.cli.statistics.registry import Statistic
    from tacit.client import Client
    from tacit.client.answers import RemoteAnswer, RemotePreview
    from tacit.client.resources import RemoteColumn, RemoteTable
    from tacit.curator import Curator
    from tacit.engines.protocol import Progress
    from tacit.privacy.tables import Table
    from tacit.stats import Answer, PreparedStatistic, RegisteredTable, TableColumn
    from tacit.stats.releases import StatisticPreview

NOT_RECORDED: Final = (
    "nothing records this charge, and each further question about the file adds to what is known about its people; to "
    "keep account, register it: {}"
)


@dataclass(frozen=True)
class TableSpec:
    """Which table is meant, as it is typed."""

    table: str
    folder: Path
    server: ServerAddress | None
    unit: str | None
    each_row: bool
    columns: tuple[str, ...]
    """Every column that the statistic is about."""
    budget: OneTimeBudget


class LocalTable:
    """A table of the folder, or a file, that is ready to be asked."""

    is_remote = False

    def __init__(
        self, table: RegisteredTable, curator: Curator | None = None, *, each_row: bool = False, advice: str = ""
    ) -> None:
        self._table, self._curator = table, curator
        self.each_row = each_row
        self.advice = advice
        """For a file: how its charges would be recorded."""
        self._prepared: PreparedStatistic | None = None

    @property
    def is_recorded(self) -> bool:
        """Whether a ledger records what is charged."""
        return self._curator is not None

    @property
    def declared(self) -> Table:
        """What is public about the table."""
        return self._table.table

    def column(self, name: str) -> TableColumn:
        """Return a column for statistics."""
        return self._table[name]

    def prepare(self, entry: Statistic, columns: list[Any], asked: Mapping[str, Any]) -> None:
        """Plan a statistic; nothing is charged."""
        from tacit import stats

        self._prepared = stats.prepare(entry.call, stats, entry, columns, asked)

    def preview(self) -> StatisticPreview:
        """Return what the prepared statistic would cost."""
        assert self._prepared is not None
        return self._prepared.preview()

    def release(self) -> Answer:
        """Charge and compute the prepared statistic."""
        assert self._prepared is not None
        return self._prepared.release()

    def remaining(self, analyst: str | None) -> dict[str, Cost]:
        """Return what is left of the data set's budget; nothing for a file."""
        name = self.declared.dataset
        return {} if self._curator is None else {name: self._curator.budget(name, analyst).remaining()}


class ServerTable:
    """A table of a server, ready to be asked; the token says who asks."""

    is_remote = True
    is_recorded = True
    each_row = False
    advice = ""

    def __init__(self, client: Client, name: str, level: float) -> None:
        self._client, self._level = client, level
        self._table = _remote_table(client, name)
        self._left: dict[str, Cost] = {}
        self._call: Callable[[Any, Mapping[str, Any]], Any] | None = None

    @property
    def declared(self) -> Table:
        """What is public about the table."""
        return self._table.table

    def column(self, name: str) -> RemoteColumn:
        """Return a column for statistics."""
        return self._table[name]

    def prepare(self, entry: Statistic, columns: list[Any], asked: Mapping[str, Any]) -> None:
        """Keep what will be asked; the server plans it."""
        known = {name: value for name, value in asked.items() if name != "progress"}
        self._call = lambda functions, run: entry.call(functions, entry, columns, {**known, **run})

    def preview(self) -> RemotePreview:
        """Return what the prepared statistic would cost."""
        assert self._call is not None
        found: RemotePreview = self._call(self._client.stats.previews, {})
        return found

    def release(self) -> Answer:
        """Charge and compute the prepared statistic."""
        assert self._call is not None
        answer: RemoteAnswer = self._call(self._client.stats, {"level": self._level})
        self._left = answer.remaining
        return answer

    def remaining(self, _analyst: str | None) -> dict[str, Cost]:
        """Return what is left after the answer to whoever asked."""
        return self._left


def _remote_table(client: Client, name: str) -> RemoteTable:
    """Return a table of a server; a misspelt name is refused with the one that is near, of those that may be seen."""
    try:
        return client.table(name)
    except NotInCatalog as error:
        near = did_you_mean(name, [one.name for one in client.tables()])
        raise NotInCatalog(f"{error.message}; {near}" if near else error.message, name="table", value=name) from error


@contextmanager
def open_table(spec: TableSpec, level: float) -> Iterator[LocalTable | ServerTable]:
    """Open the table that is meant; what is made for a file is deleted afterwards.

    Intervals of a server's answers have `level`.
    """
    if spec.server is not None:
        if spec.unit is not None or spec.each_row:
            raise click.UsageError(f"{spec.table} is a table of the server, which has its unit; leave --unit out")
        with open_client(spec.server) as client:
            yield ServerTable(client, spec.table, level)
        return
    if not is_registered(spec) and is_file(spec.table):
        with _open_file(spec) as table:
            yield table
        return
    if spec.unit is not None or spec.each_row:
        raise click.UsageError(f"{spec.table} is not a file: a registered table has its unit; leave --unit out")
    with open_curator(spec.folder) as curator:
        yield LocalTable(curator.table(spec.table), curator)


def is_registered(spec: TableSpec) -> bool:
    """Return whether the folder has a table of this name."""
    return is_set_up(spec.folder) and spec.table.lower() in open_catalog(spec.folder).tables


def is_file(text: str) -> bool:
    """Return whether a text is meant as a file, or as the address of a table in a database."""
    path = text.partition("#")[0].lower()
    return text.startswith(tuple(ADDRESSES)) or path.endswith(tuple(SUFFIXES)) or os.path.exists(text)


@contextmanager
def _open_file(spec: TableSpec) -> Iterator[LocalTable]:
    source = _source(spec)
    described = describe(source)
    unit = None if spec.unit is None else column_named(spec.table, described, spec.unit)
    wanted = [column_named(spec.table, described, name) for name in spec.columns]
    for one in wanted:
        if one.kind is None:
            raise WrongKind(f"{one.name} is of the type {one.type}, of which there are no statistics")
    columns = list(dict.fromkeys([*([] if unit is None else [unit]), *wanted]))
    advice = NOT_RECORDED.format(_registration(spec))
    with (
        interrupt_on_signals(),
        warnings_on_stderr(),
        open_file_table(_name(spec.table), source, columns, None if unit is None else unit.name, spec.budget) as table,
    ):
        yield LocalTable(table, each_row=spec.each_row, advice=advice)


@contextmanager
def interrupt_on_signals() -> Iterator[None]:
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


def _source(spec: TableSpec) -> Source:
    """Return where the rows of a file are, or refuse one whose charges belong to a budget."""
    source = source_of(spec.table, folder=spec.folder)
    if (spec.unit is None) == (not spec.each_row):
        raise click.UsageError(
            f"who is protected in {spec.table}? give --unit COLUMN, whose values are the people, or --each-row, if "
            "every row is a person" + ("; not both" if spec.each_row else "")
        )
    if is_set_up(spec.folder):
        catalog = open_catalog(spec.folder)
        for table in catalog.tables.values():
            if replace(catalog.source(table.name), csv=()) == source:
                raise NotAllowed(
                    f"{spec.table} is the table {table.name} of this folder, and its budget pays",
                    accepted=f"tacit stats ... {shlex.quote(table.name)}, without --unit",
                )
    if spec.budget.rho is not None and not spec.budget.delta:
        raise click.UsageError("--rho for a file needs --delta, at which it is converted to epsilon")
    if spec.each_row and source.form not in FILES:
        raise InvalidInput("--each-row is for files; name the column of the people with --unit")
    return source


def _name(text: str) -> str:
    """Return what a file is called as a table."""
    inner = text.partition("#")[2] or Path(text).name.partition(".")[0]
    return re.sub(r"\W+", "_", inner.rpartition(".")[2]).strip("_") or "rows"


def _registration(spec: TableSpec) -> str:
    """Return the command that registers a file."""
    protects = " --each-row" if spec.unit is None else f" --unit {shlex.quote(spec.unit)}"
    return f"tacit table add {_name(spec.table)} {shlex.quote(spec.table)}{protects}{folder_flag(spec.folder)}"


@dataclass(frozen=True)
class StatisticQuery:
    """A statistic as it was typed."""

    statistic: Statistic
    table: str
    columns: tuple[str, ...]
    folder: Path
    server: ServerAddress | None
    unit: str | None
    each_row: bool
    rows_per_unit: int | None
    epsilon: float | None
    rho: float | None
    delta: float | None
    by: tuple[str, ...]
    keys: tuple[str, ...]
    bounds: tuple[str, ...]
    analyst: str | None
    purpose: str
    yes: bool
    timeout: float | None
    level: float
    card: bool
    plot: Path | None
    own: dict[str, Any]

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.rho is None):
            raise click.UsageError("state a price: --epsilon or --rho")
        if self.each_row and self.rows_per_unit is not None:
            raise click.UsageError("with --each-row a person has one row; leave --rows-per-unit out")

    @property
    def spec(self) -> TableSpec:
        """Which table is meant."""
        budget = OneTimeBudget(self.epsilon, self.rho, self.delta or 0.0)
        columns = tuple(dict.fromkeys([*self.columns, *self.by]))
        return TableSpec(self.table, self.folder, self.server, self.unit, self.each_row, columns, budget)

    @property
    def per_unit(self) -> int | None:
        """How many rows of a unit are counted, if that is said; a test takes one."""
        return 1 if self.rows_per_unit is None and self.statistic.is_test else self.rows_per_unit

    @property
    def asked(self) -> dict[str, Any]:
        """What every statistic can be told."""
        said = {
            "epsilon": self.epsilon,
            "rho": self.rho,
            "rows_per_unit": self.per_unit,
            "analyst": self.analyst,
            "purpose": self.purpose or None,
            "timeout_s": self.timeout,
        }
        return {name: value for name, value in said.items() if value is not None}


def run_statistic(screen: Screen, query: StatisticQuery) -> None:
    """Ask a statistic and show its answer."""
    with open_table(query.spec, query.level) as opened:
        _check(query, opened)
        with progress_bar(screen) as progress:
            _prepare(query, opened, progress)
            if opened.is_recorded and not query.yes:
                confirm_cost(screen, opened.preview(), query.analyst)
            answer = opened.release()
        _shown(query, opened, answer).show(screen)
        if query.plot is not None:
            answer.plot().save(query.plot)
            if screen.has_reader:
                screen.show_facts([Fact("plot", str(query.plot))])
    if query.card and not screen.as_json:
        click.echo(answer.card, err=not screen.has_reader)


def _check(query: StatisticQuery, opened: LocalTable | ServerTable) -> None:
    """Refuse what is said of a file that only a ledger can keep, and of a table what its budget decides."""
    if opened.is_remote:
        if query.analyst is not None:
            raise click.UsageError("the token says who asks a server; leave --analyst out")
        if query.own.get("picks"):
            raise click.UsageError("a server answers all ranges at once; leave --range and --below out")
    if opened.is_recorded:
        if query.delta is not None:
            raise click.UsageError("the budget of a registered table has its own delta; leave --delta out")
        return
    for name, value in (("--analyst", query.analyst), ("--purpose", query.purpose)):
        if value:
            raise click.UsageError(f"no ledger keeps questions about a file; leave {name} out, or register the table")


def _prepare(query: StatisticQuery, opened: LocalTable | ServerTable, progress: Progress | None) -> None:
    """State what was said of the columns, and plan the statistic."""
    entry = query.statistic
    facts, learnt = stated_facts(opened.declared, query.columns, query.by, query.bounds, query.keys)

    def column(name: str) -> Any:
        found = opened.column(name)
        known = found.declared.name
        return found.stated(facts[known]) if known in facts else found

    columns, groups = (list(map(column, names)) for names in (query.columns, query.by))
    own = {name: value for name, value in query.own.items() if value is not None}
    asked = {**own, **_learning(entry, columns, learnt), **query.asked, "progress": progress}
    if groups:
        asked["by"] = groups[0] if len(groups) == 1 else groups
    opened.prepare(entry, columns, asked)


def _learning(entry: Statistic, columns: Sequence[TableColumn], learnt: Sequence[str]) -> dict[str, str]:
    """Return the keywords that ask for bounds to be learnt."""
    if learnt and not entry.learns:
        raise click.UsageError(f"{entry.name} does not learn bounds; learn them first: tacit stats bounds")
    keywords = dict(zip((column.declared.name for column in columns), entry.bounds, strict=False))
    for name in learnt:
        if name not in keywords:
            raise click.UsageError(f"{name} is grouped by: it has keys, and no bounds that could be learnt")
    return {keywords[name]: LEARN for name in learnt}


def _shown(query: StatisticQuery, opened: LocalTable | ServerTable, answer: Answer) -> Presentation:
    table = opened.declared
    unit = table.unit.column if table.unit is not None else ""
    rows = query.per_unit or table.limits.rows_per_unit
    is_numbered = rows == 1 and unit.rstrip("_") == "row"  # registered with --each-row: nothing can be left out
    limit = "1 row" if rows == 1 else f"{rows:,} rows"
    counted = f"at most {limit} of each {unit}; further rows are left out"
    return Presentation(
        answer,
        query.level,
        query.table,
        query.columns,
        counted="" if opened.each_row or is_numbered else counted,
        protected="each row, as one person" if opened.each_row else f"each {unit}",
        remaining=opened.remaining(query.analyst),
        advice=opened.advice,
        as_bars=query.statistic.as_bars,
        plot=query.plot,
    )
