"""The protocol of an engine: registered tables as relations, and one statement at a time.

An engine shows every registered table as a relation `tacit_data."NAME"` whose columns have the declared names and
exactly the types of their kinds (`Kind`): casts are total, what cannot be cast is NULL, and values are as declared
(`relations.declared_value`): clamped to their bounds, without NaN, no row with NULL where none was declared. A private
table has two more columns: `_unit`, which is never NULL, and `_rows`, how many rows of the relation the unit has, or
NULL where the engine did not count them (a view over files). Where the owner stated `rows_per_unit`, the relation holds
at most that many rows of each unit, chosen by a hash keyed with a secret salt. Columns that a table is `identified_by`
are unique in it; registering a table where they are not is refused, and of public rows that share them later one is
shown.

Left to others: noise (mechanisms) and the SQL of analysts (query). Engines see only SQL that tacit wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

from sqlglot import exp

from tacit.engines.csv_format import CsvFormat
from tacit.privacy.tables import Kind, Table

SCHEMA: Final = "tacit_data"
UNIT: Final = "_unit"
ROWS: Final = "_rows"
SALT: Final = "salt"
"""The parameter of a statement that holds the secret salt by which the rows of a unit are chosen."""

FAILED: Final = "the engine failed to complete the query; what was charged stays charged"
"""The one sentence for whatever goes wrong while a statement runs: whether it was time, memory, disk or the connection
may depend on a single row."""

Columns: TypeAlias = dict[str, Sequence[Any]]
"""The answer to a statement by columns: numpy arrays of int64 or float64 where no value is NULL, lists otherwise.

There is no -0.0 in it (`execution.normalize_zeros`)."""

Progress: TypeAlias = Callable[[float], None]
"""Called now and then with the share of the work that is done, between 0 and 1."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a table's rows are: `form` is csv, parquet or duckdb; `place` a path, a glob, or a file with `table`.

    `csv` are the formats that the CSV files had when the table was registered, by which all later versions of them are
    read. Without any, the format is detected in each version, and depends on its rows.
    """

    form: str
    place: str
    table: str = ""
    csv: tuple[CsvFormat, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """A column of a source: its name, the kind that fits its type (None: it cannot be queried), the engine's type."""

    name: str
    kind: Kind | None
    type: str


class Engine(Protocol):
    """A database that holds the rows and does the heavy work."""

    def describe(self, source: Source) -> list[SourceColumn]:
        """Return the columns of a source, without reading more of it than their types need."""
        ...

    def register(
        self, table: Table, source: Source, others: Mapping[str, Table], fingerprint: str | None = None
    ) -> None:
        """Show a table as a relation, preparing what makes queries fast; `others` are the tables known so far.

        With the `fingerprint` that `refresh` returned before, the rows of that time are shown where they were stored,
        and no row is checked again: what this does or raises then depends on no row. Without it, the rows are read and
        checked as they are now.
        """
        ...

    def forget(self, name: str) -> None:
        """Remove a table from what is shown."""
        ...

    def refresh(self, name: str) -> str:
        """Show the rows of a registered table as they are now, and return a fingerprint of its source.

        The fingerprint changes whenever the rows of the source may have changed. This is for owners: it reads rows and
        may refuse them, so no query may call it.
        """
        ...

    def write(self, tree: exp.Query) -> str:
        """Return a statement of tacit in the SQL of this engine, to be run and shown; it holds no secret.

        Trees are DuckDB's, with `tacit_data."NAME"` for the relations; a salt is the parameter `salt`.
        """
        ...

    def run(
        self,
        sql: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        timeout_s: float | None = None,
        progress: Progress | None = None,
    ) -> Columns:
        """Run one SELECT and return its columns.

        Raises Cancelled if `cancel` was called, and otherwise EngineFailed with the sentence `FAILED`, whatever went
        wrong: time, memory, disk, a lost connection or an error of the database. DuckDB, which runs inside the caller's
        own process, raises TimedOut where the caller's own time limit has passed.
        """
        ...

    def cancel(self, thread: int | None = None) -> None:
        """Make what a thread runs now, or whatever runs in this engine, raise Cancelled; called from another thread."""
        ...

    def close(self) -> None:
        """Close the connection to the database."""
        ...
