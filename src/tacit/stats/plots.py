"""Answers as plots: a point with its interval, or one for each key.

A plot is a Vega-Lite specification, which notebooks show; `save` writes it as .svg or .png.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.report import Spec, save
from tacit.report.look import ACCENT, CONFIG, SCHEMA, WIDTH


@dataclass(frozen=True)
class Plot:
    """A picture that is not drawn yet."""

    spec: Spec

    def save(self, path: Path | str) -> None:
        """Draw it into a file that ends in .svg or .png."""
        save(self.spec, Path(path))

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        return {"application/vnd.vegalite.v5+json": self.spec}


def plot_of(label: str, key_names: Sequence[str], rows: Sequence[dict[str, Any]], card: str) -> Plot:
    """Return the plot of an answer's rows: a point a key, with its interval where one is known."""
    points = [
        {
            "key": ", ".join(str(row[name]) for name in key_names) or label,
            "place": index,
            "value": row["value"],
            "low": row["low"],
            "high": row["high"],
        }
        for index, row in enumerate(rows)
    ]
    places = {"field": "key", "type": "nominal", "sort": None, "axis": {"title": " and ".join(key_names) or None}}
    numbers = {"type": "quantitative", "axis": {"title": label}, "scale": {"zero": False}}
    layers: list[Spec] = [
        {
            "mark": {"type": "rule", "color": ACCENT, "strokeWidth": 2},
            "encoding": {"y": places, "x": {"field": "low", **numbers}, "x2": {"field": "high"}},
        },
        {
            "mark": {"type": "point", "filled": True, "color": ACCENT, "size": 60},
            "encoding": {"y": places, "x": {"field": "value", **numbers}},
        },
    ]
    return Plot(
        {
            "$schema": SCHEMA,
            "description": card,
            "background": "white",
            "padding": 16,
            "width": WIDTH,
            "data": {"values": points},
            "title": {"text": f"{label[0].upper()}{label[1:]}", "subtitle": ["with the 95 % intervals of its noise"]},
            "layer": layers,
            "config": CONFIG,
        }
    )
