"""Read-only transactions, one a statement, each of which sees one snapshot of the database."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from tacit.engines.postgres.connecting import Connections, drop
from tacit.engines.postgres.running import Runs
from tacit.privacy.errors import NoConnection

T = TypeVar("T")

_BEGIN: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


class Transactions:
    """The transactions of one engine."""

    def __init__(self, connections: Connections, runs: Runs) -> None:
        self._connections, self._runs = connections, runs

    def run(self, work: Callable[[Any], T], timeout_s: float | None = None) -> T:
        """Do work in a transaction of its own, on another connection if the first was lost before it began."""
        limit = "" if timeout_s is None else f"; SET LOCAL statement_timeout = {max(1, round(timeout_s * 1000))}"
        connection = self._begun(_BEGIN + limit, timeout_s, again=True) or self._begun(_BEGIN + limit, timeout_s)

        def do() -> T:
            found = work(connection)
            connection.execute("COMMIT")
            return found

        try:
            found = self._runs.run(connection, do, timeout_s)
        except BaseException:
            drop(connection)
            raise
        self._connections.give_back(connection)
        return found

    def _begun(self, statement: str, timeout_s: float | None, *, again: bool = False) -> Any:
        """Begin a transaction; where the connection was lost and `again` is true, return None."""
        connection = self._connections.taken()
        try:
            self._runs.run(connection, lambda: connection.execute(statement), timeout_s)
        except NoConnection:
            drop(connection)
            if not again:
                raise
            self._connections.forget_idle()
            return None
        except BaseException:
            drop(connection)
            raise
        return connection
