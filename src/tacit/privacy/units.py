"""Whom the guarantee protects.

A unit is the value of a column (a patient, a customer): everything that one value contributes, in whatever number of
rows and tables, is protected together. A private table either has the column or leads to it through foreign keys.
"""

from __future__ import annotations

from dataclasses import dataclass

from tacit.privacy.arguments import instances
from tacit.privacy.texts import source_name


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
