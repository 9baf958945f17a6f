"""Secrets from random counts (Dinur, Nissim 2003; Dwork, McSherry, Talwar 2007).

Ten random counts for each person suffice: with noise of a standard deviation of c sqrt(n), the bits that fit the
answers best by least squares are right for a share of about Phi(sqrt(9) / (4 c)). That is predicted for least squares
without the bounds 0 and 1, and at least 4 counts a person. At c = 0.25, where a count of half of 2,000 people is off by
1 %, all but a few bits are recovered.

tacit divides epsilon among the questions: at epsilon 1 in all the noise is hundreds of times that, and the guesses are
no better than coins.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Final

import numpy as np

from gallery.common import (
    NOISE_AXIS,
    SHARE,
    Exhibit,
    Row,
    command,
    counted,
    curated,
    data_label,
    guessed_right,
    guesses_row,
    on_tacit,
    with_noise,
)
from tacit import attack
from tacit.attack.linear_reconstruction import COUNTS_EACH, predicted_recovery
from tacit.report.rendering import COMPARISON, dots, label, line, plot

TITLE: Final = "Secrets from random counts"
NOISES: Final = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 10.0)
"""Standard deviations of the noise, over the square root of the number of people."""


def run(small: bool) -> Exhibit:
    """Decode random counts with several noises, and those of a curator."""
    people, asked = (200, 8) if small else (2_000, 60)
    random = np.random.default_rng(4)
    found = {}
    for noise in NOISES:
        target = counted(with_noise(partial(random.normal, 0, noise * math.sqrt(people))), people)
        found[noise] = attack.run("reconstruction", target, seed=1)
    points = [(noise, guessed_right(one)) for noise, one in found.items()]
    with curated(asked, 1.0) as target:
        private = attack.run("reconstruction", target, 1.0, seed=1)
    tacits = (private.details["noise_over_root_people"], guessed_right(private))
    curve = [(float(noise), _predicted(float(noise), people)) for noise in np.geomspace(0.1, 300, 80)]
    rows = [
        *(
            guesses_row(f"bits recovered of {people:,}, {name}", found[noise], "", f"{_predicted(noise, people):.4f}")
            for noise, name in ((0.25, "noise 0.25 sqrt(n)"), (1.0, "noise sqrt(n)"))
        ),
        guesses_row(f"tacit, epsilon 1 in all, {asked} people", private),
        Row("tacit: noise over sqrt(n)", tacits[0]),
    ]
    spec = plot(
        "Bits recovered from ten random counts a person",
        [
            f"{people:,} people, {COUNTS_EACH * people:,} counts; {data_label()}",
            "dashed: predicted for least squares without bounds",
        ],
        x={
            "scale": {"type": "log", "domain": [0.09, 400]},
            "axis": {**NOISE_AXIS, "values": [0.1, 0.25, 0.5, 1, 2, 4, 10, 30, 100, 300]},
        },
        y=SHARE,
        layers=[
            line(curve, **COMPARISON),
            dots(points),
            on_tacit([tacits]),
            label(tacits, f"tacit, epsilon 1 in all ({asked} people)", align="right", dx=40, dy=24),
        ],
    )
    return Exhibit(TITLE, rows, {"dinur_nissim_decoding": spec})


def _predicted(noise: float, people: int) -> float:
    predicted = predicted_recovery(COUNTS_EACH * people, people, noise * math.sqrt(people))
    assert predicted is not None  # it is known for so many counts a person
    return predicted


if __name__ == "__main__":
    command(run)()
