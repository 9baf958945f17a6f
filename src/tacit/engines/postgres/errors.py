"""What went wrong in PostgreSQL, in constant sentences: its messages may quote rows, and the driver's the address."""

from __future__ import annotations

from typing import Any, Final

from tacit.privacy.errors import EngineFailed, NoAccess, NoConnection, SourceMissing

UNREACHABLE: Final = (
    "the PostgreSQL database cannot be reached, or the connection was lost; check that it runs, and its address"
)
_REFUSED: Final = (
    "the PostgreSQL database does not let this account in; check its name, its password and the database's name"
)
_FORBIDDEN: Final = "this account may not read a table that the question is about; GRANT it SELECT there"
_CHANGED: Final = (
    "a table or column of the question is not in the database any more, or of another type; register the table anew"
)
_FAILED: Final = "PostgreSQL could not run the question, for want of memory, disk or time, or of a lock on a table"

_BY_STATE: Final[dict[str, tuple[type[EngineFailed], str]]] = {
    "08": (NoConnection, UNREACHABLE),
    "28": (NoAccess, _REFUSED),
    "3D": (NoAccess, _REFUSED),
    "3F": (SourceMissing, _CHANGED),
    "57P": (NoConnection, UNREACHABLE),
    "25P03": (NoConnection, UNREACHABLE),
    "25P04": (NoConnection, UNREACHABLE),
    "53300": (NoConnection, "the PostgreSQL database has no connection left for this account; ask again later"),
    "42501": (NoAccess, _FORBIDDEN),
    "42P01": (SourceMissing, _CHANGED),
    "42703": (SourceMissing, _CHANGED),
    "42804": (SourceMissing, _CHANGED),
    "42846": (SourceMissing, _CHANGED),
    "42883": (SourceMissing, _CHANGED),
    "42P18": (SourceMissing, _CHANGED),
}
"""What SQLSTATEs mean, by their beginnings."""

_NO_ENTRY: Final = (
    "authentication",
    "password",
    "role ",
    "pg_hba.conf",
    "does not exist",
    "not permitted",
    "permission",
)


def of_statement(error: Any, *, lost: bool) -> EngineFailed:
    """Return what a statement's error means."""
    state = error.sqlstate or ""
    for length in (5, 3, 2):
        if state[:length] in _BY_STATE:
            kind, sentence = _BY_STATE[state[:length]]
            return kind(sentence)
    return NoConnection(UNREACHABLE) if lost or not state else EngineFailed(_FAILED)


def of_connecting(error: Any) -> EngineFailed:
    """Return why there is no connection; the server does not say it by a code before it lets somebody in."""
    state = error.sqlstate or ""
    if state:
        return of_statement(error, lost=True)
    said = str(error).lower()
    refused = any(word in said for word in _NO_ENTRY)
    return NoAccess(_REFUSED) if refused else NoConnection(UNREACHABLE)
