"""Audit of federated training by canary clients: what the released updates tell about who took part.

A canary's score is the sum over rounds of the inner product of the released update with the canary's own, normalised
(Andrew et al. 2023). In many dimensions random canaries are nearly orthogonal, so that each score shows its own
presence; the bound is that of one run with coins, whatever the scores are (Steinke, Nasr, Jagielski 2023).
"""

from __future__ import annotations

import numpy as np

from tacit.attack.canary_audit import COINS, audited_in_one_run
from tacit.attack.finding import ThreatModel
from tacit.attack.kit import Outcome, Setting, attack
from tacit.attack.training_targets import Updates


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
    return audited_in_one_run(
        units @ (target.rounds / max(1.0, float(np.abs(target.rounds).max()))).sum(axis=0),
        target.present,
        setting,
        (COINS,),
        threat=ThreatModel("the released updates of all rounds", "the updates of the canaries", len(target.rounds)),
        planted_scores=units @ units[target.present].sum(axis=0),
        planted_leak="the sum of the canaries' updates without noise",
    )
