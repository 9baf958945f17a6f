"""What the scripts of the gallery share: exhibits with their tables and plots, the people attacked, and the command."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import click
import numpy as np
import pandas as pd
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from bench.attacks.private import interface
from tacit import attack
from tacit.attack.targets import Mask
from tacit.report.rendering import ACCENT, Spec, dots, save

PLOTS: Final = Path(__file__).parent / "plots"
WARNING: Final = "#b3261e"
"""The colour of limits that no attack may pass."""
HOLLOW: Final[Spec] = {"filled": False, "strokeWidth": 2, "size": 90, "fill": "white"}
"""The style of points that are measured on tacit."""
LIMIT: Final[Spec] = {"color": WARNING, "strokeDash": [2, 3], "strokeWidth": 2}


@dataclass(frozen=True)
class Row:
    """One figure as measured here, beside what its authors published and what theory says, in words."""

    figure: str
    here: float
    bounds: tuple[float, float] | None = None
    """The 95 % interval of a share of guesses or of a mean."""
    published: str = ""
    theory: str = ""
    """A prediction, or a ceiling: the most that is expected of any attack."""

    @property
    def text(self) -> str:
        """The figure with its interval."""
        return figure(self.here) + ("" if self.bounds is None else f" ({self.bounds[0]:.3g} to {self.bounds[1]:.3g})")


@dataclass(frozen=True)
class Exhibit:
    """What a script shows."""

    title: str
    rows: Sequence[Row]
    plots: Mapping[str, Spec] = field(default_factory=dict)
    """Specifications by the name of their file, without a suffix."""

    def __getitem__(self, figure: str) -> float:
        (found,) = (row.here for row in self.rows if row.figure == figure)
        return found


Run = Callable[[bool], Exhibit]
"""Makes an exhibit; with True in a small form of a few seconds."""


def command(run: Run) -> click.Command:
    """Return the command of a script."""

    @click.command(help=str(run.__globals__["__doc__"]))
    @click.argument("folder", default=PLOTS, type=click.Path(file_okay=False, path_type=Path))
    @click.option("--small", is_flag=True, help="End within a few seconds, with fewer people and runs.")
    def main(folder: Path, small: bool) -> None:
        show(run(small), folder, is_small=small)

    return main


def show(exhibit: Exhibit, folder: Path, *, is_small: bool = False) -> None:
    """Print the table of an exhibit, and write its plots as PNG and SVG; the figures of a small run are marked."""
    title = exhibit.title + ("; small run, not to be compared with the published figures" if is_small else "")
    grid = Table(title=title, title_justify="left", box=SIMPLE_HEAD, header_style="bold")
    grid.add_column("")
    for name in ("published", "theory", f"here{', small run' if is_small else ''} (95 % interval)"):
        grid.add_column(name, justify="right")
    for row in exhibit.rows:
        grid.add_row(row.figure, row.published, row.theory, row.text)
    Console(highlight=False, width=120).print(grid)
    folder.mkdir(parents=True, exist_ok=True)
    for name, spec in exhibit.plots.items():
        for suffix in (".png", ".svg"):
            save(spec, folder / f"{name}{suffix}")


def figure(value: float) -> str:
    """Return a number as text: whole ones in full, others to four digits."""
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.4g}"


def adult() -> pd.DataFrame | None:
    """Return the people of UCI Adult, or None where TACIT_DATA names no folder that holds them."""
    path = Path(os.environ.get("TACIT_DATA", "")) / "adult" / "train.csv"
    return pd.read_csv(path) if "TACIT_DATA" in os.environ and path.exists() else None


def married(people: int) -> Mask | None:
    """Return the secrets of some people of Adult: whether they are married; None if secrets are to be drawn."""
    found = adult()
    if found is None:
        return None
    return np.asarray(found["marital_status"].str.startswith("Married").to_numpy()[:people], dtype=bool)


def data_label() -> str:
    """Return where the secrets come from, for the subtitle of a plot."""
    return "secrets: random bits" if adult() is None else "secrets: whether people of UCI Adult are married"


Answer = Callable[[int, int], Any]
"""Answers a count, given the true one and the number of people asked about."""


def with_noise(draw: Callable[[], float]) -> Answer:
    """Return the function that adds noise drawn anew to each count."""
    return lambda count, _: count + draw()


def counted(answer: Answer, people: int) -> attack.QueryInterface:
    """Return an interface that answers with a function of the true count and the number of people asked about."""

    def made(secrets: Mask) -> Callable[[Mask], Any]:
        return lambda asked: answer(int((secrets & asked).sum()), int(asked.sum()))

    return over_secrets(made, people)


def over_secrets(made: Callable[[Mask], Any], people: int, **sql: Any) -> attack.QueryInterface:
    """Return the interface that a function makes over the secrets, of Adult or drawn by the attack."""
    known = married(people)
    if known is None:
        return attack.QueryInterface(make=made, people=people, **sql)
    return attack.QueryInterface(made(known), truth=known, **sql)


def curated(people: int, epsilon: float) -> AbstractContextManager[attack.QueryInterface]:
    """Return the interface of a tacit curator with one epsilon for all questions."""
    return interface(people, epsilon, truth=married(people))


GUESSED: Final = "secrets_guessed_right"
"""The key of the share of secrets that an attack guessed right."""


def guessed_right(finding: attack.Finding) -> float:
    """Return the share of secrets that an attack guessed right."""
    return finding.measured(GUESSED).value


def limit(finding: attack.Finding) -> float:
    """Return the share of secrets that any attack may be expected to guess right under the claim."""
    found = finding.measured(GUESSED).ceiling
    assert found is not None
    return found


def guesses_row(name: str, finding: attack.Finding, published: str = "", theory: str = "") -> Row:
    """Return the share of secrets that an attack guessed right with its interval, and the ceiling of a claim."""
    if finding.claimed is not None:
        theory = theory or f"at most {limit(finding):.3f}"
    return Row(name, guessed_right(finding), finding.measured(GUESSED).bounds, published, theory)


SHARE: Final[Spec] = {
    "scale": {"domain": [0.0, 1.04], "nice": False},
    "axis": {"title": "secrets guessed right", "format": ".0%", "values": [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]},
}
"""The axis of the share of secrets that are guessed right."""
NOISE_AXIS: Final[Spec] = {
    "title": "standard deviation of the noise over the root of the number of people (log scale)",
    "format": "~g",
}


def on_tacit(points: Sequence[tuple[Any, Any]]) -> Spec:
    """Return a layer with the hollow points of tacit."""
    return dots(points, **HOLLOW)


def ranked(points: Sequence[tuple[float, str]], base: float, shown: Callable[[float], str] = figure) -> list[Spec]:
    """Return layers with a line to each value, its dot and its figure; dots of names with tacit are hollow."""
    data = {"values": [{"x": x, "y": y, "shown": shown(x)} for x, y in points]}
    private = [point for point in points if "tacit" in point[1]]
    return [
        {
            "data": data,
            "mark": {"type": "rule", "color": ACCENT, "strokeWidth": 3, "opacity": 0.35},
            "encoding": {"x2": {"datum": base}},
        },
        dots([point for point in points if point not in private]),
        *([on_tacit(private)] if private else []),
        {
            "data": data,
            "mark": {"type": "text", "align": "left", "dx": 10, "fontSize": 12.5, "color": ACCENT},
            "encoding": {"text": {"field": "shown", "type": "nominal"}},
        },
    ]


NAMES: Final[Spec] = {
    "type": "nominal",
    "sort": None,
    "axis": {"title": None, "labelLimit": 320, "labelPadding": 12, "grid": False},
}
"""The axis of the names of ranked values."""
