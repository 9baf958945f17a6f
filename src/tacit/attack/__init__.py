"""Attacks and audits: promises put on trial.

`run` attacks a target and returns a `Finding`; `suite` runs every attack that fits; `audit` bounds the epsilon of a
mechanism from its outputs. Attacks read what was released, through public interfaces: import rules prove that nothing
here reaches an engine, a ledger or a table. What the truth is, for scoring, the caller hands over.
"""

from tacit.attack.finding import Claim, Finding, Verdict
from tacit.attack.kit import attacks, run, suite
from tacit.attack.mechanism_audit import audit
from tacit.attack.query_interface import QueryInterface
from tacit.attack.targets import Mechanism, Model, Statistics, Table, neighbouring_lists
from tacit.attack.training_targets import Synthetic, Updates

__all__ = [
    "Claim",
    "Finding",
    "Mechanism",
    "Model",
    "QueryInterface",
    "Statistics",
    "Synthetic",
    "Table",
    "Updates",
    "Verdict",
    "attacks",
    "audit",
    "neighbouring_lists",
    "run",
    "suite",
]
