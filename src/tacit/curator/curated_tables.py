"""Registered tables as `tacit.stats` asks about them: bound to the version and the record of this moment."""

from __future__ import annotations

from tacit.curator.engine_registry import BoundTables, EngineRegistry
from tacit.ledger import Ledger, LedgerBudget
from tacit.pipeline import ReleaseOptions, Work
from tacit.privacy.errors import InvalidInput
from tacit.privacy.tables import Table
from tacit.stats.preparation import RegisteredTable
from tacit.stats.releases import BoundRows
from tacit.stats.rows import Rows
from tacit.stats.statistic import StatisticPlan
from tacit.stats.table_sums import EngineRows, work_of


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

    def payer(self, analyst: str | None) -> LedgerBudget:
        """Return whose cap is charged: the analyst's within the data set's, or that of the data set alone."""
        return self._ledger.account(self._record.dataset, analyst)

    def bind(self) -> BoundTable:
        """Return its rows in their present version; refused if it was registered anew."""
        return BoundTable(self._engines.bind((self._record,)), self._record, self._salt)

    def __repr__(self) -> str:
        return f"CuratedTable({self.table.name!r})"


class BoundTable(BoundRows):
    """The rows of a registered table in their engine."""

    data: BoundTables

    def __init__(self, bound: BoundTables, table: Table, salt: int) -> None:
        self.name, self.table = table.name, table
        self.data = bound
        self._salt = salt

    def rows(self, per_unit: int, options: ReleaseOptions) -> Rows:
        return EngineRows(
            self.data.engine, self.table, self._salt, per_unit, timeout_s=options.timeout_s, progress=options.progress
        )

    def work(self, plan: StatisticPlan, per_unit: int) -> Work:
        return work_of(plan, self.table, per_unit)
