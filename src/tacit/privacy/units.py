"""Privacy units, and the neighbouring relations between data sets.

A unit is the value of a column (a patient, a customer): everything that one value contributes, in whatever number of
rows and tables, is protected together. A private table either has the column or leads to it through foreign keys.

A guarantee holds between neighbouring data sets, so an epsilon has no meaning without its relation. Sensitivities
differ between the two relations (a histogram over disjoint buckets moves by 1 when a unit is added or removed, by 2
when one is replaced), and events under different relations are never composed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tacit.privacy.arguments import instances
from tacit.privacy.errors import InvalidInput
from tacit.privacy.texts import source_name


class Relation(StrEnum):
    """The neighbouring relations: neighbours differ in one unit with everything that it contributed."""

    ADD_REMOVE = "add-remove"
    """One data set has one unit more than the other; the number of units is secret."""

    REPLACE_ONE = "replace-one"
    """One unit's contribution is exchanged for another's; the number of units is public."""

    @classmethod
    def of(cls, value: object) -> Relation:
        """Return the relation of this name, or raise an error that lists the names."""
        if isinstance(value, str) and value in cls.__members__.values():
            return cls(value)
        names = " or ".join(relation.value for relation in cls)
        given = repr(value) if isinstance(value, str) else type(value).__name__
        raise InvalidInput(f"the relation is {names}, not {given}", name="relation", value=value)

    @property
    def in_words(self) -> str:
        """The two data sets that are compared, in plain language."""
        if self is Relation.ADD_REMOVE:
            return "the data with and without one person"
        return "the data with one person and with another in their place"


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """One step towards the unit: `column` of this table equals `target_column` of `target_table`."""

    column: str
    target_table: str
    target_column: str

    def __post_init__(self) -> None:
        for part in ("column", "target_table", "target_column"):
            source_name(f"the {part} of a foreign key", getattr(self, part))


@dataclass(frozen=True, slots=True)
class Unit:
    """The column whose values are the protected units, and the foreign keys that lead to it, if any."""

    column: str
    through: tuple[ForeignKey, ...] = ()

    def __post_init__(self) -> None:
        source_name("the column that identifies whom the guarantee protects", self.column)
        through = instances("through", self.through, ForeignKey, "a list of ForeignKey")
        object.__setattr__(self, "through", through)

    @property
    def is_direct(self) -> bool:
        """Whether the table itself has the unit's column."""
        return not self.through
