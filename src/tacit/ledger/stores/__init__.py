"""Stores of a ledger: SQLite in a folder, or PostgreSQL for several servers; both pass one conformance kit.

Not for callers: `Ledger.open` takes a folder or a store.
"""

from tacit.ledger.stores.postgres import PostgresStore
from tacit.ledger.stores.protocol import Store, Transaction
from tacit.ledger.stores.sqlite import SqliteStore

__all__ = ["PostgresStore", "SqliteStore", "Store", "Transaction"]
