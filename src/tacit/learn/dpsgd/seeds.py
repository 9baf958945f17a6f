"""Secret seeds of torch's generator for the forward passes of a training.

A dropout mask goes by the place of a row in its batch. If the seed were known, one unit less would give other masks to
all rows behind it; with a seed drawn in secret for each chunk, each row has a mask that is independent of the others.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tacit.mechanisms.randomness import RandomSource


class SecretSeeds:
    """Seeds torch's generator for one pass after another, and gives the caller's state back after each."""

    def __init__(self, source: RandomSource) -> None:
        self._source = source
        self._before: Tensor | None = None

    def seed(self) -> None:
        """Seed the generator from the source; note the caller's state if it is not noted yet."""
        if self._before is None:
            self._before = torch.get_rng_state()
        torch.manual_seed(int.from_bytes(self._source.read(8), "little"))

    def restore(self) -> None:
        """Set the generator to the state that was noted, if there is one."""
        if self._before is not None:
            torch.set_rng_state(self._before)
            self._before = None
