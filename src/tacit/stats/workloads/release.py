"""Answers of a workload, and the call that releases them under one price.

The answer of a workload: tables, ranges, prefixes and levels, each with its interval.

Ask for many counts at once: tables, ranges, prefixes, hierarchies, and unions of them, under one price.

A column's cells are public and say nothing about the data. `domain` has for each column one of

    ["F", "M"]                   its values, where they are texts, truth values or None; others are in no cell
    tacit.Categories([1, 2, 3])  its values, also where they are numbers or dates
    [0, 18, 65, 120]             rising edges of bins, where they are numbers or dates
    (20, (0, 100))               20 bins of one width between bounds
    20                           the same between the bounds that a registered column has

and may leave out columns whose values are known: registered with categories, or truth values.

All counts are of the same rows: those with a value in every column. List every value that a column can have (a value
that is not listed drops a row from the tables by its column alone, and tables would not be of the same rows).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from functools import cached_property
from itertools import pairwise
from typing import Any, Unpack

import numpy as np

from tacit.mechanisms.mechanism import Interval
from tacit.privacy import texts
from tacit.privacy.bounds import Bounds, Categories
from tacit.privacy.errors import EmptyInput, InvalidInput, NotBounded, OutOfRange, TooLarge, WrongType
from tacit.privacy.figures import at_most
from tacit.privacy.numbers import DEFAULT_LEVEL, level_of, whole
from tacit.privacy.tables import Kind
from tacit.stats.answer import Answer
from tacit.stats.cells import edge_of
from tacit.stats.preparation import CommonOptions, StatisticInputs
from tacit.stats.rows import Cut
from tacit.stats.stated_kinds import kind_of_bounds, kind_of_edges, kind_of_keys
from tacit.stats.workloads.counts import Counted, CountTable
from tacit.stats.workloads.estimation import LineAnswer
from tacit.stats.workloads.query_sets import EDGES_MAX, Hierarchy, Marginals, Prefixes, Ranges, Workload, cells_between
from tacit.stats.workloads.workload_plan import Estimates, WorkloadPlan, flattened, planned


class WorkloadAnswer(Answer):
    """What was released of a workload, and what it cost.

    Counts are whole numbers of at least 0. Those over one column, and over two crossed ones, are sums of the same
    cells, and so agree exactly; tables agree as said in `whole_tables`: all have one total, and two-way tables the
    margins that one-way tables state. Different parts of a union are measured by themselves and agree up to noise.
    Intervals are around the estimates of least squares, which are unbiased.
    """

    @cached_property
    def _found(self) -> Estimates:
        assert isinstance(self.plan, WorkloadPlan)
        return Estimates(self.plan, self.noisy)

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

    def interval(self, level: float = DEFAULT_LEVEL) -> Interval:
        """Return where each count without noise lies with probability `level`, each by itself.

        It covers the noise, not the chance by which people came to be in the data, nor rows that were left out because
        a unit had too many or because a column had no value.
        """
        return self._found.interval(level_of(level))

    @property
    def tables(self) -> dict[str, CountTable]:
        """All tables that are shown, by name."""
        return dict(self._found.shown)

    @property
    def levels(self) -> dict[str, CountTable]:
        """The levels of a hierarchy, the coarsest first."""
        return {level.name: line.table(level) for line in self._found.lines.values() for level in line.part.levels}

    def table(self, *columns: str) -> CountTable:
        """Return the table by some columns: one that was asked for, or a margin of one."""
        crossed = self._found.crossed.get(frozenset(columns))
        if crossed is not None and len(columns) == 2:
            table = crossed.table()
            if table.columns == columns:
                return table
            return CountTable(
                columns, table.labels[::-1], table.values.T, table.estimates.T, table.variance, table.kurtosis
            )
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


VALUE = "value"


def workload(
    columns: Any,
    *workloads: Workload,
    domain: Mapping[str, Any] | None = None,
    **options: Unpack[CommonOptions],
) -> WorkloadAnswer:
    """All queries of some workloads over columns, given by name or as a frame, for the least expected error."""
    for one in workloads:
        if not isinstance(one, Workload):
            raise WrongType(
                f"a workload is Ranges('age') and the like, not {type(one).__name__}", name="workload", value=one
            )
    parts = flattened(workloads)
    if not parts:
        raise EmptyInput("there is nothing asked: name a workload, such as Ranges('age')", name="workload")
    used = dict.fromkeys(name for one in parts for name in one.columns)
    given, stated = _named(columns), {} if domain is None else domain
    if not isinstance(stated, Mapping):
        raise WrongType("domain has the cells of each column by its name", name="domain", value=domain)
    for name in (*used, *stated):
        if name not in given:
            raise InvalidInput(f"there is no column {name!r} among {', '.join(given)}", name="columns", value=name)
    kinds = {name: _stated_kind(stated.get(name)) for name in used}
    inputs = StatisticInputs({name: given[name] for name in used}, options, kinds)
    cuts = {name: cut_of(inputs, name, stated.get(name)) for name in used}
    return WorkloadAnswer.of(inputs.release(planned(parts, cuts, inputs.allocation)))


def marginals(
    columns: Any,
    *,
    domain: Mapping[str, Any] | None = None,
    ways: Sequence[int] = (1, 2),
    sets: Sequence[Sequence[str]] | None = None,
    **options: Unpack[CommonOptions],
) -> WorkloadAnswer:
    """All tables of counts by as many of the columns as `ways` says, or by the stated sets of columns."""
    return workload(columns, Marginals(tuple(_named(columns)), ways, sets=sets), domain=domain, **options)


def ranges(values: Any, *, edges: Any = None, name: str = VALUE, **options: Unpack[CommonOptions]) -> WorkloadAnswer:
    """Every range of neighbouring cells; `edges` says what they are, as `domain` does for a column."""
    return workload({_text(name): values}, Ranges(name), domain={name: edges}, **options)


def prefixes(values: Any, *, edges: Any = None, name: str = VALUE, **options: Unpack[CommonOptions]) -> WorkloadAnswer:
    """How many lie below each edge; `edges` says what the cells are, as `domain` does for a column."""
    return workload({_text(name): values}, Prefixes(name), domain={name: edges}, **options)


def hierarchy(
    values: Any,
    *,
    levels: Sequence[str | Mapping[Any, Any]] | Mapping[Any, Any],
    edges: Any = None,
    name: str = VALUE,
    **options: Unpack[CommonOptions],
) -> WorkloadAnswer:
    """Cells and their groups, level by level from the coarsest: periods of dates, or mappings from child to parent."""
    if edges is None and isinstance(levels, Mapping):
        edges = Categories(tuple(levels))
    return workload({_text(name): values}, Hierarchy(name, levels), domain={name: edges}, **options)


def _text(name: object) -> str:
    return texts.source_name("name", name)


def _named(columns: object) -> Mapping[str, Any]:
    """Return columns by name: of a mapping, or of a frame."""
    if isinstance(columns, Mapping):
        return {_text(name): values for name, values in columns.items()}
    names = getattr(columns, "columns", None)
    if names is None or not hasattr(columns, "__getitem__"):
        raise WrongType("columns are given by name: {'age': ages, 'sex': sexes}, or a frame", name="columns")
    return {str(name): columns[name] for name in names}


def _stated_kind(stated: Any) -> Kind | None:
    """Return the kind of values that the cells of a column state."""
    if isinstance(stated, Categories):
        return kind_of_keys(stated)
    if isinstance(stated, tuple) and len(stated) == 2 and isinstance(stated[1], Sequence | Bounds):
        return kind_of_bounds(stated[1])
    if isinstance(stated, Sequence) and any(isinstance(one, str | bool) or one is None for one in stated):
        return kind_of_keys(stated)
    return kind_of_edges(stated)


def cut_of(inputs: StatisticInputs, name: str, stated: Any) -> Cut:
    """Return the public cells of a column."""
    if stated is None or isinstance(stated, Categories):
        return inputs.cut(name, stated, what="domain")
    if isinstance(stated, int) and not isinstance(stated, bool):
        return _bins(inputs, name, stated, None)
    if isinstance(stated, tuple) and len(stated) == 2 and isinstance(stated[1], Sequence | Bounds):
        return _bins(inputs, name, stated[0], stated[1])
    if isinstance(stated, str) or not isinstance(stated, Sequence | np.ndarray) or getattr(stated, "ndim", 1) != 1:
        raise WrongType(f"the cells of {name} are a list of values, or rising edges", name="domain", value=stated)
    listed = stated.tolist() if isinstance(stated, np.ndarray) else list(stated)
    if any(isinstance(one, str | bool) or one is None for one in listed):
        return inputs.cut(name, listed, what="domain")
    return Cut(inputs.name(name), edges=_edges(inputs, name, listed))


def _bins(inputs: StatisticInputs, name: str, count: object, bounds: Any) -> Cut:
    bins, found = whole("bins", count), inputs.bounds(name, bounds)
    if isinstance(found.lower, date) or isinstance(found.upper, date):
        raise NotBounded(f"{name} lies between dates: give its edges, such as date_edges(first, after)")
    if bins > EDGES_MAX:
        raise TooLarge(f"at most {EDGES_MAX:,} cells are counted at once", name="domain", value=bins)
    edges = np.linspace(float(found.lower), float(found.upper), bins + 1).tolist()
    return Cut(inputs.name(name), edges=_edges(inputs, name, edges))


def _edges(inputs: StatisticInputs, name: str, listed: Sequence[Any]) -> tuple[Any, ...]:
    if len(listed) < 2:
        raise EmptyInput(f"the edges of {name} are at least two", name="domain")
    if len(listed) > EDGES_MAX:
        raise TooLarge(f"at most {EDGES_MAX:,} cells are counted at once", name="domain")
    edges: tuple[Any, ...] = tuple(edge_of(name, inputs.kind(name), Bounds(one, one).lower) for one in listed)
    if any(not low < high for low, high in pairwise(edges)):
        raise OutOfRange(f"the edges of {name} rise from each to the next", name="domain")
    return edges
