"""What events cost: certified bounds from both sides, calibration, and what an epsilon means.

`epsilon(event, delta)` and `delta(event, epsilon)` return a `Bound`: `upper` may be promised, `lower` is certified too,
`method` names the accountant of the upper bound; `compare` returns the bounds of all accountants. `calibrate` finds the
noise for a target. `meaning` says what the numbers are worth to an attacker.

All of these hold for plans, whose parameters are fixed before the data is touched. The ledger admits the releases of
an adaptive analyst by `measures` alone, never by a privacy loss distribution.
"""

from __future__ import annotations

from tacit.accounting.calibration import calibrate
from tacit.accounting.conversions import Bound, Cost
from tacit.accounting.curves import compare, delta, epsilon
from tacit.accounting.meaning import Meaning, meaning

__all__ = ["Bound", "Cost", "Meaning", "calibrate", "compare", "delta", "epsilon", "meaning"]
