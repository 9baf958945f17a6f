"""A connection: one server, one token, and what a question may cost unless it says so itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from tacit.client.client import Client
from tacit.client.dbapi import errors
from tacit.client.dbapi.cursor import Cursor
from tacit.client.dbapi.errors import ProgrammingError, translated


class Connection:
    """A server as a database; threads may share it."""

    Warning = errors.Warning
    Error = errors.Error
    InterfaceError = errors.InterfaceError
    DatabaseError = errors.DatabaseError
    DataError = errors.DataError
    OperationalError = errors.OperationalError
    IntegrityError = errors.IntegrityError
    InternalError = errors.InternalError
    ProgrammingError = errors.ProgrammingError
    NotSupportedError = errors.NotSupportedError

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
