"""SQLite files and PostgreSQL schemas: connections, transactions, migrations and their failures.

Used by the ledger and by the server's own database, each with tables, migrations and error types of its own. Not here:
what the tables hold.
"""
