"""The whole suite over one target of each kind: how long it takes, and what it says.

The targets are small but complete: a table with a register, statistics in both forms, a curator's SQL interface, a
mechanism, and canaries of one training. The curator is asked under a total epsilon of 1 by each attack.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from bench.attacks.data import BLOCK, employees_and_voters
from bench.attacks.private import interface
from bench.results import Result
from tacit import attack
from tacit.accounting.conversions import mu_for
from tacit.mechanisms import Laplace

SECONDS: Final = 60.0
PEOPLE: Final = 40
CANARIES: Final = 1_000
ATTRIBUTES: Final = 2_000
MEMBERS: Final = 50

Target = tuple[str, Any, Any]
"""The kind of target, the target, and what is claimed of it."""


@contextmanager
def targets(people: int) -> Iterator[list[Target]]:
    """Yield one target of each kind with its claim; the curator holds so many people."""
    random = np.random.default_rng(0)
    shares = random.uniform(0.1, 0.9, ATTRIBUTES)
    members, outsiders = ((random.random((MEMBERS, ATTRIBUTES)) < shares).astype(float) for _ in range(2))
    means = members.mean(axis=0) + random.laplace(scale=ATTRIBUTES / MEMBERS, size=ATTRIBUTES)
    present = random.integers(0, 2, CANARIES).astype(bool)
    scores = mu_for(4.0, 1e-5) * present + random.normal(size=CANARIES)
    risk = attack.Claim(risk=0.1)
    with interface(people, 1.0) as asked:
        yield [
            ("Table", employees_and_voters(random, employees=10_000), risk),
            ("Statistics of tables", attack.Statistics.of_tables(BLOCK), risk),
            (
                "Statistics of means",
                attack.Statistics.of_means(means, shares, members=members, outsiders=outsiders),
                1.0,
            ),
            ("QueryInterface", asked, 1.0),
            ("Mechanism", attack.Mechanism(Laplace(sensitivity=1.0, epsilon=1.0), 0.0, 1.0), 1.0),
            ("Model", attack.Model(scores, present, noise="gaussian"), (4.0, 1e-5)),
        ]


def _runs(effort: str, people: int) -> dict[str, tuple[float, list[attack.Finding]]]:
    """Return the seconds and the findings of the suite by kind of target."""
    taken = {}
    with targets(people) as listed:
        for kind, target, claim in listed:
            begun_s = time.perf_counter()
            findings = attack.suite(target, claim, effort=effort, seed=0)
            taken[kind] = (time.perf_counter() - begun_s, findings)
    return taken


def suites(people: int) -> Iterator[Result]:
    """Measure the suite of continuous integration."""
    taken = _runs("ci", people)
    for kind, (seconds, findings) in taken.items():
        size = f" of {people} people" if kind == "QueryInterface" else ""
        yield Result(f"ci suite, {kind}{size}: time of {len(findings)} attacks", seconds, "s")
    yield Result("ci suite: time over all targets", sum(seconds for seconds, _ in taken.values()), "s", goal=SECONDS)
    private = ("Statistics of means", "QueryInterface", "Mechanism", "Model")
    refuted = sum(one.is_violation for kind in private for one in taken[kind][1])
    yield Result("ci suite: attacks that refute a private release", refuted, "attacks", goal=0)
