"""The errors of PEP 249, and which error of tacit is which.

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
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from tacit.privacy import errors
from tacit.privacy.errors import TacitError


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
    errors.LedgerCorrupt: InternalError,
    errors.LedgerUnavailable: OperationalError,
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
