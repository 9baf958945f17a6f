"""This installation on trial: its mechanisms, statistics and curator as targets of attacks, over invented data.

Nothing of a data owner is read or charged: curators work in temporary folders, over secrets that the attacks draw
themselves, and the budgets of statistics are made for one call each. Every target states what it promises, in the
events that the ledger would charge.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np

from tacit.attack import Mechanism, QueryInterface, neighbouring_lists
from tacit.attack.kit import attacks_on
from tacit.curator.curator import Curator
from tacit.ledger import Budget
from tacit.mechanisms import (
    Exponential,
    Gaussian,
    Laplace,
    PermuteAndFlip,
    RandomizedResponse,
    ReportNoisyMax,
    SmoothMedian,
    SparseVector,
    StableMode,
)
from tacit.stats import mean, quantile

EPSILON: Final = 1.0
DELTA: Final = 1e-6
PEOPLE: Final = 40
PEOPLE_TIMED: Final = 140
"""Side channels need more people than reconstructions, whose number of queries grows with them."""
CHANNELS: Final = frozenset({"timing", "errors", "consistency"})
SAMPLES: Final = {"ci": 1_000, "nightly": 10_000, "full": 50_000}
"""How many outputs are drawn for each input by effort, of mechanisms and statistics that release one at a time."""
SCORES: Final = ([3, 2, 2, 0], [2, 2, 2, 0])
VALUES: Final = [0.1, 0.4, 0.5, 0.6, 0.9]
PAIRS: Final = [(VALUES, VALUES[:-1]), ([1.0] * 3, [1.0] * 2), ([0.0, 0.0, 1.0], [0.0, 0.0])]


@dataclass(frozen=True, slots=True)
class Trial:
    """A target with its name and what it promises."""

    name: str
    target: Any
    promise: Any
    delta: float = 0.0
    leaves_out: frozenset[str] = frozenset()
    """Attacks that are run on another target of the same kind."""


@contextmanager
def trials(effort: str = "ci") -> Iterator[list[Trial]]:
    """Yield the targets; the folders of their curators last as long as the block."""
    with ExitStack() as stack, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # budgets of one call and folders that are deleted
        yield [*_mechanisms(SAMPLES[effort]), *_statistics(effort), *_curators(stack)]


def _mechanisms(samples: int) -> Iterator[Trial]:
    for mechanism, x, neighbour, delta in (
        (Laplace(1, EPSILON), 0, 1, 0.0),
        (Laplace(1.0, EPSILON), 0.25, 1.25, 0.0),
        (Gaussian(1, EPSILON, DELTA), 0, 1, DELTA),
        (Gaussian(1.0, EPSILON, DELTA), 0.25, 1.25, DELTA),
        (Exponential(1, EPSILON), *SCORES, 0.0),
        (PermuteAndFlip(1, EPSILON), *SCORES, 0.0),
        (ReportNoisyMax(1, EPSILON), *SCORES, 0.0),
        (RandomizedResponse(EPSILON), [0], [1], 0.0),
        (SparseVector(1, EPSILON, 2, positives=1), *SCORES, 0.0),
        (SmoothMedian(EPSILON, 0, 1), VALUES, [*VALUES[:-1], 0.0], 0.0),
        (StableMode(EPSILON, DELTA), ["a"] * 30, ["a"] * 29, DELTA),
    ):
        is_number = isinstance(x, int | float)
        kind = "" if not is_number else " on integers" if isinstance(x, int) else " on reals"
        target = Mechanism(mechanism, x, neighbour, samples=None if is_number else samples)
        yield Trial(f"{type(mechanism).__name__}{kind}", target, mechanism.event, delta)


def _statistics(effort: str) -> Iterator[Trial]:
    def released(statistic: Callable[..., Any], **options: Any) -> Callable[[Any], float]:
        def release(values: Any) -> float:
            return float(
                statistic(values, bounds=(0, 1), epsilon=EPSILON, budget=Budget(epsilon=EPSILON), **options).value
            )

        return release

    for name, release in (("mean", released(mean)), ("quantile", released(quantile, q=0.5))):
        neighbours = PAIRS if effort == "ci" else neighbouring_lists(5, 0, 1)
        target = Mechanism(release, neighbours=neighbours, samples=SAMPLES[effort] // 2)
        yield Trial(f"stats.{name}", target, EPSILON)


def _curators(stack: ExitStack) -> Iterator[Trial]:
    def make(secrets: np.ndarray[Any, np.dtype[np.bool_]]) -> Curator:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="tacit-audit-")))
        curator = stack.enter_context(Curator(folder))
        rows = folder / "people.csv"
        rows.write_text("id,ill\n" + "".join(f"{one},{int(secret)}\n" for one, secret in enumerate(secrets)))
        curator.add_table("people", rows, unit="id")
        curator.set_budget("people", EPSILON, epsilon_min=0)
        return curator

    def target(people: int) -> QueryInterface:
        return QueryInterface(make=make, people=people, table="people", unit="id", secret="ill = 1", epsilon=EPSILON)

    asked = target(PEOPLE)
    others = frozenset(one.name for one in attacks_on(asked, effort="full")) - CHANNELS
    yield Trial("curator", asked, EPSILON, leaves_out=CHANNELS)
    yield Trial("curator, side channels", target(PEOPLE_TIMED), EPSILON, leaves_out=others)
