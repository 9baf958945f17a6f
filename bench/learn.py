"""Private learning: training steps, estimators, DP-SGD on MNIST, DP-FTRL, PATE, randomised labels and
rows, defences without a guarantee, and accuracy by subgroups.

Real data are MNIST and Adult in the folder TACIT_DATA; without it only what is generated is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from bench.learning import defences, estimators, matrix_noise, methods, mnist, pate, randomized, subgroups, throughput
from bench.results import Result

PARTS: Final[Mapping[str, Callable[[bool], Iterator[Result]]]] = {
    "steps": throughput.run,
    "estimators": estimators.run,
    "methods": methods.run,
    "mnist": mnist.run,
    "ftrl": matrix_noise.run,
    "pate": pate.run,
    "randomized": randomized.run,
    "defences": defences.run,
    "subgroups": subgroups.run,
}
"""The parts by the names that `--part` takes."""


def run(quick: bool) -> Iterator[Result]:
    """Measure every part."""
    for part in PARTS.values():
        yield from part(quick)
