"""Statistics of registered tables, by the road of every release: reserve, run on the engine, noise, commit.

The same statistic of the same data is answered again from what was released, at cost 0.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Final

from tacit.accounting.bounds import Cost
from tacit.engines.protocol import Engine
from tacit.ledger import Ledger, LedgerBudget
from tacit.privacy.errors import InvalidInput, TacitError
from tacit.privacy.tables import Table
from tacit.stats.answer import Answer
from tacit.stats.asking import Asked, RegisteredTable, protected
from tacit.stats.plan import Plan, from_bytes, to_bytes
from tacit.stats.tables import EngineRows

NOTHING: Final = Cost(0.0, 0.0, 0.0)


class CuratedTable(RegisteredTable):
    """A private table of a curator; `ready` opens its engine and shows it there."""

    def __init__(self, table: Table, ledger: Ledger, ready: Callable[[tuple[str, ...]], Engine], salt: int) -> None:
        if not table.is_private:
            raise InvalidInput(
                f"{table.name} is public: its statistics need no privacy, and are computed directly", name="table"
            )
        self.table = table
        self._ledger, self._ready, self._salt = ledger, ready, salt

    @property
    def budget(self) -> LedgerBudget:
        """The budget of its data set."""
        return self._ledger.budget(self.table.dataset)

    def answered(self, plan: Plan, asked: Asked, per_unit: int) -> Answer:
        """Answer a plan, or raise; what failed after the charge is noted in the ledger."""
        engine = self._ready((self.table.name,))
        analyst, dataset = asked.get("analyst"), self.table.dataset
        words = protected(self.budget, per_unit, by_unit=True)
        digest = _digest(self.table.name.lower(), per_unit, plan.canonical)
        version = self._version(engine)
        self._ledger.preview(dataset, plan.event, analyst=analyst)  # who may not ask learns nothing
        if (kept := self._ledger.released(digest, version)) is not None:
            return Answer(plan, from_bytes(kept), NOTHING, None, words)
        purpose = asked.get("purpose") or plan.label
        permit = self._ledger.reserve(
            dataset, plan.event, analyst=analyst, purpose=purpose, question=digest, data_version=version
        )
        rows = EngineRows(engine, self.table, self._salt, per_unit, timeout_s=asked.get("timeout_s"))
        try:
            noisy = plan.measure(rows)
        except TacitError as error:
            self._ledger.annotate(permit, f"the run failed: {error.code}")
            raise
        again = self._version(engine) == version  # rows that changed meanwhile belong to no version
        self._ledger.commit(permit, to_bytes(noisy), *((digest, version) if again else (None, None)))
        return Answer(plan, noisy, permit.cost, permit, words)

    def _version(self, engine: Engine) -> str:
        return _digest(self.table.name.lower(), engine.version(self.table.name))

    def __repr__(self) -> str:
        return f"CuratedTable({self.table.name!r})"


def _digest(*parts: object) -> str:
    return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()
