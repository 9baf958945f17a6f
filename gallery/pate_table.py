"""Teachers vote with noise (PATE: Papernot et al. 2017, 2018).

Teachers on disjoint parts of private data label public rows by noisy votes, and a student learns from the labels. With
more teachers the same noise hides behind a greater majority: accuracy at a small epsilon needs many teachers.
Confident-GNMax answers only where the greatest count passes a noisy test. Every query pays for the test, answered ones
for the label.

The published epsilons depend on the votes. Here they are simulated, as in the published tables (an expectation over
coins): not private, and shown for public or generated data only. The data-independent epsilon is what a budget is
charged. `python -m bench learn --part pate` prints the whole table, with sanitised epsilons.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bench.learning import digits, pate_reference
from bench.learning.datasets import has_mnist
from bench.learning.glyphs import Glyphs, glyph_teacher
from bench.learning.pate import Split
from bench.learning.spreading import SpreadingStudent
from gallery.common import Exhibit, Row, command
from tacit import accounting
from tacit.learn import PATE, GNMax
from tacit.learn.pate.bounds import gnmax_log_q
from tacit.learn.pate.teachers import TeacherTraining
from tacit.ledger import Budget
from tacit.mechanisms.randomness import SYSTEM
from tacit.report.rendering import ACCENT, COMPARISON, INK, Spec, dots, label, line, plot

TITLE: Final = "PATE: accuracy, epsilon, and what selecting and answering cost"
DELTA: Final = 1e-5
NOISES: Final = (10, 20, 40, 80, 160)
THRESHOLDS: Final = (0.0, 0.4, 0.6, 0.8, 0.9, 1.0)
"""Shares of the teachers."""
TEST_SIGMA: Final = 150
SIGMA: Final = 40


def run(small: bool) -> Exhibit:
    """Train students at several noises and numbers of teachers, and price selecting and answering."""
    data, name = _split(small)
    name += ", small run" if small else ""
    counts, queries = ((10, 40), 60) if small else ((50, 100, 250), 100)
    curves = {count: _accuracies(data, count, queries, NOISES[1:4] if small else NOISES) for count in counts}
    asked, most = (100 if small else 640), counts[-1]
    votes = TeacherTraining(data.teacher, most, len(np.unique(data.private[1])), *data.private, _units(data)).votes(
        data.pool[0][:asked], SYSTEM
    )
    scale = most / 250
    costs = [_costs(votes, share * most, scale) for share in THRESHOLDS]
    chosen = costs[THRESHOLDS.index(0.8)]
    accuracy = dict(curves[most])[_epsilon(SIGMA, queries)]
    rows = [
        Row(
            f"student, {most} teachers, {queries} labels with noise {SIGMA}, % correct",
            accuracy,
            published="98.0 (LNMax)",
        ),
        Row("  its data-independent epsilon", _epsilon(SIGMA, queries), published="not given"),
        Row(f"Confident, threshold 80 % of teachers: answered of {asked} (expected)", chosen["answered"], None, "286"),
        Row("  data-independent epsilon", chosen["both"], None, "not given"),
        Row("  data-dependent epsilon, simulated (not private)", chosen["dependent"], None, "1.97"),
        Row("  of it, selecting alone", chosen["dependent selecting"]),
        Row("  of it, answering alone", chosen["dependent answering"]),
    ]
    plots = {
        "pate_accuracy": _accuracy_plot(curves, queries, name),
        "pate_costs": _costs_plot(costs, name, most, asked),
        "pate_answered": _answered_plot(costs, name, most, asked),
    }
    return Exhibit(f"{TITLE} ({name.partition(',')[0]})", rows, plots)


def _split(small: bool) -> tuple[Split, str]:
    """Return MNIST where TACIT_DATA names it, or generated glyphs of ten classes."""
    if small or not has_mnist():
        made, student = Glyphs.of(10, 1), SpreadingStudent(3.0, 0.1)
        private, pool = made.draw(1200 if small else 30_000, 2), made.draw(400 if small else 3000, 3)
        return Split(private, pool, made.draw(1000, 4), glyph_teacher, student, 0.0), "generated glyphs"
    rows, truth = digits.load("t10k", 4000)
    order, test = digits.representatives(rows[:3000], 100, 0), (rows[3000:], truth[3000:])
    public = (rows[order], truth[order])
    data = Split(digits.load("train"), public, test, digits.digit_teacher, SpreadingStudent(), 0.0)
    return data, "MNIST"


def _units(data: Split) -> NDArray[np.int64]:
    return np.arange(len(data.private[1]))


def _epsilon(sigma: float, queries: int) -> float:
    return accounting.epsilon(GNMax(sigma).plan(queries, queries), DELTA).upper


def _accuracies(data: Split, teachers: int, queries: int, noises: Sequence[int]) -> list[tuple[float, float]]:
    """Return epsilon and the percentage of right labels of a student at each noise, of the same teachers."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for sigma in noises:
            model = PATE(
                data.teacher, teachers=teachers, classes=np.unique(data.private[1]), aggregator=GNMax(sigma),
                student=data.student, semi_supervised="student", queries=queries, delta=DELTA,
                budget=Budget(1000, 1e-3), folder=Path(folder) / "teachers",
            ).fit(*data.private, public=data.pool[0])  # fmt: skip
            right = 100 * float((model.predict(data.held[0]) == data.held[1]).mean())
            found.append((_epsilon(sigma, queries), right))
    return found


def _costs(votes: NDArray[np.int64], threshold: float, scale: float) -> dict[str, float]:
    """Return the expected number of answers and the epsilons of selecting and answering; noise is scaled."""
    sigma, test_sigma, orders = SIGMA * scale, TEST_SIGMA * scale, pate_reference.ORDERS
    passing = pate_reference.log_probability_answered(votes.max(axis=1), threshold, test_sigma)
    chance = np.exp(passing)[:, None]
    test = pate_reference.threshold_renyi(passing, test_sigma, orders).sum(axis=0)
    answer = (chance * pate_reference.gnmax_renyi(gnmax_log_q(votes, sigma), sigma, orders)).sum(axis=0)
    plain_test = len(votes) * orders / (2 * test_sigma**2)
    plain_answer = float(chance.sum()) * orders / sigma**2
    curves: dict[str, Any] = {
        "selecting": plain_test, "answering": plain_answer, "both": plain_test + plain_answer,
        "dependent selecting": test, "dependent answering": answer, "dependent": test + answer,
    }  # fmt: skip
    found = {name: pate_reference.tight_epsilon(orders, curve, DELTA)[0] for name, curve in curves.items()}
    return {"answered": float(chance.sum()), "threshold": threshold, **found}


def _accuracy_plot(curves: dict[int, list[tuple[float, float]]], queries: int, name: str) -> Spec:
    shades = ("#9cc3d5", "#4f8fae", "#0b4f6c")[-len(curves) :]
    layers = []
    for shade, (teachers, points) in zip(shades, curves.items(), strict=True):
        layers += [line(points, color=shade), dots(points, color=shade)]
        layers.append(label(points[-1], f"{teachers} teachers", align="left", dx=4, dy=16, color=shade))
    return plot(
        "Accuracy of the student by epsilon and number of teachers",
        [f"students of {queries} labels by GNMax, a point for each noise; {name}", "epsilon is data-independent"],
        x={"scale": {"type": "log", "domain": [0.2, 14]}, "axis": {"title": "epsilon at delta 1e-5 (log scale)"}},
        y={"scale": {"domain": [0, 100]}, "axis": {"title": "student, % correct"}},
        layers=layers,
    )


def _costs_plot(costs: list[dict[str, float]], name: str, teachers: int, asked: int) -> Spec:
    layers = []
    for figure, color, dy in (("selecting", "#4f8fae", -10), ("answering", ACCENT, 14), ("both", INK, -10)):
        style = {"color": color}
        plain = [(one["threshold"], one[figure]) for one in costs]
        dependent = "dependent" if figure == "both" else f"dependent {figure}"
        votes = [(one["threshold"], one[dependent]) for one in costs]
        layers += [line(plain, **style), line(votes, **{**COMPARISON, **style})]
        layers.append(label(plain[0], figure, align="left", dy=dy, dx=4, **style))
    return plot(
        "What selecting and answering cost",
        [
            f"{asked} queries to {teachers} teachers by Confident-GNMax; {name}",
            "lines: data-independent, charged; dashed: data-dependent, simulated, not private",
        ],
        x={"axis": {"title": "threshold, votes"}},
        y={"scale": {"zero": True}, "axis": {"title": "epsilon at delta 1e-5"}},
        layers=layers,
    )


def _answered_plot(costs: list[dict[str, float]], name: str, teachers: int, asked: int) -> Spec:
    points = [(one["threshold"], one["answered"]) for one in costs]
    return plot(
        "Queries that are answered",
        [f"expected answers to {asked} queries to {teachers} teachers; {name}", "dashed: asked"],
        x={"axis": {"title": "threshold, votes"}},
        y={"scale": {"zero": True}, "axis": {"title": "queries answered"}},
        layers=[line(points), dots(points), line([(0, asked), (points[-1][0], asked)], **COMPARISON)],
    )


if __name__ == "__main__":
    command(run)()
