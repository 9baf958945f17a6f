"""Private learning: steps of training beside plain torch and Opacus, estimators beside their peers, and PATE.

Estimators and PATE read MNIST and Adult from the folder TACIT_DATA; without it only what is generated is measured.
"""

from __future__ import annotations

from collections.abc import Iterator

from bench.learning import estimators, pate, throughput
from bench.results import Result


def run(quick: bool) -> Iterator[Result]:
    """Measure steps, estimators and PATE."""
    yield from throughput.run(quick)
    yield from estimators.run(quick)
    yield from pate.run(quick)
