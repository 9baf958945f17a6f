"""Private learning: steps of training, estimators, PATE, defences without a guarantee, and groups of people.

MNIST and Adult are read from the folder TACIT_DATA; without it only what is generated is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from bench.learning import defences, estimators, pate, subgroups, throughput
from bench.results import Result

PARTS: Final[Mapping[str, Callable[[bool], Iterator[Result]]]] = {
    "steps": throughput.run,
    "estimators": estimators.run,
    "pate": pate.run,
    "defences": defences.run,
    "subgroups": subgroups.run,
}
"""The parts by the names that `--part` takes."""


def run(quick: bool) -> Iterator[Result]:
    """Measure every part."""
    for part in PARTS.values():
        yield from part(quick)
