"""What the query engine needs of a database: a few relations by name, and one statement at a time.

An engine shows every registered table as a relation `tacit_data."NAME"` whose columns have the declared names and
exactly the types of their kinds (`Kind`): casts are total, what cannot be cast is NULL, and values are as declared
(`declared`): clamped to their bounds, without NaN, no row with NULL where none was declared. A private table has two
more columns: `_unit`, which is never NULL, and `_rows`, how many rows of the relation the unit has, or NULL where the
engine did not count them (a view over files). Where the owner stated `rows_per_unit`, the relation holds at most that
many rows of each unit, chosen by a hash keyed with a secret salt. Columns that a public table is `identified_by` are
unique in it; registering one where they are not is refused.

Not here: noise (mechanisms), SQL of analysts (query). Engines see only SQL that tacit wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

from sqlglot import exp

from tacit.privacy.tables import Kind, Table

SCHEMA: Final = "tacit_data"
UNIT: Final = "_unit"
ROWS: Final = "_rows"

Columns: TypeAlias = dict[str, Sequence[Any]]
"""An answer of the engine by columns: numpy arrays of int64 or float64 where no value is NULL, lists otherwise."""

Progress: TypeAlias = Callable[[float], None]
"""Is told the share of the work that is done, between 0 and 1, now and then."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a table's rows are: `form` is csv, parquet or duckdb; `place` a path, a glob, or a file with `table`."""

    form: str
    place: str
    table: str = ""


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

    def register(self, table: Table, source: Source, others: Mapping[str, Table]) -> None:
        """Show a table as a relation, preparing what makes questions fast; `others` are the tables known so far."""
        ...

    def forget(self, name: str) -> None:
        """Take a table away again."""
        ...

    def version(self, name: str) -> str:
        """Return a text that changes whenever the rows of a table may have changed."""
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
        """Run one SELECT and return its columns; raises TimedOut, Cancelled or EngineFailed and nothing else."""
        ...

    def cancel(self, thread: int | None = None) -> None:
        """Make what a thread runs now, or whatever runs in this engine, raise Cancelled; to be called from another."""
        ...

    def close(self) -> None:
        """Let go of the database."""
        ...
