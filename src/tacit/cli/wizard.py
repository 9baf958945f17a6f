"""The questions by which a table is stated at a terminal.

Columns are shown by name and kind, never by a value. Every answer can be skipped but two: whom the table protects, and
whether to write what came of it. Whoever ends it early leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

import click
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from tacit.cli.catalog_rendering import shown
from tacit.cli.table_draft import Draft, column_hint, likely_units, unit_hint
from tacit.cli.value_parsing import bounds_of, categories_of
from tacit.curator.catalog import Catalog
from tacit.privacy.errors import InvalidInput, OutOfRange, TacitError
from tacit.privacy.numbers import whole
from tacit.privacy.tables import CONTRIBUTION_MAX, Kind, Limits

T = TypeVar("T")
WIDTH_MAX: Final = 96
INDENT: Final = 3
COLUMNS_SHOWN: Final = 40
KIND_WORDS: Final = {
    Kind.BOOLEAN: "yes or no",
    Kind.INTEGER: "whole number",
    Kind.REAL: "number",
    Kind.TEXT: "text",
    Kind.DATE: "date",
    Kind.TIME: "date and time",
}
BOUNDS_EXAMPLES: Final = {
    Kind.INTEGER: "0 to 120",
    Kind.REAL: "0 to 99.5",
    Kind.DATE: "2020-01-01 to 2024-12-31",
    Kind.TIME: "2020-01-01 to 2024-12-31",
}


class Wizard:
    """Asks for what a draft leaves open."""

    def __init__(self, console: Console, catalog: Catalog) -> None:
        self._console = console
        self._catalog = catalog
        self._asked = 0

    def complete(self, draft: Draft, place: str) -> None:
        """Ask until the draft is a table."""
        self._show_columns(draft, place)
        self._ask_unit(draft)
        self._ask_bounds(draft)
        self._ask_categories(draft)
        if not draft.public:
            self._ask_limit(draft)
            self._ask_dataset(draft)

    def confirm(self, statement: str) -> bool:
        """Show what would be written and ask whether to write it."""
        self._head("This is what will be written")
        self._console.print(Padding(Text(statement.rstrip(), "cyan"), (0, 0, 1, INDENT)))
        path = self._catalog.path
        return self._until(f"Write it to {path}? [y/n]", _yes_or_no)

    def _show_columns(self, draft: Draft, place: str) -> None:
        grid = Grid(box=None, header_style="bold", pad_edge=False, padding=(0, 3, 0, 0))
        grid.add_column("column")
        grid.add_column("kind")
        for one in draft.described[:COLUMNS_SHOWN]:
            kind = draft.kind(one.name)
            grid.add_row(Text(shown(one.name)), Text(KIND_WORDS[kind] if kind else f"left out: {one.type}"))
        self._console.print()
        self._console.print(Text.assemble((shown(draft.name), "bold cyan"), f"  {shown(place)}"))
        self._console.print(Padding(grid, (1, 0, 0, INDENT)))
        if (more := len(draft.described) - COLUMNS_SHOWN) > 0:
            self._say(f"and {more:,} more")
        self._console.print()
        self._say("Names and types are all that was looked at. Ctrl-C ends this, and nothing will have been written.")

    def _ask_unit(self, draft: Draft) -> None:
        if draft.is_decided:
            return
        self._head("Who is protected?")
        self._say(
            "Everything with the same value in one column is protected together, as one person. Type that column; or "
            "public, if the table is not about people; or, if another table says whose rows these are, "
            "COLUMN=TABLE.COLUMN, such as visit_id=visits.id."
        )
        for name in likely_units(draft.described)[:1]:
            self._hint(f"{shown(name)} looks like it")

        def decide(answer: str) -> None:
            if not answer:
                raise InvalidInput("type the name of a column, or public", name="unit")
            draft.unit, draft.public = None, False
            if answer.lower() == "public":
                draft.public = True
            elif "=" in answer:
                draft.lead_through([answer], self._catalog)
            else:
                draft.unit = draft.column(answer).name
            draft.table()  # refuses what cannot be a unit

        self._until("column", decide)
        while isinstance(draft.unit, str) and (doubt := unit_hint(draft.name, draft.unit)):
            self._hint(doubt)
            if self._until(f"protect each {shown(draft.unit)}? [y/n]", _yes_or_no):
                return
            self._until("column", decide)

    def _ask_bounds(self, draft: Draft) -> None:
        columns = self._open_columns(draft, tuple(BOUNDS_EXAMPLES))
        if not columns:
            return
        self._head("Between which values can numbers and dates lie?")
        self._say(
            "For anybody, anywhere: 0 to 120 for an age. I cannot look: what I read off your data I would have to "
            "protect as well. What lies outside is moved to the nearer bound. Enter skips a column; sums and means of "
            "it are then less exact, for a part of their cost goes into learning bounds."
        )
        for name, kind in columns:
            self._hint(column_hint(name, kind))
            example = "" if kind.is_number else f", as {BOUNDS_EXAMPLES[kind]}"
            label = f"{shown(name)}, {KIND_WORDS[kind]}{example}"
            bounds = self._until(label, _optional(partial(bounds_of, name, kind)))
            if bounds is not None:
                draft.facts[name] = bounds

    def _ask_categories(self, draft: Draft) -> None:
        columns = self._open_columns(draft, (Kind.TEXT,))
        if not columns:
            return
        self._head("Which values can texts have?")
        self._say(
            "All that exist, with commas between them: F, M. They will be public, so take them from a form or a code "
            "book, never from the data. Enter skips a column; groups by it then need enough people to be shown."
        )
        for name, kind in columns:
            self._hint(column_hint(name, kind))
            values = self._until(shown(name), _optional(partial(categories_of, name, kind)))
            if values is not None:
                draft.facts[name] = values

    def _ask_limit(self, draft: Draft) -> None:
        if draft.limits != Limits():
            return
        self._head("How many rows of one person count, at most?")
        self._say(
            "The noise grows with this number; of a person with more rows, some are left out by lot. Any number is "
            "private. Enter leaves it open, and each question chooses."
        )
        rows = self._until("rows", _optional(_rows))
        if rows is not None:
            draft.limits = Limits(rows_per_unit=rows)

    def _ask_dataset(self, draft: Draft) -> None:
        known = sorted({table.dataset for table in self._catalog.tables.values() if table.is_private})
        if draft.dataset or not known:
            return
        self._head("Which budget pays?")
        self._say(
            "Tables about the same people share one budget; else each of them could be asked for all of it. There is "
            f"{', '.join(map(shown, known))}. Enter gives this table its own, called {shown(draft.name)}."
        )
        draft.dataset = self._until("budget", lambda text: text)

    def _open_columns(self, draft: Draft, kinds: tuple[Kind, ...]) -> list[tuple[str, Kind]]:
        """Return the columns of these kinds of which nothing is stated; the unit's own needs no facts."""
        table = draft.table()
        unit = table.unit
        own = "" if unit is None else unit.column if unit.is_direct else unit.through[0].column
        return [
            (one.name, one.kind)
            for one in table.columns
            if one.kind in kinds and one.facts is None and one.name.lower() != own.lower()
        ]

    def _until(self, label: str, read: Callable[[str], T]) -> T:
        """Ask until the answer can be read."""
        while True:
            try:
                answer = self._console.input(Text.assemble(" " * INDENT, (label, "bold"), " > "))
            except EOFError:
                raise click.Abort from None
            try:
                return read(answer.strip())
            except TacitError as error:
                self._console.print(Padding(Text(error.message, "yellow"), (0, 0, 0, INDENT)), width=WIDTH_MAX)

    def _head(self, text: str) -> None:
        self._asked += 1
        self._console.print()
        self._console.print(Text.assemble((f"{self._asked}  ", "bold cyan"), (text, "bold")))

    def _say(self, text: str) -> None:
        width = min(self._console.width, WIDTH_MAX)
        self._console.print(Padding(Text(text, "dim"), (0, 0, 0, INDENT)), width=width)

    def _hint(self, text: str) -> None:
        if text:
            width = min(self._console.width, WIDTH_MAX)
            self._console.print(Padding(Text(f"hint: {text}", "magenta"), (0, 0, 0, INDENT)), width=width)


def _optional(read: Callable[[str], T]) -> Callable[[str], T | None]:
    return lambda text: read(text) if text else None


def _rows(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text[:9]) <= CONTRIBUTION_MAX:
        raise OutOfRange(f"type a whole number from 1 to {CONTRIBUTION_MAX:,}, or Enter", name="rows", value=text)
    return whole("rows", int(text))


def _yes_or_no(text: str) -> bool:
    answer = {"y": True, "yes": True, "n": False, "no": False}.get(text.lower())
    if answer is None:
        raise InvalidInput("type y or n", value=text)
    return answer
