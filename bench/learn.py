"""Private learning: steps of training beside plain torch and Opacus, estimators beside their peers, PATE, and DP-SGD.

Estimators, PATE and DP-SGD read MNIST and Adult from the folder TACIT_DATA; without it only what is generated is
measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from bench.learning import estimators, mnist, pate, throughput
from bench.results import Result

PARTS: Final[Mapping[str, Callable[[bool], Iterator[Result]]]] = {
    "steps": throughput.run,
    "estimators": estimators.run,
    "pate": pate.run,
    "mnist": mnist.run,
}
"""The parts by the names that `--part` takes."""


def run(quick: bool) -> Iterator[Result]:
    """Measure every part."""
    for part in PARTS.values():
        yield from part(quick)
