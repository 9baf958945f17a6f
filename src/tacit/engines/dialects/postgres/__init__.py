"""The SQL of tacit's statements for PostgreSQL: it computes what DuckDB computes, and raises for no row.

    typed_sql    values: their SQL, type and range; values that are used several times
    reals        arithmetic of doubles without overflow and underflow errors
    functions    functions of texts, independent of the locale, and of dates and times
    casts        casts that never fail
    scalars      the rule for every node of a scalar expression
    queries      SELECT, joins, groups, windows, medians, and the keyed hash

For callers there are `write_query` and `finish_statement`. The parameter `salt` becomes `%(salt)s`, and % in texts is
doubled, as psycopg requires. PostgreSQL evaluates constant expressions while it plans, also in branches of a CASE that
are never taken, unless their condition is constant as well; guards stand next to what they guard, so that both are
constant together.
"""

from __future__ import annotations

from sqlglot import exp

from tacit.engines.dialects.postgres import functions
from tacit.engines.dialects.postgres.queries import Relations, TypedColumns, TypedRelation, Writer
from tacit.engines.dialects.postgres.typed_sql import PostgresType, Value, finish_statement, identifier
from tacit.engines.dialects.text_search import limit_searches
from tacit.privacy.errors import EngineFailed

__all__ = [
    "PostgresType",
    "Relations",
    "TypedColumns",
    "TypedRelation",
    "Value",
    "finish_statement",
    "identifier",
    "write_query",
]


def write_query(
    tree: exp.Query, relations: Relations, *, unicode_case: bool = False
) -> tuple[str, TypedColumns, list[tuple[str, str]]]:
    """Return a query, its columns, and the relations that it names; `finish_statement` makes it ready to run.

    `unicode_case` says whether the server has the collation `functions.UNICODE_COLLATION`.
    """
    writer = Writer(relations)
    token = functions.UNICODE_CASE.set(unicode_case)
    try:
        sql, columns = writer.query(limit_searches(tree))
    except RecursionError:
        raise EngineFailed("the query is nested too deeply for PostgreSQL; simplify it") from None
    finally:
        functions.UNICODE_CASE.reset(token)
    return sql, columns, list(writer.named)
