"""All counts, and what no noise below n / 4 hides (Dinur, Nissim 2003, theorem 1).

An interface answers how many people of a subset have a secret, for all 2^n subsets, each within E of the truth. Any
database that fits all answers is wrong about at most 4 E people: if it differed more, the answers about those with the
secret in one and not in the other would be off by more than E. So noise that keeps all counts useful keeps no secrets.

Noise that is drawn at random hides nobody, even far beyond n / 4. The best that answers within E can do is to lie
half-way between the truth and a decoy, in which 2 E people with the secret and 2 E without are swapped: then nobody
can tell the two apart. tacit answers the 2^n - 1 questions too, and divides epsilon among them: the noise of each is
far beyond n.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from gallery.common import Exhibit, Row, command, counted, curated, data_label, over_secrets, with_noise
from tacit import attack
from tacit.attack.targets import Mask
from tacit.report.rendering import COMPARISON, GREY, dots, label, line, plot

TITLE: Final = "All counts"
ERRORS: Final = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
SWAPPED: Final = (0, 1, 2, 3, 4)
"""How many people with the secret are swapped with as many without it."""

Point = tuple[float, float]


def run(small: bool) -> Exhibit:
    """Attack answers with random noise, answers half-way to a decoy, and a curator."""
    people, runs = (6, 2) if small else (10, 20)
    random = np.random.default_rng(2)
    drawn = [
        _attacked(counted(with_noise(partial(random.uniform, -error, error)), people), seed)
        for error in ERRORS
        for seed in range(runs)
    ]
    decoys = [
        _attacked(over_secrets(partial(_half_way, swapped=swapped), people), seed)
        for swapped in SWAPPED
        for seed in range(runs)
    ]
    beyond = sum(wrong > 4 * error + 1e-9 for error, wrong in (*drawn, *decoys))
    private, asked = [], 4 if small else 6
    for seed in range(runs):
        with curated(asked, 1.0) as target:
            private.append(_attacked(target, seed))
    off, wrong_each = np.mean(private, axis=0)
    rows = [
        Row("runs with more secrets wrong than 4 E", beyond, theory="0"),
        Row(f"secrets of {people} wrong at most, random noise within 3", max(wrong for _, wrong in drawn)),
        Row("secrets wrong at most, half-way to a decoy", max(wrong for _, wrong in decoys), theory="at most 4 E"),
        Row("the E of these answers", max(error for error, _ in decoys)),
        Row(f"tacit, epsilon 1 in all, {asked} people: largest error, mean", float(off)),
        Row(f"tacit, epsilon 1 in all, {asked} people: secrets wrong, mean", float(wrong_each)),
    ]
    spec = plot(
        "What all counts give away",
        [f"{people} people, {2**people:,} counts, {runs} runs of each kind; {data_label()}"],
        x={
            "scale": {"domain": [-0.08, 3.1], "nice": False},
            "axis": {"title": "largest error of an answer (E)", "values": [0, 0.5, 1, 1.5, 2, 2.5, 3]},
        },
        y={
            "scale": {"domain": [-0.3, people], "nice": False},
            "axis": {"title": f"secrets wrong, of {people}", "values": list(range(0, people + 1, 2))},
        },
        layers=[
            line([(0, 0), (people / 4, people)], **COMPARISON),
            label((people / 5, people * 0.8), "4 E: at most, proven", align="right", dx=-12, color=GREY),
            line([(0, people / 2), (3.1, people / 2)], **COMPARISON, opacity=0.5),
            label((3.1, people / 2), "by guessing", align="right", dy=-12, color=GREY),
            dots(decoys, shape="diamond", size=140),
            dots(drawn, color=GREY, size=36),
            label((3.1, 0), "random noise within E", align="right", dy=-16, color=GREY),
            label(max(decoys), "half-way to a decoy", align="left", dx=12),
        ],
    )
    return Exhibit(TITLE, rows, {"dinur_nissim_exhaustive": spec})


def _attacked(target: attack.QueryInterface, seed: int) -> Point:
    """Return the largest error of an answer, and how many secrets are guessed wrong."""
    found = attack.run("exhaustive", target, seed=seed)
    return found.details["largest_error"], found.measured("bits_wrong").value


def _half_way(secrets: Mask, swapped: int) -> Callable[[Mask], Any]:
    """Return answers half-way between the secrets and a decoy."""
    decoy = secrets.copy()
    count = min(swapped, int(secrets.sum()), int((~secrets).sum()))
    for value in (True, False):
        decoy[np.flatnonzero(secrets == value)[:count]] = not value
    return lambda asked: ((secrets & asked).sum() + (decoy & asked).sum()) / 2


if __name__ == "__main__":
    command(run)()
