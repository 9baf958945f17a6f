"""The answer of a workload: tables, ranges, prefixes and levels, each with its interval."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from tacit.mechanisms.mechanism import Interval
from tacit.privacy.errors import InvalidInput
from tacit.privacy.figures import at_most
from tacit.privacy.numbers import level_of
from tacit.stats.answer import Answer
from tacit.stats.funds import LEVEL
from tacit.stats.workloads.answers import LineAnswer
from tacit.stats.workloads.cells import cells_between
from tacit.stats.workloads.counted import Counted, Table
from tacit.stats.workloads.plan import Found, WorkloadPlan


class WorkloadAnswer(Answer):
    """What was released of a workload, and what it cost.

    Counts are whole numbers of at least 0. Those over one column, and over two crossed ones, are sums of the same
    cells, and so agree exactly; tables agree as said in `whole_tables`: all have one total, and two-way tables the
    margins that one-way tables state. Different parts of a union are measured by themselves and agree up to noise.
    Intervals are around the estimates of least squares, which are unbiased.
    """

    @cached_property
    def _found(self) -> Found:
        assert isinstance(self.plan, WorkloadPlan)
        return Found(self.plan, self.noisy)

    @property
    def expected_error(self) -> float:
        """The mean squared error of a query that was expected before data were touched."""
        assert isinstance(self.plan, WorkloadPlan)
        return self.plan.error

    @cached_property
    def value(self) -> Any:
        """All counts that are shown, in the order of `keys`."""
        return np.concatenate([table.values.ravel() for _, table in self._found.shown])

    @property
    def keys(self) -> list[tuple[Any, ...]]:
        """The table and the cell of each count."""
        return self._found.keys

    def interval(self, level: float = LEVEL) -> Interval:
        """Return where each count without noise lies with probability `level`, each by itself.

        It covers the noise, not the chance by which people came to be in the data, nor rows that were left out because
        a unit had too many or because a column had no value.
        """
        return self._found.interval(level_of(level))

    @property
    def tables(self) -> dict[str, Table]:
        """All tables that are shown, by name."""
        return dict(self._found.shown)

    @property
    def levels(self) -> dict[str, Table]:
        """The levels of a hierarchy, the coarsest first."""
        return {level.name: line.table(level) for line in self._found.lines.values() for level in line.part.levels}

    def table(self, *columns: str) -> Table:
        """Return the table by some columns: one that was asked for, or a margin of one."""
        crossed = self._found.crossed.get(frozenset(columns))
        if crossed is not None and len(columns) == 2:
            table = crossed.table()
            if table.columns == columns:
                return table
            return Table(columns, table.labels[::-1], table.values.T, table.estimates.T, table.variance, table.kurtosis)
        if not self._found.tables:
            if len(columns) == 1 and columns[0] in self.tables:
                return self.tables[columns[0]]
            raise InvalidInput("tables by columns were not asked for", name="columns", value=columns)
        return self._found.tables[0].table(*columns)

    def range(self, low: Any, high: Any, column: str | None = None, **ranges: tuple[Any, Any]) -> Counted:
        """Return the count from one edge to another; or from one listed value to another, both in it.

        Of two crossed columns, a range each: `range(age=(20, 40), income=(0, 1000))` has `low` and `high` None.
        """
        if ranges:
            return self._crossed(ranges)
        line = self._line(column)
        return line.counted(*cells_between(line.part.cut, low, high))

    def prefix(self, at: Any, column: str | None = None) -> Counted:
        """Return the count of all below an edge; or up to a listed value, which is in it."""
        line = self._line(column)
        cut = line.part.cut
        start = cut.values[0] if cut.values else cut.edges[0]
        return line.counted(*cells_between(cut, start, at))

    def _line(self, column: str | None) -> LineAnswer:
        lines = self._found.lines
        if column is None and len(lines) == 1:
            return next(iter(lines.values()))
        if column not in lines:
            known = ", ".join(lines) or "none"
            raise InvalidInput(f"say of which column: column=, one of {known}", name="column", value=column)
        return lines[column]

    def _crossed(self, ranges: dict[str, tuple[Any, Any]]) -> Counted:
        crossed = self._found.crossed.get(frozenset(ranges))
        if crossed is None:
            raise InvalidInput("these columns were not crossed", name="range", value=tuple(ranges))
        chosen = [
            slice(*cells_between(cut, *ranges[name]))
            for name, cut in zip(crossed.part.names, crossed.part.cuts, strict=True)
        ]
        return crossed.counted(*chosen)

    def __repr__(self) -> str:
        return f"<{self.label}: {len(self.value):,} counts for epsilon {at_most(self.cost.epsilon)}>"
