"""Output of commands: tables for a terminal, CSV for a pipe, JSON for programs.

A command takes its `Screen` with `click.pass_obj` and passes it the answer; the options and the kind of output decide
the format. rich is imported on use, because it loads slowly.
"""

from __future__ import annotations

import csv
import json
import os
import sys
import textwrap
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

import click

if TYPE_CHECKING:
    from rich.console import Console


T = TypeVar("T")
FORMATS: Final = ("table", "csv", "json", "markdown")
TEXT_WIDTH_MAX: Final = 100
LABEL_WIDTH: Final = 17
UNBROKEN: Final = frozenset({"model", "permit"})
"""Columns whose cells are copied, and therefore never wrapped."""


QUERY_INTERRUPTED: Final = "Query interrupted"
"""What DuckDB raises, as a RuntimeError, in the place of a KeyboardInterrupt."""


class Fact(NamedTuple):
    """One labelled line below an answer; `is_answer` highlights it."""

    label: str
    text: str
    is_answer: bool = False


@dataclass
class Screen:
    """The output of one command, with the format that was chosen."""

    as_json: bool = False
    chosen: str = ""
    """The value of --format; empty if it was not given."""

    @property
    def format(self) -> str:
        """The format of an answer: as chosen, else a table on a terminal and CSV in a pipe."""
        if self.as_json:
            return "json"
        return self.chosen or ("table" if self.console.is_terminal else "csv")

    @property
    def has_reader(self) -> bool:
        """Whether the answer is a table on a terminal, where facts are shown below it."""
        return self.format == "table" and self.console.is_terminal

    @property
    def is_interactive(self) -> bool:
        """Whether a person can be asked: input and output are a terminal, and no JSON was chosen."""
        return not self.as_json and sys.stdin.isatty() and self.console.is_terminal

    @cached_property
    def console(self) -> Console:
        """The rich console; it drops colours in a pipe and under NO_COLOR."""
        from rich.console import Console

        class AnswerConsole(Console):
            """A console without markup that leaves a broken pipe to `app.run`."""

            def on_broken_pipe(self) -> None:
                raise  # the BrokenPipeError that rich is handling while it calls this

        return AnswerConsole(highlight=False, markup=False, emoji=False)

    def say(self, text: str, *, err: bool = False) -> None:
        """Write text, with lines wrapped at words on a terminal."""
        if self.console.is_terminal:
            fill = partial(textwrap.fill, width=self.width, break_long_words=False, break_on_hyphens=False)
            text = "\n".join(map(fill, text.splitlines()))
        click.echo(text, err=err)

    @property
    def width(self) -> int:
        """The width of text on a terminal."""
        return min(self.console.width, TEXT_WIDTH_MAX)

    def show_object(self, facts: Any) -> None:
        """Write `facts` as one JSON object."""
        click.echo(json.dumps(facts, ensure_ascii=False, allow_nan=False))

    def show_table(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Write a ruled table."""
        from rich.box import SIMPLE_HEAD
        from rich.table import Table
        from rich.text import Text

        table = Table(box=SIMPLE_HEAD, header_style="bold")
        for place, name in enumerate(columns):
            widest = max((len(row[place]) for row in rows), default=0)
            table.add_column(name, overflow="fold", min_width=widest if name in UNBROKEN else None)
        for row in rows:
            table.add_row(*map(Text, row))
        self.console.print(table)

    def show_csv(self, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Write CSV (RFC 4180) with a header, row by row as they come."""
        try:
            csv.writer(sys.stdout, lineterminator="\n").writerows(chain([columns], rows))
        finally:
            sys.stdout.flush()

    def show_markdown(self, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Write a table in GitHub's Markdown."""
        for cells in chain([columns, ["---"] * len(columns)], rows):
            click.echo(f"| {' | '.join(one.replace('|', chr(92) + '|') for one in cells)} |")

    def show_records(self, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Write rows as a table, CSV or Markdown, according to the format; a table when all of them are there."""
        if self.format == "csv":
            self.show_csv(columns, rows)
        elif self.format == "markdown":
            self.show_markdown(columns, rows)
        else:
            self.show_table(columns, list(rows))

    def show_list(
        self,
        name: str,
        items: Sequence[T],
        to_object: Callable[[T], Any],
        columns: Sequence[str],
        to_row: Callable[[T], Sequence[str]],
        empty: str,
    ) -> None:
        """Write items in the format of the screen, as JSON under `name`.

        If there are none, `empty` replaces a table; the other formats keep their header, and it goes to standard error.
        """
        if self.as_json:
            self.show_object({name: [to_object(one) for one in items]})
            return
        if items or self.format != "table":
            self.show_records(columns, [to_row(one) for one in items])
        if not items:
            click.echo(empty, err=self.format != "table")

    def show_facts(self, facts: Sequence[Fact]) -> None:
        """Write facts: in two columns on a terminal, as tab-separated lines in a pipe."""
        if not self.console.is_terminal:
            for fact in facts:
                click.echo(f"{fact.label}\t{fact.text}")
            return
        from rich.text import Text

        label_width = max(LABEL_WIDTH, *(len(fact.label) + 2 for fact in facts))
        width = self.width - label_width - 1
        self.console.print()
        for fact in facts:
            label = f" {fact.label:{label_width - 2}} "
            for line in Text(fact.text, "bold cyan" if fact.is_answer else "").wrap(self.console, max(width, 20)):
                self.console.print(Text.assemble((label, "dim"), line), soft_wrap=True)
                label = " " * label_width
        self.console.print()


def show_facts_beside(facts: Iterable[Fact]) -> None:
    """Write facts to standard error, beside an answer in a pipe."""
    for fact in facts:
        click.echo(f"{fact.label}: {fact.text}", err=True)


@contextmanager
def writing_answer(advice: str = "it was charged, and repeating the query costs nothing") -> Iterator[None]:
    """Raise StorageUnavailable with one sentence if an answer cannot be written to standard output."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        from tacit.privacy.errors import StorageUnavailable

        discard_output()
        raise StorageUnavailable(f"the answer could not be written ({error.strerror}); {advice}") from None


@contextmanager
def reporting_no_charge() -> Iterator[None]:
    """Say that nothing was charged if the block is interrupted before it begins to charge."""
    before: object = None
    try:
        from tacit.pipeline.interrupts import latest_charge

        before = latest_charge()
        yield
    except BaseException as stopped:
        is_unexplained = is_interrupt(stopped) and str(stopped) in ("", QUERY_INTERRUPTED)
        if is_unexplained and (before is None or latest_charge() is before):
            raise KeyboardInterrupt("cancelled; nothing was charged") from stopped
        raise


def is_interrupt(error: BaseException) -> bool:
    """Return whether an error is Ctrl-C, in one of the forms that it takes."""
    if type(error) is RuntimeError:
        return str(error) == QUERY_INTERRUPTED
    return isinstance(error, KeyboardInterrupt | click.Abort)


def discard_output() -> None:
    """Redirect standard output to the null device, so that flushing at exit does not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def show_result(screen: Screen, sentence: str, facts: dict[str, Any]) -> None:
    """Write a sentence, or the object with --json."""
    if screen.as_json:
        screen.show_object(facts)
    else:
        screen.console.print(sentence, soft_wrap=True)


def show_hints(screen: Screen, hints: list[str]) -> None:
    """Write hints to standard error, unless --json was given."""
    if not screen.as_json:
        for hint in hints:
            click.echo(f"hint: {hint}", err=True)


RUNNING: Final = "running"
QUIET_S: Final = 0.5
"""Delay before a progress bar is shown."""


class ShowProgress(Protocol):
    """Shows which share of a command is done, and what it does."""

    def __call__(self, share: float, text: str = RUNNING, /) -> None:
        """Draw the share, with the text before it."""


@contextmanager
def progress_bar(screen: Screen) -> Iterator[ShowProgress | None]:
    """Yield a progress callback that draws a bar on standard error; None unless it and the output are terminals."""
    if screen.as_json or not screen.console.is_terminal or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    bar = Progress(*columns, transient=True, console=Console(stderr=True))
    task = bar.add_task(RUNNING, total=1.0)
    timer = threading.Timer(QUIET_S, bar.start)
    timer.start()

    def show(share: float, text: str = RUNNING, /) -> None:
        bar.update(task, completed=share, description=text)

    try:
        yield show
    finally:
        timer.cancel()
        bar.stop()
