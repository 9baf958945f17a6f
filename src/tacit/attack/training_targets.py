"""What can be attacked of a training beside its model: synthetic data that it made, and updates that it released."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import numpy as np

from tacit.attack.records import Records
from tacit.attack.targets import Bits, matrix_of
from tacit.privacy.errors import InvalidInput

SHARED_MAX: Final = 0.1
"""The share of control records that may be among the real ones, beyond twice what the halves of these share."""


class Synthetic:
    """Synthetic records beside the real ones that they were made from, and others of the same people's kind.

    All have the same columns. `control` are records that were not used: real and control records must be random parts
    of one population, so that nothing but their use tells them apart.
    """

    def __init__(self, real: object, synthetic: object, control: object) -> None:
        self.real, self.synthetic, self.control = (Records.of(one) for one in (real, synthetic, control))
        for name, records in (("synthetic", self.synthetic), ("control", self.control)):
            if set(records.columns) != set(self.real.columns):
                missing = sorted(set(records.columns) ^ set(self.real.columns))
                raise InvalidInput(
                    f"{name} must have the same columns as the real records; {missing[0]} is in one of them alone",
                    name=name,
                )
        real, control = (one.rows(list(self.real.columns)) for one in (self.real, self.control))
        shared, natural = _share_among(control, real), _share_among(real[::2], real[1::2])
        if shared > 2 * natural + SHARED_MAX:
            raise InvalidInput(
                f"{shared:.0%} of the control records are among the real ones; control must be records that were not "
                "used",
                name="control",
            )


def _share_among(rows: list[tuple[Any, ...]], others: list[tuple[Any, ...]]) -> float:
    """Return the share of rows without an equal one beside them that are among others."""
    texts = Counter(tuple(map(str, row)) for row in rows)
    single, among = [row for row, count in texts.items() if count == 1], {tuple(map(str, row)) for row in others}
    return sum(row in among for row in single) / max(len(single), 1)


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
