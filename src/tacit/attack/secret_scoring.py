"""How guesses about secrets are scored: the right ones, the bound on epsilon that they show, and the two twins.

Secrets that were drawn for the attack are independent and uniform, and the bound is that of one run (`confidence`).
Secrets of real data are taken to be independent, each 1 with their true share, or with the attacker's prior if that is
further from one half: what an attacker learns about the share is no leak of a person. That is an assumption, and a
finding says so. The guesses that count are those of the attack itself, all
of them, so that their number is fixed beforehand.

An attack that asks in the wrong way (ids in another spelling, secrets of other people) finds nothing on an interface
that leaks everything, and its twins, which are computed from the truth, do not tell. So `doubt_about` compares the
answers with the truth before a finding is called consistent.

The question in the game is whether one person's secret is 1: the interface counts people with the secret, so a person
without it might as well not be in the data, and neighbours differ by one person added or removed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from tacit.attack.confidence import clopper_pearson, one_run_epsilon
from tacit.attack.finding import Measurement, Power, RocPoint
from tacit.attack.kit import Setting
from tacit.attack.power import Share, of_guesses
from tacit.attack.query_interface import Interface, Question
from tacit.attack.targets import Mask, Numbers

ROC_RATES: Final = (0.001, 0.01, 0.1, 0.5)
"""The rates of wrong accusations at which the rates of right ones are reported."""

SIMULATED: Final = 400
"""How many guesses are simulated at least, at one epsilon."""
FALSE_ALARMS: Final = 1e-4
"""The rate of each of two tests at which answers with independent noise of mean 0 are taken for answers to others."""

DOUBT: Final = "the answers do not fit the truth that was handed over"

Guess = Callable[[Numbers], Mask]
"""Guesses the secrets from the answers to questions."""
Count = Callable[[Mask], Numbers]
"""Returns the exact answers to questions for some secrets."""


@dataclass(frozen=True)
class Scored:
    """The guesses of an attack on an interface, and on its twins."""

    measurement: Measurement
    lower_bound: float
    power: Power
    assumptions: tuple[str, ...]
    method: str


def score(
    interface: Interface,
    guessed: Mask,
    planted: Mask,
    null: tuple[Mask, Mask],
    setting: Setting,
    people: NDArray[np.int64] | None = None,
    *,
    estimates: Numbers,
    everybody: float,
    predicted: float | None = None,
    share_at: Share | None = None,
) -> Scored:
    """Score guesses about people (all, unless indices are given), beside those on the twins.

    `estimates` are linear estimates of the people's secrets, `everybody` is the answer about all; both serve the
    comparison with the truth. `planted` are the guesses from exact answers, `null` those from answers about other
    secrets, with these secrets. `share_at` returns the share of right guesses at an epsilon of all answers together.
    """
    truth = interface.truth if people is None else interface.truth[people]
    share = 0.5 if interface.is_drawn else float(interface.truth.mean())
    believed = share if interface.is_drawn or setting.prior is None else setting.prior
    likelier = min(max(share, 1 - share, believed, 1 - believed), 1 - 1e-9)
    right = int((guessed == truth).sum())

    def bound(count: int) -> float:
        return one_run_epsilon(len(truth), len(truth), count, setting.delta, setting.confidence, prior=likelier)

    claim = setting.claim
    ceiling = None
    if claim is not None and claim.epsilon is not None:
        # everybody is guessed: by the prior alone, but for those whom delta reveals, or as if it were even
        ceiling = max(likelier + (1 - likelier) * claim.delta, claim.accuracy)
    revealed = bound(int((planted == truth).sum()))
    measured = Measurement(
        "secrets guessed right",
        right / len(truth),
        clopper_pearson(right, len(truth), (1 - setting.confidence) / 2),
        baseline=max(believed, 1 - believed),
        predicted=predicted,
        ceiling=ceiling,
        key="secrets_guessed_right",
    )
    doubt = doubt_about(interface, setting, estimates, truth, everybody)
    power = Power(
        "the same answers without noise",
        revealed,
        bound(int((null[0] == null[1]).sum())),
        setting.refutes(revealed) and not doubt,
        doubt,
        least_epsilon=None
        if share_at is None
        else of_guesses(claim, setting.confidence, share_at, secrets=len(truth), guesses=len(truth), prior=likelier),
    )
    assumed: tuple[str, ...] = ()
    if not interface.is_drawn:
        assumed = (f"secrets are independent, the likelier value with prior {likelier:.3g}",)
        if setting.delta and likelier > 0.5:
            assumed += ("the term in delta holds for this prior as it does for an even one (not proved)",)
    return Scored(measured, bound(right), power, assumed, f"one run, {len(truth)} guesses")


def doubt_about(interface: Interface, setting: Setting, estimates: Numbers, truth: Mask, everybody: float) -> str:
    """Return why the answers cannot be about these secrets, or nothing.

    Two tests, each with a false alarm in one of 10,000 interfaces whose noise is independent and of mean 0: the count
    of everybody is within the Laplace noise of one answer under the claim; and the estimated secrets of people with the
    secret are greater by 1 than those of people without, within their own spread (Welch's t-test). An interface whose
    answers do not depend on who is asked about fails the second: it cannot be told from one that is asked wrongly.
    """
    each = interface.epsilon_each
    if each is None and setting.claim is not None and setting.claim.epsilon:
        each = setting.claim.epsilon / interface.asked
    if each and abs(everybody - interface.truth.sum()) > 0.5 + math.log(1 / FALSE_ALARMS) / each:
        return DOUBT
    return doubt_about_people(estimates, truth)


def doubt_about_people(estimates: Numbers, truth: Mask) -> str:
    """Return why estimates of secrets cannot be about people with these secrets, or nothing."""
    ones, others = estimates[truth], estimates[~truth]
    if min(len(ones), len(others)) < 2:
        return ""
    gap = float(ones.mean() - others.mean())
    parts = np.array([ones.var(ddof=1) / len(ones), others.var(ddof=1) / len(others)])
    error = math.sqrt(parts.sum())
    if error < 1e-9 * (1 + abs(gap)):
        return DOUBT if abs(gap - 1) > 1e-6 else ""
    freedom = parts.sum() ** 2 / (parts**2 / (np.array([len(ones), len(others)]) - 1)).sum()
    return DOUBT if abs(gap - 1) > float(stats.t.isf(FALSE_ALARMS / 2, freedom)) * error else ""


def doubt_about_total(interface: Interface, answers: Numbers, slack: float) -> str:
    """Return why answers cannot all be the count of everybody with the secret, give or take `slack`, or nothing.

    Their mean is compared with the truth within its own error (Student's t-test).
    """
    if len(answers) < 2:
        return ""
    error = float(answers.std(ddof=1)) / math.sqrt(len(answers))
    far = slack + float(stats.t.isf(FALSE_ALARMS / 2, len(answers) - 1)) * error
    return DOUBT if abs(float(answers.mean()) - interface.truth.sum()) > far + 1e-6 else ""


def twins(interface: Interface, count: Count, setting: Setting, guess: Guess) -> tuple[Mask, tuple[Mask, Mask]]:
    """Return the guesses from exact answers, and those from exact answers about other secrets with these secrets."""
    others = setting.random.permutation(interface.truth)
    return guess(count(interface.truth)), (guess(count(others)), interface.truth)


def simulated(
    interface: Interface,
    setting: Setting,
    exact: Numbers,
    guess: Guess,
    truth: Mask,
    same: NDArray[np.int64] | None = None,
) -> Share:
    """Return the share of right guesses from answers with Laplace noise, by simulation.

    Each answer has an even part of epsilon. `same` numbers answers that are one answer, repeated.
    """
    same = np.arange(len(exact)) if same is None else same
    times = max(1, math.ceil(SIMULATED / len(truth)))
    noise = parts_of_epsilon(interface, setting) * setting.random.laplace(size=(times, int(same.max()) + 1))
    return lambda epsilon: float(np.mean([guess(exact + one[same] / epsilon) == truth for one in noise]))


def parts_of_epsilon(interface: Interface, setting: Setting) -> float:
    """Return over how many answers the claimed epsilon is divided."""
    if interface.epsilon_each is None or setting.claim is None or not setting.claim.epsilon:
        return float(interface.asked)
    return setting.claim.epsilon / interface.epsilon_each


def exact_counts(questions: Sequence[Question]) -> Count:
    """Return the function that answers questions exactly."""
    return lambda secrets: np.array([float(secrets[one.people].sum()) for one in questions])


def roc(inside: Numbers, outside: Numbers, setting: Setting) -> tuple[RocPoint, ...]:
    """Return rates of right and wrong accusations at some thresholds, with bounds, under the ceiling of the claim."""
    if np.median(inside) < np.median(outside):
        inside, outside = -inside, -outside
    points, error, claim = [], (1 - setting.confidence) / 2, setting.claim
    for rate in ROC_RATES:
        threshold = np.quantile(outside, 1 - rate, method="higher")
        hits, alarms = int((inside > threshold).sum()), int((outside > threshold).sum())
        bounds = clopper_pearson(alarms, len(outside), error)
        ceiling = None if claim is None or claim.epsilon is None else claim.true_positive_rate(bounds[1])
        found = clopper_pearson(hits, len(inside), error)
        points.append(RocPoint(alarms / len(outside), hits / len(inside), bounds, found, ceiling))
    return tuple(points)


def worst(interface: Interface, guessed: Mask, certainty: Numbers, limit: int = 5) -> tuple[dict[str, Any], ...]:
    """Return the people whose secret was guessed right with the greatest certainty."""
    right = np.flatnonzero(guessed == interface.truth)
    order = right[np.argsort(-certainty[right], kind="stable")][:limit]
    ids = interface.target.ids
    return tuple(
        {
            "person": int(one) if ids is None else ids[one],
            "secret": bool(interface.truth[one]),
            "certainty": float(certainty[one]),
        }
        for one in order
    )
