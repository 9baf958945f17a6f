"""Statistics of registered tables, by the road of every release: reserve, run on the engine, noise, commit.

The same statistic of the same data is answered again from what was released, at cost 0. A server plans a statistic
before it answers it (`PlannedStatistic`), to see how many numbers it will show and how long it may take.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final

from sqlglot import parse_one
from sqlglot.expressions import Query

from tacit.curator.engine_registry import EngineRegistry
from tacit.curator.pipeline import NOTHING, Charge, release
from tacit.engines.protocol import Columns
from tacit.ledger import Ledger, LedgerBudget
from tacit.ledger.answer_size import ANSWER_BYTES_MAX, NAMES_BYTES
from tacit.mechanisms.simulation import SeededSource
from tacit.privacy.errors import InvalidInput
from tacit.privacy.tables import Kind, Table
from tacit.query.row_limits import STORED_ROWS
from tacit.stats.answer import Answer
from tacit.stats.asking import Asked, RegisteredTable, protected
from tacit.stats.plan import Plan, bytes_max, from_bytes, to_bytes
from tacit.stats.tables import EngineRows

MADE_UP: Final[Mapping[Kind, Any]] = {
    Kind.BOOLEAN: True,
    Kind.INTEGER: 0,
    Kind.REAL: 0.0,
    Kind.TEXT: "",
    Kind.DATE: date(2000, 1, 1),
    Kind.TIME: datetime(2000, 1, 1),
}


class CuratedTable(RegisteredTable):
    """A private table of a curator, as it is registered now; once it is registered anew, statistics are refused."""

    def __init__(self, table: Table, ledger: Ledger, engines: EngineRegistry, salt: int) -> None:
        if not table.is_private:
            raise InvalidInput(
                f"{table.name} is public: its statistics need no privacy, and are computed directly", name="table"
            )
        self.table = self._record = table  # facts of columns may be stated anew for one statistic, the record not
        self._ledger, self._engines, self._salt = ledger, engines, salt

    @property
    def budget(self) -> LedgerBudget:
        """The budget of its data set."""
        return self._ledger.budget(self.table.dataset)

    def answered(self, plan: Plan, asked: Asked, per_unit: int) -> Answer:
        """Answer a plan, or raise; what failed after the charge is noted in the ledger."""
        bound = self._engines.bind((self._record,))
        analyst, dataset = asked.get("analyst"), self._record.dataset
        words = protected(self.budget, per_unit, by_unit=True)
        self._ledger.preview(dataset, plan.event, analyst=analyst)  # who may not ask learns nothing
        rows = EngineRows(bound.engine, self._record, self._salt, per_unit, timeout_s=asked["timeout_s"])
        digest = hashlib.sha256(f"{self.table.name.lower()}\n{per_unit}\n{plan.canonical}".encode()).hexdigest()
        rehearsed = () if self._ledger.quota is None else plan.rehearse(per_unit)
        most = bytes_max(rehearsed) + NAMES_BYTES if rehearsed else ANSWER_BYTES_MAX  # of selected values none is known
        purpose = asked["purpose"] or plan.label
        charge = Charge(dataset, plan.event, digest, analyst, purpose, asked["key"], answer_bytes=most)
        answer, permit = release(self._ledger, self._engines, bound, charge, lambda: to_bytes(plan.measure(rows)))
        return Answer(plan, from_bytes(answer), NOTHING if permit is None else permit.cost, permit, words)

    def __repr__(self) -> str:
        return f"CuratedTable({self.table.name!r})"


class PlanningTable(RegisteredTable):
    """A table whose statistics are planned, and answered when that is asked for; until then nothing is charged."""

    def __init__(self, curated: CuratedTable) -> None:
        self.table = curated.table
        self._curated = curated

    @property
    def budget(self) -> LedgerBudget:
        """The budget of its data set."""
        return self._curated.budget

    def answered(self, plan: Plan, asked: Asked, per_unit: int) -> Answer:
        """Return what stands for the answer until `PlannedStatistic.release`."""
        return _Unanswered(self._curated, plan, asked, per_unit)


class _Unanswered(Answer):
    """What a statistic of a planning table returns: an answer of its class that knows its plan and nothing else."""

    def __init__(self, table: CuratedTable, plan: Plan, asked: Asked, per_unit: int) -> None:
        vars(self).update(table=table, plan=plan, asked=asked, per_unit=per_unit)


@dataclass(frozen=True, slots=True)
class PlannedStatistic:
    """A statistic of a registered table that was planned; no row was looked at."""

    table: CuratedTable
    plan: Plan
    asked: Asked
    per_unit: int
    kind: type[Answer]
    """What the function that was asked returns."""

    @classmethod
    def of(cls, function: Callable[..., Answer], arguments: Mapping[str, Any]) -> PlannedStatistic:
        """Plan a function of `tacit.stats`, of which the columns are those of planning tables."""
        made = function(**arguments)
        known = vars(made)
        kind = Answer if type(made) is _Unanswered else type(made)
        return cls(known["table"], known["plan"], known["asked"], known["per_unit"], kind)

    def release(self) -> Answer:
        """Answer it, or raise; what failed after the charge is noted in the ledger."""
        return self.kind.of(self.table.answered(self.plan, self.asked, self.per_unit))

    def statements(self) -> list[Query]:
        """Return what the engine will be asked, from a run of the plan that asks nothing and adds up no row."""
        rows = _NotedRows(self.table, self.per_unit)
        self.plan.measure(rows, SeededSource(0))
        return rows.statements

    @property
    def unit_rows(self) -> int:
        """How many rows of a unit the statements go through, if it has no more than STORED_ROWS in storage."""
        declared = self.table.table.limits.rows_per_unit
        return STORED_ROWS if declared is None else min(STORED_ROWS, declared)


class _NotedRows(EngineRows):
    """Rows of a table that no engine is asked for; what it would be asked is noted."""

    def __init__(self, curated: CuratedTable, per_unit: int) -> None:
        self._table, self._per_unit = curated.table, per_unit
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
