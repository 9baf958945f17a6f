"""How Spark writes the statements of tacit.

    queries      SELECT, joins, groups, windows, and the types of all columns
    numbers      operators, rounding, roots and powers
    functions    texts, dates and times
    casts        which texts are numbers and dates, and how reals become whole numbers
    typed_sql    names, texts and numbers as Spark reads them

Statements are for a session with `spark.sql.ansi.enabled` off and the time zone UTC (`engines.spark.sessions`): there
overflow, division by zero and impossible dates are NULL or wrap around, and nothing raises. tacit's trees never ask for
any of these. Types matter because one node can mean different things: CAST of a real rounds, CAST of a text reads.
"""

from tacit.engines.dialects.spark.queries import ROWS_SCHEMA, SOURCE_SCHEMA, Kinds, spark, view_of

__all__ = ["ROWS_SCHEMA", "SOURCE_SCHEMA", "Kinds", "spark", "view_of"]
