"""PostgreSQL, where the rows are already: nothing is written there, nothing is copied, a reader's rights suffice.

    engine      the Engine: what is registered, and statements over it
    places      where the database is, and where its password is read
    connecting  connections: read-only, in UTC, one for each statement that runs
    errors      what went wrong, in sentences that hold nothing of the data or of the password
    running     one statement: its time limit, cancelling, its answer by columns
    sources     tables of the database: their columns, and which kinds fit them
    views       views and foreign tables that may fail for a row, which are refused
    kinds       types of PostgreSQL as kinds, casts that never fail, and which of them keep values apart
    relations   the queries that show registered tables, put in front of a statement
    transactions  one a statement, read-only
    fingerprints  whether the rows of a table may have changed

For callers there is `PostgresEngine`. psycopg comes with the extra `postgres`, and is imported when it is needed.
"""

from tacit.engines.postgres.engine import PostgresEngine

__all__ = ["PostgresEngine"]
