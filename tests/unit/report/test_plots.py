"""Plots: what they draw is what the accountants say, and every label stands inside the frame."""

import json
import math
from itertools import pairwise
from typing import Any

import pytest

from tacit.accounting import Meaning, delta, epsilon, meaning
from tacit.privacy.errors import NotFinite
from tacit.privacy.notation import parse
from tacit.report import privacy_curve, trade_off
from tacit.report.plots import RATES_MARKED
from tacit.report.rendering import ACCENT, GREY, WIDTH

PLANS = [("gaussian(1.5)", 1e-6), ("20 x sampled(0.1, gaussian(2))", 1e-5), ("3 x laplace(0.5)", 0.0)]


def worth(text: str, delta: float) -> Meaning:
    return meaning(parse(text), delta)


def layers(spec: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [layer for layer in spec["layer"] if layer["mark"]["type"] == kind]


def points(layer: dict[str, Any]) -> list[tuple[float, float]]:
    return [(row["x"], row["y"]) for row in layer["data"]["values"]]


def texts(spec: dict[str, Any]) -> list[str]:
    return [layer["mark"]["text"] for layer in layers(spec, "text")]


@pytest.mark.parametrize(("text", "at"), PLANS)
def test_the_trade_off_is_the_bound_beside_guessing(text: str, at: float) -> None:
    event = worth(text, at)
    guessing, bound = layers(trade_off(event), "line")
    assert guessing["mark"]["color"] == GREY
    assert "strokeDash" in guessing["mark"]
    assert bound["mark"]["color"] == ACCENT
    assert all(x == y for x, y in points(guessing))
    assert points(bound) == [(rate, event.true_positive_rate(rate)) for rate, _ in points(bound)]
    assert all(rate <= found + 1e-12 for rate, found in points(bound))


def test_the_trade_off_marks_the_rates_that_people_ask_for_rounded_up() -> None:
    event = worth("gaussian(1.5)", 1e-6)
    spec = trade_off(event)
    (dots,) = layers(spec, "point")
    assert points(dots) == [(rate, event.true_positive_rate(rate)) for rate in RATES_MARKED]
    shown = [float(text.rstrip("%")) for text in texts(spec) if text.endswith("%")]
    assert all(figure >= 100 * found for figure, (_, found) in zip(shown, points(dots), strict=True))


@pytest.mark.parametrize("text", ["gaussian(30)", "gaussian(1.5)", "pure(8)", "gaussian(0.01)"])
def test_the_label_of_the_bound_stands_inside_the_frame(text: str) -> None:
    spec = trade_off(worth(text, 1e-6))
    label = next(layer for layer in layers(spec, "text") if layer["mark"]["text"] == "at most, by any attack")
    place = (1 + math.log10(points(label)[0][0]) / 4) * WIDTH + label["mark"]["dx"]
    width = 150
    left = place - width if label["mark"]["align"] == "right" else place
    assert left >= 0
    assert left + width <= WIDTH


@pytest.mark.parametrize(("text", "at"), PLANS)
def test_the_privacy_curve_runs_through_the_point_that_is_marked(text: str, at: float) -> None:
    event = parse(text)
    bound = epsilon(event, at)
    spec = privacy_curve(event, bound.upper, at)
    *_, curve = layers(spec, "line")
    drawn = points(curve)
    assert drawn == sorted(drawn)
    assert all(before[1] >= after[1] for before, after in pairwise(drawn))
    assert all(delta(event, x).lower <= y * (1 + 1e-9) for x, y in drawn[1:-1:8])
    (dots,) = layers(spec, "point")
    assert points(dots) == [(bound.upper, at or min(y for _, y in drawn))]


def test_the_marked_point_says_its_numbers_rounded_up() -> None:
    assert texts(privacy_curve(parse("gaussian(1.5)"), 3.097640258986405, 1e-6)) == ["epsilon 3.0977 at delta 1e-6"]


@pytest.mark.parametrize(("at", "count"), [(1e-5, 7), (1e-11, 13), (1e-40, 12), (1e-320, 13)])
def test_the_axis_of_delta_is_labelled_at_a_dozen_decades_at_most(at: float, count: int) -> None:
    axis = privacy_curve(parse("gaussian(1)"), 1.0, at)["encoding"]["y"]
    assert len(axis["axis"]["values"]) == count
    assert axis["scale"]["domain"][0] > 0


@pytest.mark.parametrize(("bound", "at"), [(0.0, 0.5), (0.5, 1.0), (3.0, 0.0), (20.0, 1e-40)])
def test_points_at_the_edge_of_what_can_be_drawn_are_drawn(bound: float, at: float) -> None:
    spec = privacy_curve(parse("gaussian(1)"), bound, at)
    assert spec["encoding"]["x"]["scale"]["domain"][1] > bound


def test_without_a_finite_epsilon_there_is_no_curve() -> None:
    with pytest.raises(NotFinite, match="no finite epsilon"):
        privacy_curve(parse("approximate(1, 1e-3)"), math.inf, 1e-6)


def test_a_long_event_is_shortened_under_the_title() -> None:
    event = parse(" + ".join(["laplace(0.01)"] * 100))
    first, _ = trade_off(meaning(event, 1e-6))["title"]["subtitle"]
    assert len(first) <= 80
    assert first.endswith("…")


@pytest.mark.parametrize("spec", [trade_off(worth("pure(1)", 0.0)), privacy_curve(parse("pure(1)"), 1.0, 0.0)])
def test_a_plot_is_plain_json_that_says_what_it_shows(spec: dict[str, Any]) -> None:
    assert json.loads(json.dumps(spec, allow_nan=False)) == spec
    assert "pure(1)" in spec["description"]
    assert "the data with and without one person" in spec["description"]
    assert spec["encoding"]["x"]["axis"]["title"]
    assert spec["encoding"]["y"]["axis"]["title"]
