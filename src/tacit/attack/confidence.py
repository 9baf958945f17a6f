"""Lower bounds on epsilon from the successes of an attack, each with a stated confidence.

Promise: if a mechanism is (epsilon, delta)-private, each function here returns more than epsilon with probability at
most 1 - confidence, over the mechanism's noise and the secrets that were drawn.

- Many runs: an attack decides "with" or "without" in independent runs. P(decides with | with) <= e^epsilon P(decides
  with | without) + delta, and the same for the opposite decision. Both probabilities are bounded by Clopper-Pearson
  intervals, each with half of the error.
- One run (Steinke, Nasr, Jagielski 2023, theorem 5.2 and appendix D): m secrets are drawn independently, uniform on two
  values; the attacker sees one output and guesses some of them. The number of right guesses is dominated by a binomial
  law with success probability e^epsilon / (1 + e^epsilon), up to a term in delta.
- One run, Gaussian trade-off (Mahloujifar, Melis, Chaudhuri 2024, algorithm 3): the same game against the claim that
  the trade-off curve is that of Gaussian noise. It is tighter, and bounds epsilon for mechanisms of that family only.

The number of guesses must not depend on which secrets they were right about: it is fixed beforehand.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from tacit.accounting.conversions import least_epsilon_of_mu
from tacit.privacy.errors import OutOfRange
from tacit.privacy.numbers import DEFAULT_LEVEL

Counts: TypeAlias = NDArray[np.int64]
Numbers: TypeAlias = NDArray[np.float64]

EPSILON_MAX: Final = 64.0
"""The greatest lower bound that is searched for."""
STEPS: Final = 60
"""Halvings of an interval in a search: enough for the last bit of a bound."""


def clopper_pearson(successes: int, trials: int, error: float) -> tuple[float, float]:
    """Return bounds on a probability, each of which is wrong with probability `error` at most."""
    if not 0 <= successes <= trials or trials < 1:
        raise OutOfRange("successes must lie between 0 and the number of trials", name="successes", value=successes)
    low, high = _clopper_pearson(np.array([successes]), trials, error)
    return float(low[0]), float(high[0])


def _clopper_pearson(successes: Counts, trials: int, error: float) -> tuple[Numbers, Numbers]:
    failures = trials - successes
    low = special.betaincinv(np.maximum(successes, 1), failures + 1, error)
    high = special.betaincinv(successes + 1, np.maximum(failures, 1), 1 - error)
    return np.where(successes > 0, low, 0.0), np.where(failures > 0, high, 1.0)


def epsilon_of_counts(
    true_positives: int,
    positives: int,
    false_positives: int,
    negatives: int,
    delta: float,
    confidence: float = DEFAULT_LEVEL,
) -> float:
    """Return a lower bound on epsilon from the decisions of one test that was fixed before these runs."""
    if not (0 <= true_positives <= positives and 0 <= false_positives <= negatives and positives and negatives):
        raise OutOfRange("decisions must lie between 0 and the number of runs", name="true_positives")
    counts = np.array([true_positives]), np.array([false_positives])
    return float(epsilons_of_counts(counts[0], positives, counts[1], negatives, delta, confidence)[0])


def epsilons_of_counts(
    true_positives: Counts, positives: int, false_positives: Counts, negatives: int, delta: float, confidence: float
) -> Numbers:
    """Return the lower bounds of several tests, each as if it were the only one."""
    error = (1 - confidence) / 2
    found_low = _clopper_pearson(true_positives, positives, error)[0]
    accused_high = _clopper_pearson(false_positives, negatives, error)[1]
    accuse = np.maximum(found_low - delta, 1e-300) / accused_high
    acquit = np.maximum(1 - accused_high - delta, 1e-300) / (1 - found_low)
    return np.asarray(np.clip(np.log(np.maximum(accuse, acquit)), 0.0, EPSILON_MAX))


def one_run_epsilon(
    secrets: int, guesses: int, right: int, delta: float, confidence: float = DEFAULT_LEVEL, *, prior: float = 0.5
) -> float:
    """Return a lower bound on epsilon from the right guesses of one run; `prior` is that of the likelier value."""
    _require_guesses(secrets, guesses, right)

    def is_refuted(epsilon: float) -> bool:
        return one_run_p_value(secrets, guesses, right, epsilon, delta, prior=prior) <= 1 - confidence

    return _greatest(is_refuted, EPSILON_MAX)


def one_run_p_value(
    secrets: int, guesses: int, right: int, epsilon: float, delta: float, *, prior: float = 0.5
) -> float:
    """Return the greatest probability of so many right guesses under (epsilon, delta)-privacy.

    Where one value has prior p > 1/2, a guess is right with probability p e^epsilon / (p e^epsilon + 1 - p) at most, by
    Bayes' rule; the term in delta is the theorem's for p = 1/2, and is taken over for other priors without a proof.
    """
    rate = 1 / (1 + (1 - prior) / prior * math.exp(-epsilon))
    tail = float(stats.binom.sf(right - 1, guesses, rate))
    if delta == 0 or right == 0:
        return min(1.0, tail)
    back = np.arange(1, right + 1)
    mass = stats.binom.sf(right - back - 1, guesses, rate) - tail
    return min(1.0, tail + float(np.max(mass / back)) * 2 * delta * secrets)


def one_run_gaussian_epsilon(
    secrets: int, guesses: int, right: int, delta: float, confidence: float = DEFAULT_LEVEL
) -> float:
    """Return the epsilon at `delta` of the widest Gaussian trade-off curve that one run refutes."""
    _require_guesses(secrets, guesses, right)
    if not 0 < delta < 1:
        raise OutOfRange("the epsilon of a Gaussian trade-off needs a delta between 0 and 1", name="delta", value=delta)

    def is_refuted(mu: float) -> bool:
        some, other = (1 - confidence) * right / secrets, (1 - confidence) * (guesses - right) / secrets
        for index in range(right - 1, -1, -1):
            grown = max(other, float(special.ndtr(special.ndtri(some) - mu)))
            if grown == other:
                break
            some = min(1.0, some + index / (guesses - index) * (grown - other))
            other = grown
        return some + other > guesses / secrets

    mu = _greatest(is_refuted, 16.0)
    return least_epsilon_of_mu(mu, delta) if mu > 0 else 0.0


def _require_guesses(secrets: int, guesses: int, right: int) -> None:
    if not 1 <= guesses <= secrets:
        raise OutOfRange("the number of guesses must lie between 1 and that of secrets", name="guesses", value=guesses)
    if not 0 <= right <= guesses:
        raise OutOfRange(
            "the number of right guesses must lie between 0 and that of guesses", name="right", value=right
        )


def _greatest(is_refuted: Callable[[float], bool], end: float) -> float:
    """Return the greatest parameter that is refuted, 0 if none is; what is refuted lies below what is not."""
    if not is_refuted(0.0):
        return 0.0
    low, high = 0.0, end
    if is_refuted(high):
        return high
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_refuted(middle) else (low, middle)
    return low


def best_guesses(scores: NDArray[np.float64], guesses: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return which secrets to guess, and how: the greatest scores as present, the least as absent, half of each."""
    order = np.argsort(scores, kind="stable")
    absent, present = order[: guesses // 2], order[len(order) - (guesses - guesses // 2) :]
    chosen = np.concatenate([absent, present])
    return chosen, np.concatenate([np.zeros(len(absent), dtype=bool), np.ones(len(present), dtype=bool)])
