"""How each engine writes the statements of tacit: the one place where the SQL of databases differs.

Trees are built for DuckDB, whose semantics define what each node means: NaN equals itself and is greater than any
number, `//` truncates towards zero, TRY_CAST gives NULL where it fails, a sum of BIGINTs does not overflow. A dialect
writes every node so that its engine computes the same value, bit for bit, and raises for no row.

    text_search  the limit on the length of searched texts, the same on every engine
    postgres     PostgreSQL (`write_query`)
    spark        Spark (`write_spark`)

DuckDB needs no rules of its own: sqlglot writes its trees.
"""

from __future__ import annotations

from sqlglot import exp

from tacit.engines.dialects.text_search import limit_searches


def write_duckdb(tree: exp.Query) -> str:
    """Return a statement in DuckDB's SQL."""
    return limit_searches(tree).sql(dialect="duckdb")
