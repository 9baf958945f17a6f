"""One statistic of a file that is not registered: a temporary folder whose budget is exactly what the statistic costs.

A registered table is paid from its budget, and a repeated statistic costs nothing. A file has no budget: it is asked in
a folder that is deleted afterwards, and nothing remembers the charge.
Not here: whether a file belongs to a registered table, whose budget must pay instead (the caller's check).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from urllib.parse import quote

from tacit.accounting.conversions import epsilon_of_rho
from tacit.curator.curator import Curator
from tacit.curator.registration import table_of
from tacit.engines.frames import FOLDER as TABLES
from tacit.engines.protocol import SourceColumn, Source
from tacit.ledger import Budget
from tacit.privacy.errors import InvalidInput
from tacit.privacy.numbers import positive
from tacit.privacy.tables import Kind, Limits, Table
from tacit.stats.preparation import RegisteredTable
from tacit.stats.releases import BoundRows

ONE_ROW: Final = Limits(rows_per_unit=1)
FILES: Final = ("csv", "parquet", "duckdb")
"""The forms of sources whose rows can be numbered."""

ZCDP_DELTA_SHARE: Final = 0.79
"""At which share of delta a rho is converted to the epsilon of a budget.

The ledger's zCDP account converts at a little less than 8/10 of delta; at a smaller share epsilon is larger, so the
budget that is made admits the rho whatever is rounded.
"""


@dataclass(frozen=True)
class OneTimeBudget:
    """What one statistic of a file may cost: epsilon or rho, and the delta of the budget that is made for it."""

    epsilon: float | None
    rho: float | None
    delta: float

    @property
    def cap(self) -> float:
        """The epsilon of the budget into which this fits, and nothing more."""
        if self.rho is None:
            assert self.epsilon is not None
            return self.epsilon
        if not self.delta:
            raise InvalidInput("a rho needs a delta above 0, at which it is converted to epsilon", name="delta")
        return epsilon_of_rho(float(positive("rho", self.rho)), ZCDP_DELTA_SHARE * self.delta)


class NumberedTable(RegisteredTable):
    """A file each row of which is a unit: rows are numbered when the statistic is computed, after its charge."""

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
        """Number the rows and return them."""
        return self._number_rows().bind()


@contextmanager
def open_file_table(
    name: str, source: Source, columns: Sequence[SourceColumn], unit: str | None, budget: OneTimeBudget
) -> Iterator[RegisteredTable]:
    """Register a file in a temporary folder with a one-time budget; without a `unit` each row is one by itself."""
    cap = budget.cap
    with TemporaryDirectory(prefix="tacit-") as folder, Curator(folder) as curator:
        curator.set_budget(name, cap, budget.delta, epsilon_min=0)
        if unit is not None:
            curator.register(table_of(name, columns, unit=unit), source)
            yield curator.table(name)
            return
        table = numbered_table(name, columns)
        assert table.unit is not None
        number = table.unit.column

        def number_rows() -> RegisteredTable:
            curator.register(table, numbered_source(source, name, columns, number, Path(folder) / "rows.parquet"))
            return curator.table(name)

        yield NumberedTable(table, curator.budget(name), number_rows)


def numbered_table(name: str, columns: Sequence[SourceColumn]) -> Table:
    """Return the table of rows that are units by themselves: one more column numbers them."""
    number = row_number_column(columns)
    return table_of(name, [number, *columns], unit=number.name, limits=ONE_ROW)


def row_number_column(columns: Sequence[SourceColumn]) -> SourceColumn:
    """Return the column that numbers rows, under a name that none of the others has."""
    name = "row"
    while name in {one.name.lower() for one in columns}:
        name += "_"
    return SourceColumn(name, Kind.INTEGER, "BIGINT")


def numbered_source(source: Source, name: str, columns: Sequence[SourceColumn], number: str, path: Path) -> Source:
    """Write the rows of a file with the column `number` to a new Parquet file; no two rows have the same number."""
    from tacit.engines.duckdb.prepared import write_numbered

    if source.form not in FILES:
        raise InvalidInput("each row can be a unit in files only; name the column of the unit instead", name="unit")
    return write_numbered(source, table_of(name, columns, unit=None, public=True), number, path)


@contextmanager
def numbered_copy(
    folder: Path, name: str, source: Source, columns: Sequence[SourceColumn], number: str
) -> Iterator[Source]:
    """Write a copy of a file whose rows are numbered to the folder's own tables; it is removed if the block raises."""
    tables = folder.absolute() / TABLES
    tables.mkdir(mode=0o700, parents=True, exist_ok=True)
    tables.chmod(0o700)
    path = tables / f"{quote(name, safe=' ')}-{secrets.token_hex(4)}.parquet"
    with TemporaryDirectory(prefix=".numbering-", dir=tables) as aside:
        written = numbered_source(source, name, columns, number, Path(aside) / "rows.parquet")
        Path(written.place).chmod(0o600)
        Path(written.place).replace(path)
    try:
        yield Source("parquet", str(path))
    except BaseException:
        path.unlink(missing_ok=True)
        raise
