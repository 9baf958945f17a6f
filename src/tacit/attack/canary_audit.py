"""Audit of a training by canaries: records that independent fair coins put into it or left out.

One run: the number of guesses follows from the number of canaries, and is fixed before any score is looked at; taking
the best of several numbers of guesses would not be a bound. Where the noise is known to be Gaussian, the same guesses
refute Gaussian trade-off curves (f-DP), which shows more; a training with other noise may be as private as claimed and
have no such curve, so this audit judges claims about Gaussian noise alone. Independent runs: each training has one
canary, and a threshold that is found on one half of them is measured on the other.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np
from scipy import stats

from tacit.accounting.conversions import mu_for
from tacit.attack.confidence import (
    best_guesses,
    clopper_pearson,
    epsilon_of_counts,
    one_run_epsilon,
    one_run_gaussian_epsilon,
)
from tacit.attack.finding import GAUSSIAN, Measurement, Power, ThreatModel
from tacit.attack.kit import Outcome, Setting, attack
from tacit.attack.mechanism_audit import measure
from tacit.attack.power import accuracy, least_noticed, of_tests
from tacit.attack.targets import DoesNotFit, Mask, Model, Numbers

GUESSES: Final = 2.25
"""Guesses over the square root of the number of canaries.

Chosen by simulation of Gaussian noise with 100 to 20,000 canaries: near the best at epsilon 2 and 4, and below it by up
to a seventh at 1 and 8, where more guesses are better.
"""
SIMULATED: Final = 1_000
"""How many guesses about Gaussian noise are simulated at least, at one epsilon."""
CANARIES_MIN: Final = 20
COINS: Final = "each canary was put in or left out by an independent fair coin"
_ACCESS: Final = ThreatModel("scores of canaries", "the canaries", 0)


Bound = Callable[[int, int, int, float, float], float]
"""A lower bound on epsilon by the numbers of canaries, guesses and right guesses, delta and the confidence."""


@attack(
    "canary_audit",
    Model,
    paper="Steinke, Nasr, Jagielski 2023",
    summary="lower bound on epsilon from canaries in one training",
    needs=("one_run",),
)
def audit_one_run(target: Model, setting: Setting) -> Outcome:
    """Return the lower bound that the right guesses about canaries of one training show."""
    return audited_in_one_run(target.scores, target.present, setting, (COINS,))


@attack(
    "gaussian_canary_audit",
    Model,
    paper="Mahloujifar, Melis, Chaudhuri 2024",
    summary="the same for a training with Gaussian noise, by its trade-off curve (f-DP)",
    needs=("one_run",),
    needs_delta=True,
    noise=GAUSSIAN,
)
def audit_one_gaussian_run(target: Model, setting: Setting) -> Outcome:
    """Return the epsilon of the widest Gaussian trade-off curve that the right guesses refute."""
    outcome = audited_in_one_run(
        target.scores,
        target.present,
        setting,
        (COINS, "the trade-off curve of the training is Gaussian"),
        bound_of=one_run_gaussian_epsilon,
        share=lambda epsilon, guesses: _gaussian_share(len(target.scores), guesses, epsilon, setting.delta),
    )
    if target.noise == GAUSSIAN or (setting.claim is not None and setting.claim.noise == GAUSSIAN):
        return outcome
    assert outcome.lower_bound is not None
    shown = Measurement("epsilon at least, if the noise is Gaussian", outcome.lower_bound, key="gaussian_epsilon")
    return replace(
        outcome,
        measurements=(*outcome.measurements, shown),
        lower_bound=None,
        unbounded="The audit refutes Gaussian trade-off curves, and neither claim nor target says that the noise is "
        "Gaussian; its figures are shown.",
    )


def _gaussian_share(canaries: int, guesses: int, epsilon: float, delta: float) -> float:
    """Return the share of right guesses about a Gaussian mechanism of some epsilon, by simulation."""
    random, mu, right = np.random.default_rng(0), mu_for(min(epsilon, 1e4), delta), 0
    times = math.ceil(SIMULATED / guesses)
    for _ in range(times):
        present = random.integers(0, 2, canaries).astype(bool)
        chosen, guessed = best_guesses(mu * present + random.normal(size=canaries), guesses)
        right += int((present[chosen] == guessed).sum())
    return right / (times * guesses)


def audited_in_one_run(
    scores: Numbers,
    coins: Mask,
    setting: Setting,
    assumptions: tuple[str, ...],
    *,
    bound_of: Bound = one_run_epsilon,
    share: Callable[[float, int], float] = lambda epsilon, _: accuracy(epsilon),
    threat: ThreatModel = _ACCESS,
    planted_scores: Numbers | None = None,
    planted_leak: str = "a model that names its canaries",
) -> Outcome:
    """Return what guesses by scores show about records that independent fair coins put in or left out.

    `share` is that of right guesses by epsilon and number of guesses. `planted_scores` are those of a twin that leaks;
    without them every guess about the twin is right.
    """
    canaries = len(scores)
    _require_canaries(canaries)
    if coins.all() or not coins.any():
        raise DoesNotFit("some canaries must have been put in and some left out, by fair coins", name="present")
    guesses = max(10, round(GUESSES * math.sqrt(canaries)))
    order = setting.random.permutation(canaries)  # equal scores are guessed in a random order
    present = coins[order]
    chosen, guessed = best_guesses(scores[order], guesses)
    right = int((present[chosen] == guessed).sum())
    bound = bound_of(canaries, guesses, right, setting.delta, setting.confidence)
    leaked = guesses
    if planted_scores is not None:
        named, said = best_guesses(planted_scores[order], guesses)
        leaked = int((present[named] == said).sum())
    planted = bound_of(canaries, guesses, leaked, setting.delta, setting.confidence)
    null = int((present[chosen] == setting.random.permutation(guessed)).sum())
    return Outcome(
        threat,
        (
            Measurement(
                "canaries guessed right",
                right / guesses,
                clopper_pearson(right, guesses, (1 - setting.confidence) / 2),
                baseline=0.5,
                ceiling=setting.ceiling(canaries, guesses),
                key="canaries_guessed_right",
            ),
        ),
        bound,
        f"one run, {guesses} guesses fixed beforehand",
        Power(
            planted_leak,
            planted,
            bound_of(canaries, guesses, null, setting.delta, setting.confidence),
            setting.refutes(planted),
            least_epsilon=_least_epsilon(canaries, guesses, setting, bound_of, share),
        ),
        assumptions=assumptions,
        details={"canaries": canaries, "guesses": guesses, "right": right, "delta": setting.delta},
    )


def _least_epsilon(
    canaries: int, guesses: int, setting: Setting, bound_of: Bound, share: Callable[[float, int], float]
) -> float | None:
    """Return the least epsilon that the audit would notice, or None without a claim."""
    if setting.claim is None or setting.claim.epsilon is None:
        return None
    needed = bisect_right(
        range(guesses + 1),
        setting.claim.epsilon,
        key=lambda count: bound_of(canaries, guesses, count, setting.delta, setting.confidence),
    )
    return least_noticed(
        lambda epsilon: float(stats.binom.sf(needed - 1, guesses, share(epsilon, guesses))), setting.claim.epsilon
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
    ones, others = (target.scores[order][target.present[order] == one] for one in (True, False))
    if min(len(ones), len(others)) < 2:
        raise DoesNotFit("there must be two trainings with their canary and two without", name="present")
    found = measure(ones, others, setting.delta, setting.confidence)
    hits, inside, alarms, outside = found.counts
    planted = epsilon_of_counts(inside, inside, 0, outside, setting.delta, setting.confidence)
    coins = setting.random.integers(0, 2, inside + outside)
    null = epsilon_of_counts(
        int(coins[:inside].sum()), inside, int(coins[inside:].sum()), outside, setting.delta, setting.confidence
    )
    error = (1 - setting.confidence) / 2
    return Outcome(
        _ACCESS,
        (
            Measurement(
                "found, of trainings with their canary",
                hits / inside,
                clopper_pearson(hits, inside, error),
                key="found_with_canary",
            ),
            Measurement(
                "accused, of those without",
                alarms / outside,
                clopper_pearson(alarms, outside, error),
                key="accused_without_canary",
            ),
        ),
        epsilon_of_counts(*found.counts, setting.delta, setting.confidence),
        "Clopper-Pearson bounds of a threshold found on other trainings",
        Power(
            "a model that names its canary",
            planted,
            null,
            setting.refutes(planted),
            least_epsilon=of_tests(setting.claim, setting.confidence, inside, outside),
        ),
        assumptions=("the trainings are independent",),
        details={"trainings": trainings, "delta": setting.delta},
    )


def _require_canaries(count: int) -> None:
    if count < CANARIES_MIN:
        raise DoesNotFit(f"an audit needs at least {CANARIES_MIN} canaries or trainings, not {count}", name="scores")
