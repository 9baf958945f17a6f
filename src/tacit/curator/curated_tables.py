"""Registered tables as inputs of `tacit.stats`, bound to their present catalog entry and data version."""

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
from tacit.stats.table_sums import EngineRows, distinct_statements, statements_of, work_of


class CuratedTable(RegisteredTable):
    """A private table of a curator; statistics raise CatalogChanged once it is registered again."""

    def __init__(self, table: Table, ledger: Ledger, engines: EngineRegistry, salt: int) -> None:
        if not table.is_private:
            raise InvalidInput(f"{table.name} is public; compute its statistics without privacy", name="table")
        self.table = self._record = table  # one statistic may state other facts of columns in `table`; the record stays
        self._ledger, self._engines, self._salt = ledger, engines, salt

    @property
    def budget(self) -> LedgerBudget:
        """The budget of its data set."""
        return self._ledger.budget(self.table.dataset)

    def payer(self, analyst: str | None) -> LedgerBudget:
        """Return the budget to charge: the analyst's cap within the data set's, or that of the data set alone."""
        return self._ledger.payer(self._record.dataset, analyst)

    def bind(self) -> BoundTable:
        """Return the rows in their present version; raise CatalogChanged if the table was registered again."""
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

    def check(self, plan: StatisticPlan, per_unit: int) -> None:
        for statement in distinct_statements(statements_of(plan, self.table, per_unit)):
            self.data.engine.write(statement)
