"""What a ledger requires of a store.

A store keeps rows and knows nothing of budgets. It promises: a transaction holds the one write lock from its first
statement on, is short, and is either wholly on disk when it ends or not at all; what a transaction reads is not changed
by others before it ends; a client that dies or stalls blocks the others no longer than the store's time limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from tacit.ledger.journal import Head, Record
from tacit.ledger.permits import Scope
from tacit.ledger.rows import AnswerRow, CachedRows, FindingRow, PermitRow, RequestRow, ScopeRow


class Transaction(CachedRows, Protocol):
    """The rows, and changes to them that are written together when the transaction ends."""

    def head(self) -> Head:
        """Return where the journal ends."""

    def end(self) -> list[Record]:
        """Return the last record of the journal in a list, which is empty if there is none."""

    def append(self, record: Record, *, is_checkpoint: bool = False) -> None:
        """Add a record to the journal and move the head."""

    def records(self, first: int, limit: int) -> list[Record]:
        """Return records from number `first` on, `limit` of them at most."""

    def records_of(self, kinds: Sequence[str], first: int = 1) -> list[Record]:
        """Return the records of some kinds from number `first` on."""

    def prefetch(self, scopes: Sequence[Scope]) -> None:
        """Read the rows of several scopes in one statement, for later calls of `scope`."""

    def scopes(self, dataset: str | None = None) -> list[ScopeRow]:
        """Return the scopes of a data set, or all."""

    def has_caches(self) -> bool:
        """Whether the cached rows are of the current version."""

    def permit_by_key(self, dataset: str, key: str) -> PermitRow | None:
        """Return the permit of an idempotency key."""

    def permits(self, *, only_open: bool = False) -> list[PermitRow]:
        """Return permits in the order of their records."""

    def requests(self, *, only_open: bool = False) -> list[RequestRow]:
        """Return requests in the order of their records."""

    def answers(self) -> list[AnswerRow]:
        """Return every released answer's row."""

    def findings(self, dataset: str | None = None) -> list[FindingRow]:
        """Return the findings of a data set, or all, in the order of their records."""

    def content(self, sha256: str) -> bytes | None:
        """Return the bytes that have this digest."""

    def contents(self) -> Iterator[tuple[str, bytes]]:
        """Yield the key and the bytes of all stored contents, read from the table and not by an index."""

    def damage(self) -> str | None:
        """Return what the database's own integrity check finds, or None."""

    def put_content(self, sha256: str, content: bytes) -> None:
        """Store bytes under their digest."""

    def drop_content(self, sha256: str) -> None:
        """Remove stored bytes."""

    def clear_caches(self) -> None:
        """Remove every row but those of the journal and the contents; rows written later are of the current version."""

    def savepoint(self) -> dict[str, Any]:
        """Return the state of the transaction, for `undo_to`."""

    def undo_to(self, savepoint: dict[str, Any]) -> None:
        """Undo every change since a savepoint."""


class Store(Protocol):
    """A place for one ledger."""

    @property
    def description(self) -> str:
        """Where it is, for messages; without passwords."""

    @property
    def place(self) -> str:
        """Where it is, unique among stores; without passwords."""

    def exists(self) -> bool:
        """Whether there is something to open; a database server is not asked, and taken to exist."""

    def open(self) -> None:
        """Open it: create what is missing, migrate what is old, raise for a newer version or a foreign database."""

    def transaction(self, scopes: Sequence[Scope] = ()) -> AbstractContextManager[Transaction]:
        """Take the write lock; write everything when the block ends, nothing if it raises.

        `scopes` are those whose rows will be read, as far as that is known: a database server sends them with its first
        answer.
        """

    def snapshot(self) -> AbstractContextManager[Transaction]:
        """Return a consistent snapshot, without the write lock."""

    @property
    def anchor(self) -> Path | None:
        """The file that notes the head outside the database, if the store has a folder."""

    def backup(self, path: Path) -> None:
        """Write a copy that can be opened, without blocking writers."""

    def close(self) -> None:
        """Close the connections; the store can be opened again."""
