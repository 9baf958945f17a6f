"""Reconstruction of secret bits from noisy counts of subsets (Dinur, Nissim 2003).

reconstruction   Random subsets, and the bits that fit the answers best by least squares within [0, 1], rounded. Against
                 independent noise it is as good as the linear program and far faster. With k n counts and noise of a
                 standard deviation c sqrt(n), a share of about Phi(sqrt(k - 1) / (4 c)) is recovered.
linear_program   The same counts, with the least sum of absolute errors: the right loss where a few answers are far off.
exhaustive       All 2^n counts within E of the truth: whatever fits them is wrong about at most 4 E bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np
from scipy import optimize, sparse, stats

from tacit.attack.finding import Measurement, Series, ThreatModel
from tacit.attack.guesses import score, twins, worst
from tacit.attack.kit import Outcome, Setting, attack
from tacit.attack.targets import Interface, Mask, Numbers, QueryInterface, Question
from tacit.privacy.errors import InvalidInput, OutOfRange

Solve = Callable[[Mask, Numbers], Numbers]
"""Returns a point of [0, 1]^n from subsets and answers, of which the first is about everybody."""

PAPER: Final = "Dinur, Nissim 2003; least squares: Dwork, McSherry, Talwar 2007; Cohen, Nissim 2018"
COUNTS_EACH: Final = 10
"""How many counts are asked for each person."""
PEOPLE_MIN: Final = 8
EXHAUSTIVE_MAX: Final = 12
LINEAR_PROGRAM_MAX: Final = 300
ITERATIONS: Final = 200
BLOCK: Final = 4096
"""How many counts are added to the normal equations at a time."""


def decode(subsets: Mask, answers: Numbers, total: float) -> Numbers:
    """Return the point of [0, 1]^n whose subset sums are nearest to the answers.

    With signs in the place of 0 and 1, a subset's signed sum is twice its count less the count of everybody (`total`),
    and the normal matrix of random subsets is close to a multiple of the identity: a few dozen accelerated projected
    gradients suffice (Beck, Teboulle 2009). Sums of signs are exact in single precision.
    """
    counts, people = subsets.shape
    gram = np.zeros((people, people), dtype=np.float32)
    right = np.zeros(people)
    for start in range(0, counts, BLOCK):
        signs = np.where(subsets[start : start + BLOCK], np.float32(1), np.float32(-1))
        gram += signs.T @ signs
        right += signs.T @ (2 * answers[start : start + BLOCK] - total).astype(np.float32)
    step = 1 / _largest_eigenvalue(gram)
    point = moved = np.full(people, 0.5)
    momentum = 1.0
    for _ in range(ITERATIONS):
        following = np.clip(moved - step * (gram @ moved.astype(np.float32) - right), 0.0, 1.0)
        grown = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        moved = following + (momentum - 1) / grown * (following - point)
        change, point, momentum = float(np.abs(following - point).max()), following, grown
        if change < 1e-5:
            break
    return point


def _largest_eigenvalue(matrix: np.ndarray[tuple[int, int], np.dtype[np.float32]]) -> float:
    """Return the largest eigenvalue by power iterations, with a margin."""
    vector, value = np.ones(len(matrix), dtype=np.float32) + np.arange(len(matrix), dtype=np.float32) % 2, 0.0
    for _ in range(30):
        vector = matrix @ (vector / np.linalg.norm(vector))
        value = float(np.linalg.norm(vector))
    return 1.1 * value


def decode_by_linear_program(subsets: Mask, answers: Numbers) -> Numbers:
    """Return the point of [0, 1]^n with the least sum of absolute errors."""
    counts, people = subsets.shape
    cost = np.concatenate([np.zeros(people), np.ones(counts)])
    matrix, one = sparse.csr_matrix(subsets.astype(np.float64)), sparse.identity(counts)
    left = sparse.vstack([sparse.hstack([matrix, -one]), sparse.hstack([-matrix, -one])])
    limits = [(0.0, 1.0)] * people + [(0.0, None)] * counts
    found = optimize.linprog(cost, left, np.concatenate([answers, -answers]), bounds=limits, method="highs")
    if found.x is None:
        raise InvalidInput("the linear program has no solution for these answers; use reconstruction instead")
    return np.asarray(found.x[:people])


def predicted_recovery(counts: int, people: int, deviation: float) -> float:
    """Return the share of bits that least squares recovers from random counts with independent noise."""
    if deviation == 0:
        return 1.0
    each = max(counts / people - 1, 0.0)
    return float(stats.norm.cdf(math.sqrt(each * people) / (4 * deviation)))


@attack("reconstruction", QueryInterface, paper=PAPER, summary="secret bits from noisy counts of random subsets")
def reconstruct(target: QueryInterface, setting: Setting) -> Outcome:
    """Ask random counts and decode by least squares."""
    return _decoded(target, setting, COUNTS_EACH, lambda subsets, answers: decode(subsets[1:], answers[1:], answers[0]))


@attack(
    "linear_program",
    QueryInterface,
    paper="Dinur, Nissim 2003; Dwork, McSherry, Talwar 2007",
    summary="secret bits from noisy counts of random subsets, some of them far off",
    only_asked=True,
)
def reconstruct_by_linear_program(target: QueryInterface, setting: Setting) -> Outcome:
    """Ask random counts and decode by a linear program."""
    if target.people > LINEAR_PROGRAM_MAX:
        raise OutOfRange(
            f"the linear program is for at most {LINEAR_PROGRAM_MAX} people; use reconstruction", name="people"
        )
    return _decoded(target, setting, 4, decode_by_linear_program)


def _decoded(target: QueryInterface, setting: Setting, each: int, solve: Solve) -> Outcome:
    if target.people < PEOPLE_MIN:
        raise OutOfRange(f"a reconstruction needs at least {PEOPLE_MIN} people", name="people", value=target.people)
    wanted = each * target.people + 1
    interface = target.open(setting.random, wanted)
    subsets = setting.random.integers(0, 2, (wanted, target.people)).astype(bool)
    subsets[0] = True
    questions = [Question(one) for one in subsets]
    answers = interface.counts(questions)
    if len(answers) <= target.people // 2:
        raise InvalidInput(
            f"the interface answered {len(answers)} of {wanted} questions, too few for a reconstruction"
            + (f": {interface.refusal}" if interface.refusal else ""),
            name="target",
        )
    asked, questions = subsets[: len(answers)], questions[: len(answers)]

    def solved(found: Numbers) -> Numbers:
        return solve(asked, found)

    point = solved(answers)
    errors = answers - asked @ interface.truth.astype(np.float64)
    deviation = float(errors.std())
    predicted = predicted_recovery(len(answers), target.people, deviation)
    planted, null = twins(interface, questions, setting, lambda found: solved(found) > 0.5)
    scored = score(interface, point > 0.5, planted, null, setting, predicted=predicted)
    return Outcome(
        _threat(interface, "who the people are"),
        (scored.measurement, Measurement("standard deviation of the noise", deviation)),
        scored.lower_bound,
        scored.method,
        scored.power,
        series=(_by_counts(asked, answers, interface),) if solve is not decode_by_linear_program else (),
        worst=worst(interface, point > 0.5, np.abs(point - 0.5) * 2),
        assumptions=scored.assumptions,
        details={
            "people": target.people,
            "counts": len(answers),
            "refusal": interface.refusal,
            "noise_over_root_people": deviation / math.sqrt(target.people),
        },
    )


def _by_counts(asked: Mask, answers: Numbers, interface: Interface) -> Series:
    """Return the share of right bits after a part of the answers, beside the prediction."""
    points, predicted = [], []
    people = len(interface.truth)
    for share in (0.2, 0.4, 0.6, 0.8, 1.0):
        count = max(people // 2, round(share * len(answers)))
        point = decode(asked[1:count], answers[1:count], answers[0])
        points.append((count, float(((point > 0.5) == interface.truth).mean())))
        deviation = float((answers[:count] - asked[:count] @ interface.truth.astype(np.float64)).std())
        predicted.append((count, predicted_recovery(count, people, deviation)))
    return Series(
        "Secrets recovered", "counts asked", "share guessed right", tuple(points), tuple(predicted), "predicted"
    )


@attack(
    "exhaustive",
    QueryInterface,
    paper="Dinur, Nissim 2003, theorem 1",
    summary="secret bits of a few people from all subset counts",
    only_asked=True,
)
def exhaust(target: QueryInterface, setting: Setting) -> Outcome:
    """Ask all subset counts, and guess a database that fits all of them as well as any."""
    people = target.people
    if not 2 <= people <= EXHAUSTIVE_MAX:
        raise OutOfRange(
            f"all subsets are asked for 2 to {EXHAUSTIVE_MAX} people, not {people}", name="people", value=people
        )
    every = (np.arange(2**people)[:, None] >> np.arange(people) & 1).astype(bool)
    interface = target.open(setting.random, len(every) - 1)
    questions = [Question(one) for one in every[1:]]
    answers = interface.counts(questions)
    if len(answers) < len(questions):
        raise InvalidInput(f"the interface refused to answer all subsets: {interface.refusal}", name="target")
    sums = every[1:].astype(np.float64) @ every.T

    def fitting(found: Numbers) -> Mask:
        distance = np.abs(sums - found[:, None]).max(axis=0)
        return np.asarray(every[int(np.argmin(distance))], dtype=bool)

    guessed = fitting(answers)
    error = float(np.abs(answers - sums[:, int(interface.truth @ 2 ** np.arange(people))]).max())
    distances = np.abs(sums - answers[:, None]).max(axis=0)
    consistent = int((distances <= error + 1e-9).sum())
    wrong = int((guessed != interface.truth).sum())
    planted, null = twins(interface, questions, setting, fitting)
    scored = score(interface, guessed, planted, null, setting)
    return Outcome(
        _threat(interface, "who the people are"),
        (
            scored.measurement,
            Measurement("bits wrong", wrong, predicted=min(float(people), 4 * error)),
            Measurement("databases that fit", consistent, baseline=2.0**people),
        ),
        scored.lower_bound,
        scored.method,
        scored.power,
        assumptions=scored.assumptions,
        details={"largest_error": error, "bits_wrong_at_most": 4 * error},
    )


def _threat(interface: Interface, knowledge: str) -> ThreatModel:
    return ThreatModel("counts of subsets", knowledge, interface.asked)
