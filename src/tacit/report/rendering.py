"""Pictures from Vega-Lite specifications: .svg and .png, rendered without a browser or a network.

Promise: files are written atomically; an existing file is kept until the new one is complete.

The theme of plots: frame, colours, fonts and axes; one dark colour, and grey for comparisons.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from tacit.privacy.errors import InvalidInput
from tacit.privacy.extras import import_extra

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


def layer(points: Sequence[tuple[Any, Any]], mark: Spec) -> Spec:
    """Return a layer that draws points (x, y)."""
    return {"data": {"values": [{"x": x, "y": y} for x, y in points]}, "mark": mark}


def line(points: Sequence[tuple[Any, Any]], **style: Any) -> Spec:
    """Return a layer with a line through points."""
    return layer(points, {"type": "line", "color": ACCENT, "strokeWidth": 2.5} | style)


def dots(points: Sequence[tuple[Any, Any]], **style: Any) -> Spec:
    """Return a layer with a dot at each point."""
    return layer(points, {"type": "point", "filled": True, "color": ACCENT, "opacity": 1, "size": 60} | style)


def label(point: tuple[Any, Any], text: str, **style: Any) -> Spec:
    """Return a layer with a text beside a point."""
    return layer(
        [point], {"type": "text", "text": text, "color": ACCENT, "fontSize": 12.5, "baseline": "middle"} | style
    )


PNG_SCALE: Final = 2.0
NO_NETWORK: Final[list[str]] = []
"""The addresses from which a specification may load data: none."""


def save(spec: dict[str, Any], path: Path) -> None:
    """Render a specification to `path`, in the format of its suffix; an existing file is replaced."""
    check_target(path)
    try:
        picture = RENDERERS[path.suffix](spec)
    except ValueError as error:  # vl-convert raises it for every specification that it cannot render
        reason = " ".join(str(error).split())
        raise InvalidInput(f"the specification cannot be drawn: {reason}", name="spec", value=spec) from error
    _write_atomically(path, picture)


def check_target(path: Path) -> None:
    """Raise InvalidInput unless a picture can be written to a path, before any work is done."""
    if path.suffix not in RENDERERS:
        raise InvalidInput(
            f"a plot is written to a file that ends in {' or '.join(RENDERERS)}, not to {path.name}",
            name="plot",
            value=path,
        )
    if path.is_dir():
        raise InvalidInput(f"{path} is a folder; name a file in it", name="plot", value=path)
    if not path.parent.is_dir():
        raise InvalidInput(f"the folder {path.parent} does not exist", name="plot", value=path)
    _vl_convert()


def svg(spec: dict[str, Any]) -> bytes:
    """Return a specification as SVG."""
    drawn: str = _vl_convert().vegalite_to_svg(spec, allowed_base_urls=NO_NETWORK)
    return drawn.encode("utf-8")


def _png(spec: dict[str, Any]) -> bytes:
    drawn: bytes = _vl_convert().vegalite_to_png(spec, scale=PNG_SCALE, allowed_base_urls=NO_NETWORK)
    return drawn


RENDERERS: Final[dict[str, Callable[[dict[str, Any]], bytes]]] = {".svg": svg, ".png": _png}


def _vl_convert() -> Any:
    return import_extra("vl_convert", extra="report", purpose="drawing a plot")


def _write_atomically(path: Path, content: bytes) -> None:
    """Write to a temporary file in the same folder and rename it."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb") as file:
            file.write(content)
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise InvalidInput(f"{path} cannot be written: {error.strerror}", name="plot", value=path) from error
