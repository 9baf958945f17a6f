"""What a ledger asks of the place where it lies.

A store keeps rows and knows nothing of budgets. It promises: a transaction holds the one write lock from its first
statement on, is short, and is either wholly on disk when it ends or not at all; what a transaction reads, nobody
changes before it ends; whoever dies or stalls blocks the others for no longer than the store's time limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from tacit.ledger.journal import Head, Record
from tacit.ledger.permits import Scope
from tacit.ledger.rows import AnswerRow, CachedRows, PermitRow, RequestRow, ScopeRow


class Transaction(CachedRows, Protocol):
    """Rows as they are now, and changes that are written together when the transaction ends."""

    def head(self) -> Head:
        """Return where the journal ends."""

    def end(self) -> list[Record]:
        """Return the last record of the journal, in a list that is empty if there is none."""

    def append(self, record: Record, *, is_checkpoint: bool = False) -> None:
        """Add a record to the journal and move the head."""

    def records(self, first: int, limit: int) -> list[Record]:
        """Return records from number `first` on, `limit` of them at most."""

    def restorations(self, first: int) -> list[Record]:
        """Return the records from number `first` on that say that the ledger was restored."""

    def prefetch(self, scopes: Sequence[Scope]) -> None:
        """Read the rows of several scopes at once, to be asked for one by one."""

    def scopes(self, dataset: str | None = None) -> list[ScopeRow]:
        """Return the scopes of a data set, or all."""

    def has_caches(self) -> bool:
        """Whether the rows beside the journal were written in the form of today."""

    def permit_by_key(self, dataset: str, key: str) -> PermitRow | None:
        """Return the permit that was given for an idempotency key."""

    def permits(self, *, only_open: bool = False) -> list[PermitRow]:
        """Return permits in the order of their records."""

    def requests(self, *, only_open: bool = False) -> list[RequestRow]:
        """Return requests in the order of their records."""

    def answers(self) -> list[AnswerRow]:
        """Return every released answer's row."""

    def content(self, sha256: str) -> bytes | None:
        """Return the bytes that have this digest."""

    def contents(self) -> Iterator[tuple[str, bytes]]:
        """Yield the key and the bytes of everything that is kept, read from the table and not by an index."""

    def damage(self) -> str | None:
        """Return what the database itself finds wrong with its tables and indexes, or None."""

    def put_content(self, sha256: str, content: bytes) -> None:
        """Keep bytes under their digest."""

    def drop_content(self, sha256: str) -> None:
        """Forget bytes."""

    def clear_caches(self) -> None:
        """Remove every row but those of the journal and the contents; what is written then has the form of today."""

    def savepoint(self) -> dict[str, Any]:
        """Return what `undo_to` needs to forget all changes from here on."""

    def undo_to(self, savepoint: dict[str, Any]) -> None:
        """Forget every change that was made since a savepoint."""


class Store(Protocol):
    """A place for one ledger."""

    @property
    def description(self) -> str:
        """Where it is, for people; no password in it."""

    @property
    def place(self) -> str:
        """Where exactly it is, so that no other store has the same text; no password in it."""

    def exists(self) -> bool:
        """Whether there is something to open; a database that is reached over a network is not asked."""

    def open(self) -> None:
        """Make it ready: create what is missing, migrate what is old, refuse what is newer or something else."""

    def transaction(self, scopes: Sequence[Scope] = ()) -> AbstractContextManager[Transaction]:
        """Take the write lock; write everything when the block ends, nothing if it raises.

        `scopes` are those whose rows will be asked for, as far as that is known: a database that is reached over a
        network sends them with its first answer.
        """

    def snapshot(self) -> AbstractContextManager[Transaction]:
        """Read rows as they are at one moment, without the write lock."""

    @property
    def anchor(self) -> Path | None:
        """Where the head of the ledger is noted outside of it, if this place has one."""

    def backup(self, path: Path) -> None:
        """Write a copy that can be opened, while others go on."""

    def close(self) -> None:
        """Let go of connections; the store can be opened again."""
