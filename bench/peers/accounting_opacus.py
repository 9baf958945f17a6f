# mypy: ignore-errors
"""Opacus's Rényi accountant, for the cases that are one training; it knows no other events."""

import json
import sys

from opacus.accountants import RDPAccountant


def bounds(case):
    """Return 0 and the upper bound, or None for a case that is no training."""
    if len(case["parts"]) != 1 or case["parts"][0][0] != "sgd":
        return None
    _, sigma, rate, count = case["parts"][0]
    accountant = RDPAccountant()
    accountant.history.append((sigma, rate, count))
    return [0.0, float(accountant.get_epsilon(delta=case["delta"]))]


cases = json.loads(sys.argv[1])["cases"]
print(json.dumps({"bounds": [bounds(case) for case in cases]}))
