"""Plots of answers with their intervals: points, bars, a heat map, steps, boxes, or a single word.

A plot is a Vega-Lite specification, which notebooks show; `save` writes it as .svg or .png. The plan of an answer names
its form. Axes of counts and shares start at 0; others do not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any, Final

from tacit.report import Spec, save
from tacit.report.rendering import ACCENT, CONFIG, GREY, HEIGHT, INK, SCHEMA, WIDTH

SUBTITLE: Final = "with the 95 % intervals of its noise"
GROUP_HEIGHT: Final = 130
LIGHT: Final = "#8fb3c2"
"""The fill of bars and boxes under dark whiskers."""

WHISKERS: Final = ("q0_05", "q0_25", "q0_5", "q0_75", "q0_95")
"""The fields of the five numbers of a box."""

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Plot:
    """A plot as a Vega-Lite specification."""

    spec: Spec

    def save(self, path: Path | str) -> None:
        """Write the plot to a file that ends in .svg or .png."""
        save(self.spec, Path(path))

    def saved(self, path: Path | str | None) -> Plot:
        """Return the plot, written to a file if one is given."""
        if path is not None:
            self.save(path)
        return self

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        return {"application/vnd.vegalite.v5+json": self.spec}


def plot_of(
    label: str, key_names: Sequence[str], rows: Sequence[dict[str, Any]], card: str, picture: str = "points"
) -> Plot:
    """Return the plot of an answer's rows, as one of the `PICTURES`."""
    shown: list[Row] = [{name: _plain(value) for name, value in row.items()} for row in rows]
    drawn = PICTURES[picture](label, list(key_names), shown)
    has_intervals = any(row.get("low") is not None for row in shown)
    title: Spec = {"text": f"{label[0].upper()}{label[1:]}", **({"subtitle": [SUBTITLE]} if has_intervals else {})}
    frame: Spec = {"$schema": SCHEMA, "description": card, "background": "white", "padding": 16, "title": title}
    return Plot({**frame, **drawn, "config": CONFIG})


def _points(label: str, names: list[str], rows: list[Row]) -> Spec:
    """Return a plot with a point and an interval for each key."""
    points = [
        {"key": ", ".join(str(row[name]) for name in names) or label, **_numbers(row), "place": place}
        for place, row in enumerate(rows)
    ]
    axis = {"title": " and ".join(names)} if names else None
    places = {"field": "key", "type": "nominal", "sort": None, "axis": axis}
    across = {"type": _measure(rows), "axis": {"title": label}, "scale": {"zero": False, "nice": True}}
    return {
        "width": WIDTH,
        "data": {"values": points},
        "layer": [
            {
                "mark": {"type": "rule", "color": ACCENT, "strokeWidth": 2},
                "encoding": {"y": places, "x": {"field": "low", **across}, "x2": {"field": "high"}},
            },
            {
                "mark": {"type": "point", "filled": True, "color": ACCENT, "size": 60, "opacity": 1},
                "encoding": {"y": places, "x": {"field": "value", **across}},
            },
        ],
    }


def _bars(label: str, names: list[str], rows: list[Row]) -> Spec:
    """Return a bar chart of bins or values with whiskers, one below the other for groups."""
    is_binned = len(names) >= 2 and names[-2].endswith(" from") and names[-1].endswith(" to")
    own = names[-2:] if is_binned else names[-1:]
    groups = names[: -len(own)]
    bars = [
        {
            "group": _group(row, groups),
            "start": row[own[0]],
            "end": row[own[-1]],
            "middle": _middle(row[own[0]], row[own[1]]) if is_binned else None,
            **_numbers(row),
        }
        for row in rows
    ]
    heights = {"type": "quantitative", "axis": {"title": "rows", "tickCount": 5}, "scale": {"zero": True}}
    if is_binned:
        title = own[0].removesuffix(" from")
        kind = "temporal" if isinstance(bars[0]["start"], str) else "quantitative"
        along: Spec = {"type": kind, "axis": {"title": title}, "scale": {"zero": False, "nice": False}}
        place: Spec = {"x": {"field": "start", "bin": "binned", **along}, "x2": {"field": "end"}}
        middle: Spec = {"x": {"field": "middle", **along}}
    else:
        along = {"field": "start", "type": "nominal", "sort": None, "axis": {"title": own[0], "labelAngle": 0}}
        place, middle = {"x": along}, {"x": along}
    layers: list[Spec] = [
        {
            "mark": {"type": "bar", "color": LIGHT, "binSpacing": 1},
            "encoding": {**place, "y": {"field": "value", **heights}},
        },
        {
            "mark": {"type": "rule", "color": ACCENT, "strokeWidth": 2},
            "encoding": {**middle, "y": {"field": "low", **heights}, "y2": {"field": "high"}},
        },
    ]
    return _stacked(bars, groups, layers)


def _heat(label: str, names: list[str], rows: list[Row]) -> Spec:
    """Return a heat map of the numbers of a table."""
    cells = [{"down": str(row[names[0]]), "across": str(row[names[1]]), **_numbers(row)} for row in rows]
    most = max((row["value"] for row in cells), default=0)
    for cell in cells:
        span = f"{cell['low']:,} to {cell['high']:,}" if cell["low"] is not None else ""
        cell |= {"shown": f"{cell['value']:,}", "span": span}
    places: Spec = {
        "y": {"field": "down", "type": "nominal", "sort": None, "axis": {"title": names[0]}},
        "x": {
            "field": "across",
            "type": "nominal",
            "sort": None,
            "axis": {"title": names[1], "labelAngle": 0, "orient": "top", "domain": False, "ticks": False},
        },
    }
    ink = {"condition": {"test": f"datum.value > {most * 0.55}", "value": "white"}, "value": INK}
    return {
        "width": {"step": 110},
        "height": {"step": 48},
        "data": {"values": cells},
        "encoding": places,
        "layer": [
            {
                "mark": {"type": "rect", "stroke": "white", "strokeWidth": 2},
                "encoding": {
                    "color": {
                        "field": "value",
                        "type": "quantitative",
                        "scale": {"range": ["#f2f6f8", ACCENT], "domain": [0, max(most, 1)]},
                        "legend": None,
                    }
                },
            },
            {
                "mark": {"type": "text", "fontSize": 14, "dy": -6},
                "encoding": {"text": {"field": "shown"}, "color": ink},
            },
            {
                "mark": {"type": "text", "fontSize": 10, "dy": 10},
                "encoding": {"text": {"field": "span"}, "color": ink},
            },
        ],
    }


def _steps(label: str, names: list[str], rows: list[Row]) -> Spec:
    """Return a step line of shares with a band of its intervals."""
    own, groups = names[-1], names[:-1]
    points = [{"group": _group(row, groups), "at": row[own], **_numbers(row)} for row in rows]
    kind = "temporal" if isinstance(points[0]["at"], str) else "quantitative"
    along = {
        "field": "at",
        "type": kind,
        "axis": {"title": own, "tickCount": 10},
        "scale": {"zero": False, "nice": False},
    }
    shares = {
        "type": "quantitative",
        "axis": {"title": "share of values", "format": ".0%", "tickCount": 5},
        "scale": {"domain": [0, 1]},
    }
    layers: list[Spec] = [
        {
            "mark": {"type": "area", "color": ACCENT, "opacity": 0.22, "interpolate": "step-after"},
            "encoding": {"x": along, "y": {"field": "low", **shares}, "y2": {"field": "high"}},
        },
        {
            "mark": {"type": "line", "color": ACCENT, "strokeWidth": 2, "interpolate": "step-after"},
            "encoding": {"x": along, "y": {"field": "value", **shares}},
        },
    ]
    return _stacked(points, groups, layers)


def _boxes(label: str, names: list[str], rows: list[Row]) -> Spec:
    """Return box plots, with a line for the interval of each number below the box."""
    groups = names[:-1]
    boxes: dict[str, Spec] = {}
    marks = []
    for row in rows:
        group = _group(row, groups) or label.removeprefix("box plot of ")
        boxes.setdefault(group, {"group": group})[f"q{row['share']:g}".replace(".", "_")] = row["value"]
        marks.append({"group": group, **_numbers(row)})
    axis = {"title": " and ".join(groups) or None, "labelLimit": 160}
    places = {"field": "group", "type": "nominal", "sort": None, "axis": axis}
    across: Spec = {
        "type": _measure(rows),
        "axis": {"title": f"{label.removeprefix('box plot of ')}, with whiskers to the 5 % and 95 % quantiles"},
        "scale": {"zero": False},
    }
    five = {"values": list(boxes.values())}
    return {
        "width": WIDTH,
        "height": {"step": 84},
        "encoding": {"y": places},
        "layer": [
            _span(five, {"type": "rule", "color": INK, "strokeWidth": 1.5}, across, "q0_05", "q0_95"),
            _span(five, {"type": "bar", "color": LIGHT, "height": 34}, across, "q0_25", "q0_75"),
            *(
                _span(
                    {"values": marks[share :: len(WHISKERS)]},
                    {"type": "rule", "color": GREY, "strokeWidth": 1.5, "yOffset": 22 + 3 * share},
                    across,
                    "low",
                    "high",
                )
                for share in range(len(WHISKERS))
            ),
            {
                "data": five,
                "mark": {"type": "tick", "color": INK, "thickness": 3, "height": 34},
                "encoding": {"x": {"field": "q0_5", **across}},
            },
            *(
                {
                    "data": five,
                    "mark": {"type": "tick", "color": INK, "thickness": 1.5, "height": 16},
                    "encoding": {"x": {"field": end, **across}},
                }
                for end in ("q0_05", "q0_95")
            ),
        ],
    }


def _word(label: str, names: list[str], rows: list[Row]) -> Spec:
    """Return the answer as a word in large letters."""
    shown = "none leads by enough" if rows[0]["value"] is None else str(rows[0]["value"])
    return {
        "width": WIDTH,
        "height": 80,
        "data": {"values": [{"shown": shown}]},
        "mark": {"type": "text", "fontSize": 32, "color": ACCENT, "align": "left", "x": 0},
        "encoding": {"text": {"field": "shown"}},
    }


PICTURES: Final[Mapping[str, Callable[[str, list[str], list[Row]], Spec]]] = {
    "points": _points,
    "bars": _bars,
    "heat": _heat,
    "steps": _steps,
    "boxes": _boxes,
    "word": _word,
}


def _stacked(values: list[Spec], groups: list[str], layers: list[Spec]) -> Spec:
    """Return layers in one frame, or in one frame for each group, stacked."""
    if not groups:
        return {"width": WIDTH, "height": HEIGHT, "data": {"values": values}, "layer": layers}
    header = {"title": " and ".join(groups), "labelAngle": 0, "labelAlign": "left", "labelFontSize": 12}
    header |= {"titleFontWeight": "normal", "titleFontSize": 12.5, "labelColor": INK, "titleColor": INK}
    return {
        "data": {"values": values},
        "facet": {"row": {"field": "group", "type": "nominal", "sort": None, "header": header}},
        "spec": {"width": WIDTH, "height": GROUP_HEIGHT, "layer": layers},
    }


def _span(data: Spec, mark: Spec, across: Spec, low: str, high: str) -> Spec:
    return {"data": data, "mark": mark, "encoding": {"x": {"field": low, **across}, "x2": {"field": high}}}


def _group(row: Row, names: Sequence[str]) -> str:
    return ", ".join(str(row[name]) for name in names)


def _numbers(row: Row) -> Spec:
    return {name: row[name] for name in ("value", "low", "high")}


def _measure(rows: Sequence[Row]) -> str:
    return "temporal" if rows and isinstance(rows[0]["value"], str) else "quantitative"


def _middle(start: Any, end: Any) -> Any:
    """Return the middle of a bin, in the format of its edges."""
    if not isinstance(start, str):
        return (start + end) / 2
    first, last = datetime.fromisoformat(start), datetime.fromisoformat(end)
    return (first + (last - first) / 2).isoformat()


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, date) else value
