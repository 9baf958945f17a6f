"""Plots of the privacy curve of an event, and of the power of attacks, as Vega-Lite specifications.

Lines are labelled in place, and axes in plain words. The reference line is grey and dashed, so that both lines can be
distinguished without colour.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

import numpy as np

from tacit.accounting import Meaning
from tacit.accounting.curves import deltas
from tacit.privacy.errors import NotFinite
from tacit.privacy.events import Event
from tacit.privacy.figures import at_most, exactly
from tacit.privacy.notation import write
from tacit.report.rendering import ACCENT, COMPARISON, Spec, dots, label, line, plot

Point: TypeAlias = tuple[float, float]

EVENT_LENGTH_MAX: Final = 80

RATE_LEAST: Final = 1e-4
RATES: Final[list[float]] = np.geomspace(RATE_LEAST, 1, 241).tolist()
RATES_MARKED: Final = (0.001, 0.01, 0.1)

CURVE_POINTS: Final = 49
CURVE_REACH: Final = 1.25
"""The end of the axis of epsilon, as a factor of the marked epsilon."""

DELTA_LEAST: Final = 1e-10
"""The delta near which the axis ends if the marked delta is 0."""

LOWEST_DECADE: Final = -300

DECADES_LABELLED_MAX: Final = 12


def trade_off(meaning: Meaning) -> Spec:
    """Return a plot of the greatest true positive rate of an attack over its false positive rate."""
    bound = [(rate, meaning.true_positive_rate(rate)) for rate in RATES]
    marked = [(rate, meaning.true_positive_rate(rate)) for rate in RATES_MARKED]
    cost = f"epsilon {at_most(meaning.epsilon.upper)} at delta {exactly(meaning.delta)}"
    return plot(
        "How many people can an attack find?",
        [_shorten(meaning.event), f"{cost}, comparing {meaning.event.relation.in_words}"],
        x={
            "scale": {"type": "log", "domain": [RATE_LEAST, 1]},
            "axis": {
                "title": "wrongly accused, of those who are not in the data (log scale)",
                "values": [1e-4, 1e-3, 1e-2, 1e-1, 1],
                "format": "~%",
            },
        },
        y={
            "scale": {"domain": [0, 1]},
            "axis": {"title": "found, of those who are in the data", "tickCount": 5, "format": ".0%"},
        },
        layers=[
            _area([(rate, rate, found) for rate, found in bound]),
            line([(rate, rate) for rate in RATES], **COMPARISON),
            line(bound),
            dots(marked),
            *(label(point, f"{at_most(100 * point[1], 3)}%", align="right", dx=-9, dy=-9) for point in marked),
            _bound_label(bound),
            label((0.25, 0.25), "by guessing", color=COMPARISON["color"], align="left", dx=9, dy=7),
        ],
    )


def privacy_curve(event: Event, epsilon: float, delta: float) -> Spec:
    """Return a plot of delta over epsilon, with one point marked."""
    if not math.isfinite(epsilon):
        raise NotFinite("there is no curve to draw: no finite epsilon is known at this delta", name="epsilon")
    right = epsilon * CURVE_REACH or 1.0
    bottom = _bottom(delta or DELTA_LEAST)
    point = (epsilon, max(delta, bottom))
    return plot(
        "What it costs in privacy",
        [_shorten(event), f"neighbours: {event.relation.in_words}"],
        x={
            "scale": {"domain": [0, right], "nice": False},
            "axis": {"title": "epsilon: how far the odds about a person may move, as a logarithm", "tickCount": 8},
        },
        y={
            "scale": {"type": "log", "domain": [bottom, 1]},
            "axis": {
                "title": "delta: the chance that is left over (log scale)",
                "values": _decades(bottom),
                "labelExpr": "datum.value == 1 ? '1' : format(datum.value, '~e')",
            },
        },
        layers=[
            line([(epsilon, bottom), point], **COMPARISON),
            line([(0, point[1]), point], **(COMPARISON if delta else {"opacity": 0})),
            line(list(_above(bottom, _curve(event, epsilon, delta, right))), interpolate="monotone"),
            dots([point]),
            label(point, f"epsilon {at_most(epsilon)} at delta {at_most(delta)}", **_below_left(epsilon, delta)),
        ],
    )


def _curve(event: Event, epsilon: float, delta: float, right: float) -> list[Point]:
    """Return points of the privacy curve; where it falls to 0 at `epsilon`, more points just before."""
    epsilons = {epsilon, *np.linspace(0, right, CURVE_POINTS).tolist()}
    if delta == 0:
        epsilons |= {epsilon * (1 - 10.0 ** (-thirds / 3)) for thirds in range(1, 31)}
    rising = sorted(epsilons)
    return list(zip(rising, deltas(event, rising), strict=True))


def _above(bottom: float, curve: Sequence[Point]) -> Iterator[Point]:
    """Yield a falling curve down to the lower edge of the plot."""
    before = (0.0, 1.0)
    for x, y in curve:
        if y < bottom:
            fallen = math.log(before[1] / bottom) / math.log(before[1] / y) if y > 0 else 1.0
            yield before[0] + fallen * (x - before[0]), bottom
            return
        yield x, y
        before = x, y


def _bottom(delta: float) -> float:
    """Return a power of ten below `delta` with room for a label."""
    decade = math.floor(math.log10(delta))
    return 10.0 ** max(decade - max(1, -decade // 10), LOWEST_DECADE)


def _decades(bottom: float) -> list[float]:
    lowest = round(math.log10(bottom))
    stride = -(lowest // DECADES_LABELLED_MAX)
    return [10.0**power for power in range(0, lowest - 1, -stride)]


def _below_left(epsilon: float, delta: float) -> Spec:
    """Return the offset of the label of the mark: left of it and below the curve, unless the mark lies on an axis."""
    side = {"align": "right", "dx": -10} if epsilon > 0 else {"align": "left", "dx": 10}
    return side | {"dy": 14 if delta else -14}


def _bound_label(bound: Sequence[Point]) -> Spec:
    """Return the label of the bound where it is steep: on its left if there is room, otherwise on its right."""
    place = next(point for point in bound if point[1] >= 0.62)
    from_left = math.log(place[0] / RATE_LEAST) / -math.log(RATE_LEAST)
    sides = {"align": "right", "dx": -12} if from_left > 0.35 else {"align": "left", "dx": 12, "dy": 16}
    return label(place, "at most, by any attack", fontWeight="bold", **sides)


def _area(points: Sequence[tuple[float, float, float]]) -> Spec:
    return {
        "data": {"values": [{"x": x, "low": low, "y": high} for x, low, high in points]},
        "mark": {"type": "area", "color": ACCENT, "opacity": 0.08},
        "encoding": {"y2": {"field": "low"}},
    }


def _shorten(event: Event) -> str:
    text = write(event)
    return text if len(text) <= EVENT_LENGTH_MAX else f"{text[: EVENT_LENGTH_MAX - 1]}…"
