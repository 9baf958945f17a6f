"""Run one statistic of a registered table, a file, or a table of a server, and show its answer.

Nothing is charged before all arguments are parsed, the columns are found and the path of the plot is checked. The
answer is shown before it is plotted, so that a full disk loses no answer.

A registered table is charged to its budget, and a repeated statistic costs nothing. A file has no budget: it is
registered in a temporary folder (`tacit.curator.file_table`), and its charges are not recorded. A file that is a table
of the folder is refused, because that would bypass its budget.
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

from tacit.cli.backends import is_set_up, open_catalog, open_client, open_curator, warnings_on_stderr
from tacit.cli.options import ServerAddress, confirm_cost, folder_flag
from tacit.cli.output import Fact, Screen, progress_bar, writing_answer
from tacit.cli.statistics.parsing import LEARN, stated_facts
from tacit.cli.statistics.presentation import Presentation
from tacit.curator.file_table import OneTimeBudget, open_file_table
from tacit.curator.registration import FILES, column_named
from tacit.curator.table_sources import ADDRESSES, SUFFIXES, describe, source_of
from tacit.engines.protocol import Source
from tacit.privacy.errors import InvalidInput, NotAllowed, NotInCatalog, WrongKind
from tacit.privacy.texts import did_you_mean

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
    "the charge is not recorded, and each further answer about this file reveals more about its people; to keep a "
    "budget, register it: {}"
)


@dataclass(frozen=True)
class TableSpec:
    """The table of a statistic, as typed."""

    table: str
    folder: Path
    server: ServerAddress | None
    unit: str | None
    each_row: bool
    columns: tuple[str, ...]
    """All columns of the statistic."""
    budget: OneTimeBudget


class LocalTable:
    """A table of the folder, or a file."""

    is_remote = False

    def __init__(
        self, table: RegisteredTable, curator: Curator | None = None, *, each_row: bool = False, advice: str = ""
    ) -> None:
        self._table, self._curator = table, curator
        self.each_row = each_row
        self.advice = advice
        """For a file: how to register it, so that charges are recorded."""
        self._prepared: PreparedStatistic | None = None

    @property
    def is_recorded(self) -> bool:
        """Whether charges are recorded in a ledger."""
        return self._curator is not None

    @property
    def declared(self) -> Table:
        """The table with its public facts."""
        return self._table.table

    def column(self, name: str) -> TableColumn:
        """Return a column as an argument of a statistic."""
        return self._table[name]

    def prepare(self, entry: Statistic, columns: list[Any], arguments: Mapping[str, Any]) -> None:
        """Plan a statistic, without charging it."""
        from tacit import stats

        self._prepared = stats.prepare(entry.call, stats, entry, columns, arguments)

    def preview(self) -> StatisticPreview:
        """Return the cost of the prepared statistic."""
        assert self._prepared is not None
        return self._prepared.preview()

    def release(self) -> Answer:
        """Charge and compute the prepared statistic."""
        assert self._prepared is not None
        return self._prepared.release()

    def remaining(self, analyst: str | None) -> dict[str, Cost]:
        """Return the remaining budget of the data set; empty for a file."""
        name = self.declared.dataset
        return {} if self._curator is None else {name: self._curator.budget(name, analyst).remaining()}

    def payer(self, analyst: str | None) -> str | None:
        """Return whose cap was charged."""
        return analyst


class ServerTable:
    """A table of a server; the token identifies the analyst."""

    is_remote = True
    is_recorded = True
    each_row = False
    advice = ""

    def __init__(self, client: Client, name: str, level: float) -> None:
        self._client, self._level = client, level
        self._table = _remote_table(client, name)
        self._left: dict[str, Cost] = {}
        self._payer: str | None = None
        self._call: Callable[[Any, Mapping[str, Any]], Any] | None = None

    @property
    def declared(self) -> Table:
        """The table with its public facts."""
        return self._table.table

    def column(self, name: str) -> RemoteColumn:
        """Return a column as an argument of a statistic."""
        return self._table[name]

    def prepare(self, entry: Statistic, columns: list[Any], arguments: Mapping[str, Any]) -> None:
        """Keep the call of a statistic, which the server plans."""
        known = {name: value for name, value in arguments.items() if name != "progress"}
        self._call = lambda functions, run: entry.call(functions, entry, columns, {**known, **run})

    def preview(self) -> RemotePreview:
        """Return the cost of the prepared statistic."""
        assert self._call is not None
        found: RemotePreview = self._call(self._client.stats.previews, {})
        return found

    def release(self) -> Answer:
        """Charge and compute the prepared statistic."""
        assert self._call is not None
        answer: RemoteAnswer = self._call(self._client.stats, {"level": self._level})
        self._left, self._payer = answer.remaining, answer.analyst
        return answer

    def remaining(self, _analyst: str | None) -> dict[str, Cost]:
        """Return the remaining budget after the answer."""
        return self._left

    def payer(self, _analyst: str | None) -> str | None:
        """Return whose cap was charged, by the token."""
        return self._payer


def _remote_table(client: Client, name: str) -> RemoteTable:
    """Return a table of a server; raise NotInCatalog with the nearest visible name for a misspelt one."""
    try:
        return client.table(name)
    except NotInCatalog as error:
        near = did_you_mean(name, [one.name for one in client.tables()])
        raise NotInCatalog(f"{error.message}; {near}" if near else error.message, name="table", value=name) from error


@contextmanager
def open_table(spec: TableSpec, level: float) -> Iterator[LocalTable | ServerTable]:
    """Open the table of a statistic; temporary copies of a file are deleted afterwards.

    `level` is the confidence level of a server's answers.
    """
    if spec.server is not None:
        if spec.unit is not None or spec.each_row:
            raise click.UsageError(
                f"{spec.table} is a table of the server, which knows its unit; leave out --unit and --each-row"
            )
        with open_client(spec.server) as client:
            yield ServerTable(client, spec.table, level)
        return
    if not is_registered(spec) and is_file(spec.table):
        with _open_file(spec) as table:
            yield table
        return
    if spec.unit is not None or spec.each_row:
        raise click.UsageError(
            f"{spec.table} is not a file; a registered table has its unit, so leave out --unit and --each-row"
        )
    with open_curator(spec.folder) as curator:
        yield LocalTable(curator.table(spec.table), curator)


def is_registered(spec: TableSpec) -> bool:
    """Return whether the folder has a table of this name."""
    return is_set_up(spec.folder) and spec.table.lower() in open_catalog(spec.folder).tables


def is_file(text: str) -> bool:
    """Return whether TABLE looks like a file or the address of a database table."""
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
            raise WrongKind(f"{one.name} has the type {one.type}, which statistics do not support")
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
    """Treat SIGTERM and SIGHUP as Ctrl-C, so that temporary copies of rows are deleted."""
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
    """Return the source of a file; raise NotAllowed if it is a table with a budget."""
    source = source_of(spec.table, folder=spec.folder)
    if (spec.unit is None) == (not spec.each_row):
        raise click.UsageError(
            f"who is protected in {spec.table}? give --unit COLUMN, the column that identifies people, or --each-row, "
            "if each row is one person" + ("; not both" if spec.each_row else "")
        )
    if is_set_up(spec.folder):
        catalog = open_catalog(spec.folder)
        for table in catalog.tables.values():
            if replace(catalog.source(table.name), csv=()) == source:
                raise NotAllowed(
                    f"{spec.table} is the table {table.name} of this folder, whose budget must be charged",
                    accepted=f"tacit stats ... {shlex.quote(table.name)}, without --unit",
                )
    if spec.budget.rho is not None and not spec.budget.delta:
        raise click.UsageError("--rho for a file needs --delta, to convert it to epsilon")
    if spec.each_row and source.form not in FILES:
        raise InvalidInput("--each-row is for files only; give the column that identifies people with --unit")
    return source


def _name(text: str) -> str:
    """Return a table name for a file."""
    inner = text.partition("#")[2] or Path(text).name.partition(".")[0]
    return re.sub(r"\W+", "_", inner.rpartition(".")[2]).strip("_") or "rows"


def _registration(spec: TableSpec) -> str:
    """Return the command that registers a file."""
    unit = " --each-row" if spec.unit is None else f" --unit {shlex.quote(spec.unit)}"
    return f"tacit table add {_name(spec.table)} {shlex.quote(spec.table)}{unit}{folder_flag(spec.folder)}"


@dataclass(frozen=True)
class StatisticQuery:
    """A statistic with all its arguments, as typed."""

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
            raise click.UsageError("give the privacy cost of the statistic: --epsilon or --rho")
        if self.each_row and self.rows_per_unit is not None:
            raise click.UsageError("with --each-row each person has one row; leave out --rows-per-unit")

    @property
    def spec(self) -> TableSpec:
        """The table of the statistic."""
        budget = OneTimeBudget(self.epsilon, self.rho, self.delta or 0.0)
        columns = tuple(dict.fromkeys([*self.columns, *self.by]))
        return TableSpec(self.table, self.folder, self.server, self.unit, self.each_row, columns, budget)

    @property
    def row_limit(self) -> int | None:
        """Rows per unit, if given; a test takes one."""
        return 1 if self.rows_per_unit is None and self.statistic.is_test else self.rows_per_unit

    @property
    def arguments(self) -> dict[str, Any]:
        """The keyword arguments that all statistics share."""
        given = {
            "epsilon": self.epsilon,
            "rho": self.rho,
            "rows_per_unit": self.row_limit,
            "analyst": self.analyst,
            "purpose": self.purpose or None,
            "timeout_s": self.timeout,
        }
        return {name: value for name, value in given.items() if value is not None}


def run_statistic(screen: Screen, query: StatisticQuery) -> None:
    """Run a statistic and show its answer."""
    with open_table(query.spec, query.level) as opened:
        _check(query, opened)
        with progress_bar(screen) as progress:
            _prepare(query, opened, progress)
            if opened.is_recorded and not query.yes:
                confirm_cost(screen, opened.preview())
            answer = opened.release()
        with writing_answer(*([] if opened.is_recorded else ["its cost is spent"])):
            _presentation(query, opened, answer).show(screen)
        if query.plot is not None:
            answer.plot().save(query.plot)
            if screen.has_reader:
                screen.show_facts([Fact("plot", str(query.plot))])
    if query.card and not screen.as_json:
        screen.say(answer.card, err=not screen.has_reader)


def _check(query: StatisticQuery, opened: LocalTable | ServerTable) -> None:
    """Raise UsageError for options that a server, a budget or a file does not accept."""
    if opened.is_remote:
        if query.analyst is not None:
            raise click.UsageError("a server identifies the analyst by the token; leave out --analyst")
        if query.own.get("picks"):
            raise click.UsageError("a server returns all ranges; leave out --range and --below")
    if opened.is_recorded:
        if query.delta is not None:
            raise click.UsageError("the budget of a registered table has its own delta; leave out --delta")
        return
    for name, value in (("--analyst", query.analyst), ("--purpose", query.purpose)):
        if value:
            raise click.UsageError(f"charges for a file are not recorded; leave out {name}, or register the table")


def _prepare(query: StatisticQuery, opened: LocalTable | ServerTable, progress: Progress | None) -> None:
    """Apply the given bounds and keys to the columns, and plan the statistic."""
    entry = query.statistic
    facts, learned = stated_facts(opened.declared, query.columns, query.by, query.bounds, query.keys)

    def column(name: str) -> Any:
        found = opened.column(name)
        known = found.declared.name
        return found.stated(facts[known]) if known in facts else found

    columns, groups = (list(map(column, names)) for names in (query.columns, query.by))
    own = {name: value for name, value in query.own.items() if value is not None}
    arguments = {**own, **_learned_bounds(entry, columns, learned), **query.arguments, "progress": progress}
    if groups:
        arguments["by"] = groups[0] if len(groups) == 1 else groups
    opened.prepare(entry, columns, arguments)


def _learned_bounds(entry: Statistic, columns: Sequence[TableColumn], learned: Sequence[str]) -> dict[str, str]:
    """Return the keyword arguments for bounds that are to be learnt."""
    if learned and not entry.learns:
        raise click.UsageError(f"{entry.name} cannot learn bounds; learn them first with: tacit stats bounds")
    keywords = dict(zip((column.declared.name for column in columns), entry.bounds, strict=False))
    for name in learned:
        if name not in keywords:
            raise click.UsageError(
                f"{name} is a group column, which has keys instead of bounds; leave out its --bounds"
            )
    return {keywords[name]: LEARN for name in learned}


def _presentation(query: StatisticQuery, opened: LocalTable | ServerTable, answer: Answer) -> Presentation:
    table = opened.declared
    unit = table.unit.column if table.unit is not None else ""
    rows = query.row_limit or table.limits.rows_per_unit
    is_numbered = rows == 1 and unit.rstrip("_") == "row"  # registered with --each-row: no row is left out
    limit = "1 row" if rows == 1 else f"{rows:,} rows"
    counted = f"at most {limit} of each {unit}; rows beyond that are left out, and intervals cover the noise only"
    return Presentation(
        answer,
        query.level,
        query.table,
        query.columns,
        counted="" if opened.each_row or is_numbered else counted,
        protected="each row is one person" if opened.each_row else f"each {unit}",
        remaining=opened.remaining(query.analyst),
        advice=opened.advice,
        as_bars=query.statistic.as_bars,
        plot=query.plot,
        analyst=opened.payer(query.analyst),
    )
