"""The census block (Garfinkel, Abowd, Martindale 2018).

A statistics office publishes eight harmless figures about a block of seven people: counts, mean and median ages by sex,
race and marital status, one cell suppressed. A constraint solver lists the databases that fit them: there is one, so
every record is public. Without statistic 4A two databases fit, without 2A and 2B eight, and four records are in all of
them.

Below, the same block by sex, race and marital status alone, where 3,432 databases of seven people are possible. Exact
counts by two columns leave one of them; tacit's counts at a stated epsilon, with intervals that all hold with 95 %
probability, leave hundreds or all.
"""

from __future__ import annotations

from math import comb
from typing import Final

from bench.attacks.data import BLOCK
from bench.attacks.private import block_tables
from gallery.common import NAMES, Exhibit, Row, command, ranked
from tacit import attack
from tacit.attack.table_reconstruction import databases
from tacit.report.rendering import plot

TITLE: Final = "The census block"
CASES: Final = (((), "1", "7"), (("4A",), "2", ""), (("2A", "2B"), "8", "4"))
EPSILONS: Final = (16.0, 4.0, 1.0)


def run(small: bool) -> Exhibit:
    """Count the databases that fit, with all statistics, with fewer, and with noise."""
    rows, points = [], []
    for left_out, fitting, certain in CASES:
        found = attack.run("table_reconstruction", attack.Statistics.of_tables(BLOCK.without(left_out)))
        name = f"without {' and '.join(left_out)}" if left_out else "all statistics"
        rows += [
            Row(f"databases that fit {name}", found.measured("databases").value, published=fitting),
            Row(
                f"certain records, {name}",
                round(found.measured("certain_records").value * BLOCK.people),
                published=certain,
            ),
        ]
        points.append((found.measured("databases").value, f"published block, {name}"))
    for epsilon in (None, *(EPSILONS[-1:] if small else EPSILONS)):
        count = float(len(databases(block_tables(epsilon)).found))
        name = "exact counts by two columns" if epsilon is None else f"tacit at epsilon {epsilon:g}"
        rows.append(Row(f"databases without ages that fit, {name}", count))
        points.append((count, f"without ages, {name}"))
    everything = float(comb(BLOCK.people + 7, 7))
    points.append((everything, "without ages, nothing published"))
    spec = plot(
        "How many databases fit what was published?",
        ["a block of seven people; one database means that every record is public"],
        x={
            "scale": {"type": "log", "domain": [0.8, 20_000]},
            "axis": {"title": "databases that fit (log scale)", "values": [1, 10, 100, 1_000, 10_000], "format": ","},
        },
        y=NAMES,
        layers=ranked(points, 0.8),
    )
    return Exhibit(TITLE, rows, {"census_block": spec})


if __name__ == "__main__":
    command(run)()
