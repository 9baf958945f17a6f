"""Secrets of people behind a tacit curator with one epsilon for all questions, attacked by several plans.

Whatever is asked, and however epsilon is divided, a secret that is 1 or 0 with equal probability is guessed right with
probability e^epsilon / (1 + e^epsilon) at most: 0.731 at epsilon 1. One count of one person reaches it, for tacit's
noise on counts is the two-sided geometric. The right guesses of a plan are dominated by a binomial law with that
probability, and a plan refutes the claim if so many would occur with probability 1 % at most.

What a plan could notice is stated beside its share: the least epsilon at which a curator that claims epsilon 1 would be
refuted with probability 90 % (`tacit.attack.power`), for single counts by all runs together, for an attack of the kit
by one run, as its finding says. Plans that divide epsilon among many questions notice nothing but gross faults. Only
plans that notice epsilon 3 or less have a goal.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from bench.attacks.private import interface
from bench.results import Result
from tacit import attack
from tacit.attack.confidence import clopper_pearson
from tacit.attack.power import EPSILON_MAX, accuracy, of_guesses, right_needed
from tacit.attack.query_interface import Question

EPSILON: Final = 1.0
ERROR: Final = 0.01
"""The probability that a curator which spends EPSILON is refuted by one plan, at most."""
NOTICED_MAX: Final = 3.0
"""The greatest epsilon that a plan with a goal must notice."""
SINGLY: Final = "singly"


def refuted_from(guesses: int) -> int:
    """Return the least number of right guesses that refutes EPSILON; above all guesses if none does."""
    return right_needed(EPSILON, 0.0, 1 - ERROR, secrets=guesses, guesses=guesses)


def noticed_singly(counts: int, guesses: int) -> float | None:
    """Return the least epsilon that guesses notice where each is by one of so many counts; infinite if it is none."""
    claim = attack.Claim(EPSILON)
    return of_guesses(claim, 1 - ERROR, lambda one: accuracy(one / counts), secrets=guesses, guesses=guesses)


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
    noticed: float | None
    """The least epsilon that would have been refuted with probability 90 %; None if none would."""

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
        outcome = attacked(plan)
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
    if noticed is None or math.isinf(noticed):
        yield Result(f"{label}: notices no epsilon up to", EPSILON_MAX, "epsilon")
    else:
        yield Result(f"{label}: least epsilon that is noticed", noticed, "epsilon")


def attacked(plan: Plan) -> Outcome:
    """Run a plan on new curators."""
    right = guesses = counts = 0
    noticed = None
    for seed in range(plan.runs):
        with interface(plan.people, EPSILON) as target:
            if plan.attack == SINGLY:
                hits, asked, counts = _guess_singly(target, seed), plan.people, plan.people
            else:
                found = attack.run(plan.attack, target, EPSILON, seed=seed)
                asked, counts = int(found.details["people"]), found.threat_model.queries
                hits = round(found.measured("secrets_guessed_right").value * asked)
                noticed = None if found.power is None else found.power.least_epsilon
        right, guesses = right + hits, guesses + asked
    return Outcome(plan, counts, guesses, right, noticed_singly(counts, guesses) if plan.attack == SINGLY else noticed)


def _guess_singly(target: attack.QueryInterface, seed: int) -> int:
    """Ask for each person alone, and return how many secrets are guessed right."""
    opened = target.open(np.random.default_rng(seed), target.people)
    answers = opened.counts(Question(one) for one in np.eye(target.people, dtype=bool))
    return int(((answers > 0.5) == opened.truth).sum())


def _plural(number: int) -> str:
    return "" if number == 1 else "s"
