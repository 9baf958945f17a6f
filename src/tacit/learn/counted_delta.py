"""The delta at which a training is counted, where its budget has less left for it than was stated.

A budget keeps a tenth of its delta for events that state one (`ledger.accounts`), and a training with (epsilon, d) for
d below delta also has (epsilon, delta). So a training that states more than what is left is planned with a half of
that, with noise for it, and the next one finds the other half.
"""

from __future__ import annotations

from fractions import Fraction

from tacit.ledger import Budget
from tacit.privacy.numbers import rounded_down


def counted_delta(budget: Budget, delta: float) -> float:
    """Return `delta`, or a half of what a budget has left for events that state one, if that is less."""
    left = budget.remaining().delta
    return delta if delta <= left or not left else rounded_down(Fraction(left) / 2)
