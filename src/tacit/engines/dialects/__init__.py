"""How each engine writes the statements of tacit: the one place where the SQL of databases differs.

Trees are built for DuckDB, whose reading of each node is what the node means: NaN equals itself and is greater than any
number, `//` cuts off towards zero, TRY_CAST gives NULL where it fails, a sum of BIGINTs does not overflow. A dialect
writes every node so that its engine computes the same value, bit for bit, and raises for no row.
"""

from __future__ import annotations

from sqlglot import exp

from tacit.engines.dialects.postgres import postgres as postgres
from tacit.engines.dialects.spark import spark as spark
from tacit.engines.dialects.text_search import limited


def duckdb(tree: exp.Query) -> str:
    """Return a statement as DuckDB reads it."""
    return limited(tree).sql(dialect="duckdb")
