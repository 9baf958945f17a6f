"""Contribution bounds: how much of each unit is counted, and how far one unit can move each measure.

Two ways of bounding, and the sensitivity that each gives (neighbours differ in one unit, all of its rows):

    whole     The table was limited to T rows a unit when it was registered, and no join multiplied them. Rows are added
              up as they are: one unit moves a measure by at most T times what a row can bring, in whatever groups.
              L1 <= T c, L2 <= T c.
    parts     Rows are first added up for each (unit, group) and clamped, and a unit keeps at most K of its groups,
              chosen by a hash with a secret salt. One unit moves at most K groups, each by at most C, the clamped
              contribution. L1 <= K C, L2 <= sqrt(K) C (Wilson et al. 2020).

Where neighbours exchange one unit for another, both numbers double: one contribution leaves and another comes.
Any limits give a valid guarantee; they trade bias (rows left out) against noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from tacit.privacy.tables import Limits
from tacit.privacy.units import Relation
from tacit.query.measures import How, Measure
from tacit.query.question import Question

GROUPS_PER_UNIT: Final = 4
ROWS_PER_GROUP: Final = 4
"""The limits where neither the owner nor the analyst states one."""

_ROOT_PRECISION: Final = 2**40


@dataclass(frozen=True, slots=True)
class Bounding:
    """How much of each unit is counted: with `whole_rows` that many rows in all, otherwise groups times rows."""

    groups: int
    rows: int
    whole_rows: int | None = None
    relation: Relation = Relation.ADD_REMOVE
    chooses_groups: bool = True
    """Whether a unit may have more groups than are kept, so that the engine must choose."""
    merges_rest: bool = False
    """Whether all groups that are not shown become one. Given which are shown, that leaves L1 distances as they are,
    but a unit may then have all that it brings in one place, so that L2 distances are no less."""

    @property
    def _sides(self) -> int:
        return 1 if self.relation is Relation.ADD_REMOVE else 2

    @property
    def groups_changed(self) -> int:
        """The greatest number of groups in which neighbours differ."""
        return self._sides * self.groups

    def per_group(self, contribution: int) -> int:
        """Return how far neighbours are apart in one group, given one unit's greatest contribution there."""
        return self._sides * contribution

    @property
    def rows_per_group(self) -> int:
        """The greatest number of rows of one unit that are counted in one group."""
        return self.rows if self.whole_rows is None else self.whole_rows

    def contribution(self, measure: Measure) -> int:
        """Return what one unit can bring to one group."""
        if self.whole_rows is not None and measure.how is How.VALUES and self.groups > 1:
            return self.whole_rows  # over all groups together, in each of which all values may be new
        return measure.contribution(self.rows_per_group)

    def l1(self, measure: Measure) -> int:
        """Return how far neighbours are apart in a measure, summed over groups."""
        one = self.contribution(measure)
        return self._sides * self._groups_moved(measure) * one

    def l2(self, measure: Measure) -> Fraction:
        """Return how far neighbours are apart in a measure, as a Euclidean distance, rounded up."""
        if self.merges_rest:
            return Fraction(self.l1(measure))
        one = self.contribution(measure)
        return self._sides * one * root_up(self._groups_moved(measure))

    def _groups_moved(self, measure: Measure) -> int:
        """Return the number of groups over which the contribution of one unit adds up in L1."""
        return self.groups if self.whole_rows is None or measure.how is How.UNITS else 1

    @property
    def in_words(self) -> str:
        """How much of each unit is counted, as text."""
        if self.whole_rows is not None:
            return f"{_plural(self.whole_rows, 'row')} a unit"
        return f"{_plural(self.groups, 'group')} a unit, {_plural(self.rows, 'row')} a group"


def bound_contribution(
    question: Question, groups_total: int | None, owner: Limits, asked: Limits, relation: Relation
) -> Bounding:
    """Return the limits of a question: the analyst's before the owner's, and no more groups than there are.

    `groups_total` is how many groups the answer has, if that is public.
    """
    total = question.scope.rows_per_unit
    groups = asked.groups_per_unit or owner.groups_per_unit
    rows = asked.rows_per_group or owner.rows_per_group
    most = min(number for number in (groups_total, total, 10**9) if number is not None)
    if total is not None and groups is None and rows is None:
        kept = max(1, most)
        return Bounding(kept, total, total, relation, chooses_groups=False)
    kept = max(1, min(groups or GROUPS_PER_UNIT, most))
    counted = min(rows or ROWS_PER_GROUP, total or 10**9)
    return Bounding(kept, counted, None, relation, chooses_groups=most > kept)


def root_up(number: int) -> Fraction:
    """Return the square root of a whole number, rounded up to a rational."""
    scaled = math.isqrt(number * _ROOT_PRECISION**2 - 1) + 1 if number else 0
    return Fraction(scaled, _ROOT_PRECISION)


def _plural(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' if number != 1 else ''}"
