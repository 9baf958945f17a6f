"""Differencing (Denning 1980).

A database refuses counts of fewer than ten people, and hopes that large groups hide everyone. It answers how many
people have a secret, and how many of all but one person have it: the difference is that person's secret. However large
the least group is, two allowed questions are enough.

tacit answers both questions with noise and charges epsilon for each. From answers that cost epsilon together, no attack
guesses a secret right more often than e^epsilon / (1 + e^epsilon): the dotted line. Everybody is in every question:
epsilon 1 for each of 500 guesses is 500 in all, for everyone. The last row has epsilon 1 in all.
"""

from __future__ import annotations

from typing import Final

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
)
from tacit import QueryRefused, attack
from tacit.mechanisms import Geometric
from tacit.report.rendering import label, line, plot

TITLE: Final = "Differencing"
LEAST_GROUP: Final = 10
EPSILONS: Final = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)


def run(small: bool) -> Exhibit:
    """Attack counts with a least group size, and counts with noise of several epsilons."""
    effort, people = ("ci", 100) if small else ("full", 500)
    open_ = attack.run("differencing", counted(_of_large_groups, people), effort=effort, seed=1)
    exact, guesses = guessed_right(open_), open_.details["people"]
    found = {
        epsilon: attack.run("differencing", counted(_released(epsilon / 2), people), epsilon, effort=effort, seed=1)
        for epsilon in EPSILONS
    }
    points = [(epsilon, guessed_right(one)) for epsilon, one in found.items()]
    limits = [(epsilon, limit(one)) for epsilon, one in found.items()]
    with curated(10 if small else 30, 1.0) as target:
        in_all = attack.run("differencing", target, 1.0, seed=1)
    rows = [
        guesses_row(f"secrets guessed right, exact counts of at least {LEAST_GROUP} people", open_, "every one", "1"),
        guesses_row(f"tacit, epsilon 1 for each of {guesses} guesses, {guesses} in all", found[1.0]),
        guesses_row(f"tacit, a curator with epsilon 1 in all, {in_all.details['people']} guesses", in_all),
    ]
    spec = plot(
        "One person's secret from two counts",
        [
            f"{guesses} people attacked at each epsilon; {data_label()}",
            "dotted: the most that any attack can reach on average",
        ],
        x={
            "scale": {"type": "log", "domain": [0.09, 9]},
            "axis": {"title": "epsilon of the two answers (log scale)", "values": list(EPSILONS), "format": "~g"},
        },
        y=SHARE,
        layers=[
            line([(epsilon, exact) for epsilon in EPSILONS]),
            label((EPSILONS[0], exact), f"exact counts of at least {LEAST_GROUP} people", align="left", dy=16),
            line(limits, interpolate="monotone", **LIMIT),
            line(points, strokeWidth=1.5),
            on_tacit(points),
            label(points[-3], "tacit", align="left", dx=12, dy=10),
        ],
    )
    return Exhibit(TITLE, rows, {"differencing": spec})


def _released(epsilon: float) -> Answer:
    """Return tacit's noise on a count."""
    noise = Geometric(sensitivity=1, epsilon=epsilon)
    return lambda count, _: noise.release(count)


def _of_large_groups(count: int, people: int) -> int:
    """Return an exact count, but refuse small groups."""
    if people < LEAST_GROUP:
        raise QueryRefused(f"groups of fewer than {LEAST_GROUP} people are not counted")
    return count


if __name__ == "__main__":
    command(run)()
