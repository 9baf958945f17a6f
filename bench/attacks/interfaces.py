"""Secrets of people behind a tacit curator with one epsilon for all questions, attacked by several plans.

Whatever is asked, and however epsilon is divided, a secret that is 1 or 0 with equal probability is guessed right with
probability e^epsilon / (1 + e^epsilon) at most: 0.731 at epsilon 1. One count of one person reaches it, for tacit's
noise on counts is the two-sided geometric. The right guesses of a plan are dominated by a binomial law with that
probability, and a plan refutes the claim if so many would occur with probability 1 % at most.

What a plan could notice is stated beside its share: the least epsilon at which a curator that claims epsilon 1 would be
refuted with probability 90 %, in closed form for single counts, otherwise by simulation of the plan with noise of
that epsilon. Plans that divide epsilon among many questions notice nothing but gross faults. Only plans that notice
epsilon 3 or less have a goal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Final

import numpy as np
from scipy import stats

from bench.attacks.private import interface
from bench.results import Result
from tacit import attack
from tacit.attack.confidence import clopper_pearson
from tacit.attack.linear_reconstruction import Subsets, decode
from tacit.attack.power import EPSILON_MAX, accuracy, least_noticed
from tacit.attack.targets import Mask, Numbers, Question

EPSILON: Final = 1.0
ERROR: Final = 0.01
"""The probability that a curator which spends EPSILON is refuted by one plan, at most."""
NOTICED_MAX: Final = 3.0
"""The greatest epsilon that a plan with a goal must notice."""
REPLICATES: Final = 40
"""How often a plan is simulated at one epsilon."""
SINGLY: Final = "singly"
WEIGHTS: Final[dict[str, Sequence[float]]] = {"differencing": (1.0,), "averaging": (0.6, 0.2, 0.2)}
"""The parts of different answers in the mean that a plan takes of the count of all but one person.

Of the five spellings that averaging uses, tacit knows three as the same question, and repeats its answer.
"""


def refuted_from(guesses: int) -> int:
    """Return the least number of right guesses that refutes EPSILON; above all guesses if none does."""
    return int(stats.binom.isf(ERROR, guesses, accuracy(EPSILON))) + 1


@dataclass(frozen=True)
class Plan:
    """How questions are chosen: an attack of the kit, or one count for each person."""

    attack: str
    people: int
    runs: int
    """How many times the attack is run, each on secrets and with a curator of its own."""


@dataclass(frozen=True)
class Outcome:
    """What a plan asked in one run, and its guesses of all runs."""

    plan: Plan
    counts: int
    guesses: int
    right: int

    @property
    def label(self) -> str:
        """The plan with the numbers of people and counts that it really had."""
        people = self.guesses // self.plan.runs
        sizes = f"{people} {'person' if people == 1 else 'people'}, {self.counts:,} count{_plural(self.counts)}"
        name = "" if self.plan.attack == SINGLY else f"{self.plan.attack}, "
        return f"{name}{sizes}, {self.plan.runs} run{_plural(self.plan.runs)}"

    @property
    def is_refuted(self) -> bool:
        """Whether so many right guesses refute EPSILON."""
        return self.right >= refuted_from(self.guesses)

    @cached_property
    def noticed(self) -> float | None:
        """The least epsilon that would have been refuted with probability 90 %; None if none would."""
        return least_noticed(self.power, EPSILON)

    def power(self, epsilon: float) -> float:
        """Return the probability that a curator with the noise of another epsilon is refuted."""
        least = refuted_from(self.guesses)
        if self.plan.attack == SINGLY:
            return float(stats.binom.sf(least - 1, self.guesses, accuracy(epsilon / self.counts)))
        random = np.random.default_rng(0)
        found = [sum(self._simulated(epsilon, random) for _ in range(self.plan.runs)) for _ in range(REPLICATES)]
        return float(np.mean([right >= least for right in found]))

    def _simulated(self, epsilon: float, random: np.random.Generator) -> int:
        """Return how many secrets one run guesses right where all counts together have the noise of an epsilon."""
        people = self.guesses // self.plan.runs
        secrets = random.integers(0, 2, people).astype(bool)
        noise = partial(_geometric, epsilon / self.counts, random)
        if self.plan.attack in WEIGHTS:
            found = _differenced(secrets, WEIGHTS[self.plan.attack], noise)
        else:
            found = _decoded(secrets, Subsets.drawn(self.counts, people, random), noise)
        return int((found == secrets).sum())


Draw = Callable[[int], Numbers]
"""Returns so many values of noise."""


def _decoded(secrets: Mask, subsets: Subsets, noise: Draw) -> Mask:
    return decode(subsets, subsets.sums(secrets) + noise(len(subsets))) > 0.5


def _differenced(secrets: Mask, weights: Sequence[float], noise: Draw) -> Mask:
    """Guess by differences from the count of everybody, which has one answer however often it is asked."""
    others = sum(weight * noise(len(secrets)) for weight in weights)
    return np.asarray(secrets + noise(1) - others > 0.5)


def _geometric(epsilon: float, random: np.random.Generator, size: int) -> Numbers:
    """Return two-sided geometric noise."""
    ones, others = (random.geometric(-math.expm1(-epsilon), size) for _ in range(2))
    return np.asarray(ones - others, dtype=np.float64)


QUICK: Final = (
    Plan(SINGLY, 1, 50),
    Plan(SINGLY, 10, 2),
    Plan("reconstruction", 16, 1),
    Plan("differencing", 30, 1),
    Plan("averaging", 30, 1),
    Plan("linear_sql", 16, 1),
)
FULL: Final = (
    Plan(SINGLY, 1, 400),
    Plan(SINGLY, 10, 40),
    Plan("reconstruction", 100, 4),
    Plan("differencing", 30, 20),
    Plan("averaging", 30, 20),
    Plan("linear_sql", 100, 4),
)


def curator(quick: bool) -> Iterator[Result]:
    """Attack tacit's own curator by each plan."""
    plans, refuted, strong = QUICK if quick else FULL, 0, 0
    for plan in plans:
        outcome = _attacked(plan)
        refuted += outcome.is_refuted
        strong += outcome.noticed is not None and outcome.noticed <= NOTICED_MAX
        yield from judged(outcome)
    power = f"{strong} of {len(plans)} would notice epsilon {NOTICED_MAX:g}"
    yield Result(f"tacit at epsilon {EPSILON:g}: plans that refute it ({power})", refuted, "plans", goal=0)


def judged(outcome: Outcome) -> Iterator[Result]:
    """Report the share of right guesses with its interval, and what the plan could have noticed."""
    label, noticed = f"tacit at epsilon {EPSILON:g}, {outcome.label}", outcome.noticed
    has_goal = noticed is not None and noticed <= NOTICED_MAX
    goal = (refuted_from(outcome.guesses) - 1) / outcome.guesses if has_goal else None
    low, high = clopper_pearson(outcome.right, outcome.guesses, 0.025)
    yield Result(f"{label}: right of {outcome.guesses:,} guesses", outcome.right / outcome.guesses, "share", goal=goal)
    yield Result(f"{label}: low end of the 95 % interval", low, "share")
    yield Result(f"{label}: high end of the 95 % interval", high, "share")
    if noticed is None:
        yield Result(f"{label}: notices no epsilon up to", EPSILON_MAX, "epsilon")
    else:
        yield Result(f"{label}: least epsilon that is noticed", noticed, "epsilon")


def _attacked(plan: Plan) -> Outcome:
    right = guesses = counts = 0
    for seed in range(plan.runs):
        with interface(plan.people, EPSILON) as target:
            if plan.attack == SINGLY:
                hits, asked, counts = _guess_singly(target, seed), plan.people, plan.people
            else:
                found = attack.run(plan.attack, target, EPSILON, seed=seed)
                asked, counts = int(found.details["people"]), found.threat_model.queries
                hits = round(found.measurements[0].value * asked)
        right, guesses = right + hits, guesses + asked
    return Outcome(plan, counts, guesses, right)


def _guess_singly(target: attack.QueryInterface, seed: int) -> int:
    """Ask for each person alone, and return how many secrets are guessed right."""
    opened = target.open(np.random.default_rng(seed), target.people)
    answers = opened.counts(Question(one) for one in np.eye(target.people, dtype=bool))
    return int(((answers > 0.5) == opened.truth).sum())


def _plural(number: int) -> str:
    return "" if number == 1 else "s"
