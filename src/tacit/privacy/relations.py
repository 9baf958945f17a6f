"""Which data sets are neighbours.

A guarantee holds between neighbouring data sets, so a number called epsilon means nothing without its relation.
Sensitivities differ between the two (a histogram over disjoint buckets moves by 1 when a unit is added or removed,
by 2 when one is replaced), and events under different relations are never composed.
"""

from __future__ import annotations

from enum import StrEnum

from tacit.privacy.errors import InvalidInput


class Relation(StrEnum):
    """The two neighbouring relations; both speak of one unit with everything that it contributed."""

    ADD_REMOVE = "add-remove"
    """One data set has one unit more than the other; the number of units is secret."""

    REPLACE_ONE = "replace-one"
    """One unit's contribution is exchanged for another's; the number of units is public."""

    @classmethod
    def of(cls, value: object) -> Relation:
        """Return the relation that a name stands for, or raise with the names there are."""
        if isinstance(value, str) and value in cls.__members__.values():
            return cls(value)
        names = " or ".join(relation.value for relation in cls)
        given = repr(value) if isinstance(value, str) else type(value).__name__
        raise InvalidInput(f"the relation is {names}, not {given}", name="relation", value=value)

    @property
    def in_words(self) -> str:
        """What the relation says, to people who do not know its name."""
        return (
            "one person is in the data or not" if self is Relation.ADD_REMOVE else "one person is exchanged for another"
        )
