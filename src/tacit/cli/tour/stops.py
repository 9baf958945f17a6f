"""The stops of the tour: questions about the clinic, asked through the mechanisms.

Every stop returns what was asked, what came back, what is true and what it cost; how that looks is left to `screen`.
All promises are under one relation, replace-one, because the median's needs it and relations are never mixed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import fmean, median_low
from typing import Any, Final, TypeAlias

from tacit.cli.tour.clinic import DIAGNOSES, STAY_DAYS_MAX, WEIGHT_KG_MAX, Patient
from tacit.mechanisms import Exponential, Geometric, Laplace, RandomizedResponse, SmoothMedian
from tacit.privacy import Relation

RELATION: Final = Relation.REPLACE_ONE
BUDGET_EPSILON: Final = 3.0
LEVEL: Final = 0.95
PRIOR: Final = 0.02
TIMES_ASKED: Final = 1_000
AGE_GROUPS: Final = (range(18), range(18, 35), range(35, 50), range(50, 65), range(65, 80), range(80, 100))

People: TypeAlias = Sequence[Patient]
Value: TypeAlias = int | float | str


@dataclass(frozen=True, slots=True)
class Answer:
    """A private answer beside the true one; `low` and `high` enclose the answer without noise, if they are known."""

    answer: Value
    truth: Value
    low: float | None = None
    high: float | None = None
    label: str = ""


@dataclass(frozen=True, slots=True)
class Stop:
    """One question, its answers, what they cost together, and why they are private."""

    name: str
    question: str
    answers: tuple[Answer, ...]
    unit: str
    epsilon: float
    why: str


@dataclass(frozen=True, slots=True)
class Averaging:
    """What the average over many answers to one question gives away."""

    times_asked: int
    epsilon_each: float
    epsilon_total: float
    average: float
    truth: int
    within_budget: int


def count(people: People) -> Stop:
    """Count the patients with diabetes."""
    truth = _with_diabetes(people)
    mechanism = Geometric(sensitivity=1, epsilon=0.5, relation=RELATION)
    answer = mechanism.release(truth)
    return Stop(
        name="count",
        question="How many patients have diabetes?",
        answers=(Answer(answer, truth, *mechanism.interval(LEVEL, answer)),),
        unit="",
        epsilon=_epsilon(mechanism),
        why="One patient moves the count by 1 at most; noise of that size hides which one.",
    )


def mean(people: People) -> Stop:
    """Average the patients' weights: a noisy sum over their number, which is public."""
    weights = [patient.weight_kg for patient in people]
    mechanism = Laplace(sensitivity=WEIGHT_KG_MAX, epsilon=0.25, relation=RELATION)
    total = mechanism.release(sum(weights))
    low, high = mechanism.interval(LEVEL, total)
    return Stop(
        name="mean",
        question="What does a patient weigh, on average?",
        answers=(Answer(total / len(people), fmean(weights), low / len(people), high / len(people)),),
        unit="kg",
        epsilon=_epsilon(mechanism),
        why=f"Weights count as 0 to {WEIGHT_KG_MAX:g} kg, so one patient moves the sum by no more than that.",
    )


def histogram(people: People) -> Stop:
    """Count the patients by age group, all groups at one price."""
    truths = [sum(patient.age in group for patient in people) for group in AGE_GROUPS]
    mechanism = Geometric(sensitivity=2, epsilon=0.5, relation=RELATION)
    answers = [int(answer) for answer in mechanism.release(truths)]
    return Stop(
        name="histogram",
        question="How old are the patients?",
        answers=tuple(
            Answer(answer, truth, *mechanism.interval(LEVEL, answer), label=f"{group.start}–{group.stop - 1}")
            for group, answer, truth in zip(AGE_GROUPS, answers, truths, strict=True)
        ),
        unit="",
        epsilon=_epsilon(mechanism),
        why="Somebody else in one patient's place moves two groups by 1 each, however many groups there are.",
    )


def choice(people: People) -> Stop:
    """Choose the most common diagnosis."""
    counted = Counter(patient.diagnosis for patient in people)
    candidates = list(DIAGNOSES)
    mechanism = Exponential(sensitivity=1, epsilon=0.1, relation=RELATION)
    chosen = candidates[mechanism.release([counted[candidate] for candidate in candidates])]
    behind = -round(mechanism.interval(LEVEL, len(candidates)).low)
    return Stop(
        name="choice",
        question="Which diagnosis is the most common?",
        answers=(Answer(chosen, counted.most_common(1)[0][0]),),
        unit="",
        epsilon=_epsilon(mechanism),
        why=f"Drawn by weighted lot; in 95 of 100 draws at most {behind} patients behind the most common.",
    )


def median(people: People) -> Stop:
    """Find the median stay, with noise that is fitted to the data by smooth sensitivity."""
    stays = [patient.stay_days for patient in people]
    mechanism = SmoothMedian(epsilon=0.5, lower=0.0, upper=STAY_DAYS_MAX, relation=RELATION)
    return Stop(
        name="median",
        question="How long is the median stay?",
        answers=(Answer(mechanism.release(stays), median_low(stays)),),
        unit="days",
        epsilon=_epsilon(mechanism),
        why="The noise fits these data, so the width of an interval would tell about them: none is shown.",
    )


def randomized_response(people: People) -> Stop:
    """Estimate how many skipped a medicine, when each answers behind two coins."""
    secrets = [patient.skipped_medicine for patient in people]
    mechanism = RandomizedResponse(truth=Fraction(3, 4), relation=RELATION)
    reports = mechanism.release(secrets)
    low, high = mechanism.interval(LEVEL, reports)
    posterior = mechanism.posterior(PRIOR)
    return Stop(
        name="randomized_response",
        question="How many ever skipped a medicine? Each answers behind two coins",
        answers=(Answer(100 * mechanism.estimate(reports), 100 * fmean(secrets), 100 * low, 100 * high),),
        unit="%",
        epsilon=_epsilon(mechanism),
        why=(
            "Heads: tell the truth. Tails: say what a second coin shows. "
            f"Who thought it {100 * PRIOR:.2g} % likely of somebody thinks {100 * posterior:.2g} % after hearing yes."
        ),
    )


STOPS: Final[tuple[Callable[[People], Stop], ...]] = (count, mean, histogram, choice, median, randomized_response)


def averaging(people: People) -> Averaging:
    """Ask the first question a thousand times with fresh noise, as only somebody without a budget can."""
    truth = _with_diabetes(people)
    mechanism = Geometric(sensitivity=1, epsilon=0.5, relation=RELATION)
    answers = mechanism.release([truth] * TIMES_ASKED)
    epsilon = _epsilon(mechanism)
    return Averaging(
        times_asked=TIMES_ASKED,
        epsilon_each=epsilon,
        epsilon_total=TIMES_ASKED * epsilon,
        average=float(answers.mean()),
        truth=truth,
        within_budget=int(BUDGET_EPSILON // epsilon),
    )


def _with_diabetes(people: People) -> int:
    return sum(patient.diagnosis == "diabetes" for patient in people)


def _epsilon(mechanism: Any) -> float:
    return float(mechanism.event.epsilon)
