"""Statistics of registered tables, by the road of every release: reserve, run on the engine, noise, commit.

The same statistic of the same data is answered again from what was released, at cost 0.
"""

from __future__ import annotations

import hashlib

from tacit.curator.engine_registry import EngineRegistry
from tacit.curator.pipeline import NOTHING, Charge, release
from tacit.ledger import Ledger, LedgerBudget
from tacit.privacy.errors import InvalidInput
from tacit.privacy.tables import Table
from tacit.stats.answer import Answer
from tacit.stats.asking import Asked, RegisteredTable, protected
from tacit.stats.plan import Plan, from_bytes, to_bytes
from tacit.stats.tables import EngineRows


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
        charge = Charge(dataset, plan.event, digest, analyst, asked["purpose"] or plan.label, asked["key"])
        answer, permit = release(self._ledger, self._engines, bound, charge, lambda: to_bytes(plan.measure(rows)))
        return Answer(plan, from_bytes(answer), NOTHING if permit is None else permit.cost, permit, words)

    def __repr__(self) -> str:
        return f"CuratedTable({self.table.name!r})"
