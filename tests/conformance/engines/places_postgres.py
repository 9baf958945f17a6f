"""PostgreSQL from the pip package that brings a server: an engine over a schema of its own, ready to be given rows."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from tacit.engines import PostgresEngine, Source
from tests.support import postgres_server

_NUMBERS = itertools.count()
_TYPES: Final = {"DOUBLE": "float8", "VARCHAR": "text", "HUGEINT": "numeric(39)"}


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def postgres_engine() -> PostgresEngine:
    return PostgresEngine(postgres_server.place(), salt=7)


def postgres_put() -> Callable[[str, Mapping[str, str], Sequence[Sequence[Any]]], Source]:
    """Return what puts rows into tables of a new schema."""
    schema = f"rows_{os.getpid()}_{next(_NUMBERS)}"
    postgres_server.execute(f"CREATE SCHEMA {schema}")

    def put(name: str, types: Mapping[str, str], rows: Sequence[Sequence[Any]]) -> Source:
        import psycopg

        table = f"{schema}.{quoted(name)}"
        fields = ", ".join(f"{quoted(column)} {_TYPES.get(type_, type_)}" for column, type_ in types.items())
        with psycopg.connect(postgres_server.address()) as connection:
            connection.execute(f"DROP TABLE IF EXISTS {table}")
            connection.execute(f"CREATE TABLE {table} ({fields})")
            with connection.cursor().copy(f"COPY {table} FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)
        return Source("postgres", postgres_server.place(), table)

    return put
