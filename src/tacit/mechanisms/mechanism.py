"""What every mechanism has in common.

A mechanism is a frozen object: parameters checked once, `release` to be called on private values, `event` for the
accountant, `interval` for the reader of an answer. It holds no state and no randomness, and charges nobody.

Every mechanism is made for one neighbouring relation. Where its promise is stated for a distance between neighbours (a
sensitivity, a smooth bound), it holds under both relations, and the caller gives the distance of the relation at hand:
a histogram moves by 1 when a unit is added or removed, by 2 in L1 when one is replaced. Where it is stated for data,
the module's docstring names the theorem of each relation, and a relation without one is refused at construction.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tacit.privacy.errors import OutOfRange
from tacit.privacy.events import Event
from tacit.privacy.units import Relation


class Interval(NamedTuple):
    """Where the value without noise lies, at the level that was asked for."""

    low: Any
    high: Any


@dataclass(frozen=True, slots=True)
class Mechanism(ABC):
    """A randomized algorithm with a promise; `relation` says between which data sets the promise holds."""

    relation: Relation = field(default=Relation.ADD_REMOVE, kw_only=True)

    def __post_init__(self) -> None:
        """Check the parameters; every mechanism that checks more calls this first."""
        object.__setattr__(self, "relation", Relation.of(self.relation))

    @property
    @abstractmethod
    def event(self) -> Event:
        """What one release did, for the accountant."""


def require_replace_one(relation: Relation) -> None:
    """Refuse a promise under add/remove where it is made for a public number of records."""
    if relation is not Relation.REPLACE_ONE:
        raise OutOfRange("this promise is for replace-one: the number of records is public", name="relation")


def require_one_direction(monotonic: bool, relation: Relation) -> None:
    """Refuse scores that move in one direction where a unit is replaced: it takes one count down and another up."""
    if monotonic and relation is Relation.REPLACE_ONE:
        raise OutOfRange(
            "a replaced unit moves scores both ways: monotonic=True is for add/remove, use monotonic=False",
            name="monotonic",
        )
