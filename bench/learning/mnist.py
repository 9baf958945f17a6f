"""DP-SGD on MNIST: accuracy against epsilon, accuracy by epoch at three noise levels, and sweeps of hyper-parameters.

Scores are percentages of the 10,000 test images. Samples are Poisson samples, charged by loss distributions at delta
1e-5 for one image more or less. `spread` is the standard deviation of runs with other initial weights, and with samples
and noise drawn anew from the operating system. Published figures are those of Abadi et al. 2016.

Accuracy against epsilon: a linear model of scattering features (`images.scattered`: images are made upright,
transformed and standardised by fixed functions), after Tramer and Boneh 2021, with batches of 2,400 and a learning rate
that falls to a fiftieth. Nearly all gradients are longer than the clip.

By epoch: a network of 1,000 hidden units, with the noise of Abadi et al. (8, 4, 2) up to their epsilons (0.5, 2, 8).
Lots are of 2,400 images instead of 600, which takes a quarter of the epochs. Inputs are the 8 x 8 lowest frequencies of
an image, a fixed function of it, instead of 60 private principal components.

Sweeps: the same network at epsilon 2, with lots of 1,200 and noise 1.5 as a reference. One factor is varied at a time,
in one run each. As with Abadi et al., the number of steps is what epsilon 2 allows for lot and noise.

Features, learning rates, clips and numbers of steps were compared on 10,000 of the training images after training on
the others, never on test images. What these comparisons cost is not in epsilon.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

import numpy as np

from bench.learning import digit_training
from bench.learning.datasets import has_mnist
from bench.learning.digit_training import DELTA, Outcome, Recipe
from bench.learning.images import Examples, cosines, scattered
from bench.results import Result
from tacit import accounting
from tacit.privacy.events import Gaussian, Repeated, Sampled

SEEDS: Final = 3
GOALS: Final = {2.45: 98.7, 1.0: 98.0, 0.5: 97.0}
PUBLISHED: Final = {8.0: 97.0, 2.0: 95.0, 0.5: 90.0}
PUBLISHED_BASELINE: Final = 98.3
SCATTERING: Final = {
    2.45: Recipe(1.67, 1.0, 2400, 600, momentum=0.9, last_rate=0.02),
    1.0: Recipe(0.67, 1.0, 2400, 600, momentum=0.9, last_rate=0.02),
    0.5: Recipe(0.33, 1.0, 2400, 600, momentum=0.9, last_rate=0.02),
}
"""The recipes of the linear model, by epsilon."""
FREQUENCIES: Final = 8
BY_NOISE: Final = {
    8.0: (0.5, Recipe(3.0, 1.0, 2400, 0, last_rate=0.1, hidden=1000)),
    4.0: (2.0, Recipe(3.0, 1.0, 2400, 0, last_rate=0.1, hidden=1000)),
    2.0: (8.0, Recipe(3.0, 1.0, 2400, 0, last_rate=0.1, hidden=1000)),
}
"""Epsilon and recipe of the network by noise multiplier; the steps follow."""
SWEEP_EPSILON: Final = 2.0
REFERENCE: Final = Recipe(4.0, 1.0, 1200, 0, hidden=1000, noise=1.5)
FACTORS: Final[Mapping[str, Sequence[float]]] = {
    "hidden units": (250, 500, 1000, 2000),
    "input frequencies": (6, FREQUENCIES, 12, 16),
    "lot size": (600, 1200, 2400, 4800),
    "learning rate": (1.0, 2.0, 4.0, 8.0, 16.0),
    "clip": (0.25, 0.5, 1.0, 2.0, 4.0),
    "noise": (1.0, 1.25, 1.5, 2.0, 2.5),
}
"""The values of each factor, the reference among them."""


@dataclass(frozen=True)
class Size:
    """How much is run: with fewer steps and hidden units nothing is claimed."""

    seeds: int = SEEDS
    steps: float = 1.0
    """The share of the steps of every training."""
    hidden: float = 1.0
    epochs: int = 10
    """Epochs without privacy."""
    values: int = 5
    """The most values of a factor in a sweep."""


QUICK: Final = Size(seeds=1, steps=0.02, hidden=0.1, epochs=2, values=2)


def run(quick: bool) -> Iterator[Result]:
    """Measure accuracy against epsilon, by epoch, and in sweeps; with --quick, few rows and steps."""
    if not has_mnist():
        return
    examples, size, data = Examples.mnist(), Size(), "MNIST"
    if quick:
        examples, size, data = examples.first(3000, 1000), QUICK, "3,000 rows of MNIST, few steps,"
    yield from _accuracies(examples.through(scattered), size, data, are_goals=not quick)
    inputs = examples.through(cosines(FREQUENCIES))
    baseline = digit_training.plain(inputs, round(REFERENCE.hidden * size.hidden), 0, epochs=size.epochs)
    yield Result(f"{data} network without privacy", baseline, "% correct", {"published": PUBLISHED_BASELINE})
    for noise, outcome in by_epoch(inputs, size).items():
        count = len(outcome.accuracies)
        for epoch in sorted({1, 10, count // 2, count} & set(range(1, count + 1))):
            published = {"published": PUBLISHED[BY_NOISE[noise][0]]} if epoch == count else {}
            at = f"noise {noise:g}, epoch {epoch}" + f", epsilon {outcome.epsilon:.3g}" * (epoch == count)
            yield Result(f"{data} network, {at}", outcome.accuracies[epoch - 1], "% correct", published)
    for factor, found in sweeps(examples, size).items():
        name = f"{data} network, epsilon {SWEEP_EPSILON:g}, {factor} {min(found):g} to {max(found):g}"
        yield Result(f"{name}: least", min(found.values()), "% correct")
        yield Result(f"{name}: greatest", max(found.values()), "% correct")


def _accuracies(examples: Examples, size: Size, data: str, *, are_goals: bool) -> Iterator[Result]:
    baseline = digit_training.plain(examples, 0, 0, epochs=size.epochs)
    yield Result(f"{data} scattering without privacy", baseline, "% correct", {"published": PUBLISHED_BASELINE})
    for epsilon, outcomes in against_epsilon(examples, size).items():
        found = [outcome.accuracy for outcome in outcomes]
        peers = {"spread": float(np.std(found)), "published": PUBLISHED.get(epsilon), "without privacy": baseline}
        name, goal = f"{data} scattering, epsilon {epsilon:g}", GOALS[epsilon] if are_goals else None
        yield Result(name, float(np.mean(found)), "% correct", peers, goal, better="higher")
        yield Result(f"{name}: charged", max(outcome.epsilon for outcome in outcomes), "epsilon", goal=epsilon)


def against_epsilon(examples: Examples, size: Size) -> dict[float, list[Outcome]]:
    """Return what private linear models reach by epsilon, one for each seed."""
    found = {}
    for epsilon, recipe in SCATTERING.items():
        scaled = _scaled(replace(recipe, epsilon=epsilon), examples, size)
        found[epsilon] = [digit_training.private(examples, scaled, seed) for seed in range(size.seeds)]
    return found


def by_epoch(inputs: Examples, size: Size) -> dict[float, Outcome]:
    """Return the accuracies of the network after every epoch, by noise multiplier."""
    found = {}
    for noise, (epsilon, recipe) in BY_NOISE.items():
        steps = steps_until(epsilon, noise, recipe.batch_size)
        scaled = _scaled(replace(recipe, noise=noise, steps=steps), inputs, size)
        found[noise] = digit_training.private(inputs, scaled, 0, by_epoch=True)
    return found


def sweeps(examples: Examples, size: Size) -> dict[str, dict[float, float]]:
    """Return the accuracies of the network by factor and by its value; the reference is run once."""
    known: dict[tuple[Recipe, int], float] = {}
    found: dict[str, dict[float, float]] = {}
    for factor, values in FACTORS.items():
        for value in values[: size.values]:
            recipe, frequencies = _varied(factor, value)
            if (recipe, frequencies) not in known:
                inputs = examples.through(cosines(frequencies))
                outcome = digit_training.private(inputs, _scaled(recipe, inputs, size), 0)
                known[recipe, frequencies] = outcome.accuracy
            found.setdefault(factor, {})[value] = known[recipe, frequencies]
    return found


def _varied(factor: str, value: float) -> tuple[Recipe, int]:
    """Return the recipe of a sweep with one factor changed, and the number of frequencies of its inputs."""
    frequencies = FREQUENCIES
    match factor:
        case "hidden units":
            recipe = replace(REFERENCE, hidden=int(value))
        case "input frequencies":
            recipe, frequencies = REFERENCE, int(value)
        case "lot size":
            recipe = replace(REFERENCE, batch_size=int(value))
        case "learning rate":
            recipe = replace(REFERENCE, learning_rate=value)
        case "clip":
            recipe = replace(REFERENCE, clip=value)
        case _:
            recipe = replace(REFERENCE, noise=value)
    assert recipe.noise is not None
    steps = steps_until(SWEEP_EPSILON, recipe.noise, recipe.batch_size)
    return replace(recipe, steps=steps), frequencies


TRAINING_ROWS: Final = 60_000


def _scaled(recipe: Recipe, examples: Examples, size: Size) -> Recipe:
    """Return a recipe of MNIST for fewer rows, at the same sampling rate, and for fewer steps and hidden units."""
    return replace(
        recipe,
        batch_size=max(1, round(recipe.batch_size * len(examples.x) / TRAINING_ROWS)),
        steps=max(1, round(recipe.steps * size.steps)),
        hidden=round(recipe.hidden * size.hidden),
    )


@cache
def steps_until(epsilon: float, noise: float, batch_size: int) -> int:
    """Return how many steps on MNIST an epsilon allows, to a percent below."""

    def cost(steps: int) -> float:
        event = Repeated(Sampled(batch_size / TRAINING_ROWS, Gaussian(noise)), steps)
        return accounting.epsilon(event, DELTA).upper

    least, most = 1, 16
    while cost(most) <= epsilon:
        least, most = most, 4 * most
    while most - least > max(1, least // 100):
        middle = (least + most) // 2
        least, most = (middle, most) if cost(middle) <= epsilon else (least, middle)
    return least
