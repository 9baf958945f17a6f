"""The answer of a statistic for people at a terminal, for pipes, and for programs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click
import numpy as np

from tacit.cli.kit import Fact, Screen
from tacit.cli.questions.showing import cell, cost_in_words, cost_object
from tacit.cli.statistics.drawing import drawn
from tacit.privacy.figures import at_least

if TYPE_CHECKING:
    from tacit.accounting import Cost
    from tacit.stats import Answer

ROWS_SHOWN: Final = 1000


class Span(NamedTuple):
    """The ends of an interval."""

    low: Any
    high: Any


@dataclass(frozen=True)
class Row:
    """One number of an answer: for what it stands, and between which ends it lies."""

    keys: tuple[Any, ...]
    value: Any
    span: Span | None

    @property
    def has_width(self) -> bool:
        """Whether half of the interval is a number."""
        return self.span is not None and all(isinstance(end, int | float) for end in (self.value, *self.span))


@dataclass(frozen=True)
class Shown:
    """All that is said of one answer."""

    answer: Answer
    level: float
    table: str
    columns: tuple[str, ...]
    counted: str
    protected: str
    remaining: dict[str, Cost]
    advice: str
    """For a file: that nothing remembers the charge."""
    as_bars: bool

    def object(self) -> dict[str, Any]:
        """Return the answer for programs."""
        answer, rows = self.answer, rows_of(self.answer, self.level)
        names = answer.plan.key_names
        return {
            "label": answer.label,
            "table": self.table,
            "columns": list(self.columns),
            "value": plain(answer.value),
            "rows": [
                {
                    "keys": dict(zip(names, map(plain, row.keys), strict=True)),
                    "value": plain(row.value),
                    "low": plain(row.span.low) if row.span else None,
                    "high": plain(row.span.high) if row.span else None,
                }
                for row in rows
            ],
            "level": self.level,
            "cost": cost_object(answer.cost),
            "remaining": {name: cost_object(cost) for name, cost in self.remaining.items()},
            "permit": answer.permit.id if answer.permit is not None and not self.advice else None,
            "remembered": not self.advice,
            "counted": self.counted,
            "card": answer.card,
            "simulated": answer.simulated,
        }

    def show(self, screen: Screen) -> None:
        """Write the answer: a table with its cost on a terminal, keys, value, low and high with tabs in a pipe."""
        if screen.as_json:
            screen.show_object(self.object())
            return
        rows = rows_of(self.answer, self.level)
        if not screen.console.is_terminal:
            for row in rows:
                ends = ("", "") if row.span is None else row.span
                click.echo("\t".join(field(part) for part in (*row.keys, row.value, *ends)))
            if self.advice:
                click.echo(f"tacit: warning: {self.advice}", err=True)
            return
        self._show_table(screen, rows)
        screen.show_facts(self.facts())

    def facts(self) -> list[Fact]:
        """Return what is said below an answer: who is protected, what it cost and what is left."""
        facts = [
            Fact("protected", self.protected),
            *([Fact("counted", self.counted)] if self.counted else []),
            Fact("cost", cost_in_words(self.answer.cost), True),
        ]
        facts += [Fact("left", f"ε {at_least(cost.epsilon)} on {name}") for name, cost in self.remaining.items()]
        return [*facts, *([Fact("not kept", self.advice)] if self.advice else [])]

    def _show_table(self, screen: Screen, rows: Sequence[Row]) -> None:
        from rich.box import SIMPLE_HEAD
        from rich.table import Table
        from rich.text import Text

        names = self.answer.plan.key_names
        table = Table(box=SIMPLE_HEAD, header_style="bold")
        for name in names:
            table.add_column(Text(name), overflow="fold")
        table.add_column(Text(self.answer.label), justify="right" if names else "left", style="bold cyan")
        table.add_column(f"{self.level * 100:g} % interval", justify="right" if names else "left")
        shown = rows[:ROWS_SHOWN]
        texts = [(*map(cell, row.keys), *figures(row)) for row in shown]
        heads = (*names, self.answer.label, table.columns[-1].header)
        taken = sum(max(len(str(head)), *map(len, column)) + 3 for head, *column in zip(heads, *texts, strict=True))
        pictures = drawn(shown, screen.console.width - taken - 5, as_bars=self.as_bars)
        if pictures:
            table.add_column("", no_wrap=True)
        for index, row in enumerate(texts):
            table.add_row(*map(Text, row), *([Text(pictures[index], "cyan")] if pictures else []))
        screen.console.print(table)
        if len(rows) > len(shown):
            screen.console.print(f" and {len(rows) - len(shown):,} more rows, which --json shows", style="dim")


def rows_of(answer: Answer, level: float) -> list[Row]:
    """Return an answer as rows, with the intervals of a level."""
    span = answer.interval(level)
    values = _list(answer.value)
    ends: list[Span | None] = [None] * len(values)
    if span is not None:
        ends = [Span(low, high) for low, high in zip(_list(span.low), _list(span.high), strict=True)]
    keys = answer.keys if answer.keys is not None else [()]
    return [Row(tuple(key), value, one) for key, value, one in zip(keys, values, ends, strict=True)]


def field(value: Any) -> str:
    """Return a value for a pipe, with all its digits and nothing else."""
    found = plain(value)
    if isinstance(found, bool):
        return str(found).lower()
    return "" if found is None else repr(found) if isinstance(found, float) else str(found)


def plain(value: Any) -> Any:
    """Return a value that JSON has."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, float) and value - value != 0:
        return None
    return value.isoformat() if isinstance(value, date) else value


def _list(value: Any) -> list[Any]:
    if isinstance(value, np.ndarray):
        return list(value.ravel().tolist())
    return list(value) if isinstance(value, list | tuple) else [value]


def figures(row: Row) -> tuple[str, str]:
    """Return a value with half its interval, and the interval, with as many digits as the noise leaves."""
    if row.span is None:
        return cell(row.value), "–"
    half = (row.span.high - row.span.low) / 2 if row.has_width else 0.0
    if not 1e-9 < half < 1e15:
        return cell(row.value, row.span if row.has_width else None), f"{cell(row.span.low)} to {cell(row.span.high)}"
    decimals = 0 if isinstance(row.value, int) and half >= 1 else max(0, 1 - math.floor(math.log10(half)))
    value, half, low, high = (f"{number:,.{decimals}f}" for number in (row.value, half, *row.span))
    return f"{value} ± {half}", f"{low} to {high}"
