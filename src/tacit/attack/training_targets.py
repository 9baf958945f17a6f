"""What can be attacked of a training beside its model: synthetic data that it made, and updates that it released."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.attack.records import Records
from tacit.attack.targets import Bits, matrix_of
from tacit.privacy.errors import InvalidInput


class Synthetic:
    """Synthetic records beside the real ones that they were made from, and others of the same people's kind.

    All have the same columns. `control` are records that were not used: real and control records must be random parts
    of one population, so that nothing but their use tells them apart.
    """

    def __init__(self, real: object, synthetic: object, control: object) -> None:
        self.real, self.synthetic, self.control = (Records.of(one) for one in (real, synthetic, control))
        for name, records in (("synthetic", self.synthetic), ("control", self.control)):
            if set(records.columns) != set(self.real.columns):
                raise InvalidInput(f"{name} must have the same columns as the real records", name=name)


class Updates:
    """The aggregated updates that rounds of federated training released, and the updates of canary clients.

    `rounds` has a row for each round, `canaries` one for each canary, whose update is the same in all rounds; `present`
    says which canaries took part, by independent fair coins.
    """

    def __init__(self, rounds: Any, canaries: Any, present: Bits) -> None:
        self.rounds, self.canaries = matrix_of("rounds", rounds), matrix_of("canaries", canaries)
        self.present = np.asarray([bool(one) for one in present])
        if self.rounds.shape[1] != self.canaries.shape[1]:
            raise InvalidInput("rounds and canaries must have the same number of columns", name="canaries")
        if len(self.canaries) != len(self.present):
            raise InvalidInput("present must hold a truth value for each canary", name="present")
        if not self.canaries.any(axis=1).all():
            raise InvalidInput("a canary whose update is 0 cannot be found", name="canaries")
