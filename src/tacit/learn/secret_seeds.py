"""Secret seeds for the generators that a process shares: those of `random`, numpy and torch.

What a person's row makes a program draw from a generator whose seed is known would show in all that is drawn later:
another order of rows, other augmentations, other dropout masks for all rows behind it. With a seed drawn in secret for
each piece of work, what other rows draw is independent of that row. No noise is drawn from these generators, and
generators that a data set or a model has of its own are not covered.
"""

from __future__ import annotations

import random
import sys
from typing import Any

import numpy as np

from tacit.mechanisms.randomness import RandomSource


class SecretSeeds:
    """Seeds the shared generators for one piece of work after another, and gives the caller's states back."""

    def __init__(self, source: RandomSource) -> None:
        self._source = source
        self._before: tuple[Any, Any, Any] | None = None

    def seed(self) -> None:
        """Seed all generators from the source; note the caller's states if they are not noted yet."""
        torch = sys.modules.get("torch")
        if self._before is None:
            own = None if torch is None else torch.get_rng_state()
            self._before = random.getstate(), np.random.get_state(), own
        random.seed(self._source.read(16))
        np.random.seed(int.from_bytes(self._source.read(4), "little"))
        if torch is not None:
            torch.manual_seed(int.from_bytes(self._source.read(8), "little"))

    def restore(self) -> None:
        """Set the generators to the states that were noted, if there are some."""
        if self._before is None:
            return
        plain, arrays, own = self._before
        random.setstate(plain)
        np.random.set_state(arrays)
        if own is not None:
            sys.modules["torch"].set_rng_state(own)
        self._before = None
