"""The SQL of tacit's statements for Spark.

    queries      SELECT, joins, groups, windows, and the types of all columns
    numbers      operators, rounding, roots and powers
    functions    texts, dates and times
    casts        casts with DuckDB's results
    typed_sql    typed pieces of SQL, names and constants

Statements are for a session with `spark.sql.ansi.enabled` off and the time zone UTC (`engines.spark.sessions`): there
overflow, division by zero and impossible dates are NULL or wrap around, and nothing raises; tacit's trees never do any
of these. Types matter because one node can mean different things: CAST of a real rounds, CAST of a text parses.
"""

from tacit.engines.dialects.spark.queries import ROWS_SCHEMA, SOURCE_SCHEMA, Kinds, view_name, write_spark

__all__ = ["ROWS_SCHEMA", "SOURCE_SCHEMA", "Kinds", "view_name", "write_spark"]
