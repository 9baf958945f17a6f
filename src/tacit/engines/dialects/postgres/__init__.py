"""How PostgreSQL writes the statements of tacit, so that it computes what DuckDB computes and raises for no row.

    typed_sql    a value: its SQL, its type, what is known of its size; values that are used several times
    reals        arithmetic of doubles without overflow and underflow errors
    functions    functions of texts that depend on no locale, dates and times
    casts        casts that never fail
    scalars      every node of a row's expression
    queries      SELECT, joins, groups, windows, medians, and the keyed hash

For callers there is `postgres`. The parameter `salt` becomes `%(salt)s`, and % in texts is doubled, as psycopg wants
it. PostgreSQL evaluates what is constant while it plans, branches of a CASE that are never taken too, unless their
condition is constant as well; guards stand next to what they guard, so that both are constant together.
"""

from __future__ import annotations

from sqlglot import exp

from tacit.engines.dialects.postgres import functions
from tacit.engines.dialects.postgres.queries import Columns, Relations, TypedRelation, Writer
from tacit.engines.dialects.postgres.typed_sql import Type, Value, finished, identifier
from tacit.engines.dialects.text_search import limited
from tacit.privacy.errors import EngineFailed

__all__ = ["Columns", "Relations", "Type", "TypedRelation", "Value", "finished", "identifier", "postgres", "written"]


def postgres(tree: exp.Query, relations: Relations | None = None) -> str:
    """Return a statement as PostgreSQL reads it."""
    return finished(written(tree, relations or {})[0])


def written(
    tree: exp.Query, relations: Relations, *, unicode_case: bool = False
) -> tuple[str, Columns, list[tuple[str, str]]]:
    """Return a part of a statement that is yet to be `finished`, its columns, and the relations that it names.

    `unicode_case` says that the server has the collation `functions.UNICODE_COLLATION`.
    """
    writer = Writer(relations)
    token = functions.UNICODE_CASE.set(unicode_case)
    try:
        sql, columns = writer.query(limited(tree))
    except RecursionError:
        raise EngineFailed("the question is nested too deeply for PostgreSQL; ask for less at once") from None
    finally:
        functions.UNICODE_CASE.reset(token)
    return sql, columns, list(writer.named)
