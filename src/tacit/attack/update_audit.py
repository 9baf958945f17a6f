"""Audit of federated training by canary clients: what the released updates tell about who took part.

A canary's score is the sum over rounds of the inner product of the released update with the canary's own, normalised
(Andrew et al. 2023). In many dimensions random canaries are nearly orthogonal, so that each score shows its own
presence; the bound is that of one run with coins, whatever the scores are (Steinke, Nasr, Jagielski 2023).

The sum hides a round that tells much among others that tell little, rounds that cancel, and updates of the opposite
sign. So a second score is made of the rounds by one half of the canaries, and guesses are made about the other half:
given the coins of the first half, those of the second are fair and independent, and the bound of one run holds. Each
score has half of the error (Bonferroni), and the finding is that of the greater bound.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from tacit.attack.canary_audit import CANARIES_MIN, COINS, audited_in_one_run
from tacit.attack.finding import ThreatModel
from tacit.attack.kit import Outcome, Setting, attack
from tacit.attack.mechanism_audit import fisher
from tacit.attack.targets import Mask, Numbers
from tacit.attack.training_targets import Updates

CANARIES_OF_A_ROUND: Final = 4
"""How many canaries there are for each round, at least, where the best combination of rounds is computed."""


@attack(
    "update_audit",
    Updates,
    paper="Andrew et al. 2023; one run: Steinke, Nasr, Jagielski 2023",
    summary="lower bound on epsilon from canary clients in federated training",
)
def audit_updates(target: Updates, setting: Setting) -> Outcome:
    """Guess which canaries took part by the inner products of their updates with those released."""
    units = target.canaries / np.abs(target.canaries).max(axis=1, keepdims=True)  # squares of units are finite
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    by_round = units @ (target.rounds / max(1.0, float(np.abs(target.rounds).max()))).T
    planted = units @ units[target.present].sum(axis=0)
    order = setting.random.permutation(len(units))
    chosen, counted = order[: len(order) // 2], order[len(order) // 2 :]
    scores = [(by_round.sum(axis=1), np.arange(len(units)))]
    if len(chosen) >= CANARIES_MIN:
        scores.append((by_round @ _weights(by_round[chosen], target.present[chosen]), counted))
    corrected = replace(setting, confidence=1 - (1 - setting.confidence) / len(scores))
    found = [
        audited_in_one_run(
            one[asked],
            target.present[asked],
            corrected,
            (COINS,),
            threat=ThreatModel("the released updates of all rounds", "the updates of the canaries", len(target.rounds)),
            planted_scores=planted[asked],
            planted_leak="the sum of the canaries' updates without noise",
        )
        for one, asked in scores
    ]
    return max(found, key=lambda one: one.lower_bound or 0.0)


def _weights(by_round: Numbers, present: Mask) -> Numbers:
    """Return the weights of rounds, with their signs, that tell best which canaries were present.

    Tried are each round, their sum, and the best linear combination, which is fitted to the first half of these
    canaries; all are compared on the second.
    """
    half, rounds = len(present) // 2, by_round.shape[1]
    tried: list[Numbers] = [*np.eye(rounds), np.ones(rounds)]
    fitted, is_in = by_round[:half], present[:half]
    if 1 < rounds <= half // CANARIES_OF_A_ROUND and min(is_in.sum(), (~is_in).sum()) > 1:
        direction = fisher(fitted[is_in], fitted[~is_in])
        tried += [] if direction is None else [direction]
    gaps = [_gap(by_round[half:] @ one, present[half:]) for one in tried]
    best = int(np.argmax(np.abs(gaps)))
    return -tried[best] if gaps[best] < 0 else tried[best]


def _gap(scores: Numbers, present: Mask) -> float:
    """Return by how many standard deviations the scores of canaries that were present are greater than the others'."""
    inside, outside = scores[present], scores[~present]
    if min(len(inside), len(outside)) < 2:
        return 0.0
    spread = float(np.sqrt(inside.var() + outside.var()))
    gap = float(inside.mean() - outside.mean())
    return gap / max(spread, 1e-12 * abs(gap)) if gap else 0.0
