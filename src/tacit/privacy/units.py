"""Whom the guarantee protects.

A unit is the value of a column (a patient, a customer): everything that one value contributes, in whatever number of
rows and tables, is protected together. A private table either has the column or leads to it through foreign keys.
"""

from __future__ import annotations

from dataclasses import dataclass

from tacit.privacy.errors import EmptyInput


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """One step towards the unit: `column` of this table equals `target_column` of `target_table`."""

    column: str
    target_table: str
    target_column: str

    def __post_init__(self) -> None:
        if not (self.column and self.target_table and self.target_column):
            raise EmptyInput("a foreign key names its column, the table it leads to, and the column there", name="key")


@dataclass(frozen=True, slots=True)
class Unit:
    """The column whose values are the protected units, and the foreign keys that lead to it, if any."""

    column: str
    through: tuple[ForeignKey, ...] = ()

    def __post_init__(self) -> None:
        if not self.column:
            raise EmptyInput("a unit names the column that identifies whom the guarantee protects", name="unit")

    @property
    def is_direct(self) -> bool:
        """Whether the table itself has the unit's column."""
        return not self.through
