"""Exact sums over a registered table, computed in its engine, which returns one row for each cell.

Of a unit with more than `per_unit` rows those with the least salted hashes are summed: a function of the unit's own
rows and of a secret. Where the table was declared with a limit that is no greater, the engine applies that already.
Statements are DuckDB's SQL; `Engine.write` translates them. They contain no division and only casts that cannot fail,
so no row makes them fail.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from datetime import date, datetime
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp, parse_one
from sqlglot.expressions import Query

from tacit.engines.protocol import SALT, SCHEMA, UNIT, Columns, Engine, Progress
from tacit.engines.quoting import quoted
from tacit.measuring.moments import SATURATION
from tacit.mechanisms.simulation import SeededSource
from tacit.pipeline import Work
from tacit.privacy.errors import TooWide, WrongKind
from tacit.privacy.tables import TEXT_LENGTH_MAX, Kind, Table
from tacit.query.row_limits import STORED_ROWS, limiting_steps, reading_steps
from tacit.query.scalars import trees
from tacit.stats.rows import (
    EDGES_MAX,
    ColumnSteps,
    Cut,
    NearestCut,
    Partitioning,
    RowMatrix,
    Split,
    Term,
    TreeCut,
    saturate,
)
from tacit.stats.statistic import StatisticPlan

MADE_UP: Final[Mapping[Kind, Any]] = {
    Kind.BOOLEAN: True,
    Kind.INTEGER: 0,
    Kind.REAL: 0.0,
    Kind.TEXT: "",
    Kind.DATE: date(2000, 1, 1),
    Kind.TIME: datetime(2000, 1, 1),
}


class EngineRows:
    """The rows of a private table in its engine."""

    def __init__(
        self,
        engine: Engine,
        table: Table,
        salt: int,
        per_unit: int,
        *,
        timeout_s: float | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._engine, self._table, self._salt, self._per_unit = engine, table, salt, per_unit
        self._timeout_s, self._progress = timeout_s, progress

    @property
    def per_unit(self) -> int:
        """The greatest number of rows of a unit that are summed."""
        return self._per_unit

    def sums(
        self, terms: Sequence[Term], by: Sequence[Partitioning] = (), needs: Sequence[str] = ()
    ) -> NDArray[np.int64]:
        """Return the sum of each term in each cell, from one statement."""
        wanted = dict.fromkeys([*needs, *(name for term in terms for name in term.columns)])
        columns = dict.fromkeys([*wanted, *(name for cut in by for name in cut.columns)])
        keys = [f"k{index}" for index in range(len(by))]
        items = [f"{self._cell(cut, key)} AS {key}" for cut, key in zip(by, keys, strict=True)]
        items += [f"{self._number(term)} AS t{index}" for index, term in enumerate(terms)]
        kept = [condition for cut in by if (condition := self._is_listed(cut))]
        limited = self._limited(list(columns), list(wanted))
        for cut, key in zip(by, keys, strict=True):
            if isinstance(cut, NearestCut):
                limited = self._with_scores(limited, cut, key)
        rows = f"SELECT {', '.join(items)} FROM ({limited}) AS l{_where(kept)}"
        totals = ", ".join([*keys, *(f"{_total(f't{index}')} AS m{index}" for index in range(len(terms)))])
        grouped = f" GROUP BY {', '.join(keys)}" if keys else ""
        found = self._run(f"SELECT {totals} FROM ({rows}) AS s{grouped}")
        shape = tuple(cut.cells for cut in by)
        cells = _result_cells(found, by)
        sums = np.zeros((len(terms), int(np.prod(shape, dtype=np.int64))), dtype=np.int64)
        for index in range(len(terms)):
            np.add.at(sums[index], cells[cells >= 0], np.asarray(found[f"m{index}"], dtype=np.int64)[cells >= 0])
        return saturate(sums).reshape(len(terms), *shape)

    def units(self, column: str) -> Mapping[Any, int]:
        """Return the number of units with each value that occurs, a unit for `per_unit` values at most."""
        limited = self._limited([column], [column])
        name = quoted(self._table.column(column).name)
        pairs = f"SELECT DISTINCT {UNIT}, {name} AS v FROM ({limited}) AS l"
        found = self._run(f"SELECT v, COUNT(*) AS n FROM ({pairs}) AS p GROUP BY v")
        return dict(zip(_list(found["v"]), _list(found["n"]), strict=True))

    def matrix(self, scales: Sequence[ColumnSteps], cuts: Sequence[Cut], needs: Sequence[str] = ()) -> RowMatrix:
        """Return the rows themselves, from one statement."""
        wanted = dict.fromkeys([*needs, *(scale.column for scale in scales)])
        columns = dict.fromkeys([*wanted, *(cut.column for cut in cuts)])
        items = [f"{self._steps(scale)} AS s{index}" for index, scale in enumerate(scales)]
        items += [f"{self._place(cut)} AS k{index}" for index, cut in enumerate(cuts)]
        found = self._run(f"SELECT {', '.join(items)} FROM ({self._limited(list(columns), list(wanted))}) AS l")
        count = len(next(iter(found.values())))
        steps, cells = np.empty((count, len(scales)), dtype=np.int64), np.empty((count, len(cuts)), dtype=np.int32)
        for index in range(len(scales)):
            steps[:, index] = found[f"s{index}"]
        for index in range(len(cuts)):
            cells[:, index] = found[f"k{index}"]
        return RowMatrix(steps, cells)

    def _run(self, sql: str) -> Columns:
        tree = parse_one(sql, dialect="duckdb")
        assert isinstance(tree, Query)
        salted = {SALT: self._salt} if tree.find(exp.Parameter, exp.Placeholder) else None
        return self._engine.run(self._engine.write(tree), salted, timeout_s=self._timeout_s, progress=self._progress)

    def _limited(self, columns: Sequence[str], needs: Sequence[str]) -> str:
        """Return the SELECT of columns over at most `per_unit` rows of each unit that have a value in `needs`."""
        names = [quoted(self._table.column(name).name) for name in columns]
        present = [f"{quoted(self._table.column(name).name)} IS NOT NULL" for name in needs]
        rows = f"SELECT {', '.join([UNIT, *names])} FROM {SCHEMA}.{quoted(self._table.name)}{_where(present)}"
        declared = self._table.limits.rows_per_unit
        if declared is not None and declared <= self._per_unit:
            return rows
        order = ", ".join([f"hash({', '.join([UNIT, *names])}, ${SALT})", *names])
        placed = f"SELECT *, row_number() OVER (PARTITION BY {UNIT} ORDER BY {order}) AS place FROM ({rows}) AS r"
        return f"SELECT * FROM ({placed}) AS w WHERE place <= {self._per_unit}"

    def _kind(self, column: str) -> Kind:
        return self._table.column(column).kind

    def _number(self, term: Term) -> str:
        """Return the summand of a row as SQL, an integer."""
        if not term.factors:
            return str(1 - term.offset)
        product = " * ".join(f"({self._steps(factor)})" for factor in term.factors)
        return f"{product} - {term.offset}" if term.offset else product

    def _steps(self, scale: ColumnSteps) -> str:
        """Return a column in steps of a scale as SQL: clamped, times a power of two, rounded."""
        clamped = _clamp(self._real_value(scale.column), _written(float(scale.lower)), _written(float(scale.upper)))
        counted = f"CAST(ROUND(({clamped}) * {_written(float(1 / scale.step))}) AS BIGINT)"
        return f"{counted} - ({scale.shift})" if scale.shift else counted

    def _real_value(self, name: str) -> str:
        """Return a column of numbers or booleans as a double, in SQL."""
        column = quoted(self._table.column(name).name)
        if self._kind(name) is Kind.BOOLEAN:
            return f"CASE WHEN {column} THEN 1e0 ELSE 0e0 END"
        return f"CAST({column} AS DOUBLE)"

    def _with_scores(self, rows: str, cut: NearestCut, key: str) -> str:
        """Return rows with a score for each centre: its squared distance, less what all of them have in common."""
        names = [self._made_up(f"{key}_{index}_step") for index in range(len(cut.scales))]
        steps = [f"{self._steps(scale)} AS {name}" for name, scale in zip(names, cut.scales, strict=True)]
        scores = []
        for index, centre in enumerate(cut.centres):
            parts = [f"{name} * ({-2 * place})" for name, place in zip(names, centre, strict=True) if place]
            start = f"CAST({sum(place * place for place in centre)} AS BIGINT)"
            scores.append(f"{' + '.join([start, *parts])} AS {self._made_up(f'{key}_{index}_score')}")
        return f"SELECT *, {', '.join(scores)} FROM (SELECT *, {', '.join(steps)} FROM ({rows}) AS p) AS q"

    def _made_up(self, name: str) -> str:
        """Return a name that is none of the table's columns."""
        taken = {column.name.lower() for column in self._table.columns}
        while name in taken:
            name += "_"
        return quoted(name)

    def _nearest(self, cut: NearestCut, key: str) -> str:
        """Return the number of the nearest centre as SQL: the first whose score is not above that of any later one."""
        scores = [self._made_up(f"{key}_{index}_score") for index in range(cut.cells)]
        lacking = " OR ".join(f"{quoted(self._table.column(name).name)} IS NULL" for name in cut.columns)
        cases = [
            f"WHEN {' AND '.join(f'{score} <= {other}' for other in scores[index + 1 :])} THEN {index}"
            for index, score in enumerate(scores[:-1])
        ]
        return f"CASE WHEN {lacking} THEN -1 {' '.join(cases)} ELSE {cut.cells - 1} END"

    def _cell(self, cut: Partitioning, key: str = "") -> str:
        """Return the number of the cell as SQL, or the value itself where values are listed."""
        if isinstance(cut, NearestCut):
            return self._nearest(cut, key)
        if isinstance(cut, TreeCut):
            lacking = " OR ".join(f"{quoted(self._table.column(name).name)} IS NULL" for name in cut.needs)
            leaf = self._leaf(cut.root)
            return f"CASE WHEN {lacking} THEN -1 ELSE {leaf} END" if lacking else leaf
        column, kind = quoted(self._table.column(cut.column).name), self._kind(cut.column)
        if cut.values:
            return column
        if len(cut.edges) <= EDGES_MAX:
            value = self._real_value(cut.column) if kind is Kind.BOOLEAN else column
            return f"CASE WHEN {column} IS NULL THEN -1 ELSE {_binary_search(value, cut.edges, kind)} END"
        low, high = float(cut.edges[0]), float(cut.edges[-1])  # type: ignore[arg-type]
        clamped = _clamp(self._real_value(cut.column), _written(low), _written(high))
        at = f"CAST(FLOOR((({clamped}) - {_written(low)}) * {_written(cut.cells / (high - low))}) AS BIGINT)"
        return f"CASE WHEN {column} IS NULL THEN -1 WHEN {at} > {cut.cells - 1} THEN {cut.cells - 1} ELSE {at} END"

    def _place(self, cut: Cut) -> str:
        """Return the number of the cell as SQL, -1 for no cell, also where values are listed."""
        if not cut.values:
            return self._cell(cut)
        if len(cut.values) > EDGES_MAX:
            raise TooWide(f"at most {EDGES_MAX:,} values of {cut.column} can be listed here", accepted="fewer values")
        column, kind = quoted(self._table.column(cut.column).name), self._kind(cut.column)
        whens = [
            f"WHEN {column} IS NULL THEN {place}"
            if value is None
            else f"WHEN {column} = {_constant(value, kind)} THEN {place}"
            for place, value in enumerate(cut.values)
        ]
        return f"CASE {' '.join(whens)} ELSE -1 END"

    def _leaf(self, node: Split | int) -> str:
        """Return the number of a leaf as SQL."""
        if not isinstance(node, Split):
            return str(node)
        inside, outside = self._leaf(node.inside), self._leaf(node.outside)
        return f"CASE WHEN {self._is_inside(node.cut, node.cells)} THEN {inside} ELSE {outside} END"

    def _is_inside(self, cut: Cut, cells: Sequence[int]) -> str:
        """Return the condition of rows in cells of a cut, as SQL."""
        column, kind = quoted(self._table.column(cut.column).name), self._kind(cut.column)
        if cut.edges:
            if len(cells) == cut.cells:
                return "TRUE"
            value = self._real_value(cut.column) if kind is Kind.BOOLEAN else column
            return f"{value} < {_constant(cut.edges[len(cells)], kind)}"
        listed = [_constant(cut.values[cell], kind) for cell in cells if cut.values[cell] is not None]
        conditions = [f"{column} IN ({', '.join(listed)})"] if listed else []
        conditions += [f"{column} IS NULL"] if len(listed) < len(cells) else []
        return f"({' OR '.join(conditions)})"

    def _is_listed(self, cut: Partitioning) -> str:
        """Return the condition of rows with a listed value; empty where None is listed, or too many values are."""
        if not isinstance(cut, Cut) or not cut.values:
            return ""
        cells = range(len(cut.values))
        if None in cut.values or len(cells) > EDGES_MAX:
            return ""  # other rows are left out when their cells are looked up
        return self._is_inside(cut, cells)


def _binary_search(column: str, edges: Sequence[Any], kind: Kind) -> str:
    """Return a binary search for the bin of a value as SQL: the number of the last edge that is not above it."""

    def between(first: int, last: int) -> str:
        if first == last:
            return str(first)
        middle = (first + last + 1) // 2
        return (
            f"CASE WHEN {column} >= {_constant(edges[middle], kind)} "
            f"THEN {between(middle, last)} ELSE {between(first, middle - 1)} END"
        )

    return between(0, len(edges) - 2)


def _result_cells(found: Columns, by: Sequence[Partitioning]) -> NDArray[np.int64]:
    """Return the cell of each row of a result, -1 for those in no cell."""
    rows = len(next(iter(found.values())))
    cells, outside = np.zeros(rows, dtype=np.int64), np.zeros(rows, dtype=bool)
    for index, cut in enumerate(by):
        values = _list(found[f"k{index}"])
        if isinstance(cut, Cut) and cut.values:
            places = {value: place for place, value in enumerate(cut.values)}
            values = [places.get(value, -1) for value in values]
        at = np.array(values, dtype=np.int64)
        outside |= at < 0
        cells = cells * cut.cells + at
    cells[outside] = -1
    return cells


def _total(column: str) -> str:
    """Return a saturated sum as a BIGINT in SQL, 0 over no rows."""
    return f"CAST(LEAST(GREATEST(COALESCE(SUM({column}), 0), -{SATURATION}), {SATURATION}) AS BIGINT)"


def _clamp(value: str, low: str, high: str) -> str:
    return f"CASE WHEN {value} < {low} THEN {low} WHEN {value} > {high} THEN {high} ELSE {value} END"


def _constant(value: Any, kind: Kind) -> str:
    """Return a constant that a column of a kind is compared with, as SQL.

    A constant of another kind would be cast for each row, and fail for some: it is refused, whatever the rows hold.
    """
    match value, kind:
        case (bool(), Kind.BOOLEAN) | (datetime(), Kind.TIME) | (str(), Kind.TEXT):
            return _written(value)
        case date(), Kind.DATE if not isinstance(value, datetime):
            return _written(value)
        case int(), Kind.INTEGER if not isinstance(value, bool):
            return _written(value)
        case ((int() | float()), (Kind.INTEGER | Kind.REAL | Kind.BOOLEAN)) if not isinstance(value, bool):
            return _written(float(value))
    raise WrongKind(f"a column of {kind} values cannot be compared with {value!r}")


def _written(value: Any) -> str:
    """Return a constant as SQL."""
    return f"({trees.constant(value).sql(dialect='duckdb')})"


def _where(conditions: Sequence[str]) -> str:
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


def _list(values: Any) -> list[Any]:
    return values.tolist() if isinstance(values, np.ndarray) else list(values)


def work_of(plan: StatisticPlan, table: Table, per_unit: int) -> Work:
    """Return the number of statements of a plan, and the greatest number of steps that one unit adds to them.

    A unit has STORED_ROWS rows in the table, or as many as were declared if that is fewer. A text has at most
    TEXT_LENGTH_MAX characters, of which CHARACTERS_READ are read in a step. At most `per_unit` rows of a unit leave the
    engine, for each of which this process takes `row_steps`.
    """
    statements = statements_of(plan, table, per_unit)
    declared = table.limits.rows_per_unit
    rows = STORED_ROWS if declared is None else min(STORED_ROWS, declared)
    times = Counter(map(id, statements))
    steps = 0
    for tree in distinct_statements(statements):
        columns = sum(1 for _ in tree.find_all(exp.Column))
        steps += times[id(tree)] * (trees.work(tree) + TEXT_LENGTH_MAX // trees.CHARACTERS_READ * columns)
    read = per_unit * plan.row_steps
    return Work(
        len(statements),
        rows * steps + limiting_steps(table) + reading_steps(table, distinct_statements(statements)) + read,
    )


def statements_of(plan: StatisticPlan, table: Table, per_unit: int) -> list[Query]:
    """Return the statements of a plan, from a run of the plan without an engine.

    Those that differ only in the constants of a partition by earlier releases (the splits of a tree, the centres of
    clusters) are one object, written once: the columns of the splits are read by other statements of the same plan.
    """
    rows = _RecordingRows(table, per_unit)
    plan.measure(rows, SeededSource(0))
    return rows.statements


def distinct_statements(statements: Sequence[Query]) -> list[Query]:
    """Return each object among statements once, in their order."""
    return list({id(one): one for one in statements}.values())


def _form(cut: Partitioning) -> Hashable:
    """Return what two partitions have in common whose statements differ in constants alone."""
    match cut:
        case TreeCut():
            return TreeCut, cut.cells
        case NearestCut():
            return NearestCut, cut.scales, cut.cells
    return cut


class _RecordingRows(EngineRows):
    """Rows of a table without an engine, which records the statements."""

    def __init__(self, table: Table, per_unit: int) -> None:
        self._table, self._per_unit = table, per_unit
        self.statements: list[Query] = []
        self._written: dict[Hashable, Query] = {}

    def sums(
        self, terms: Sequence[Term], by: Sequence[Partitioning] = (), needs: Sequence[str] = ()
    ) -> NDArray[np.int64]:
        """Return zeros, and record the statement; one of the same form is written once."""
        form = (tuple(terms), tuple(map(_form, by)), tuple(needs))
        if form in self._written:
            self.statements.append(self._written[form])
            return np.zeros((len(terms), *(cut.cells for cut in by)), dtype=np.int64)
        found = super().sums(terms, by, needs)
        self._written[form] = self.statements[-1]
        return found

    def units(self, column: str) -> Mapping[Any, int]:
        """Return one value above any threshold, so that the statements after a selection are recorded, too."""
        super().units(column)
        return {MADE_UP[self._table.column(column).kind]: 2**40}

    def _run(self, sql: str) -> Columns:
        tree = parse_one(sql, dialect="duckdb")
        assert isinstance(tree, Query)
        self.statements.append(tree)
        return defaultdict(list, {"": []})
