"""Passwords as argon2id hashes: slow to guess, salted, and never more than a few at a time.

They get the library's own parameters. Tokens are random in full and have a plain digest (`tokens`). Hashes are made in
few threads of their own, because each thread that ever made one keeps its memory. A hash that belongs to nobody
(`nobodys_password`) takes as long to check as a real one, so the time does not tell whether a name is known.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from threading import BoundedSemaphore
from typing import TYPE_CHECKING, Final

from tacit.privacy.errors import LedgerCorrupt, Throttled

if TYPE_CHECKING:
    from argon2 import PasswordHasher

PASSWORD_LENGTH_MAX: Final = 1024
AT_ONCE_MAX: Final = 2
WAIT_S_MAX: Final = 5.0


class Hasher:
    """Hashes passwords and compares them; with `is_cheap` it does so in a millisecond, for tests only."""

    def __init__(self, *, is_cheap: bool = False) -> None:
        self._is_cheap = is_cheap
        self._turns = BoundedSemaphore(AT_ONCE_MAX)
        self._threads = ThreadPoolExecutor(AT_ONCE_MAX, thread_name_prefix="tacit hash")

    def hash_password(self, text: str) -> str:
        """Return a new hash of a password."""
        with self._turn():
            return self._threads.submit(self._for_passwords.hash, text).result()

    def matches(self, hashed: str, text: str) -> bool:
        """Say whether a text is the one that was hashed."""
        from argon2.exceptions import InvalidHashError, VerificationError, VerifyMismatchError

        with self._turn():
            try:
                given = text.encode("utf-8", "surrogatepass")  # whatever a request may hold
                verify = self._for_passwords.verify  # the parameters stand in the hash
                return self._threads.submit(verify, hashed, given).result()
            except VerifyMismatchError:
                return False
            except (InvalidHashError, VerificationError):
                raise LedgerCorrupt("a hash in the server's own database is damaged; restore a backup") from None

    def is_outdated(self, hashed: str) -> bool:
        """Say whether a password's hash was made with other parameters than one made now."""
        return self._for_passwords.check_needs_rehash(hashed)

    @cached_property
    def nobodys_password(self) -> str:
        """A hash with the parameters of a password's that no text has."""
        own = self._for_passwords
        parameters = f"m={own.memory_cost},t={own.time_cost},p={own.parallelism}"
        return f"$argon2id$v=19${parameters}${'A' * 22}${'A' * 43}"

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Wait for a turn: each hash takes memory and a core, so a flood of them ends in refusals."""
        if not self._turns.acquire(timeout=WAIT_S_MAX):
            raise Throttled("too many passwords are being checked; try again soon", retry_after_s=WAIT_S_MAX)
        try:
            yield
        finally:
            self._turns.release()

    @cached_property
    def _for_passwords(self) -> PasswordHasher:
        from argon2 import PasswordHasher

        return PasswordHasher(time_cost=1, memory_cost=8, parallelism=1) if self._is_cheap else PasswordHasher()


def sha256(text: str) -> str:
    """Return the digest of a text: enough for secrets that are random in full, and for keys that must not be read."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
