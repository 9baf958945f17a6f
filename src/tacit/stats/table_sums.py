"""Sums over a registered table, computed where its rows are; a row a cell leaves the engine, never a row of a unit.

Of a unit with more than `per_unit` rows those stay whose salted hash is least: a function of the unit's own rows and of
a secret. Where the table was declared with a limit that is no greater, the engine keeps to it already.
Statements are DuckDB's SQL; `Engine.write` says how others put it. They divide by nothing and cast only what fits, so
no row makes them fail.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp, parse_one
from sqlglot.expressions import Query

from tacit.engines.protocol import SALT, SCHEMA, UNIT, Columns, Engine, Progress
from tacit.engines.quoting import literal, quoted
from tacit.mechanisms.simulation import SeededSource
from tacit.pipeline import Work
from tacit.privacy.errors import WrongKind
from tacit.privacy.tables import TEXT_LENGTH_MAX, Kind, Table
from tacit.query.row_limits import STORED_ROWS, limiting_steps
from tacit.query.scalars import trees
from tacit.stats.rows import EDGES_MAX, SATURATION, ColumnSteps, Cut, Term, saturated
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
        """How many rows of a unit are added up at most."""
        return self._per_unit

    def sums(self, terms: Sequence[Term], by: Sequence[Cut] = (), needs: Sequence[str] = ()) -> NDArray[np.int64]:
        """Return each term added up in each cell, from one statement."""
        wanted = dict.fromkeys([*needs, *(name for term in terms for name in term.columns)])
        columns = dict.fromkeys([*wanted, *(cut.column for cut in by)])
        keys = [f"k{index}" for index in range(len(by))]
        items = [f"{self._cell(cut)} AS {key}" for cut, key in zip(by, keys, strict=True)]
        items += [f"{self._number(term)} AS t{index}" for index, term in enumerate(terms)]
        kept = [condition for cut in by if (condition := _listed(cut, self._kind(cut.column)))]
        rows = f"SELECT {', '.join(items)} FROM ({self._limited(list(columns), list(wanted))}) AS l{_where(kept)}"
        totals = ", ".join([*keys, *(f"{_total(f't{index}')} AS m{index}" for index in range(len(terms)))])
        grouped = f" GROUP BY {', '.join(keys)}" if keys else ""
        found = self._run(f"SELECT {totals} FROM ({rows}) AS s{grouped}")
        shape = tuple(cut.cells for cut in by)
        cells = _places(found, by)
        sums = np.zeros((len(terms), int(np.prod(shape, dtype=np.int64))), dtype=np.int64)
        for index in range(len(terms)):
            np.add.at(sums[index], cells[cells >= 0], np.asarray(found[f"m{index}"], dtype=np.int64)[cells >= 0])
        return saturated(sums).reshape(len(terms), *shape)

    def units(self, column: str) -> Mapping[Any, int]:
        """Return for each value that occurs the number of units with it, a unit for `per_unit` values at most."""
        limited = self._limited([column], [column])
        name = quoted(self._table.column(column).name)
        pairs = f"SELECT DISTINCT {UNIT}, {name} AS v FROM ({limited}) AS l"
        found = self._run(f"SELECT v, COUNT(*) AS n FROM ({pairs}) AS p GROUP BY v")
        return dict(zip(_list(found["v"]), _list(found["n"]), strict=True))

    def _run(self, sql: str) -> Columns:
        tree = parse_one(sql, dialect="duckdb")
        assert isinstance(tree, Query)
        salted = {SALT: self._salt} if f"${SALT}" in sql else None
        return self._engine.run(self._engine.write(tree), salted, timeout_s=self._timeout_s, progress=self._progress)

    def _limited(self, columns: Sequence[str], needs: Sequence[str]) -> str:
        """Return the SELECT of some columns of at most `per_unit` rows of each unit that have the needed values."""
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
        """Return what a row adds, a whole number."""
        if not term.factors:
            return str(1 - term.offset)
        product = " * ".join(f"({self._steps(factor)})" for factor in term.factors)
        return f"{product} - {term.offset}" if term.offset else product

    def _steps(self, scale: ColumnSteps) -> str:
        """Return a column as whole numbers of a scale: clamped, times a power of two, rounded."""
        clamped = _clamped(self._real_value(scale.column), _real(scale.lower), _real(scale.upper))
        counted = f"CAST(ROUND(({clamped}) * {_real(float(1 / scale.step))}) AS BIGINT)"
        return f"{counted} - ({scale.shift})" if scale.shift else counted

    def _real_value(self, name: str) -> str:
        """Return a column of numbers or truth values as a double."""
        column = quoted(self._table.column(name).name)
        if self._kind(name) is Kind.BOOLEAN:
            return f"CASE WHEN {column} THEN 1e0 ELSE 0e0 END"
        return f"CAST({column} AS DOUBLE)"

    def _cell(self, cut: Cut) -> str:
        """Return the number of a bin, or the value itself where values are listed."""
        column, kind = quoted(self._table.column(cut.column).name), self._kind(cut.column)
        if cut.values:
            return column
        if len(cut.edges) <= EDGES_MAX:
            value = self._real_value(cut.column) if kind is Kind.BOOLEAN else column
            return f"CASE WHEN {column} IS NULL THEN -1 ELSE {_searched(value, cut.edges, kind)} END"
        low, high = float(cut.edges[0]), float(cut.edges[-1])  # type: ignore[arg-type]
        clamped = _clamped(self._real_value(cut.column), _real(low), _real(high))
        at = f"CAST(FLOOR((({clamped}) - {_real(low)}) * {_real(cut.cells / (high - low))}) AS BIGINT)"
        return f"CASE WHEN {column} IS NULL THEN -1 WHEN {at} > {cut.cells - 1} THEN {cut.cells - 1} ELSE {at} END"


def _searched(column: str, edges: Sequence[Any], kind: Kind) -> str:
    """Return a search for the bin of a value: the number of the last edge that is not above it."""

    def between(first: int, last: int) -> str:
        if first == last:
            return str(first)
        middle = (first + last + 1) // 2
        return (
            f"CASE WHEN {column} >= {_constant(edges[middle], kind)} "
            f"THEN {between(middle, last)} ELSE {between(first, middle - 1)} END"
        )

    return between(0, len(edges) - 2)


def _listed(cut: Cut, kind: Kind) -> str:
    """Return the condition that keeps rows whose value is listed, where none of them is a missing one."""
    if not cut.values:
        return ""
    present = [value for value in cut.values if value is not None]
    if len(present) < len(cut.values) or len(present) > EDGES_MAX:
        return ""  # the others are left out when their cells are looked up
    return f"{quoted(cut.column)} IN ({', '.join(_constant(value, kind) for value in present)})"


def _places(found: Columns, by: Sequence[Cut]) -> NDArray[np.int64]:
    """Return the cell of each row of an answer, -1 for those in none."""
    rows = len(next(iter(found.values())))
    cells, outside = np.zeros(rows, dtype=np.int64), np.zeros(rows, dtype=bool)
    for index, cut in enumerate(by):
        values = _list(found[f"k{index}"])
        if cut.values:
            places = {value: place for place, value in enumerate(cut.values)}
            values = [places.get(value, -1) for value in values]
        at = np.array(values, dtype=np.int64)
        outside |= at < 0
        cells = cells * cut.cells + at
    cells[outside] = -1
    return cells


def _total(column: str) -> str:
    """Return a sum as a BIGINT, 0 where there is nothing to add, saturated far beyond anything that is counted."""
    return f"CAST(LEAST(GREATEST(COALESCE(SUM({column}), 0), -{SATURATION}), {SATURATION}) AS BIGINT)"


def _clamped(value: str, low: str, high: str) -> str:
    return f"CASE WHEN {value} < {low} THEN {low} WHEN {value} > {high} THEN {high} ELSE {value} END"


def _constant(value: Any, kind: Kind) -> str:
    """Return a value that a column of a kind is compared with.

    One of another kind would be cast row by row, and fail for some rows: it is refused, whatever the rows hold.
    """
    match value, kind:
        case bool(), Kind.BOOLEAN:
            return "TRUE" if value else "FALSE"
        case datetime(), Kind.TIME:
            return f"CAST({literal(value.isoformat(sep=' '))} AS TIMESTAMP)"
        case date(), Kind.DATE if not isinstance(value, datetime):
            return f"CAST({literal(value.isoformat())} AS DATE)"
        case str(), Kind.TEXT:
            return literal(value)
        case int(), Kind.INTEGER if not isinstance(value, bool):
            return f"({value})"
        case ((int() | float()), (Kind.INTEGER | Kind.REAL | Kind.BOOLEAN)) if not isinstance(value, bool):
            return _real(float(value))
    raise WrongKind(f"a column of {kind} values is compared with such values, and {value!r} is none")


def _real(number: float) -> str:
    """Return a number that is read as a double."""
    shown = repr(number)
    return f"({shown if 'e' in shown else f'{shown}e0'})"


def _where(conditions: Sequence[str]) -> str:
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


def _list(values: Any) -> list[Any]:
    return values.tolist() if isinstance(values, np.ndarray) else list(values)


def work_of(plan: StatisticPlan, table: Table, per_unit: int) -> Work:
    """Return what an engine is asked to do for a plan, and how much of it one unit can add.

    A unit has STORED_ROWS rows in the table, or as many as were declared if that is fewer. A text has at most
    TEXT_LENGTH_MAX characters, of which CHARACTERS_READ are read in a step.
    """
    statements = statements_of(plan, table, per_unit)
    declared = table.limits.rows_per_unit
    rows = STORED_ROWS if declared is None else min(STORED_ROWS, declared)
    columns = sum(1 for tree in statements for _ in tree.find_all(exp.Column))
    steps = sum(map(trees.work, statements)) + TEXT_LENGTH_MAX // trees.CHARACTERS_READ * columns
    return Work(len(statements), rows * steps + limiting_steps(table))


def statements_of(plan: StatisticPlan, table: Table, per_unit: int) -> list[Query]:
    """Return what the engine will be asked, from a run of the plan that asks nothing and adds up no row."""
    rows = _NotedRows(table, per_unit)
    plan.measure(rows, SeededSource(0))
    return rows.statements


class _NotedRows(EngineRows):
    """Rows of a table that no engine is asked for; what it would be asked is noted."""

    def __init__(self, table: Table, per_unit: int) -> None:
        self._table, self._per_unit = table, per_unit
        self.statements: list[Query] = []

    def units(self, column: str) -> Mapping[Any, int]:
        """Return one value that more units have than any threshold, so that what follows a selection is noted, too."""
        super().units(column)
        return {MADE_UP[self._table.column(column).kind]: 2**40}

    def _run(self, sql: str) -> Columns:
        tree = parse_one(sql, dialect="duckdb")
        assert isinstance(tree, Query)
        self.statements.append(tree)
        return defaultdict(list, {"": []})
