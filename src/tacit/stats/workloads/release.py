"""The functions that release workloads under one charge (tables, ranges, prefixes, hierarchies), and their answer.

The cells of columns are public and do not depend on the data. `domain` has for each column one of

    ["F", "M"]                   its values, where they are texts, booleans or None; others are in no cell
    tacit.Categories([1, 2, 3])  its values, also where they are numbers or dates
    [0, 18, 65, 120]             rising edges of bins, where they are numbers or dates
    (20, (0, 100))               20 bins of one width between bounds
    20                           the same between the bounds that a registered column has

and may leave out columns whose values are known: registered with categories, or booleans.

All counts are of the same rows: those with a value in every column. List every value that a column can have: a row
with another value is left out of the tables by that column alone, and tables would not be of the same rows.
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
from tacit.stats.workloads.counts import CountTable, NoisyCount
from tacit.stats.workloads.estimation import ColumnEstimates
from tacit.stats.workloads.query_sets import EDGES_MAX, Hierarchy, Marginals, Prefixes, Ranges, Workload, cells_between
from tacit.stats.workloads.workload_plan import WorkloadEstimates, WorkloadPlan, flatten, plan_workload


class WorkloadAnswer(Answer):
    """The released counts of a workload, and what they cost.

    Counts are integers of at least 0. Those over one column, or over the product of two columns, are sums of the same
    cells, and agree exactly; tables agree as `round_tables` says: all have one total, and two-way tables have
    the one-way tables as margins. The parts of a union are measured separately and agree up to noise. Intervals are
    around the unbiased estimates of least squares.
    """

    @cached_property
    def _estimates(self) -> WorkloadEstimates:
        assert isinstance(self.plan, WorkloadPlan)
        return WorkloadEstimates(self.plan, self.noisy)

    @property
    def expected_error(self) -> float:
        """The expected mean squared error of a query, known before any data are read."""
        assert isinstance(self.plan, WorkloadPlan)
        return self.plan.error

    @cached_property
    def value(self) -> Any:
        """All counts, in the order of `keys`."""
        return np.concatenate([table.values.ravel() for _, table in self._estimates.shown])

    @property
    def keys(self) -> list[tuple[Any, ...]]:
        """The table and the cell of each count."""
        return self._estimates.keys

    def interval(self, level: float = DEFAULT_LEVEL) -> Interval:
        """Return the interval that holds each count without noise with probability `level`, count by count.

        It covers the noise, but neither sampling error nor rows that were left out because a unit had too many or a
        column had no value.
        """
        return self._estimates.interval(level_of(level))

    @property
    def tables(self) -> dict[str, CountTable]:
        """All tables of the answer, by name."""
        return dict(self._estimates.shown)

    @property
    def levels(self) -> dict[str, CountTable]:
        """The levels of a hierarchy, the coarsest first."""
        return {level.name: one.table(level) for one in self._estimates.columns.values() for level in one.part.levels}

    def table(self, *columns: str) -> CountTable:
        """Return the table by some columns: a table of the workload, or a margin of one."""
        product = self._estimates.products.get(frozenset(columns))
        if product is not None and len(columns) == 2:
            table = product.table()
            if table.columns == columns:
                return table
            return CountTable(
                columns, table.labels[::-1], table.values.T, table.estimates.T, table.variance, table.kurtosis
            )
        if not self._estimates.tables:
            if len(columns) == 1 and columns[0] in self.tables:
                return self.tables[columns[0]]
            raise InvalidInput("the workload has no tables by columns", name="columns", value=columns)
        return self._estimates.tables[0].table(*columns)

    def range(self, low: Any, high: Any, column: str | None = None, **ranges: tuple[Any, Any]) -> NoisyCount:
        """Return the count from one edge to another, or from one listed value to another, both included.

        For the product of two columns: `range(None, None, age=(20, 40), income=(0, 1000))`.
        """
        if ranges:
            return self._product_count(ranges)
        estimates = self._column(column)
        return estimates.count(*cells_between(estimates.part.cut, low, high))

    def prefix(self, at: Any, column: str | None = None) -> NoisyCount:
        """Return the count below an edge, or up to a listed value, which is included."""
        estimates = self._column(column)
        cut = estimates.part.cut
        start = cut.values[0] if cut.values else cut.edges[0]
        return estimates.count(*cells_between(cut, start, at))

    def _column(self, column: str | None) -> ColumnEstimates:
        columns = self._estimates.columns
        if column is None and len(columns) == 1:
            return next(iter(columns.values()))
        if column not in columns:
            known = ", ".join(columns) or "none"
            raise InvalidInput(f"state the column: column=, one of {known}", name="column", value=column)
        return columns[column]

    def _product_count(self, ranges: dict[str, tuple[Any, Any]]) -> NoisyCount:
        product = self._estimates.products.get(frozenset(ranges))
        if product is None:
            raise InvalidInput("the workload has no product of these columns", name="range", value=tuple(ranges))
        chosen = [
            slice(*cells_between(cut, *ranges[name]))
            for name, cut in zip(product.part.names, product.part.cuts, strict=True)
        ]
        return product.count(*chosen)

    def __repr__(self) -> str:
        return f"<{self.label}: {len(self.value):,} counts for epsilon {at_most(self.cost.epsilon)}>"


VALUE = "value"


def workload(
    columns: Any,
    *workloads: Workload,
    domain: Mapping[str, Any] | None = None,
    **options: Unpack[CommonOptions],
) -> WorkloadAnswer:
    """Return the counts of workloads over columns, given by name or as a frame, with the least expected error."""
    for one in workloads:
        if not isinstance(one, Workload):
            raise WrongType(
                f"a workload is an object such as Ranges('age'), not {type(one).__name__}", name="workload", value=one
            )
    parts = flatten(workloads)
    if not parts:
        raise EmptyInput("the workload is empty: give at least one, such as Ranges('age')", name="workload")
    used = dict.fromkeys(name for one in parts for name in one.columns)
    given, stated = _columns_by_name(columns), {} if domain is None else domain
    if not isinstance(stated, Mapping):
        raise WrongType("domain must be a mapping from the name of a column to its cells", name="domain", value=domain)
    for name in (*used, *stated):
        if name not in given:
            raise InvalidInput(f"there is no column {name!r} among {', '.join(given)}", name="columns", value=name)
    kinds = {name: _stated_kind(stated.get(name)) for name in used}
    inputs = StatisticInputs({name: given[name] for name in used}, options, kinds)
    cuts = {name: _cells(inputs, name, stated.get(name)) for name in used}
    return WorkloadAnswer.of(inputs.release(plan_workload(parts, cuts, inputs.allocation)))


def marginals(
    columns: Any,
    *,
    domain: Mapping[str, Any] | None = None,
    ways: Sequence[int] = (1, 2),
    sets: Sequence[Sequence[str]] | None = None,
    **options: Unpack[CommonOptions],
) -> WorkloadAnswer:
    """Return all tables of counts by as many of the columns as `ways` says, or by the stated sets of columns."""
    return workload(columns, Marginals(tuple(_columns_by_name(columns)), ways, sets=sets), domain=domain, **options)


def ranges(values: Any, *, edges: Any = None, name: str = VALUE, **options: Unpack[CommonOptions]) -> WorkloadAnswer:
    """Return the counts of all ranges of neighbouring cells; `edges` has the cells, as `domain` has for a column."""
    return workload({_column_name(name): values}, Ranges(name), domain={name: edges}, **options)


def prefixes(values: Any, *, edges: Any = None, name: str = VALUE, **options: Unpack[CommonOptions]) -> WorkloadAnswer:
    """Return the counts below each edge; `edges` has the cells, as `domain` has for a column."""
    return workload({_column_name(name): values}, Prefixes(name), domain={name: edges}, **options)


def hierarchy(
    values: Any,
    *,
    levels: Sequence[str | Mapping[Any, Any]] | Mapping[Any, Any],
    edges: Any = None,
    name: str = VALUE,
    **options: Unpack[CommonOptions],
) -> WorkloadAnswer:
    """Return the counts of cells and of groups; levels are periods or mappings from child to parent, coarsest first."""
    if edges is None and isinstance(levels, Mapping):
        edges = Categories(tuple(levels))
    return workload({_column_name(name): values}, Hierarchy(name, levels), domain={name: edges}, **options)


def _column_name(name: object) -> str:
    return texts.source_name("name", name)


def _columns_by_name(columns: object) -> Mapping[str, Any]:
    """Return the columns of a mapping or of a frame by name."""
    if isinstance(columns, Mapping):
        return {_column_name(name): values for name, values in columns.items()}
    names = getattr(columns, "columns", None)
    if names is None or not hasattr(columns, "__getitem__"):
        raise WrongType("columns must be given by name: {'age': ages, 'sex': sexes}, or a frame", name="columns")
    return {str(name): columns[name] for name in names}


def _stated_kind(stated: Any) -> Kind | None:
    """Return the kind that the cells of a column state."""
    if isinstance(stated, Categories):
        return kind_of_keys(stated)
    if isinstance(stated, tuple) and len(stated) == 2 and isinstance(stated[1], Sequence | Bounds):
        return kind_of_bounds(stated[1])
    if isinstance(stated, Sequence) and any(isinstance(one, str | bool) or one is None for one in stated):
        return kind_of_keys(stated)
    return kind_of_edges(stated)


def _cells(inputs: StatisticInputs, name: str, stated: Any) -> Cut:
    """Return the public cells of a column."""
    if stated is None or isinstance(stated, Categories):
        return inputs.cut(name, stated, what="domain")
    if isinstance(stated, int) and not isinstance(stated, bool):
        return _bins(inputs, name, stated, None)
    if isinstance(stated, tuple) and len(stated) == 2 and isinstance(stated[1], Sequence | Bounds):
        return _bins(inputs, name, stated[0], stated[1])
    if isinstance(stated, str) or not isinstance(stated, Sequence | np.ndarray) or getattr(stated, "ndim", 1) != 1:
        raise WrongType(f"the cells of {name} must be a list of values, or rising edges", name="domain", value=stated)
    listed = stated.tolist() if isinstance(stated, np.ndarray) else list(stated)
    if any(isinstance(one, str | bool) or one is None for one in listed):
        return inputs.cut(name, listed, what="domain")
    return Cut(inputs.name(name), edges=_edges(inputs, name, listed))


def _bins(inputs: StatisticInputs, name: str, count: object, bounds: Any) -> Cut:
    bins, found = whole("bins", count), inputs.bounds(name, bounds)
    if isinstance(found.lower, date) or isinstance(found.upper, date):
        raise NotBounded(f"{name} has bounds that are dates: give its edges, such as date_edges(first, after)")
    if bins > EDGES_MAX:
        raise TooLarge(f"a column has at most {EDGES_MAX:,} cells", name="domain", value=bins)
    edges = np.linspace(float(found.lower), float(found.upper), bins + 1).tolist()
    return Cut(inputs.name(name), edges=_edges(inputs, name, edges))


def _edges(inputs: StatisticInputs, name: str, listed: Sequence[Any]) -> tuple[Any, ...]:
    if len(listed) < 2:
        raise EmptyInput(f"the cells of {name} need at least two edges", name="domain")
    if len(listed) > EDGES_MAX:
        raise TooLarge(f"a column has at most {EDGES_MAX:,} cells", name="domain")
    edges: tuple[Any, ...] = tuple(edge_of(name, inputs.kind(name), Bounds(one, one).lower) for one in listed)
    if any(not low < high for low, high in pairwise(edges)):
        raise OutOfRange(f"the edges of {name} must rise", name="domain")
    return edges
