"""Attacks: published results reproduced, what they show of tacit under one epsilon, audits of noise, and their times.

Every figure is measured in the run; the column "published" shows what the paper states of its own data, "theory" a
closed form: of recovered bits, for least squares without bounds and at least 4 counts a person. With --quick
populations are smaller and runs fewer. What is generated, and how, stands in attacks/data.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from bench.attacks import audits, reconstruction
from bench.attacks.interfaces import curator
from bench.attacks.linkage import linkage
from bench.attacks.suites import PEOPLE, suites
from bench.results import Result


def run(quick: bool) -> Iterator[Result]:
    """Measure reconstruction, interfaces, linkage, audits and the suite."""
    yield from reconstruction.block()
    yield from reconstruction.plausibility(100 if quick else 1_000)
    sizes = (500, 1_000, 2_000) if quick else (500, 1_000, 2_000, 5_000, 10_000)
    yield from reconstruction.decoding(sizes, 3 if quick else 10)
    yield from curator(quick)
    yield from linkage(quick)
    yield from audits.canaries(20 if quick else 200)
    yield from audits.noise(5_000 if quick else 100_000)
    yield from suites(12 if quick else PEOPLE)
