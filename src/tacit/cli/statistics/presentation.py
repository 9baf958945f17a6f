"""The answer of a statistic: tables and charts for terminals, CSV and Markdown for pipes, JSON for programs."""

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

from tacit.cli.catalog_rendering import shown
from tacit.cli.output import Fact, Screen
from tacit.cli.rendering import cell, cost_object, cost_text, field
from tacit.mechanisms.mechanism import Interval
from tacit.privacy.figures import at_least
from tacit.privacy.numbers import DEFAULT_LEVEL
from tacit.stats import Answer, TestAnswer, WorkloadAnswer
from tacit.stats.plots import Plot, plot_of
from tacit.stats.workloads import Counted, CountTable

if TYPE_CHECKING:
    from tacit import Cost
    from tacit.stats import TestAnswer


class Span(NamedTuple):
    """The ends of an interval."""

    low: Any
    high: Any


@dataclass(frozen=True)
class Row:
    """One number of an answer."""

    keys: tuple[Any, ...]
    value: Any
    span: Span | None

    @property
    def has_width(self) -> bool:
        """Whether half of the interval is a number."""
        return self.span is not None and all(isinstance(end, int | float) for end in (self.value, *self.span))


def rows_of(answer: Answer | CountTable, level: float) -> list[Row]:
    """Return an answer, or a table of counts, as rows with the intervals of a level."""
    span = answer.interval(level)
    values = _list(answer.values if isinstance(answer, CountTable) else answer.value)
    ends: list[Span | None] = [None] * len(values)
    if span is not None:
        ends = [Span(low, high) for low, high in zip(_list(span.low), _list(span.high), strict=True)]
    keys = answer.keys if answer.keys is not None else [()]
    return [Row(tuple(key), value, one) for key, value, one in zip(keys, values, ends, strict=True)]


def key(value: Any) -> str:
    """Return a part of a key for people; numbers in it are names, so 2024 has no comma in it."""
    if value is None:
        return "missing"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.6g}" if isinstance(value, float) else shown(str(value))


def figures(row: Row) -> tuple[str, str]:
    """Return a value and its interval, with as many digits as the noise leaves.

    The value has ± half its interval beside it only where it lies in the middle of the interval.
    """
    if row.span is None:
        return shown(cell(row.value)), "–"
    half = (row.span.high - row.span.low) / 2 if row.has_width else 0.0
    if not 1e-9 < half < 1e15:
        return cell(row.value), f"{cell(row.span.low)} to {cell(row.span.high)}"
    is_centred = abs(row.value - (row.span.low + row.span.high) / 2) <= half / 50
    if all(isinstance(end, int) for end in (row.value, *row.span)):
        return f"{row.value:,}{f' ± {half:,.15g}' if is_centred else ''}", f"{row.span.low:,} to {row.span.high:,}"
    decimals = 0 if isinstance(row.value, int) and half >= 1 else max(0, 1 - math.floor(math.log10(half)))
    value, half, low, high = (f"{number:,.{decimals}f}" for number in (row.value, half, *row.span))
    return f"{value} ± {half}" if is_centred else value, f"{low} to {high}"


def plain(value: Any) -> Any:
    """Return a value that JSON has."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value.isoformat() if isinstance(value, date) else value


def _list(value: Any) -> list[Any]:
    if isinstance(value, np.ndarray):
        return list(value.ravel().tolist())
    return list(value) if isinstance(value, list | tuple) else [value]


class SelectedRanges(WorkloadAnswer):
    """An answer about ranges of one column, of which only some are shown."""

    ranges: tuple[tuple[Any, Any], ...] = ()
    column: str = ""

    @classmethod
    def select(cls, answer: Answer, column: str, ranges: Sequence[tuple[Any, Any]]) -> SelectedRanges:
        """Show some ranges of an answer, each from one edge to another."""
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
        """The counts, in the order of the picked ranges."""
        return np.array([one.value for one in self._counted])

    def interval(self, level: float = DEFAULT_LEVEL) -> Interval:
        """Return where each count without noise lies with probability `level`, each by itself."""
        spans = [one.interval(level) for one in self._counted]
        return Interval(*(np.array([span[end] for span in spans]) for end in (0, 1)))

    def plot(self) -> Plot:
        """Return the picked ranges as bars."""
        named = [f"{key(low)} to {key(high)}" for low, high in self.ranges]
        rows = [
            {self.column: name, "value": row["value"], "low": row["low"], "high": row["high"]}
            for name, row in zip(named, self.rows, strict=True)
        ]
        return plot_of(self.label, (self.column,), rows, self.card, "bars")

    @cached_property
    def _counted(self) -> list[Counted]:
        return [self.range(low, high) for low, high in self.ranges]


WIDTH_MIN, WIDTH_MAX = 8, 40
EIGHTHS: Final = " ▏▎▍▌▋▊▉"
FULL: Final = "█"


def drawn(rows: Sequence[Row], width: int, *, as_bars: bool) -> list[str]:
    """Return a picture for each row, at most `width` letters wide; none where they would say nothing."""
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
    """Return a bar of a share of the width, to an eighth of a letter."""
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    return FULL * (eighths // 8) + EIGHTHS[eighths % 8].strip()


def point(low: float, value: float, high: float, *, width: int) -> str:
    """Return a point with its interval, as shares of the width."""
    first, at, last = (round(min(max(share, 0.0), 1.0) * (width - 1)) for share in (low, value, high))
    line = "".join("─" if first <= place <= last else " " for place in range(width))
    return f"{line[:at]}●{line[at + 1 :]}".rstrip()


def _share(number: float, low: float, high: float) -> float:
    return (number - low) / (high - low)


ROWS_SHOWN: Final = 1000
BESIDE: Final = 3
"""How many letters stand between two columns."""

ANSWER: Final = "bold cyan"


def listed(names: Sequence[str], label: str, rows: Sequence[Row], level: float, width: int, *, as_bars: bool) -> Table:
    """Return a row for each number: its keys, the number, its interval, and a picture where there is room for one."""
    has_spans = any(row.span is not None for row in rows)
    heads = [*names, label, *([interval_name(level)] if has_spans else [])]
    texts = [[*map(key, row.keys), *figures(row)[: 1 + has_spans]] for row in rows[:ROWS_SHOWN]]
    taken = sum(max(map(len, column)) + BESIDE for column in zip(heads, *texts, strict=True))
    pictures = drawn(rows[:ROWS_SHOWN], width - taken - BESIDE - 2, as_bars=as_bars)
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


def crossed(names: Sequence[str], rows: Sequence[Row], width: int) -> Table | None:
    """Return a two-way table, the first key downwards and the second across; none where it is too wide."""
    down, across = (list(dict.fromkeys(row.keys[part] for row in rows)) for part in (0, 1))
    texts = {row.keys: figures(row)[0] for row in rows}
    heads = [" \\ ".join(names), *map(key, across)]
    lines = [[key(one), *(texts[one, other] for other in across)] for one in down]
    if sum(max(map(len, column)) + BESIDE for column in zip(heads, *lines, strict=True)) + 2 > width:
        return None
    table = _table()
    for place, head in enumerate(heads):
        table.add_column(Text(head), justify="right" if place else "left", style=ANSWER if place else "bold")
    for line in lines:
        table.add_row(*map(Text, line))
    return table


def tested(answer: TestAnswer, level: float) -> Table:
    """Return a test as one row."""
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
    """Return the name of the intervals of a level."""
    return f"{level * 100:g} % interval"


def _table() -> Table:
    return Table(box=SIMPLE_HEAD, header_style="bold")


@dataclass(frozen=True)
class Presentation:
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
    plot: Path | None = None
    """Where the answer is drawn, too."""

    def show(self, screen: Screen) -> None:
        """Write the answer in the format of the screen; what is said of it stands beside a table on a terminal."""
        if screen.format == "json":
            screen.show_object(self.object())
            return
        if screen.format == "table":
            self._show_table(screen)
        elif screen.format == "markdown":
            names, rows = self._texts()
            screen.show_markdown(names, rows)
        else:
            screen.show_csv(self._names(), [[field(plain(one)) for one in fields] for fields in self._fields()])
        if screen.has_reader:
            screen.show_facts(self.facts())
        else:
            for sentence in self.answer.coverage:
                click.echo(f"cells {sentence}", err=True)
            click.echo(f"cost {cost_text(self.answer.cost)}", err=True)
            for name, cost in self.remaining.items():
                click.echo(f"left ε {at_least(cost.epsilon)} on {name}", err=True)
            for sentence in (*self.answer.warnings, *([self.advice] if self.advice else [])):
                click.echo(f"tacit: warning: {sentence}", err=True)

    def object(self) -> dict[str, Any]:
        """Return the answer for programs."""
        answer = self.answer
        return {
            "label": answer.label,
            "table": self.table,
            "columns": list(self.columns),
            "value": plain(answer.value),
            "rows": self._row_objects(),
            "level": self.level,
            **({"bounds": learnt} if (learnt := answer.learnt_bounds) else {}),
            **({"hypothesis": answer.hypothesis} if answer.hypothesis is not None else {}),
            "cost": cost_object(answer.cost),
            "remaining": {name: cost_object(cost) for name, cost in self.remaining.items()},
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
        """Return what is said below an answer: who is protected, what it cost and what is left."""
        claim = self.answer.hypothesis
        facts = [] if claim is None else [Fact("tested", f"whether {claim}")]
        facts += [
            Fact("bounds", f"{name}: {low:g} to {high:g}, learnt")
            for name, (low, high) in self.answer.learnt_bounds.items()
        ]
        facts += [Fact("cells", one) for one in self.answer.coverage]
        facts += [Fact("warning", one) for one in self.answer.warnings]
        facts.append(Fact("protected", self.protected))
        facts += [Fact("counted", self.counted)] if self.counted else []
        facts.append(Fact("cost", cost_text(self.answer.cost), True))
        facts += [Fact("left", f"ε {at_least(cost.epsilon)} on {name}") for name, cost in self.remaining.items()]
        return [*facts, *([Fact("not kept", self.advice)] if self.advice else [])]

    def _row_objects(self) -> list[dict[str, Any]]:
        if isinstance(self.answer, TestAnswer):
            low, high = self.answer.interval(self.level) or (None, None)
            (row,) = self.answer.rows
            return [
                {name: plain(value) for name, value in (row | {"estimate_low": low, "estimate_high": high}).items()}
            ]
        is_many = isinstance(self.answer, WorkloadAnswer) and not isinstance(self.answer, SelectedRanges)
        return [
            {
                **({"table": label} if is_many else {}),
                "keys": dict(zip(names, map(plain, row.keys), strict=True)),
                "value": plain(row.value),
                "low": plain(row.span.low) if row.span else None,
                "high": plain(row.span.high) if row.span else None,
            }
            for names, label, rows in self._tables()
            for row in rows
        ]

    def _names(self) -> list[str]:
        """Return what stands in the first line of CSV."""
        if isinstance(self.answer, TestAnswer):
            return list(self._row_objects()[0])
        widest = max((len(row.keys) for row in rows_of(self.answer, self.level)), default=0)
        names = list(self.answer.key_names)[:widest]
        return [*names, *(f"key{place}" for place in range(len(names) + 1, widest + 1)), "value", "low", "high"]

    def _texts(self) -> tuple[list[str], list[list[str]]]:
        """Return the answer for people, a row a number."""

        if isinstance(self.answer, TestAnswer):
            return self._names(), [[cell(value) for value in row.values()] for row in self._row_objects()]
        names = self._names()[:-3]
        rows = [[*map(key, row.keys), *figures(row)] for row in rows_of(self.answer, self.level)]
        return [*names, self.answer.label, interval_name(self.level)], rows

    def _fields(self) -> list[tuple[Any, ...]]:
        """Return what stands in each line of a pipe; a test has its p-value, statistic, estimate, and its ends."""
        if isinstance(self.answer, TestAnswer):
            return [tuple(row.values()) for row in self._row_objects()]
        return [(*row.keys, row.value, *(row.span or ("", ""))) for row in rows_of(self.answer, self.level)]

    def _show_table(self, screen: Screen) -> None:

        answer, width = self.answer, screen.console.width
        if isinstance(answer, TestAnswer):
            screen.console.print(tested(answer, self.level))
            return
        picture = answer.plan.picture
        as_bars = self.as_bars or picture == "bars"
        for names, label, rows in self._tables():
            is_crossed = len(names) == 2 and (picture == "heat" or isinstance(answer, WorkloadAnswer))
            table = crossed(names, rows, width) if is_crossed and not isinstance(answer, SelectedRanges) else None
            screen.console.print(table or listed(names, label, rows, self.level, width, as_bars=as_bars))
            if (more := len(rows) - ROWS_SHOWN) > 0:
                screen.console.print(f" and {more:,} more rows, which a pipe or --json shows", style="dim")
        if picture == "word" and answer.value is None:
            screen.console.print("  no value leads by enough to be shown", style="dim")

    def _tables(self) -> Iterator[tuple[tuple[str, ...], str, list[Row]]]:
        """Yield what the parts of keys are called, what is counted, and rows: once, or for each table of many."""
        answer = self.answer
        if not isinstance(answer, WorkloadAnswer) or isinstance(answer, SelectedRanges):
            yield answer.key_names, answer.label, rows_of(answer, self.level)
            return
        for name, table in answer.tables.items():
            yield table.columns, "rows" if name in table.columns else name, rows_of(table, self.level)
