"""A ledger in PostgreSQL, for several servers that share it.

Promise: as for SQLite. The one row of the table `head` is locked when a transaction begins, so the journal stays one
chain whichever server writes; a client that stalls inside a transaction is disconnected by the server after
`idle_timeout_s`. Needs the extra `postgres` (psycopg 3), which is imported when a store is opened.

The connection string is read from the environment, and appears in no error and in no record.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

from tacit.ledger.permits import Scope
from tacit.ledger.stores.protocol import Store
from tacit.ledger.stores.sql import HEAD, LAST, MIGRATIONS, PROFILE, Columns, Fetch, SqlTransaction, select_scopes
from tacit.privacy.errors import Unavailable, UnknownName
from tacit.storage.connections import run_in
from tacit.storage.postgres import BEGIN, PostgresSchema, placeholders

ENVIRONMENT_NAME: Final = "TACIT_LEDGER_POSTGRES"
SCHEMA: Final = "tacit_ledger"
_BEGIN_READING: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_LOCK_HEAD: Final = f"{HEAD} FOR UPDATE"


class PostgresStore(PostgresSchema, Store):
    """A ledger's schema in a PostgreSQL database."""

    def __init__(
        self,
        connection_string: str,
        *,
        schema: str = SCHEMA,
        lock_timeout_s: float = 30.0,
        idle_timeout_s: float = 30.0,
        migrations: Path = MIGRATIONS / "postgres",
    ) -> None:
        super().__init__(
            connection_string,
            schema,
            PROFILE,
            migrations,
            lock_timeout_s=lock_timeout_s,
            idle_timeout_s=idle_timeout_s,
        )

    @classmethod
    def from_environment(cls, **settings: Any) -> PostgresStore:
        """Read the connection string from the environment variable TACIT_LEDGER_POSTGRES."""
        text = os.environ.get(ENVIRONMENT_NAME, "")
        if not text:
            raise UnknownName(
                f"set {ENVIRONMENT_NAME} to the connection string of the ledger's database", name=ENVIRONMENT_NAME
            )
        return cls(text, **settings)

    @property
    def place(self) -> str:
        def describe(_: object) -> str:
            server = self._reader.connection.info
            return f"the schema {self._schema} of the database {server.dbname} at {server.host}:{server.port}"

        return run_in(self._begin(self._reader, "BEGIN; SELECT 1", lambda fetch, answers: None), describe)

    def exists(self) -> bool:
        return True

    @property
    def anchor(self) -> Path | None:
        return None

    def transaction(self, scopes: Sequence[Scope] = ()) -> AbstractContextManager[SqlTransaction]:
        begin, keys = f"{BEGIN}; {_LOCK_HEAD}; {LAST}", None
        if scopes:
            named, keys = select_scopes(scopes)
            begin += f"; {placeholders(named)}"

        def rows(fetch: Fetch, answers: list[Columns]) -> SqlTransaction:
            head, last, *found = answers
            transaction = _rows(fetch, [head, last])
            for scope_rows in found:
                transaction.set_scopes(scopes, scope_rows)
            return transaction

        return self._begin(self._writer, begin, rows, _changes, keys)

    def snapshot(self) -> AbstractContextManager[SqlTransaction]:
        return self._begin(self._reader, f"{_BEGIN_READING}; {HEAD}; {LAST}", _rows)

    def backup(self, path: Path) -> None:
        raise Unavailable(
            "a ledger in PostgreSQL is backed up by the database's own tools, or with tacit ledger export --postgres"
        )


def _rows(fetch: Fetch, answers: list[Columns]) -> SqlTransaction:
    transaction = SqlTransaction(fetch)
    transaction.set_end(*answers)
    return transaction


def _changes(transaction: SqlTransaction, cursor: Any) -> list[str]:
    groups = groupby(transaction.statements(), key=itemgetter(0))
    return [_filled_in(cursor, text, [values for _, values in group]) for text, group in groups]


def _filled_in(cursor: Any, statement: str, rows: Sequence[Sequence[Any]]) -> str:
    """Return a statement with its values filled in; several rows become one INSERT."""
    before, _, after = statement.partition(" VALUES (")
    if len(rows) == 1 or not after:
        return "; ".join(cursor.mogrify(placeholders(statement), values) for values in rows)
    marks, _, otherwise = after.partition(")")
    written = ", ".join(cursor.mogrify(placeholders(f"({marks})"), values) for values in rows)
    return f"{before} VALUES {written}{otherwise}"
