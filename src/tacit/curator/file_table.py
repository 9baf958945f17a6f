"""A file that is not registered as the input of one statistic, in a temporary folder with a one-time budget.

A file has no budget: the folder is deleted afterwards, and the charge is not recorded. Callers check first that the
file does not belong to a registered table, whose budget would have to pay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tacit.curator.curator import Curator
from tacit.curator.registration import table_of, write_numbered_rows
from tacit.engines.protocol import Source, SourceColumn
from tacit.ledger import Budget
from tacit.ledger.accounts import epsilon_admitting
from tacit.privacy.errors import InvalidInput
from tacit.privacy.numbers import positive
from tacit.privacy.tables import Table
from tacit.stats.preparation import RegisteredTable
from tacit.stats.releases import BoundRows


@dataclass(frozen=True)
class OneTimeBudget:
    """The price of one statistic of a file, as epsilon or rho, and the delta of its budget."""

    epsilon: float | None
    rho: float | None
    delta: float

    @property
    def cap(self) -> float:
        """The epsilon of the budget that admits exactly this price."""
        if self.rho is None:
            assert self.epsilon is not None
            return self.epsilon
        if not self.delta:
            raise InvalidInput("rho needs a delta above 0, at which it is converted to epsilon", name="delta")
        return epsilon_admitting(float(positive("rho", self.rho)), self.delta)


class NumberedTable(RegisteredTable):
    """A file whose rows are units; they are numbered when the statistic is computed, after its charge."""

    is_by_unit = False

    def __init__(self, table: Table, budget: Budget, number_rows: Callable[[], RegisteredTable]) -> None:
        self.table = table
        self._budget, self._number_rows = budget, number_rows

    @property
    def budget(self) -> Budget:
        """The budget of its data set."""
        return self._budget

    def payer(self, analyst: str | None) -> Budget:
        """Return the one-time budget."""
        return self._budget

    def bind(self) -> BoundRows:
        """Return the numbered rows."""
        return self._number_rows().bind()


@contextmanager
def open_file_table(
    name: str, source: Source, columns: Sequence[SourceColumn], unit: str | None, budget: OneTimeBudget
) -> Iterator[RegisteredTable]:
    """Register a file in a temporary folder with a one-time budget; without a `unit` every row is a unit."""
    cap = budget.cap
    with TemporaryDirectory(prefix="tacit-") as folder, Curator(folder) as curator:
        curator.set_budget(name, cap, budget.delta, epsilon_min=0)
        if unit is not None:
            curator.register(table_of(name, columns, unit=unit), source)
            yield curator.table(name)
            return
        table = table_of(name, columns, each_row=True)

        def number_rows() -> RegisteredTable:
            curator.register(table, write_numbered_rows(source, table, Path(folder) / "rows.parquet"))
            return curator.table(name)

        yield NumberedTable(table, curator.budget(name), number_rows)
