"""DP-SGD against epsilon (Abadi, Chu, Goodfellow, McMahan, Mironov, Talwar, Zhang 2016).

Deep learning with differential privacy classified digits of MNIST with 97 % at epsilon 8, 95 % at 2 and 90 % at 0.5, at
delta 1e-5; without privacy the same network reached 98.3 %. Varying one hyper-parameter at a time at epsilon 2, its
authors found that accuracy depends more on learning rate and noise than on the structure of the network.

Here `tacit.learn.make_private` trains a linear model of scattering features (Tramer, Boneh 2021) at epsilon 0.5, 1 and
2.45, and a network with 1,000 hidden units at the noise of the paper, by epoch and in sweeps; `bench/learning/mnist.py`
states all hyper-parameters. Without TACIT_DATA, shapes are generated and few steps are made: nothing is to be compared.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from bench.attacks.linkage import mean_interval
from bench.learning import digit_training, mnist
from bench.learning.datasets import has_mnist
from bench.learning.images import Examples, cosines, scattered
from gallery.common import Exhibit, Row, command, figure
from tacit.report.rendering import ACCENT, COMPARISON, GREY, Spec, dots, label, line, plot

TITLE: Final = "DP-SGD against epsilon"


def run(small: bool) -> Exhibit:
    """Train at several epsilons, by epoch and in sweeps."""
    examples, size = _examples(small), _size(small)
    features, inputs = examples.through(scattered), examples.through(cosines(mnist.FREQUENCIES))
    outcomes = mnist.against_epsilon(features, size)
    private = {epsilon: [one.accuracy for one in found] for epsilon, found in outcomes.items()}
    linear = digit_training.plain(features, 0, 0, epochs=size.epochs)
    network = digit_training.plain(inputs, round(mnist.REFERENCE.hidden * size.hidden), 0, epochs=size.epochs)
    by_noise, swept = mnist.by_epoch(inputs, size), mnist.sweeps(examples, size)
    published = f"{mnist.PUBLISHED_BASELINE} %, MNIST"
    rows = [
        *(_accuracy_row(epsilon, found) for epsilon, found in sorted(private.items())),
        Row("scattering and linear model without privacy, %", linear),
        Row("network without privacy, %", network, published=published),
        *(_noise_row(noise, outcome) for noise, outcome in by_noise.items()),
        *(_range_row(factor, found) for factor, found in swept.items()),
    ]
    shown = "MNIST, 10,000 test images" if has_mnist() and not small else "generated digits"
    plots = {
        "dp_sgd_epsilon": _against_epsilon(private, by_noise, linear, shown),
        "dp_sgd_epochs": _by_epoch(by_noise, network, shown),
        "dp_sgd_sweeps": _sweeps(swept, shown),
    }
    return Exhibit(TITLE, rows, plots)


def _size(small: bool) -> mnist.Size:
    if small:
        return mnist.Size(seeds=1, steps=0.02, hidden=0.05, epochs=2, values=2)
    return mnist.Size() if has_mnist() else mnist.Size(steps=0.1, hidden=0.2)


def _examples(small: bool) -> Examples:
    if small:
        return Examples.generated(600, 200)
    if has_mnist():
        return Examples.mnist()
    return Examples.generated(6000, 2000)


def _accuracy_row(epsilon: float, found: list[float]) -> Row:
    stated = mnist.PUBLISHED.get(epsilon)
    published = "" if stated is None else f"{stated:g} %, MNIST"
    bounds = mean_interval(np.array(found)) if len(found) > 1 else None
    return Row(f"scattering and linear model, epsilon {epsilon:g}, %", float(np.mean(found)), bounds, published)


def _noise_row(noise: float, outcome: digit_training.Outcome) -> Row:
    published = f"{mnist.PUBLISHED[mnist.BY_NOISE[noise][0]]:g} %, MNIST"
    name = f"network, noise {noise:g}, epsilon {outcome.epsilon:.2g}, after {len(outcome.accuracies)} epochs, %"
    return Row(name, outcome.accuracy, published=published)


def _range_row(factor: str, found: Mapping[float, float]) -> Row:
    """Return the distance of the best from the worst accuracy of a sweep."""
    least, most = min(found), max(found)
    return Row(
        f"network, epsilon 2, {factor} {figure(least)} to {figure(most)}: range, points",
        float(np.ptp(list(found.values()))),
    )


PERCENT: Final = "test accuracy, %"
PUBLISHED_STYLE: Final[Spec] = {"color": GREY, "shape": "diamond", "size": 90}
SWEEP_SIDE: Final = 190


def _accuracy(values: list[float]) -> Spec:
    """Return the axis of accuracies from below the least one to 100 %."""
    return {"scale": {"domain": [math.floor(min(values)) - 1, 100], "nice": False}, "axis": {"title": PERCENT}}


def _against_epsilon(
    private: Mapping[float, list[float]], by_noise: Mapping[float, Any], baseline: float, data: str
) -> Spec:
    means = [(epsilon, float(np.mean(found))) for epsilon, found in sorted(private.items())]
    bars = [
        {"x": epsilon, "y": float(np.mean(found) - np.std(found)), "y2": float(np.mean(found) + np.std(found))}
        for epsilon, found in private.items()
    ]
    network = sorted((outcome.epsilon, outcome.accuracy) for outcome in by_noise.values())
    published = sorted(mnist.PUBLISHED.items())
    values = [y for _, y in (*means, *network, *published)]
    runs, least = len(next(iter(private.values()))), min(0.4, 0.8 * network[0][0])
    return plot(
        "How accurate is a private classifier of digits?",
        [
            f"{data}; delta 1e-5, Poisson samples; linear model: mean and deviation of {runs} run{'s'[: runs - 1]}",
            "dashed: the linear model without privacy",
        ],
        x={
            "scale": {"type": "log", "domain": [least, 10]},
            "axis": {"title": "epsilon (log scale)", "values": [0.5, 1, 2, 4, 8], "format": "~g"},
        },
        y=_accuracy(values),
        layers=[
            line([(least, baseline), (10, baseline)], **COMPARISON),
            line(published, color=GREY, strokeWidth=1.5),
            dots(published, **PUBLISHED_STYLE),
            label(published[-1], "published, MNIST", align="right", dx=0, dy=16, color=GREY),
            line(network, strokeWidth=1.5),
            dots(network, filled=False, fill="white", strokeWidth=2),
            label(network[1], "network of 1,000 units, no PCA", align="left", dx=6, dy=14),
            {"data": {"values": bars}, "mark": {"type": "rule", "color": ACCENT}, "encoding": {"y2": {"field": "y2"}}},
            line(means),
            dots(means),
            label(means[-1], "scattering and linear model", align="left", dx=10, dy=0),
        ],
    )


def _by_epoch(by_noise: Mapping[float, Any], network: float, data: str) -> Spec:
    layers, values = [], []
    longest = max(len(outcome.accuracies) for outcome in by_noise.values())
    layers.append(line([(0, network), (1.3 * longest, network)], **COMPARISON))
    for noise, outcome in by_noise.items():
        points = list(enumerate(outcome.accuracies, start=1))
        values += outcome.accuracies
        layers += [
            line(points),
            label(points[-1], f"noise {noise:g}, epsilon {outcome.epsilon:.2g}", align="left", dx=7),
        ]
    return plot(
        "Accuracy by epoch at large, medium and small noise",
        [
            f"{data}; a network of 1,000 hidden units",
            "each run ends where its epsilon is spent; dashed: without privacy",
        ],
        x={"scale": {"domain": [0, 1.3 * longest]}, "axis": {"title": "epoch"}},
        y=_accuracy(sorted(values)[len(values) // 50 :]),
        layers=layers,
    )


def _sweeps(swept: Mapping[str, Mapping[float, float]], data: str) -> Spec:
    """Return small multiples, one for each factor, with one axis of accuracies."""
    y = _accuracy([value for found in swept.values() for value in found.values()])
    frames = []
    for factor, found in swept.items():
        x = {
            "scale": {"type": "log", "nice": False, "padding": 12},
            "axis": {"title": factor, "values": list(found), "format": "~g"},
        }
        points = sorted(found.items())
        frame = plot(factor, [], x=x, y=y, layers=[line(points), dots(points)])
        frames.append(
            {name: frame[name] for name in ("encoding", "layer")} | {"width": SWEEP_SIDE, "height": SWEEP_SIDE}
        )
    whole = plot(
        "Which hyper-parameters matter?",
        [f"{data}; a network at epsilon 2, one factor varied at a time, one run each; axes of factors are logarithmic"],
        x={},
        y={},
        layers=[],
    )
    kept = {name: whole[name] for name in ("$schema", "description", "background", "padding", "title", "config")}
    return kept | {"concat": frames, "columns": 3}


if __name__ == "__main__":
    command(run)()
