"""What randomised labels and rows share: the plan that the pipeline charges, the relation, and rows of one unit.

A report is the output of a randomiser that is run on one value of one row, independently of every other row. Its law
for one value is at most e^epsilon times its law for another one, so the neighbours are data sets in which one unit's
values are replaced. That is `replace-one`; there is no promise under add/remove, as the number of reports is public and
tells who took part. Budgets of the other relation are refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit import pipeline
from tacit.ledger import Budget
from tacit.mechanisms.randomness import RandomSource
from tacit.pipeline import Released, ReleaseOptions, UnstoredPlan
from tacit.privacy.arguments import instance
from tacit.privacy.errors import EmptyInput, InvalidInput, MixedRelations, NotBounded, OutOfRange, WrongType
from tacit.privacy.events import Event, Repeated
from tacit.privacy.numbers import parameter, rounded_down, whole
from tacit.privacy.units import Relation
from tacit.stats.array_sums import UnitColumn

T = TypeVar("T")


@dataclass(frozen=True)
class ReportPlan(UnstoredPlan[T]):
    """The release plan of all reports (`pipeline.ReleasePlan`); `draw` makes them with a source of randomness."""

    label: str
    event: Event
    draw: Callable[[RandomSource], T]

    @property
    def digest(self) -> str:
        """The parameters of the release."""
        return hashlib.sha256(f"{self.label}\n{self.event.to_json()}".encode()).hexdigest()

    def check(self) -> None:
        """Do nothing: everything was checked when the plan was made."""

    def run(self, options: ReleaseOptions) -> T:
        """Return the reports."""
        return self.draw(options.source)

    def release(self, budget: Budget, purpose: str, source: RandomSource) -> Released[T]:
        """Charge the plan and return the reports with their cost."""
        return pipeline.release(self, budget, ReleaseOptions(purpose, source=source))


def require_replace_one_budget(budget: object) -> Budget:
    """Return the budget, or raise unless it is one of the replace-one relation."""
    found = instance("budget", budget, Budget, 'a budget: budget=tacit.Budget(1.0, relation="replace-one")')
    if found.cap.relation is not Relation.REPLACE_ONE:
        raise MixedRelations(
            "reports protect one unit's values against other values in their place, and the number of rows is public; "
            'this budget counts units that are added or removed: take tacit.Budget(..., relation="replace-one")',
            name="budget",
        )
    return found


@dataclass(frozen=True)
class Owners:
    """Whose row each is, which is public, and the greatest number of rows of a unit."""

    units: NDArray[np.int64]
    rows_per_unit: int = 1

    @classmethod
    def of(cls, unit: Any, rows_per_unit: Any, rows: int) -> Owners:
        """Check the units of all rows; without units each row is one."""
        if not rows:
            raise EmptyInput("there are no rows", name="y")
        if unit is None:
            if rows_per_unit is not None:
                raise InvalidInput("rows_per_unit= needs unit=, which says whose row each is", name="rows_per_unit")
            return cls(np.arange(rows))
        codes = UnitColumn(unit).codes
        if codes.shape != (rows,):
            raise WrongType(f"unit must hold one value for each of {rows:,} rows", name="unit", value=codes.shape)
        if rows_per_unit is None:
            raise NotBounded(
                "a unit can have any number of rows; state how many it has at most",
                accepted="give rows_per_unit=, by which epsilon is divided",
            )
        most = whole("rows_per_unit", rows_per_unit)
        if codes.min() < 0:
            raise InvalidInput("a row has no unit", name="unit")
        if int(np.bincount(codes).max()) > most:
            raise OutOfRange(f"a unit has more than {most} rows", name="rows_per_unit", value=rows_per_unit)
        return cls(codes, most)

    def epsilon_of_row(self, epsilon: Any) -> float:
        """Return the epsilon of each row: `epsilon` over the rows of a unit, rounded down (basic composition)."""
        return rounded_down(Fraction(parameter("epsilon", epsilon)) / self.rows_per_unit)

    def event(self, row: Event) -> Event:
        """Return the event of all rows of a unit."""
        return row if self.rows_per_unit == 1 else Repeated(row, self.rows_per_unit)

    @property
    def in_words(self) -> str:
        """Who is protected."""
        return (
            "each row" if self.rows_per_unit == 1 else f"each unit, with all of its (at most {self.rows_per_unit}) rows"
        )
