"""Errors of storage and the ledger, a branch of the tree in `privacy.errors`, which re-exports them."""

from __future__ import annotations

from typing import Final

from tacit.privacy.error_base import TacitError


class StorageFailed(TacitError):
    """A database or file of tacit's own cannot be used: the ledger's, the server's, or one of the curator's folder."""

    code = "T520"


class StorageCorrupt(StorageFailed):
    """The database is damaged, or the file is not one; `differs` says what, where that is known."""

    code = "T521"

    def __init__(self, message: str, *, differs: str | None = None) -> None:
        super().__init__(message)
        self.differs: Final = differs


class StorageUnavailable(StorageFailed):
    """The database or file cannot be read or written now; nothing that was recorded is lost."""

    code = "T522"


class StorageFull(StorageUnavailable):
    """No disk space is left for the database or file."""

    code = "T523"


class StorageReadOnly(StorageUnavailable):
    """The database or file cannot be written by this user, or is in a location that cannot be written."""

    code = "T524"


class StorageBusy(StorageUnavailable):
    """Others held the write lock of the database or file for longer than the time limit, or have just changed it."""

    code = "T525"


class StorageTooNew(StorageUnavailable):
    """The database was written by a newer tacit."""

    code = "T526"


class LedgerCorrupt(StorageCorrupt):
    """The journal does not verify; nothing is admitted until this is resolved."""

    code = "T500"

    def __init__(self, message: str, *, record: int | None = None, differs: str | None = None) -> None:
        super().__init__(message, differs=differs)
        self.record: Final = record


class NotALedger(LedgerCorrupt):
    """The file is not a ledger, or is too damaged to be read."""

    code = "T501"


class LedgerRolledBack(LedgerCorrupt):
    """The ledger is missing, older than the head that was noted beside it, or another one."""

    code = "T502"


class LedgerUnavailable(StorageUnavailable):
    """The ledger cannot be read or written now; nothing that was recorded is lost."""

    code = "T510"


class LedgerFull(LedgerUnavailable, StorageFull):
    """No disk space is left for the ledger."""

    code = "T511"


class LedgerReadOnly(LedgerUnavailable, StorageReadOnly):
    """The ledger is in a location that cannot be written."""

    code = "T512"


class LedgerBusy(LedgerUnavailable, StorageBusy):
    """Others held the write lock for longer than the time limit."""

    code = "T513"


class LedgerTooNew(LedgerUnavailable, StorageTooNew):
    """The ledger was written by a newer tacit."""

    code = "T514"


class LedgerMoved(LedgerUnavailable):
    """The ledger was moved to another location; this copy is read-only."""

    code = "T515"
