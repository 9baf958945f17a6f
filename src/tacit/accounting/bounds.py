"""What an accountant answers: a cost, and a number enclosed from both sides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


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
