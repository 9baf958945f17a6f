"""A server as a database: PEP 249 (DB-API 2) connections, cursors and errors.

The errors of PEP 249, and which error of tacit is which.

Warning
Error
├── InterfaceError
└── DatabaseError
    ├── DataError           a value that cannot be used
    ├── OperationalError    no budget, no permission, or a ledger, an engine or a server that is not there
    ├── IntegrityError      a name or a key that stands for something else already
    ├── InternalError       a ledger that does not verify, and defects
    ├── ProgrammingError    not SQL, no such table, the wrong kind of value
    └── NotSupportedError   a question without a private answer

    connection = tacit.client.dbapi.connect("http://127.0.0.1:8321", token="file:token.txt", epsilon=0.1)
    cursor = connection.cursor()
    cursor.execute("SELECT COUNT(*) AS n FROM visits WHERE age > :age", {"age": 60})
    cursor.fetchall()
    pandas.read_sql("SELECT sex, COUNT(*) AS n FROM visits GROUP BY sex", connection)

Every `execute` is one question, charged to the budget: what it may cost is said with the connection or with each
statement, and there is no default. `cursor.release` is the answer with its intervals, its cost and its card.

Errors are those of PEP 249; the error of tacit stands behind each as its cause, and its code in `code`. Threads may
share a connection, and each has cursors of its own. Not here: statements that change data, and transactions.

Parameters become literals in the tree of a statement, never text that is pasted into it: the statement is parsed first,
`:name` is replaced in the tree by a literal of the value's own type, and the tree is written out. The type code of a
column is its kind: "integer", "real", "boolean", "text", "date" or "time".
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NoReturn, Self, TypeAlias

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from tacit.client.answers import RemoteRelease
from tacit.client.client import Client
from tacit.privacy import errors
from tacit.privacy.errors import TacitError
from tacit.privacy.tables import Kind
from tacit.query.parse import TEXT_MAX


class Warning(Exception):
    """Something important; none is raised."""


class Error(Exception):
    """The root of all errors here; `code` is the code of tacit's own error, if there is one."""

    code: str | None = None


class InterfaceError(Error):
    """Something is wrong with how the interface is used."""


class DatabaseError(Error):
    """Something is wrong with a question or with the server."""


class DataError(DatabaseError):
    """A value cannot be used."""


class OperationalError(DatabaseError):
    """The question could be answered, but not now or not for this caller: budget, permission, server."""


class IntegrityError(DatabaseError):
    """A name or a key stands for something else already."""


class InternalError(DatabaseError):
    """The ledger does not verify, or the server failed in a way that it does not know."""


class ProgrammingError(DatabaseError):
    """The statement is not SQL, names what is not there, or has other parameters than were given."""


class NotSupportedError(DatabaseError):
    """The question has no private answer, or the interface has no such thing."""


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
"""The class of an error is that of its nearest ancestor here."""


def error_of(error: TacitError) -> DatabaseError:
    """Return the error of PEP 249 that an error of tacit is; its sentence and its code stay."""
    kind = next(KINDS[one] for one in type(error).__mro__ if one in KINDS)
    found = kind(f"{error.code} {error.message}")
    found.code = error.code
    return found


@contextmanager
def translated() -> Iterator[None]:
    """Raise errors of tacit as those of PEP 249, each with its cause."""
    try:
        yield
    except TacitError as error:
        raise error_of(error) from error


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
"""The SQL that tacit reads."""
PARAMETERS_MAX: Final = 1_000
PRICES: Final = ("epsilon", "rho", "error")

Description: TypeAlias = tuple[str, str, None, None, None, None, bool]
Row: TypeAlias = tuple[Any, ...]
Date = date
Time = time
Timestamp = datetime
Binary = bytes


def DateFromTicks(ticks: float) -> date:  # noqa: N802  # PEP 249 names it
    """Return the date of so many seconds after the beginning of 1970, in UTC."""
    return datetime.fromtimestamp(ticks, UTC).date()


def TimeFromTicks(ticks: float) -> time:  # noqa: N802  # PEP 249 names it
    """Return the time of day of so many seconds after the beginning of 1970, in UTC."""
    return datetime.fromtimestamp(ticks, UTC).time()


def TimestampFromTicks(ticks: float) -> datetime:  # noqa: N802  # PEP 249 names it
    """Return the time of so many seconds after the beginning of 1970, in UTC and without a zone."""
    return datetime.fromtimestamp(ticks, UTC).replace(tzinfo=None)


class TypeObject:
    """What some type codes have in common: it equals each of them."""

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
    url: str,
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
    """Return a connection to the server at an address; `epsilon` (or rho, or error) is what each question costs.

    Without one, each `execute` says what it may cost.
    """
    asked = {"epsilon": epsilon, "rho": rho, "error": error, "delta": delta}
    with translated():
        client = Client(url, token, timeout_s=timeout_s, verify=verify, retries=retries)
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
        """The client behind it, for everything that is not SQL."""
        self.asked: Final = dict(asked)
        """What every question is asked with, unless it says otherwise."""
        self._is_closed = False

    def cursor(self) -> Cursor:
        """Return a new cursor."""
        self.check_open()
        return Cursor(self)

    def commit(self) -> None:
        """Do nothing: what was answered is charged for good already."""
        self.check_open()

    def rollback(self) -> None:
        """Do nothing: there is no transaction, and nothing that was charged is ever given back."""
        self.check_open()

    def close(self) -> None:
        """Let go of the server; neither this nor its cursors can be used any longer."""
        self._is_closed = True
        self.client.close()

    def check_open(self) -> None:
        """Refuse to be used after `close`."""
        if self._is_closed:
            raise ProgrammingError("the connection is closed")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Connection({self.client.url!r})"


class Cursor:
    """Asks questions and hands out their rows; for one thread."""

    def __init__(self, connection: Connection) -> None:
        self.connection: Final = connection
        self.arraysize = 1
        """How many rows `fetchmany` hands out unless it is told."""
        self.release: RemoteRelease | None = None
        """The answer to the last statement: its intervals, its cost and its card."""
        self._rows: Sequence[Row] = ()
        self._place = 0
        self._is_closed = False

    @property
    def description(self) -> list[Description] | None:
        """The columns of the last answer: name, type code (the kind of its values), and whether one may be missing."""
        if self.release is None:
            return None
        return [(name, kind.value, None, None, None, None, True) for name, kind in self.release.kinds.items()]

    @property
    def rowcount(self) -> int:
        """How many rows the last answer has; -1 before the first."""
        return -1 if self.release is None else len(self.release)

    @property
    def rownumber(self) -> int | None:
        """The place of the row that comes next, from 0 on."""
        return None if self.release is None else self._place

    def execute(self, sql: str, parameters: Mapping[str, Any] | None = None, **stated: Any) -> Self:
        """Ask a question; what is said here (epsilon, rho, error, delta, ...) is stronger than the connection's.

        Parameters are written :name and given by name. The other arguments are those of `tacit.Client.sql`.
        """
        self._check_open()
        self.release, self._rows, self._place = None, (), 0
        asked = {**self.connection.asked, **stated}
        if any(stated.get(name) is not None for name in PRICES):  # a price stated here replaces the other kind there
            asked |= {name: stated.get(name) for name in PRICES}
        with translated():
            release = self.connection.client.sql(bound(sql, parameters), **asked)
        self.release = release
        self._rows = [tuple(row[name] for name in release.columns) for row in release.rows]
        return self

    def executemany(self, sql: str, parameters: Any = ()) -> NoReturn:
        """Refuse: each question is charged by itself, so each is asked by itself."""
        raise NotSupportedError("each question is charged by itself; call execute for each, or ask for groups at once")

    def fetchone(self) -> Row | None:
        """Return the next row, or None after the last."""
        found = self._taken(1)
        return found[0] if found else None

    def fetchmany(self, size: int | None = None) -> list[Row]:
        """Return the next rows, as many as `arraysize` says unless `size` says it."""
        return self._taken(self.arraysize if size is None else size)

    def fetchall(self) -> list[Row]:
        """Return the rows that are left."""
        return self._taken(len(self._rows))

    def close(self) -> None:
        """Let go of the answer; the cursor can no longer be used."""
        self._is_closed, self.release, self._rows = True, None, ()

    def setinputsizes(self, sizes: Any) -> None:
        """Do nothing: parameters need no space set aside."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Do nothing: values are as large as they are."""

    def _taken(self, count: int) -> list[Row]:
        self._check_open()
        if self.release is None:
            raise ProgrammingError("there are no rows before a question was asked: execute(...)")
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def bound(sql: Any, parameters: Any) -> str:
    """Return a statement with its parameters in it; without parameters, as it was written."""
    if not isinstance(sql, str):
        raise ProgrammingError(f"a statement is a text, not {type(sql).__name__}")
    if parameters is None:
        return sql
    if not isinstance(parameters, Mapping):
        if not parameters:  # what some callers pass for none
            return sql
        raise ProgrammingError('parameters are given by name: execute("... WHERE age > :age", {"age": 60})')
    if len(sql) > TEXT_MAX or len(parameters) > PARAMETERS_MAX:
        raise ProgrammingError(f"a statement has at most {TEXT_MAX:,} letters and {PARAMETERS_MAX:,} parameters")
    literals = {str(name): literal(str(name), value) for name, value in parameters.items()}
    tree, used = _parsed(sql), set()
    for node in list(tree.find_all(exp.Placeholder, exp.Parameter)):
        name = node.name
        if not isinstance(node, exp.Placeholder) or name in ("", "?"):
            raise ProgrammingError("parameters are written :name")
        if name not in literals:
            raise ProgrammingError(f"the statement has a parameter :{name}, and no value is given for it")
        node.replace(literals[name].copy())
        used.add(name)
    if unused := sorted(literals.keys() - used):
        raise ProgrammingError(f"the statement has no parameter :{unused[0]}")
    return tree.sql(dialect=DIALECT)


def literal(name: str, value: Any) -> exp.Expr:
    """Return a value as a literal of its own type."""
    match value:
        case None:
            return exp.Null()
        case bool():
            return exp.Boolean(this=value)
        case int():
            return _number(str(abs(value)), is_negative=value < 0)
        case float() | Decimal() if not math.isfinite(value):
            raise DataError(f"the parameter :{name} is {value}, and a finite number is needed")
        case float():
            return _number(repr(abs(value)), is_negative=value < 0)
        case Decimal():
            return _number(format(abs(value), "f"), is_negative=value < 0)
        case str():
            if "\0" in value:
                raise DataError(f"the parameter :{name} has a character that no text in SQL has")
            return exp.Literal.string(value)
        case datetime():
            moment = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo is not None else value
            return exp.cast(exp.Literal.string(moment.isoformat(sep=" ")), "TIMESTAMP")
        case date():
            return exp.cast(exp.Literal.string(value.isoformat()), "DATE")
    if hasattr(value, "item") and not hasattr(value, "__len__"):  # a number of numpy
        return literal(name, value.item())
    raise DataError(f"the parameter :{name} is {type(value).__name__}; a number, text, truth value or date is needed")


def _number(digits: str, *, is_negative: bool) -> exp.Expr:
    """Return a number; the sign is a node of its own in brackets, so that `-:x` never becomes a comment."""
    number = exp.Literal.number(digits)
    return exp.Paren(this=exp.Neg(this=number)) if is_negative else number


def _parsed(sql: str) -> exp.Expr:
    try:
        statements = [one for one in sqlglot.parse(sql, dialect=DIALECT) if one is not None]
    except (SqlglotError, RecursionError):
        raise ProgrammingError("the statement is not SQL that can be read, so its parameters cannot be set") from None
    if len(statements) != 1:
        raise ProgrammingError("one statement at a time")
    return statements[0]
