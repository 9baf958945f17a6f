"""Answers as tables on a terminal: a row a number, a two-way table, or one row with a p-value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from tacit.cli.statistics.drawing import drawn
from tacit.cli.statistics.rows import Row, Span, figures, key

if TYPE_CHECKING:
    from tacit.stats import TestAnswer

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
