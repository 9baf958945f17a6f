"""What events cost: bounds from both sides, calibration, and what an epsilon means.

`epsilon(event, delta)` and `delta(event, epsilon)` return a `Bound`: `upper` may be promised, `lower` is certified too,
`method` says which accountant found the upper bound; `compare` shows all of them side by side. `calibrate` finds the
noise for a target. `meaning` says what the numbers are worth to an attacker.

All of them speak of plans: parameters fixed before the data was touched. What may decide about the next release of an
adaptive analyst is `measures`, used by the ledger; a privacy loss distribution never does.
"""

from __future__ import annotations

from tacit.accounting.calibration import calibrate
from tacit.accounting.conversions import Bound, Cost
from tacit.accounting.curves import compare, delta, epsilon
from tacit.accounting.meaning import Meaning, meaning

__all__ = ["Bound", "Cost", "Meaning", "calibrate", "compare", "delta", "epsilon", "meaning"]
