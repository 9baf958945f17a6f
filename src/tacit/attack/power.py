"""The least epsilon that an attack would have refuted with probability 90 %: how much `consistent` says.

What is searched are mechanisms that keep a greater epsilon than was claimed, as well as such a mechanism can be
attacked: randomized response where outputs or canaries are told apart, Gaussian noise where the claim is about such
noise, and Laplace noise with an even part of epsilon for each answer where counts or means are published. The number of
right guesses is taken to be binomial.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from typing import Final

import numpy as np
from scipy import stats

from tacit.attack.confidence import epsilons_of_counts, one_run_p_value
from tacit.attack.finding import Claim

POWER: Final = 0.9
EPSILON_MIN, EPSILON_MAX = 1e-3, 1e9
HALVINGS: Final = 12
"""Of the logarithm of epsilon: the least one is found within 1 %, beside the error of a simulation."""
SIMULATED: Final = 400
"""How many tests are simulated at one epsilon."""

Share = Callable[[float], float]
"""Returns the expected share of right guesses about a mechanism that keeps an epsilon."""


def accuracy(epsilon: float) -> float:
    """Return the share of right guesses about fair bits under randomized response, the greatest that epsilon allows."""
    return 1 / (1 + math.exp(-min(epsilon, 700.0)))


def laplace_accuracy(epsilon: float) -> float:
    """Return the share of right guesses about fair bits, each from one count of it with Laplace noise."""
    return 1 - math.exp(-epsilon / 2) / 2


def least_noticed(power: Share, claimed: float) -> float:
    """Return the least epsilon from the claim on that is refuted with probability POWER; infinite if none is."""
    low, high = math.log(max(claimed, EPSILON_MIN)), math.log(EPSILON_MAX)
    if power(EPSILON_MAX) < POWER:
        return math.inf
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if power(math.exp(middle)) >= POWER else (middle, high)
    return float(f"{math.exp(high):.3g}")


def of_guesses(
    claim: Claim | None,
    confidence: float,
    share: Share,
    *,
    secrets: int,
    guesses: int,
    prior: float = 0.5,
) -> float | None:
    """Return the least epsilon that guesses in one run would refute, by their share at each; None without a claim."""
    if claim is None or claim.epsilon is None:
        return None
    needed = right_needed(claim.epsilon, claim.delta, confidence, secrets=secrets, guesses=guesses, prior=prior)
    return least_noticed(lambda epsilon: float(stats.binom.sf(needed - 1, guesses, share(epsilon))), claim.epsilon)


def right_needed(
    claimed: float, delta: float, confidence: float, *, secrets: int, guesses: int, prior: float = 0.5
) -> int:
    """Return the least number of right guesses that refutes an epsilon at delta; above all guesses if none does."""
    return bisect_left(
        range(guesses + 1),
        True,
        key=lambda right: one_run_p_value(secrets, guesses, right, claimed, delta, prior=prior) <= 1 - confidence,
    )


def of_tests(claim: Claim | None, confidence: float, positives: int, negatives: int) -> float | None:
    """Return the least epsilon of randomized response that one test's decisions would refute; None without a claim."""
    if claim is None or claim.epsilon is None:
        return None
    claimed, delta = claim.epsilon, claim.delta

    def power(epsilon: float) -> float:
        random, right = np.random.default_rng(0), accuracy(epsilon)
        hits, alarms = random.binomial(positives, right, SIMULATED), random.binomial(negatives, 1 - right, SIMULATED)
        return float((epsilons_of_counts(hits, positives, alarms, negatives, delta, confidence) > claimed).mean())

    return least_noticed(power, claimed)
