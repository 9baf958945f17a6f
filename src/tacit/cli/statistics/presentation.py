"""Answers of statistics as tables with charts, CSV, Markdown and JSON objects."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click
import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from tacit.cli.catalog_rendering import printable
from tacit.cli.output import Fact, Screen, show_facts_beside
from tacit.cli.rendering import cell, cost_object, cost_text, field, remaining_facts
from tacit.mechanisms.mechanism import Interval
from tacit.privacy.figures import grouped, with_interval
from tacit.privacy.numbers import DEFAULT_LEVEL
from tacit.stats import Answer, TestAnswer, WorkloadAnswer
from tacit.stats.plots import Plot, plot_of
from tacit.stats.workloads import CountTable, NoisyCount

if TYPE_CHECKING:
    from tacit import Cost
    from tacit.stats import TestAnswer


class Span(NamedTuple):
    """The ends of an interval."""

    low: Any
    high: Any


@dataclass(frozen=True)
class Row:
    """One number of an answer, with its keys and its interval."""

    keys: tuple[Any, ...]
    value: Any
    span: Span | None

    @property
    def has_width(self) -> bool:
        """Whether value and interval are numbers."""
        return self.span is not None and all(isinstance(end, int | float) for end in (self.value, *self.span))


def rows_of(answer: Answer | CountTable, level: float) -> list[Row]:
    """Return an answer, or a table of counts, as rows with intervals at a level."""
    span = answer.interval(level)
    values = _list(answer.values if isinstance(answer, CountTable) else answer.value)
    ends: list[Span | None] = [None] * len(values)
    if span is not None:
        ends = [Span(low, high) for low, high in zip(_list(span.low), _list(span.high), strict=True)]
    keys = answer.keys if answer.keys is not None else [()]
    return [Row(tuple(key), value, one) for key, value, one in zip(keys, values, ends, strict=True)]


def key_text(value: Any) -> str:
    """Return a part of a key as text; numbers have no thousands separator, as 2024 may be a year."""
    if value is None:
        return "missing"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.6g}" if isinstance(value, float) else printable(str(value))


def figures(row: Row) -> tuple[str, str]:
    """Return a value and its interval as text."""
    if row.span is None:
        return printable(cell(row.value)), "–"
    if not row.has_width:
        return cell(row.value), f"{cell(row.span.low)} to {cell(row.span.high)}"
    return with_interval(row.value, *row.span)


def json_array(value: Any) -> Any:
    """Return a value or array that JSON can hold: dates as strings, numbers that are not finite as null."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [json_array(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value.isoformat() if isinstance(value, date) else value


def _list(value: Any) -> list[Any]:
    if isinstance(value, np.ndarray):
        return list(value.ravel().tolist())
    return list(value) if isinstance(value, list | tuple) else [value]


class SelectedRanges(WorkloadAnswer):
    """An answer with ranges of one column, of which only some are shown."""

    ranges: tuple[tuple[Any, Any], ...] = ()
    column: str = ""

    @classmethod
    def select(cls, answer: Answer, column: str, ranges: Sequence[tuple[Any, Any]]) -> SelectedRanges:
        """Return the answer restricted to some ranges."""
        made = cls.of(answer)
        assert isinstance(made, SelectedRanges)
        made.column, made.ranges = column, tuple(ranges)
        return made

    @property
    def key_names(self) -> tuple[str, ...]:
        return f"{self.column} from", f"{self.column} to"

    @property
    def keys(self) -> list[tuple[Any, ...]]:
        return list(self.ranges)

    @cached_property
    def value(self) -> Any:
        """The counts, in the order of the ranges."""
        return np.array([one.value for one in self._counted])

    def interval(self, level: float = DEFAULT_LEVEL) -> Interval:
        """Return the interval of each count, which holds with probability `level` for each by itself."""
        spans = [one.interval(level) for one in self._counted]
        return Interval(*(np.array([span[end] for span in spans]) for end in (0, 1)))

    def plot(self, path: Path | str | None = None) -> Plot:
        """Return a bar chart of the ranges; `path` writes it to a file."""
        named = [f"{key_text(low)} to {key_text(high)}" for low, high in self.ranges]
        rows = [
            {self.column: name, "value": row["value"], "low": row["low"], "high": row["high"]}
            for name, row in zip(named, self.rows, strict=True)
        ]
        return plot_of(self.label, (self.column,), rows, self.card, "bars").saved(path)

    @cached_property
    def _counted(self) -> list[NoisyCount]:
        return [self.range(low, high) for low, high in self.ranges]


WIDTH_MIN, WIDTH_MAX = 8, 40
EIGHTHS: Final = " ▏▎▍▌▋▊▉"
FULL: Final = "█"


def chart(rows: Sequence[Row], width: int, *, as_bars: bool) -> list[str]:
    """Return a bar or an interval for each row, at most `width` characters wide; none if it would not be useful."""
    numbers = [row.value for row in rows]
    is_drawable = all(isinstance(value, int | float) and math.isfinite(value) for value in numbers)
    if len(rows) < 2 or width < WIDTH_MIN or not is_drawable:
        return []
    width = min(width, WIDTH_MAX)
    if as_bars:
        greatest = max(numbers)
        return [bar(value / greatest, width) for value in numbers] if greatest > 0 else []
    if not all(row.has_width for row in rows):
        return []
    lows = [row.span.low for row in rows if row.span]
    highs = [row.span.high for row in rows if row.span]
    low, high = min(lows), max(highs)
    if not high > low:
        return []
    return [
        point(*(_share(number, low, high) for number in ends), width=width)
        for ends in zip(lows, numbers, highs, strict=True)
    ]


def bar(share: float, width: int) -> str:
    """Return a bar that fills a share of the width, to an eighth of a character."""
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    return FULL * (eighths // 8) + EIGHTHS[eighths % 8].strip()


def point(low: float, value: float, high: float, *, width: int) -> str:
    """Return a point with its interval, given as shares of the width."""
    first, at, last = (round(min(max(share, 0.0), 1.0) * (width - 1)) for share in (low, value, high))
    line = "".join("─" if first <= place <= last else " " for place in range(width))
    return f"{line[:at]}●{line[at + 1 :]}".rstrip()


def _share(number: float, low: float, high: float) -> float:
    return (number - low) / (high - low)


ROWS_SHOWN: Final = 1000
BESIDE: Final = 3
"""Characters between two columns."""

ANSWER: Final = "bold cyan"


def list_table(
    names: Sequence[str], label: str, rows: Sequence[Row], level: float, width: int, *, as_bars: bool
) -> Table:
    """Return a table with a row per number: its keys, value and interval, and a chart if it fits."""
    has_spans = any(row.span is not None for row in rows)
    heads = [*names, label, *([interval_name(level)] if has_spans else [])]
    texts = [[*map(key_text, row.keys), *figures(row)[: 1 + has_spans]] for row in rows[:ROWS_SHOWN]]
    taken = sum(max(map(len, column)) + BESIDE for column in zip(heads, *texts, strict=True))
    pictures = chart(rows[:ROWS_SHOWN], width - taken - BESIDE - 2, as_bars=as_bars)
    table = _table()
    for place, head in enumerate(heads):
        is_number = place >= len(names)
        table.add_column(
            Text(head),
            justify="right" if is_number and names else "left",
            style=ANSWER if place == len(names) else "",
            overflow="fold",
        )
    if pictures:
        table.add_column("", no_wrap=True)
    for place, row in enumerate(texts):
        table.add_row(*map(Text, row), *([Text(pictures[place], "cyan")] if pictures else []))
    return table


def cross_table(names: Sequence[str], rows: Sequence[Row], width: int) -> Table | None:
    """Return a two-way table with the first key as rows and the second as columns; None if it is too wide."""
    down, across = (list(dict.fromkeys(row.keys[part] for row in rows)) for part in (0, 1))
    texts = {row.keys: _one_cell(row) for row in rows}
    heads = [" \\ ".join(names), *map(key_text, across)]
    lines = [[key_text(one), *(texts[one, other] for other in across)] for one in down]
    if sum(max(map(len, column)) + BESIDE for column in zip(heads, *lines, strict=True)) + 2 > width:
        return None
    table = _table()
    for place, head in enumerate(heads):
        table.add_column(Text(head), justify="right" if place else "left", style=ANSWER if place else "bold")
    for line in lines:
        table.add_row(*map(Text, line))
    return table


def _one_cell(row: Row) -> str:
    """Return a value with its interval: the half-width, or both ends."""
    value, span = figures(row)
    return value if row.span is None or "±" in value else f"{value} ({span})"


def test_table(answer: TestAnswer, level: float) -> Table:
    """Return the result of a hypothesis test as one row."""
    table = _table()
    found = [("p-value", f"{answer.pvalue:.2g}"), ("statistic", f"{answer.statistic:.3g}")]
    if answer.estimate is not None:
        span = answer.interval(level)
        row = Row((), answer.estimate, None if span is None else Span(*span))
        found += list(zip(("estimate", interval_name(level)), figures(row), strict=True))
    for place, (name, _) in enumerate(found):
        table.add_column(Text(name), style="" if place else ANSWER)
    table.add_row(*(Text(text) for _, text in found))
    return table


def interval_name(level: float) -> str:
    """Return the heading of intervals at a level."""
    return f"{level * 100:g} % interval"


def _table() -> Table:
    return Table(box=SIMPLE_HEAD, header_style="bold")


@dataclass(frozen=True)
class Presentation:
    """One answer with what is shown of it."""

    answer: Answer
    level: float
    table: str
    columns: tuple[str, ...]
    counted: str
    protected: str
    remaining: dict[str, Cost]
    advice: str
    """For a file: that the charge is not recorded."""
    as_bars: bool
    plot: Path | None = None
    """The file of the plot, if any."""
    analyst: str | None = None
    """Whose remaining budget is shown; None for that of the data set."""

    def show(self, screen: Screen) -> None:
        """Write the answer in the format of the screen, with facts below a table on a terminal."""
        if screen.format == "json":
            screen.show_object(self.object())
            return
        if screen.format == "table":
            self._show_table(screen)
        elif screen.format == "markdown":
            names, rows = self._texts()
            screen.show_markdown(names, rows)
        else:
            screen.show_csv(self._names(), [[field(json_array(one)) for one in fields] for fields in self._fields()])
        if screen.has_reader:
            screen.show_facts(self.facts())
        else:
            cost = Fact("cost", cost_text(self.answer.cost))
            show_facts_beside([*self._counted(), cost, *remaining_facts(self.remaining, self.analyst)])
            for sentence in (*self.answer.warnings, *([self.advice] if self.advice else [])):
                click.echo(f"tacit: warning: {sentence}", err=True)

    def object(self) -> dict[str, Any]:
        """Return the answer as a JSON object."""
        answer = self.answer
        return {
            "label": answer.label,
            "table": self.table,
            "columns": list(self.columns),
            "value": json_array(answer.value),
            "rows": self._row_objects(),
            "level": self.level,
            **({"bounds": learned} if (learned := answer.learned_bounds) else {}),
            **({"hypothesis": answer.hypothesis} if answer.hypothesis is not None else {}),
            "cost": cost_object(answer.cost),
            "remaining": {name: cost_object(cost) for name, cost in self.remaining.items()},
            "analyst": self.analyst,
            "permit": answer.permit.id if answer.permit is not None and not self.advice else None,
            "remembered": not self.advice,
            "protected": self.protected,
            "counted": self.counted,
            "coverage": list(answer.coverage),
            "warnings": list(answer.warnings),
            "card": answer.card,
            "simulated": answer.simulated,
            **({} if self.plot is None else {"plot": str(self.plot)}),
        }

    def facts(self) -> list[Fact]:
        """Return the facts below an answer: who is protected, what is counted, cost and remaining budget."""
        claim = self.answer.hypothesis
        facts = [] if claim is None else [Fact("tested", f"whether {claim}")]
        facts += [
            Fact("bounds", f"{name}: {grouped(low)} to {grouped(high)}, learnt")
            for name, (low, high) in self.answer.learned_bounds.items()
        ]
        facts += [Fact("warning", one) for one in self.answer.warnings]
        facts += [Fact("protected", self.protected), *self._counted()]
        facts.append(Fact("cost", cost_text(self.answer.cost), True))
        facts += remaining_facts(self.remaining, self.analyst)
        return [*facts, *([Fact("not recorded", self.advice)] if self.advice else [])]

    def _counted(self) -> list[Fact]:
        """Return how many rows of a unit are counted, which rows are left out, and which values are clamped."""
        return [Fact("counted", one) for one in (self.counted, *self.answer.coverage) if one]

    def _row_objects(self) -> list[dict[str, Any]]:
        if isinstance(self.answer, TestAnswer):
            low, high = self.answer.interval(self.level) or (None, None)
            (row,) = self.answer.rows
            found = {"p_value": row.pop("value"), **row, "estimate_low": low, "estimate_high": high}
            return [{name: json_array(value) for name, value in found.items()}]
        is_many = isinstance(self.answer, WorkloadAnswer) and not isinstance(self.answer, SelectedRanges)
        return [
            {
                **({"table": label} if is_many else {}),
                "keys": dict(zip(names, map(json_array, row.keys), strict=True)),
                "value": json_array(row.value),
                "low": json_array(row.span.low) if row.span else None,
                "high": json_array(row.span.high) if row.span else None,
            }
            for names, label, rows in self._tables()
            for row in rows
        ]

    def _names(self) -> list[str]:
        """Return the header of the CSV."""
        if isinstance(self.answer, TestAnswer):
            return list(self._row_objects()[0])
        widest = max((len(row.keys) for row in rows_of(self.answer, self.level)), default=0)
        names = list(self.answer.key_names)[:widest]
        return [*names, *(f"key{place}" for place in range(len(names) + 1, widest + 1)), "value", "low", "high"]

    def _texts(self) -> tuple[list[str], list[list[str]]]:
        """Return the header and rows of the answer as text."""
        if isinstance(self.answer, TestAnswer):
            return self._names(), [[cell(value) for value in row.values()] for row in self._row_objects()]
        names = self._names()[:-3]
        rows = [[*map(key_text, row.keys), *figures(row)] for row in rows_of(self.answer, self.level)]
        return [*names, self.answer.label, interval_name(self.level)], rows

    def _fields(self) -> list[tuple[Any, ...]]:
        """Return the rows of the CSV; a test has its p-value, statistic and estimate with interval."""
        if isinstance(self.answer, TestAnswer):
            return [tuple(row.values()) for row in self._row_objects()]
        return [(*row.keys, row.value, *(row.span or ("", ""))) for row in rows_of(self.answer, self.level)]

    def _show_table(self, screen: Screen) -> None:
        answer, width = self.answer, screen.console.width
        if isinstance(answer, TestAnswer):
            screen.console.print(test_table(answer, self.level))
            return
        picture = answer.plan.picture
        as_bars = self.as_bars or picture == "bars"
        for names, label, rows in self._tables():
            is_crossed = len(names) == 2 and (picture == "heat" or isinstance(answer, WorkloadAnswer))
            table = cross_table(names, rows, width) if is_crossed and not isinstance(answer, SelectedRanges) else None
            screen.console.print(table or list_table(names, label, rows, self.level, width, as_bars=as_bars))
            if (more := len(rows) - ROWS_SHOWN) > 0:
                screen.console.print(f" and {more:,} more rows; use --format csv or --json to see them", style="dim")
        if picture == "word" and answer.value is None:
            screen.console.print(
                "  no value leads by enough to be shown; give --keys, or spend more epsilon", style="dim"
            )

    def _tables(self) -> Iterator[tuple[tuple[str, ...], str, list[Row]]]:
        """Yield the key names, the label and the rows of each table of the answer."""
        answer = self.answer
        if not isinstance(answer, WorkloadAnswer) or isinstance(answer, SelectedRanges):
            yield answer.key_names, answer.label, rows_of(answer, self.level)
            return
        for name, table in answer.tables.items():
            yield table.columns, "rows" if name in table.columns else name, rows_of(table, self.level)
