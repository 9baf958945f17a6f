"""The wizard of `tacit table add`: prompts at a terminal for what the options leave open.

Columns are shown by name and kind, never by value. Every answer can be skipped but two: who is protected, and whether
to write the result. Nothing is written if the wizard is interrupted.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

import click
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from tacit.cli.catalog_rendering import printable
from tacit.cli.table_draft import Draft, column_hint, likely_units, unit_hint
from tacit.cli.value_parsing import bounds_of, categories_of
from tacit.curator.catalog import Catalog
from tacit.engines.protocol import Source
from tacit.privacy.errors import InvalidInput, OutOfRange, TacitError
from tacit.privacy.numbers import whole
from tacit.privacy.tables import CONTRIBUTION_MAX, Kind, Limits

T = TypeVar("T")
WIDTH_MAX: Final = 96
INDENT: Final = 3
COLUMNS_SHOWN: Final = 40
KIND_WORDS: Final = {
    Kind.BOOLEAN: "yes or no",
    Kind.INTEGER: "integer",
    Kind.REAL: "number",
    Kind.TEXT: "text",
    Kind.DATE: "date",
    Kind.TIME: "date and time",
}
EACH_ROW: Final = re.compile(r"(--)?each[ _-]row")
UNIT_ANSWERS: Final = (
    ("COLUMN", "all rows with the same value are one person"),
    ("each row", "each row is one person (kept as a numbered copy)"),
    ("COLUMN=TABLE.COLUMN", "a foreign key to the people: visit_id=visits.id"),
    ("public", "the table is not about people"),
)
"""The answers to who is protected."""
BOUNDS_EXAMPLES: Final = {
    Kind.INTEGER: "0 to 120",
    Kind.REAL: "0 to 99.5",
    Kind.DATE: "2020-01-01 to 2024-12-31",
    Kind.TIME: "2020-01-01 to 2024-12-31",
}


class Wizard:
    """Prompts for what a draft leaves open."""

    def __init__(self, console: Console, catalog: Catalog) -> None:
        self._console = console
        self._catalog = catalog
        self._step = 0

    def complete(self, draft: Draft, source: Source, place: str) -> None:
        """Prompt until the draft is complete; `place` is the source as it was typed."""
        self._show_columns(draft, place)
        self._ask_unit(draft, source)
        self._ask_bounds(draft)
        self._ask_categories(draft)
        if not draft.public:
            self._ask_row_limit(draft)
            self._ask_budget(draft)

    def confirm(self, statement: str) -> bool:
        """Show the catalog entry and ask whether to write it."""
        self._heading("The catalog entry")
        self._console.print(Padding(Text(statement.rstrip(), "cyan"), (0, 0, 1, INDENT)))
        return self._prompt(f"Write it to {self._catalog.path}? [y/n]", _yes_or_no)

    def _show_columns(self, draft: Draft, place: str) -> None:
        grid = Grid(box=None, header_style="bold", pad_edge=False, padding=(0, 3, 0, 0))
        grid.add_column("column")
        grid.add_column("kind")
        for one in draft.described[:COLUMNS_SHOWN]:
            kind = draft.kind(one.name)
            grid.add_row(Text(printable(one.name)), Text(KIND_WORDS[kind] if kind else f"left out (type {one.type})"))
        self._console.print()
        self._console.print(Text.assemble((printable(draft.name), "bold cyan"), f"  {printable(place)}"))
        self._console.print(Padding(grid, (1, 0, 0, INDENT)))
        if (more := len(draft.described) - COLUMNS_SHOWN) > 0:
            self._say(f"and {more:,} more columns")
        self._console.print()
        self._say("Only the names and types of columns were read. Ctrl-C stops without writing anything.")

    def _ask_unit(self, draft: Draft, source: Source) -> None:
        if draft.is_decided:
            return
        self._heading("Who is protected?")
        self._say("Type one of these:")
        for answer, meaning in UNIT_ANSWERS:
            self._say(f"  {answer:20}  {meaning}")
        for name in likely_units(draft.described)[:1]:
            self._hint(f"the column {printable(name)} looks like it identifies people")

        def decide(answer: str) -> None:
            if not answer:
                raise InvalidInput("type the name of a column, each row, or public", name="unit")
            draft.unit, draft.public, draft.each_row = None, False, False
            if answer.lower() == "public":
                draft.public = True
            elif EACH_ROW.fullmatch(answer.lower()):
                draft.protect_each_row(source)
            elif "=" in answer:
                draft.protect_through([answer], self._catalog)
            else:
                draft.unit = draft.column(answer).name
            draft.table()  # raises if the column cannot be the unit

        self._prompt("unit", decide)
        while isinstance(draft.unit, str) and (doubt := unit_hint(draft.name, draft.unit)):
            self._hint(doubt)
            if self._prompt(f"protect each {printable(draft.unit)}? [y/n]", _yes_or_no):
                return
            self._prompt("unit", decide)

    def _ask_bounds(self, draft: Draft) -> None:
        columns = self._open_columns(draft, tuple(BOUNDS_EXAMPLES))
        if not columns:
            return
        self._heading("What are the bounds of numbers and dates?")
        self._say(
            "The range that any person's value can have, such as 0 to 120 for an age. Choose it without looking at the "
            "data, because bounds are public. Values outside are moved to the nearest bound. Press Enter to skip a "
            "column; its sums and means are then less accurate, because part of their cost is spent on learning bounds."
        )
        for name, kind in columns:
            self._hint(column_hint(name, kind))
            example = "" if kind.is_number else f", such as {BOUNDS_EXAMPLES[kind]}"
            label = f"{printable(name)}, {KIND_WORDS[kind]}{example}"
            bounds = self._prompt(label, _optional(partial(bounds_of, name, kind)))
            if bounds is not None:
                draft.facts[name] = bounds

    def _ask_categories(self, draft: Draft) -> None:
        columns = self._open_columns(draft, (Kind.TEXT,))
        if not columns:
            return
        self._heading("Which values can text columns have?")
        self._say(
            "All possible values, separated by commas: F, M. They become public, so take them from a form or a code "
            "book, never from the data. Press Enter to skip a column; its groups are then shown only if they have "
            "enough people."
        )
        for name, kind in columns:
            self._hint(column_hint(name, kind))
            values = self._prompt(printable(name), _optional(partial(categories_of, name, kind)))
            if values is not None:
                draft.facts[name] = values

    def _ask_row_limit(self, draft: Draft) -> None:
        if draft.each_row or draft.limits != Limits():
            return
        self._heading("How many rows of one person are counted, at most?")
        self._say(
            "The noise grows with this number; of a person with more rows, a random selection is counted. Press Enter "
            "to let each query choose."
        )
        rows = self._prompt("rows", _optional(_rows))
        if rows is not None:
            draft.limits = Limits(rows_per_unit=rows)

    def _ask_budget(self, draft: Draft) -> None:
        known = sorted({table.dataset for table in self._catalog.tables.values() if table.is_private})
        if draft.dataset or not known:
            return
        self._heading("Which budget is charged?")
        self._say(
            "Tables about the same people must share one budget, because the costs of their answers add up. Existing "
            f"budgets: {', '.join(map(printable, known))}. Press Enter for a new budget named {printable(draft.name)}."
        )
        draft.dataset = self._prompt("budget", lambda text: text)

    def _open_columns(self, draft: Draft, kinds: tuple[Kind, ...]) -> list[tuple[str, Kind]]:
        """Return the columns of these kinds without bounds or categories, other than the unit's own."""
        table = draft.table()
        unit = table.unit
        own = "" if unit is None else unit.column if unit.is_direct else unit.through[0].column
        return [
            (one.name, one.kind)
            for one in table.columns
            if one.kind in kinds and one.facts is None and one.name.lower() != own.lower()
        ]

    def _prompt(self, label: str, parse: Callable[[str], T]) -> T:
        """Prompt until the answer can be parsed."""
        while True:
            try:
                answer = self._console.input(Text.assemble(" " * INDENT, (label, "bold"), " > "))
            except EOFError:
                raise click.Abort from None
            try:
                return parse(answer.strip())
            except TacitError as error:
                self._console.print(Padding(Text(error.message, "yellow"), (0, 0, 0, INDENT)), width=WIDTH_MAX)

    def _heading(self, text: str) -> None:
        self._step += 1
        self._console.print()
        self._console.print(Text.assemble((f"{self._step}  ", "bold cyan"), (text, "bold")))

    def _say(self, text: str) -> None:
        width = min(self._console.width, WIDTH_MAX)
        self._console.print(Padding(Text(text, "dim"), (0, 0, 0, INDENT)), width=width)

    def _hint(self, text: str) -> None:
        if text:
            width = min(self._console.width, WIDTH_MAX)
            self._console.print(Padding(Text(f"hint: {text}", "magenta"), (0, 0, 0, INDENT)), width=width)


def _optional(parse: Callable[[str], T]) -> Callable[[str], T | None]:
    return lambda text: parse(text) if text else None


def _rows(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text[:9]) <= CONTRIBUTION_MAX:
        raise OutOfRange(f"type a whole number from 1 to {CONTRIBUTION_MAX:,}, or press Enter", name="rows", value=text)
    return whole("rows", int(text))


def _yes_or_no(text: str) -> bool:
    answer = {"y": True, "yes": True, "n": False, "no": False}.get(text.lower())
    if answer is None:
        raise InvalidInput("type y or n", value=text)
    return answer
