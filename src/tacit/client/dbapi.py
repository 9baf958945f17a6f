"""A server as a database: connections, cursors and errors of PEP 249 (DB-API 2).

    connection = tacit.client.dbapi.connect("http://127.0.0.1:8321", token="file:token.txt", epsilon=0.1)
    cursor = connection.cursor()
    cursor.execute("SELECT COUNT(*) AS n FROM visits WHERE age > :age", {"age": 60})
    cursor.fetchall()
    pandas.read_sql("SELECT sex, COUNT(*) AS n FROM visits GROUP BY sex", connection)

Every `execute` is one query and is charged: its price is stated with the connection or with the statement, without a
default. `cursor.release` is the answer with its intervals, its cost and its card. There are no statements that change
data, and no transactions. Threads may share a connection, but not a cursor.

Parameters are bound safely: the statement is parsed, and `:name` is replaced in the tree by a literal of the value's
type. The type code of a column is its kind: "integer", "real", "boolean", "text", "date" or "time".

Errors have the error of tacit as their cause, and its code in `code`:

Warning
Error
├── InterfaceError
└── DatabaseError
    ├── DataError           a value is invalid
    ├── OperationalError    no budget or permission; ledger, engine or server is unavailable
    ├── IntegrityError      a name or a key is taken
    ├── InternalError       the ledger does not verify, or a defect
    ├── ProgrammingError    invalid SQL, unknown table, wrong type
    └── NotSupportedError   the query has no private answer
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, NoReturn, Self, TypeAlias

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from tacit.client.answers import RemoteRelease
from tacit.client.client import Client
from tacit.client.transport import chosen_server
from tacit.privacy import errors
from tacit.privacy.errors import TacitError
from tacit.privacy.tables import Kind
from tacit.query.parse import TEXT_MAX


class Warning(Exception):
    """Required by PEP 249; never raised."""


class Error(Exception):
    """The base class; `code` is that of the error of tacit, if there is one."""

    code: str | None = None


class InterfaceError(Error):
    """The interface is used wrongly."""


class DatabaseError(Error):
    """A query or the server failed."""


class DataError(DatabaseError):
    """A value is invalid."""


class OperationalError(DatabaseError):
    """The query cannot be answered now or for this caller: budget, permission, server."""


class IntegrityError(DatabaseError):
    """A name or a key is taken."""


class InternalError(DatabaseError):
    """The ledger does not verify, or the server failed unexpectedly."""


class ProgrammingError(DatabaseError):
    """The statement is invalid, names an unknown table or column, or does not match its parameters."""


class NotSupportedError(DatabaseError):
    """The query has no private answer, or the interface does not support the operation."""


KINDS: Final[Mapping[type[TacitError], type[DatabaseError]]] = {
    errors.NotPositive: DataError,
    errors.NotFinite: DataError,
    errors.OutOfRange: DataError,
    errors.TooLarge: DataError,
    errors.NameTaken: IntegrityError,
    errors.KeyReused: IntegrityError,
    errors.AlreadySettled: IntegrityError,
    errors.InvalidInput: ProgrammingError,
    errors.QueryRefused: NotSupportedError,
    errors.BudgetExceeded: OperationalError,
    errors.NotPermitted: OperationalError,
    errors.StorageCorrupt: InternalError,
    errors.StorageFailed: OperationalError,
    errors.Unavailable: NotSupportedError,
    errors.EngineFailed: OperationalError,
    errors.ServerLimit: OperationalError,
    errors.ServerFailed: InternalError,
    errors.ServerUnreachable: OperationalError,
    TacitError: DatabaseError,
}
"""The class of an error is that of its nearest base class here."""


def database_error(error: TacitError) -> DatabaseError:
    """Return an error of tacit as one of PEP 249, with its message and code."""
    kind = next(KINDS[one] for one in type(error).__mro__ if one in KINDS)
    found = kind(f"{error.code} {error.message}")
    found.code = error.code
    return found


@contextmanager
def translate_errors() -> Iterator[None]:
    """Raise errors of tacit in the block as those of PEP 249."""
    try:
        yield
    except TacitError as error:
        raise database_error(error) from error


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

apilevel: Final = "2.0"
threadsafety: Final = 2
paramstyle: Final = "named"

DIALECT: Final = "duckdb"
"""The SQL dialect of tacit."""
PARAMETERS_MAX: Final = 1_000
PRICES: Final = ("epsilon", "rho", "error")

Description: TypeAlias = tuple[str, str, None, None, None, None, bool]
Row: TypeAlias = tuple[Any, ...]
Date = date
Time = time
Timestamp = datetime
Binary = bytes


def DateFromTicks(ticks: float) -> date:  # noqa: N802  # PEP 249 names it
    """Return the date of a Unix timestamp, in UTC."""
    return datetime.fromtimestamp(ticks, UTC).date()


def TimeFromTicks(ticks: float) -> time:  # noqa: N802  # PEP 249 names it
    """Return the time of day of a Unix timestamp, in UTC."""
    return datetime.fromtimestamp(ticks, UTC).time()


def TimestampFromTicks(ticks: float) -> datetime:  # noqa: N802  # PEP 249 names it
    """Return the time of a Unix timestamp, in UTC and without a zone."""
    return datetime.fromtimestamp(ticks, UTC).replace(tzinfo=None)


class TypeObject:
    """A group of type codes, equal to each of them."""

    def __init__(self, *kinds: Kind) -> None:
        self._kinds: Final = frozenset(kind.value for kind in kinds)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, TypeObject):
            return self is other
        return isinstance(other, str) and str(other) in self._kinds

    def __hash__(self) -> int:
        return hash(self._kinds)


STRING: Final = TypeObject(Kind.TEXT)
NUMBER: Final = TypeObject(Kind.INTEGER, Kind.REAL, Kind.BOOLEAN)
DATETIME: Final = TypeObject(Kind.DATE, Kind.TIME)
BINARY: Final = TypeObject()
ROWID: Final = TypeObject()


def connect(
    url: str | None = None,
    token: str | None = None,
    *,
    epsilon: object = None,
    rho: object = None,
    error: object = None,
    delta: object = None,
    timeout_s: float = 60,
    verify: bool | str | Path = True,
    retries: int = 3,
) -> Connection:
    """Return a connection to a server, by default that of TACIT_SERVER.

    `epsilon` (or rho, or error) is the price of each query. Without one, each `execute` must state it.
    """
    asked = {"epsilon": epsilon, "rho": rho, "error": error, "delta": delta}
    with translate_errors():
        client = Client(chosen_server(url), token, timeout_s=timeout_s, verify=verify, retries=retries)
    return Connection(client, {name: one for name, one in asked.items() if one is not None})


class Connection:
    """A server as a database; threads may share it."""

    Warning = Warning
    Error = Error
    InterfaceError = InterfaceError
    DatabaseError = DatabaseError
    DataError = DataError
    OperationalError = OperationalError
    IntegrityError = IntegrityError
    InternalError = InternalError
    ProgrammingError = ProgrammingError
    NotSupportedError = NotSupportedError

    def __init__(self, client: Client, asked: Mapping[str, Any]) -> None:
        self.client: Final = client
        """The client, for everything that is not SQL."""
        self.asked: Final = dict(asked)
        """Default arguments of queries."""
        self._is_closed = False

    def cursor(self) -> Cursor:
        """Return a new cursor."""
        self.check_open()
        return Cursor(self)

    def commit(self) -> None:
        """Do nothing: answers are charged at once."""
        self.check_open()

    def rollback(self) -> None:
        """Do nothing: there are no transactions, and charges are final."""
        self.check_open()

    def close(self) -> None:
        """Close the connection; it and its cursors cannot be used afterwards."""
        self._is_closed = True
        self.client.close()

    def check_open(self) -> None:
        """Raise ProgrammingError if the connection is closed."""
        if self._is_closed:
            raise ProgrammingError("the connection is closed")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Connection({self.client.url!r})"


class Cursor:
    """Runs queries and returns their rows; for one thread."""

    def __init__(self, connection: Connection) -> None:
        self.connection: Final = connection
        self.arraysize = 1
        """The default number of rows of `fetchmany`."""
        self.release: RemoteRelease | None = None
        """The answer of the last statement, with its intervals, cost and card."""
        self._rows: Sequence[Row] = ()
        self._place = 0
        self._is_closed = False

    @property
    def description(self) -> list[Description] | None:
        """The columns of the last answer: name, type code and nullability."""
        if self.release is None:
            return None
        return [(name, kind.value, None, None, None, None, True) for name, kind in self.release.kinds.items()]

    @property
    def rowcount(self) -> int:
        """The number of rows of the last answer; -1 before the first."""
        return -1 if self.release is None else len(self.release)

    @property
    def rownumber(self) -> int | None:
        """The index of the next row, from 0."""
        return None if self.release is None else self._place

    def execute(self, sql: str, parameters: Mapping[str, Any] | None = None, **stated: Any) -> Self:
        """Run a query; the arguments (epsilon, rho, error, delta, ...) override those of the connection.

        Parameters are written :name and given by name. The other arguments are those of `tacit.client.Client.sql`.
        """
        self._check_open()
        self.release, self._rows, self._place = None, (), 0
        asked = {**self.connection.asked, **stated}
        if any(stated.get(name) is not None for name in PRICES):  # a price of one kind replaces that of another
            asked |= {name: stated.get(name) for name in PRICES}
        with translate_errors():
            release = self.connection.client.sql(bind_parameters(sql, parameters), **asked)
        self.release = release
        self._rows = [tuple(row[name] for name in release.columns) for row in release.rows]
        return self

    def executemany(self, sql: str, parameters: Any = ()) -> NoReturn:
        """Raise NotSupportedError: each query is charged by itself."""
        raise NotSupportedError("each query is charged by itself; call execute for each, or use GROUP BY")

    def fetchone(self) -> Row | None:
        """Return the next row, or None after the last."""
        found = self._fetch(1)
        return found[0] if found else None

    def fetchmany(self, size: int | None = None) -> list[Row]:
        """Return the next `size` rows, by default `arraysize`."""
        return self._fetch(self.arraysize if size is None else size)

    def fetchall(self) -> list[Row]:
        """Return the remaining rows."""
        return self._fetch(len(self._rows))

    def close(self) -> None:
        """Close the cursor; it cannot be used afterwards."""
        self._is_closed, self.release, self._rows = True, None, ()

    def setinputsizes(self, sizes: Any) -> None:
        """Do nothing, as PEP 249 allows."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Do nothing, as PEP 249 allows."""

    def _fetch(self, count: int) -> list[Row]:
        self._check_open()
        if self.release is None:
            raise ProgrammingError("there are no rows before execute(...)")
        found = list(self._rows[self._place : self._place + max(count, 0)])
        self._place += len(found)
        return found

    def _check_open(self) -> None:
        if self._is_closed:
            raise ProgrammingError("the cursor is closed")
        self.connection.check_open()

    def __iter__(self) -> Iterator[Row]:
        while (row := self.fetchone()) is not None:
            yield row

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def bind_parameters(sql: Any, parameters: Any) -> str:
    """Return a statement with its parameters as literals; without parameters, unchanged."""
    if not isinstance(sql, str):
        raise ProgrammingError(f"a statement must be a text, not {type(sql).__name__}")
    if parameters is None:
        return sql
    if not isinstance(parameters, Mapping):
        if not parameters:  # some callers pass an empty sequence for none
            return sql
        raise ProgrammingError('parameters are given by name: execute("... WHERE age > :age", {"age": 60})')
    if len(sql) > TEXT_MAX or len(parameters) > PARAMETERS_MAX:
        raise ProgrammingError(f"a statement has at most {TEXT_MAX:,} characters and {PARAMETERS_MAX:,} parameters")
    literals = {str(name): literal(str(name), value) for name, value in parameters.items()}
    tree, used = _parse(sql), set()
    for node in list(tree.find_all(exp.Placeholder, exp.Parameter)):
        name = node.name
        if not isinstance(node, exp.Placeholder) or name in ("", "?"):
            raise ProgrammingError("parameters are written :name")
        if name not in literals:
            raise ProgrammingError(f"no value is given for the parameter :{name}")
        node.replace(literals[name].copy())
        used.add(name)
    if unused := sorted(literals.keys() - used):
        raise ProgrammingError(f"the statement has no parameter :{unused[0]}")
    return tree.sql(dialect=DIALECT)


def literal(name: str, value: Any) -> exp.Expr:
    """Return a value as a literal of its type."""
    match value:
        case None:
            return exp.Null()
        case bool():
            return exp.Boolean(this=value)
        case int():
            return _number(str(abs(value)), is_negative=value < 0)
        case float() | Decimal() if not math.isfinite(value):
            raise DataError(f"the parameter :{name} is {value}; it must be finite")
        case float():
            return _number(repr(abs(value)), is_negative=value < 0)
        case Decimal():
            return _number(format(abs(value), "f"), is_negative=value < 0)
        case str():
            if "\0" in value:
                raise DataError(f"the parameter :{name} contains the character 0")
            return exp.Literal.string(value)
        case datetime():
            moment = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo is not None else value
            return exp.cast(exp.Literal.string(moment.isoformat(sep=" ")), "TIMESTAMP")
        case date():
            return exp.cast(exp.Literal.string(value.isoformat()), "DATE")
    if hasattr(value, "item") and not hasattr(value, "__len__"):  # a number of numpy
        return literal(name, value.item())
    raise DataError(f"the parameter :{name} is {type(value).__name__}; it must be a number, text, boolean or date")


def _number(digits: str, *, is_negative: bool) -> exp.Expr:
    """Return a number; a negative one is parenthesized, so that `-:x` never becomes a comment."""
    number = exp.Literal.number(digits)
    return exp.Paren(this=exp.Neg(this=number)) if is_negative else number


def _parse(sql: str) -> exp.Expr:
    try:
        statements = [one for one in sqlglot.parse(sql, dialect=DIALECT) if one is not None]
    except (SqlglotError, RecursionError):
        raise ProgrammingError("the statement cannot be parsed, so its parameters cannot be bound") from None
    if len(statements) != 1:
        raise ProgrammingError("only one statement can be executed at a time")
    return statements[0]
