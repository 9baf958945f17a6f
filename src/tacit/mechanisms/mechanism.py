"""The base class of mechanisms.

A mechanism is a frozen object: parameters checked once, `release` to be called on private values, `event` for the
accountant, `interval` for the reader of an answer. It holds no state and no randomness, and charges no budget.

Every mechanism is made for one neighbouring relation. Where its promise is stated for a distance between neighbours (a
sensitivity, a smooth bound), it holds under both relations, and the caller gives the distance of the relation at hand:
a histogram moves by 1 when a unit is added or removed, by 2 in L1 when one is replaced. Where it is stated for data,
the module's docstring names the theorem of each relation, and a relation without one is refused at construction.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

from tacit.privacy.errors import OutOfRange
from tacit.privacy.events import Event
from tacit.privacy.numbers import native_number
from tacit.privacy.units import Relation


class Interval(NamedTuple):
    """The range in which the value without noise lies, at a given level."""

    low: Any
    high: Any


@dataclass(frozen=True, slots=True)
class Mechanism(ABC):
    """A randomized algorithm with a promise; `relation` says between which data sets the promise holds."""

    relation: Relation = field(default=Relation.ADD_REMOVE, kw_only=True)

    def __post_init__(self) -> None:
        """Check the parameters; every mechanism that checks more calls this first."""
        object.__setattr__(self, "relation", Relation.of(self.relation))

    def _normalize(self, **checks: Callable[[str, object], Any]) -> None:
        """Store what each check returns for the field of its name; rationals as an int or a float if exactly equal."""
        for name, check in checks.items():
            value = check(name, getattr(self, name))
            object.__setattr__(self, name, native_number(value) if isinstance(value, Fraction) else value)

    @property
    @abstractmethod
    def event(self) -> Event:
        """The record of one release, for the accountant."""


def require_replace_one(relation: Relation) -> None:
    """Raise unless the relation is replace-one, for promises that need a public number of records."""
    if relation is not Relation.REPLACE_ONE:
        raise OutOfRange("requires the replace-one relation (public record count)", name="relation")


def require_one_direction(monotonic: bool, relation: Relation) -> None:
    """Raise for monotonic scores under replace-one: a replaced unit takes one count down and another up."""
    if monotonic and relation is Relation.REPLACE_ONE:
        raise OutOfRange(
            "a replaced unit moves scores both ways: monotonic=True is for add/remove, use monotonic=False",
            name="monotonic",
        )
