"""A cursor: one question at a time, and its rows one after another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self, TypeAlias

from tacit.client.dbapi.binding import bound
from tacit.client.dbapi.errors import NotSupportedError, ProgrammingError, translated
from tacit.client.release import RemoteRelease

if TYPE_CHECKING:
    from tacit.client.dbapi.connection import Connection

Description: TypeAlias = tuple[str, str, None, None, None, None, bool]
Row: TypeAlias = tuple[Any, ...]
PRICES: Final = ("epsilon", "rho", "error")


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
