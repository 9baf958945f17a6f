"""PostgreSQL, where the rows are already: nothing is written there, nothing is copied, a reader's rights suffice.

    engine       the Engine: what is registered, and statements over it
    connections  where the database and its password are, connections to it, and errors that quote neither
    execution    one statement in a read-only transaction: its time limit, cancellation, its answer by columns
    sources      tables and views: their columns, which of them are read row by row, and signs of changed rows
    kinds        types of PostgreSQL as kinds, casts that never fail, and which of them keep values apart
    relations    the queries that show registered tables, put in front of a statement

For callers there is `PostgresEngine`. psycopg comes with the extra `postgres`, and is imported when it is needed.
"""

from tacit.engines.postgres.engine import PostgresEngine

__all__ = ["PostgresEngine"]
