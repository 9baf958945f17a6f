"""Warnings about what a caller stated: it is answered, but not quite as it was asked."""

from __future__ import annotations


class CountedDeltaWarning(UserWarning):
    """A training is counted at a smaller delta than was stated, because its budget has not enough left for it."""
