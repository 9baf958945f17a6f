"""Arithmetic on ids (Cohen, Nissim 2018, against Diffix).

Diffix answered any number of SQL questions with small Gaussian noise that was fixed by the text of the question
("sticky"), so that averaging did not help, and it refused lists of people. A condition such as
(id * 7919 + 81) % 2147483647 % 1009 < 505 lists nobody, and selects a pseudorandom half of them; each such condition
has noise of its own. Cohen and Nissim recovered secrets of a production system by a linear program over its answers.

Here a database with sticky noise stands for it, and least squares for the linear program. The predicted share is for
least squares without the bounds 0 and 1, and at least 4 counts a person. tacit answers the same SQL, and charges for
each question.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import duckdb
import numpy as np
import pandas as pd

from gallery.common import (
    NOISE_AXIS,
    SHARE,
    Exhibit,
    Row,
    command,
    curated,
    data_label,
    guessed_right,
    guesses_row,
    on_tacit,
    over_secrets,
)
from tacit import attack
from tacit.attack.linear_reconstruction import predicted_recovery
from tacit.attack.targets import Mask
from tacit.report.rendering import COMPARISON, dots, label, line, plot

TITLE: Final = "Arithmetic on ids"
DEVIATIONS: Final = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
STICKY: Final = 2.0
"""The standard deviation of the noise that stands for that of Diffix."""


def run(small: bool) -> Exhibit:
    """Attack sticky noise of several sizes, and a curator, through SQL."""
    people, asked = (60, 8) if small else (200, 60)
    found = {}
    for deviation in (STICKY, 8.0) if small else DEVIATIONS:
        with _sticky(people, deviation) as target:
            found[deviation] = attack.run("linear_sql", target, seed=1)
    points = [(deviation / math.sqrt(people), guessed_right(one)) for deviation, one in found.items()]
    with curated(asked, 1.0) as target:
        private = attack.run("linear_sql", target, 1.0, seed=1)
    tacits = (private.measured("noise_deviation").value / math.sqrt(asked), guessed_right(private))
    questions = 4 * people + 1
    predicted = [
        (float(noise), predicted_recovery(questions, people, float(noise) * math.sqrt(people)))
        for noise in np.geomspace(points[0][0], 200, 80)
    ]
    rows = [
        guesses_row(
            f"secrets recovered of {people}, sticky noise of {STICKY:g}",
            found[STICKY],
            "succeeded",
            f"{predicted_recovery(questions, people, STICKY):.4f}",
        ),
        Row("questions asked", questions),
        guesses_row(f"tacit, epsilon 1 in all, {asked} people", private),
        Row("tacit: noise over sqrt(n)", tacits[0]),
    ]
    spec = plot(
        "Secrets from conditions that list nobody",
        [
            f"{people} people, {questions:,} questions in SQL; {data_label()}",
            "dashed: predicted for least squares without the bounds 0 and 1",
        ],
        x={
            "scale": {"type": "log", "domain": [0.027, 250]},
            "axis": {**NOISE_AXIS, "values": [0.03, 0.1, 0.3, 1, 3, 10, 30, 100]},
        },
        y=SHARE,
        layers=[
            line(predicted, **COMPARISON),
            dots(points),
            label(points[-2], "sticky noise", align="left", dx=10, dy=-8),
            on_tacit([tacits]),
            label(tacits, f"tacit, epsilon 1 in all ({asked} people)", align="right", dx=40, dy=-22),
        ],
    )
    return Exhibit(TITLE, rows, {"diffix_query": spec})


@contextmanager
def _sticky(people: int, deviation: float) -> Iterator[attack.QueryInterface]:
    """Yield a database whose noise is fixed by the text of a question."""
    with duckdb.connect() as connection:

        def made(secrets: Mask) -> Callable[[str], float]:
            connection.register("people", pd.DataFrame({"id": range(people), "secret": secrets}))
            return ask

        def ask(sql: str) -> float:
            (count,) = connection.execute(sql).fetchone() or (0,)
            noise = np.random.default_rng(zlib.crc32(sql.encode())).normal(0, deviation)
            return float(round(count + noise))

        yield over_secrets(made, people, table="people", unit="id", secret="secret")


if __name__ == "__main__":
    command(run)()
