"""The theme of plots: frame, colours, fonts and axes; one dark colour, and grey for comparisons."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

Spec: TypeAlias = dict[str, Any]

SCHEMA: Final = "https://vega.github.io/schema/vega-lite/v5.json"
WIDTH, HEIGHT = 560, 340

INK, ACCENT, GREY, PALE = "#222222", "#0b4f6c", "#707070", "#e8e8e8"
COMPARISON: Final[Spec] = {"color": GREY, "strokeDash": [5, 4], "strokeWidth": 1.5}
"""The style of reference lines."""

CONFIG: Final[Spec] = {
    "font": "Helvetica, Arial, sans-serif",
    "view": {"stroke": None},
    "title": {
        "anchor": "start",
        "frame": "group",
        "offset": 18,
        "fontSize": 18,
        "color": INK,
        "subtitleFontSize": 12.5,
        "subtitleLineHeight": 17,
        "subtitlePadding": 7,
        "subtitleColor": GREY,
    },
    "axis": {
        "domainColor": INK,
        "tickColor": INK,
        "gridColor": PALE,
        "labelColor": INK,
        "labelFontSize": 12,
        "titleColor": INK,
        "titleFontSize": 12.5,
        "titleFontWeight": "normal",
        "titlePadding": 10,
    },
    "axisX": {"grid": False},
    "axisY": {"domain": False, "ticks": False},
}


def plot(title: str, subtitle: list[str], *, x: Spec, y: Spec, layers: list[Spec]) -> Spec:
    """Return a specification with layers in one frame; the fields of their data are `x` and `y`."""
    return {
        "$schema": SCHEMA,
        "description": ". ".join([title.rstrip("?"), *subtitle]),
        "background": "white",
        "padding": 16,
        "width": WIDTH,
        "height": HEIGHT,
        "title": {"text": title, "subtitle": subtitle},
        "encoding": {
            "x": {"field": "x", "type": "quantitative", **x},
            "y": {"field": "y", "type": "quantitative", **y},
        },
        "layer": layers,
        "config": CONFIG,
    }
