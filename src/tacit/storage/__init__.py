"""SQLite files and PostgreSQL schemas: connections, transactions, migrations and their errors.

Used by the ledger and by the server's own database, each with its own tables, migrations and error types.
"""
