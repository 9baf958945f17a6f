"""How PostgreSQL writes the statements of tacit, so that it computes what DuckDB computes and raises for no row.

    values      a value: its SQL, its type, what is known of its size; values that are used several times
    reals       arithmetic of doubles without overflow and underflow errors
    texts       functions of texts that depend on no locale
    dates       dates and times
    casts       casts that never fail
    scalars     every node of a row's expression
    medians     MEDIAN over a window, in two steps
    queries     SELECT, joins, groups, windows, and the keyed hash

For callers there is `postgres`. The parameter `salt` becomes `%(salt)s`, and % in texts is doubled, as psycopg wants
it. PostgreSQL evaluates what is constant while it plans, branches of a CASE that are never taken too, unless their
condition is constant as well; guards stand next to what they guard, so that both are constant together.
"""

from __future__ import annotations

from sqlglot import exp

from tacit.engines.dialects.postgres import texts
from tacit.engines.dialects.postgres.queries import Columns, Relation, Relations, Writer
from tacit.engines.dialects.postgres.values import Type, Value, finished, identifier
from tacit.engines.dialects.searches import limited
from tacit.privacy.errors import EngineFailed

__all__ = ["Columns", "Relation", "Relations", "Type", "Value", "finished", "identifier", "postgres", "written"]


def postgres(tree: exp.Query, relations: Relations | None = None) -> str:
    """Return a statement as PostgreSQL reads it."""
    return finished(written(tree, relations or {})[0])


def written(
    tree: exp.Query, relations: Relations, *, unicode_case: bool = False
) -> tuple[str, Columns, list[tuple[str, str]]]:
    """Return a part of a statement that is yet to be `finished`, its columns, and the relations that it names.

    `unicode_case` says that the server has the collation `texts.UNICODE_COLLATION`.
    """
    writer = Writer(relations)
    token = texts.UNICODE_CASE.set(unicode_case)
    try:
        sql, columns = writer.query(limited(tree))
    except RecursionError:
        raise EngineFailed("the question is nested too deeply for PostgreSQL; ask for less at once") from None
    finally:
        texts.UNICODE_CASE.reset(token)
    return sql, columns, list(writer.named)
