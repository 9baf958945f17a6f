"""A server as a database: connections and cursors as PEP 249 (DB-API 2) has them.

    connection = tacit.client.dbapi.connect("http://127.0.0.1:8321", token="file:token.txt", epsilon=0.1)
    cursor = connection.cursor()
    cursor.execute("SELECT COUNT(*) AS n FROM visits WHERE age > :age", {"age": 60})
    cursor.fetchall()
    pandas.read_sql("SELECT sex, COUNT(*) AS n FROM visits GROUP BY sex", connection)

Every `execute` is one question, charged to the budget: what it may cost is said with the connection or with each
statement, and there is no default. `cursor.release` is the answer with its intervals, its cost and its card.

Errors are those of PEP 249; the error of tacit stands behind each as its cause, and its code in `code`. Threads may
share a connection, and each has cursors of its own. Not here: statements that change data, and transactions.
"""

from typing import Final

from tacit.client.dbapi.connection import Connection, connect
from tacit.client.dbapi.cursor import Cursor
from tacit.client.dbapi.errors import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,
)
from tacit.client.dbapi.types import (
    BINARY,
    DATETIME,
    NUMBER,
    ROWID,
    STRING,
    Binary,
    Date,
    DateFromTicks,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
)

apilevel: Final = "2.0"
threadsafety: Final = 2
paramstyle: Final = "named"

__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Binary",
    "Connection",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
]
