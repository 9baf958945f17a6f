"""What every mechanism has in common.

A mechanism is a frozen object: parameters checked once, `release` to be called on private values, `event` for the
accountant, `interval` for the reader of an answer. It holds no state and no randomness, and charges nobody.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tacit.privacy.errors import OutOfRange
from tacit.privacy.events import Event
from tacit.privacy.relations import Relation


class Interval(NamedTuple):
    """Where the value without noise lies, at the level that was asked for."""

    low: Any
    high: Any


@dataclass(frozen=True, slots=True)
class Mechanism(ABC):
    """A randomized algorithm with a promise; `relation` says between which data sets the promise holds."""

    relation: Relation = field(default=Relation.ADD_REMOVE, kw_only=True)

    @property
    @abstractmethod
    def event(self) -> Event:
        """What one release did, for the accountant."""


def require_replace_one(relation: Relation) -> None:
    """Refuse a promise under add/remove where it is made for a public number of records."""
    if relation is not Relation.REPLACE_ONE:
        raise OutOfRange("this promise is for replace-one: the number of records is public", name="relation")
