"""What an accountant answers: a cost, and a number enclosed from both sides."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from tacit.privacy.figures import at_most


class Bound(NamedTuple):
    """A privacy number between two certified ends; `upper` is what may be promised."""

    lower: float
    upper: float
    method: str


@dataclass(frozen=True, slots=True)
class Cost:
    """What something costs: epsilon at delta, and rho where zero-concentrated privacy is known (infinity otherwise)."""

    epsilon: float
    delta: float
    rho: float

    @property
    def in_words(self) -> str:
        """The cost and what it promises by definition: P(S) <= e^epsilon P'(S) + delta for neighbours P and P'."""
        if not self.epsilon and not self.delta:
            return "nothing: the same answer was released before"
        spent = f"epsilon {at_most(self.epsilon)}" + (f", delta {at_most(self.delta)}" if self.delta else "")
        if self.epsilon > 20:
            return spent
        factor = f"{at_most(math.exp(self.epsilon), 3)} times as likely"
        plus = f" plus {at_most(self.delta)}" if self.delta else ""
        return f"{spent}: every answer is at most {factor}{plus} for one of two neighbours as for the other"
