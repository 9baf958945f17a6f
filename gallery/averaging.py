"""Averaging (Asghar, Kaafar 2020).

The table builder of a statistics office adds whole noise between -2 and 2 to every count, and answers as many
questions as are asked. Questions that mean the same, written differently, get noise of their own, so that the mean of
their answers tends to the truth: with fewer than 200 questions about a person the noise is gone.

tacit repeats its answer to a question that it knows, in most spellings, and charges epsilon for any other. Many
answers for epsilon 1 together tell less, not more, than two of them. Everybody is in every question: epsilon 1 for each
of 500 guesses is 500 in all, for everyone. The last row has epsilon 1 in all.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Final

import numpy as np
from scipy import stats

from gallery.common import (
    LIMIT,
    SHARE,
    Answer,
    Exhibit,
    command,
    counted,
    curated,
    data_label,
    guessed_right,
    guesses_row,
    limit,
    on_tacit,
    with_noise,
)
from tacit import attack
from tacit.mechanisms import Geometric
from tacit.report.rendering import COMPARISON, dots, label, line, plot

TITLE: Final = "Averaging"
NOISE: Final = 2
ANSWERS: Final = (1, 2, 5, 10, 20, 50, 100)
"""How many answers are averaged for each of the two counts of a person."""


def run(small: bool) -> Exhibit:
    """Average answers of an interface with bounded noise, and of tacit."""
    effort, people = ("ci", 60) if small else ("full", 500)
    random = np.random.default_rng(1)
    noisy, charged = [], []
    for answers in ANSWERS:
        target = counted(with_noise(partial(_mean_noise, answers, random)), people)
        noisy.append(attack.run("differencing", target, effort=effort, seed=1))
        charged.append(attack.run("differencing", counted(_mean_released(answers), people), 1.0, effort=effort, seed=1))
    open_, private = (
        [(2 * answers, guessed_right(one)) for answers, one in zip(ANSWERS, found, strict=True)]
        for found in (noisy, charged)
    )
    guesses = charged[0].details["people"]
    with curated(4 if small else 30, 1.0) as target:
        in_all = attack.run("averaging", target, 1.0, seed=1)
    most, each = limit(charged[0]), f"tacit, epsilon 1 for each of {guesses} guesses, {guesses} in all"
    rows = [
        guesses_row("secrets guessed right from 2 answers with bounded noise", noisy[0], "", f"{_predicted(2):.3f}"),
        guesses_row("from 200 answers", noisy[-1], "nearly every one", f"{_predicted(200):.3f}"),
        guesses_row(f"{each}: 2 answers", charged[0]),
        guesses_row(f"{each}: 200 answers", charged[-1]),
        guesses_row(f"tacit, a curator with epsilon 1 in all, {in_all.details['people']} guesses", in_all),
    ]
    curve = [(float(answers), _predicted(float(answers))) for answers in np.geomspace(2, 200, 40)]
    spec = plot(
        "Noise that is drawn anew averages out",
        [
            f"{guesses} people attacked at each point; {data_label()}",
            "dashed: predicted; dotted: the most for one guess at epsilon 1",
        ],
        x={
            "scale": {"type": "log", "domain": [1.8, 230]},
            "axis": {"title": "answers about a person (log scale)", "values": [2 * n for n in ANSWERS], "format": "~g"},
        },
        y=SHARE,
        layers=[
            line(curve, **COMPARISON),
            line([(2, most), (200, most)], **LIMIT),
            dots(open_),
            label(open_[4], f"noise between -{NOISE} and {NOISE}, drawn anew", align="left", dx=12, dy=0),
            line(private, strokeWidth=1.5),
            on_tacit(private),
            label((20, 0.37), f"tacit, epsilon 1 for each guess, {guesses} in all", align="center"),
        ],
    )
    return Exhibit(TITLE, rows, {"averaging": spec})


def _mean_noise(answers: int, random: np.random.Generator) -> float:
    return float(random.integers(-NOISE, NOISE + 1, answers).mean())


def _mean_released(answers: int) -> Answer:
    """Return the mean of answers of tacit for epsilon 1 / 2 in all."""
    noise = Geometric(sensitivity=1, epsilon=1 / (2 * answers))
    return lambda count, _: noise.release(np.full(answers, count)).mean()


def _predicted(answers: float) -> float:
    """Return the share that is guessed right from the mean difference of so many answers."""
    deviation = math.sqrt(((2 * NOISE + 1) ** 2 - 1) / 12)  # of whole numbers that are uniform
    return float(stats.norm.cdf(math.sqrt(answers / 2) / (2 * math.sqrt(2) * deviation)))


if __name__ == "__main__":
    command(run)()
