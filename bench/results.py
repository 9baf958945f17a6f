"""One measurement with its goal and the values of peers, as a JSON line or as table rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text


@dataclass(frozen=True, slots=True)
class Result:
    """One measurement; a peer that is not installed has the value None."""

    metric: str
    value: float
    unit: str
    peers: Mapping[str, float | None] = field(default_factory=dict)
    goal: float | None = None
    better: Literal["lower", "higher"] = "lower"

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; None without a goal."""
        if self.goal is None:
            return None
        return self.value <= self.goal if self.better == "lower" else self.value >= self.goal

    def to_json(self) -> str:
        """Return the measurement as one line of JSON."""
        record = {
            "metric": self.metric,
            "value": self.value,
            "unit": self.unit,
            "peers": dict(self.peers),
            "goal": self.goal,
            "met": self.met,
        }
        return json.dumps(record, allow_nan=False)


def table(title: str, results: Sequence[Result]) -> Table:
    """Return the measurements as a table with a column for each peer."""
    peers = list(dict.fromkeys(peer for result in results for peer in result.peers))
    grid = Table(title=title, title_justify="left", box=SIMPLE_HEAD, header_style="bold")
    grid.add_column("metric")
    for name in ("tacit", *peers, "goal"):
        grid.add_column(name, justify="right")
    for name in ("unit", "met"):
        grid.add_column(name)
    for result in results:
        others = [_figure(result.peers[peer]) if peer in result.peers else "" for peer in peers]
        figures = (_figure(result.value), *others, _goal(result))
        grid.add_row(Text(result.metric), *figures, Text(result.unit), _verdict(result.met))
    return grid


def _figure(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _goal(result: Result) -> str:
    if result.goal is None:
        return ""
    return f"{'≤' if result.better == 'lower' else '≥'} {_figure(result.goal)}"


def _verdict(met: bool | None) -> Text:
    return {None: Text(""), True: Text("yes", "green"), False: Text("no", "red")}[met]
