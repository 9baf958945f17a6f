"""Audit of a training by canaries: records that independent fair coins put into it or left out.

One run: the number of guesses is a share of the canaries that is fixed here, before any score is looked at; taking the
best of several numbers of guesses would not be a bound. Independent runs: each training has one canary, and a threshold
that is found on one half of them is measured on the other.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tacit.attack.confidence import (
    best_guesses,
    clopper_pearson,
    epsilon_of_counts,
    one_run_epsilon,
    one_run_gaussian_epsilon,
)
from tacit.attack.finding import Measurement, Power, ThreatModel
from tacit.attack.kit import Outcome, Setting, attack
from tacit.attack.mechanism_audit import find_event
from tacit.attack.targets import Model
from tacit.privacy.errors import InvalidInput

GUESSED_SHARE: Final = 0.05
"""The share of canaries that are guessed: the highest and the lowest scores."""
CANARIES_MIN: Final = 20
_ACCESS: Final = ThreatModel("scores of canaries", "the canaries", 0)


@attack(
    "canary_audit",
    Model,
    paper="Steinke, Nasr, Jagielski 2023; Gaussian trade-off: Mahloujifar, Melis, Chaudhuri 2024",
    summary="lower bound on epsilon from canaries in one training",
    needs=("one_run",),
)
def audit_one_run(target: Model, setting: Setting) -> Outcome:
    """Return the lower bound that the right guesses about canaries of one training show."""
    canaries = len(target.scores)
    _require_canaries(canaries)
    guesses = max(10, round(GUESSED_SHARE * canaries))
    scores = target.scores + 1e-12 * np.ptp(target.scores) * setting.random.random(canaries)  # ties at random
    chosen, guessed = best_guesses(scores, guesses)
    right = int((target.present[chosen] == guessed).sum())
    bound = one_run_epsilon(canaries, guesses, right, setting.delta, setting.confidence)
    planted = one_run_epsilon(canaries, guesses, guesses, setting.delta, setting.confidence)
    null = int((target.present[chosen] == setting.random.permutation(guessed)).sum())
    details = {"canaries": canaries, "guesses": guesses, "right": right, "delta": setting.delta}
    if setting.delta:
        details["gaussian_lower_bound"] = one_run_gaussian_epsilon(
            canaries, guesses, right, setting.delta, setting.confidence
        )
    ceiling = None if setting.claim is None or setting.claim.epsilon is None else setting.claim.accuracy
    return Outcome(
        _ACCESS,
        (
            Measurement(
                "canaries guessed right",
                right / guesses,
                clopper_pearson(right, guesses, (1 - setting.confidence) / 2),
                baseline=0.5,
                ceiling=ceiling,
            ),
        ),
        bound,
        f"one run, {guesses} guesses fixed beforehand",
        Power(
            "a model that names its canaries",
            planted,
            one_run_epsilon(canaries, guesses, null, setting.delta, setting.confidence),
            setting.refutes(planted),
        ),
        assumptions=("each canary was put in or left out by an independent fair coin",),
        details=details,
    )


@attack(
    "canary_audit",
    Model,
    paper="Jagielski, Ullman, Oprea 2020; Nasr et al. 2021",
    summary="lower bound on epsilon from canaries in independent trainings",
    needs=("many_runs",),
)
def audit_many_runs(target: Model, setting: Setting) -> Outcome:
    """Return the lower bound that a threshold shows which was found on other trainings."""
    trainings = len(target.scores)
    _require_canaries(trainings)
    order = setting.random.permutation(trainings)
    seek, measure = order[: trainings // 2], order[trainings // 2 :]
    ones, others = (target.scores[seek][target.present[seek] == one] for one in (True, False))
    if not len(ones) or not len(others) or len(set(target.present[measure].tolist())) < 2:
        raise InvalidInput("there must be trainings with and without their canary", name="present")
    event = find_event(ones, others, setting.delta, setting.confidence)
    accused, present = event.contains(target.scores[measure]), target.present[measure]
    inside, outside = int(present.sum()), int((~present).sum())
    hits, alarms = int(accused[present].sum()), int(accused[~present].sum())
    planted = epsilon_of_counts(inside, inside, 0, outside, setting.delta, setting.confidence)
    coins = setting.random.integers(0, 2, len(present)).astype(bool)
    null = epsilon_of_counts(
        int(coins[present].sum()), inside, int(coins[~present].sum()), outside, setting.delta, setting.confidence
    )
    error = (1 - setting.confidence) / 2
    return Outcome(
        _ACCESS,
        (
            Measurement("found, of trainings with their canary", hits / inside, clopper_pearson(hits, inside, error)),
            Measurement("accused, of those without", alarms / outside, clopper_pearson(alarms, outside, error)),
        ),
        epsilon_of_counts(hits, inside, alarms, outside, setting.delta, setting.confidence),
        "Clopper-Pearson bounds of a threshold found on other trainings",
        Power("a model that names its canary", planted, null, setting.refutes(planted)),
        assumptions=("the trainings are independent",),
        details={"trainings": trainings, "delta": setting.delta},
    )


def _require_canaries(count: int) -> None:
    if count < CANARIES_MIN:
        raise InvalidInput(f"an audit needs at least {CANARIES_MIN} canaries or trainings, not {count}", name="scores")
