"""Numbers drawn with letters: bars for what is counted, points with their intervals for everything else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tacit.cli.statistics.rows import Row

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
