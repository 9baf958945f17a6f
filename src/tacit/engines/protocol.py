"""What the query engine needs of a database: a few relations by name, and one statement at a time.

An engine shows every registered table as a relation `tacit_data."NAME"` whose columns have the declared names and
exactly the types of their kinds (`Kind`): casts are total, what cannot be cast is NULL, and values are as declared
(`relations.declared`): clamped to their bounds, without NaN, no row with NULL where none was declared. A private table
has two more columns: `_unit`, which is never NULL, and `_rows`, how many rows of the relation the unit has, or NULL
where the engine did not count them (a view over files). Where the owner stated `rows_per_unit`, the relation holds at
most that many rows of each unit, chosen by a hash keyed with a secret salt. Columns that a table is `identified_by` are
unique in it; registering one where they are not is refused, and of public rows that come to share them later one is
shown.

Not here: noise (mechanisms), SQL of analysts (query). Engines see only SQL that tacit wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

from sqlglot import exp

from tacit.engines.csv_format import CsvForm
from tacit.privacy.tables import Kind, Table

SCHEMA: Final = "tacit_data"
UNIT: Final = "_unit"
ROWS: Final = "_rows"
SALT: Final = "salt"
"""The parameter of a statement that holds the secret by which the rows of a unit are chosen."""

FAILED: Final = "the engine could not run the question to its end; what was charged stays charged"
"""The one sentence for whatever goes wrong while a statement runs: which of time, memory, disk or connection it was may
depend on a single row."""

Columns: TypeAlias = dict[str, Sequence[Any]]
"""An answer of the engine by columns: numpy arrays of int64 or float64 where no value is NULL, lists otherwise.

Of the two zeros of reals, 0.0 alone is there (`zeros.one_zero`)."""


Progress: TypeAlias = Callable[[float], None]
"""Is told the share of the work that is done, between 0 and 1, now and then."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a table's rows are: `form` is csv, parquet or duckdb; `place` a path, a glob, or a file with `table`.

    `csv` are the forms that the CSV files had when the table was registered, by which all later versions of them are
    read. Without any, the form is looked for in each version, and depends on its rows.
    """

    form: str
    place: str
    table: str = ""
    csv: tuple[CsvForm, ...] = ()


@dataclass(frozen=True, slots=True)
class Described:
    """A column of a source as it is found: its name, the kind that fits it (None: not usable), the engine's type."""

    name: str
    kind: Kind | None
    type: str


class Engine(Protocol):
    """A database that holds the rows and does the heavy work."""

    def describe(self, source: Source) -> list[Described]:
        """Return the columns of a source, without reading more of it than their types need."""
        ...

    def register(
        self, table: Table, source: Source, others: Mapping[str, Table], fingerprint: str | None = None
    ) -> None:
        """Show a table as a relation, preparing what makes questions fast; `others` are the tables known so far.

        With the `fingerprint` that `refresh` returned before, the rows of that time are shown where they were stored,
        and no row is checked again: what this does or raises then depends on no row. Without it, the rows are looked
        at as they are now.
        """
        ...

    def forget(self, name: str) -> None:
        """Take a table away again."""
        ...

    def refresh(self, name: str) -> str:
        """Show the rows of a registered table as they are now, and return a fingerprint of its source.

        The fingerprint changes whenever the rows of the source may have changed. This is for owners: it reads rows and
        may refuse them, so no question may lead here.
        """
        ...

    def write(self, tree: exp.Query) -> str:
        """Return a statement of tacit in the SQL of this engine, ready to be run and to be shown; no secret is in it.

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
        wrong: time, memory, disk, a lost connection or an error of the database. DuckDB, inside the caller's own
        process, says TimedOut where the caller's own time limit has passed.
        """
        ...

    def cancel(self, thread: int | None = None) -> None:
        """Make what a thread runs now, or whatever runs in this engine, raise Cancelled; to be called from another."""
        ...

    def close(self) -> None:
        """Let go of the database."""
        ...
