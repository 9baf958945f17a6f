"""Passwords as argon2id hashes with the library's default parameters, made by a few threads at a time.

A separate thread pool makes the hashes because each thread that ever made one keeps its memory. `dummy_hash` takes as
long to verify as a real hash, so the response time does not show whether a name is known. Secrets that are random in
full, such as tokens, are stored as plain digests instead (`sha256`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from threading import BoundedSemaphore
from typing import TYPE_CHECKING, Final

from tacit.privacy.errors import StorageCorrupt, Throttled

if TYPE_CHECKING:
    from argon2 import PasswordHasher

PASSWORD_LENGTH_MAX: Final = 1024
CONCURRENT_HASHES_MAX: Final = 2
HASHING_WAIT_S_MAX: Final = 5.0


class Hasher:
    """Hashes and verifies passwords; `is_cheap` is for tests and takes a millisecond."""

    def __init__(self, *, is_cheap: bool = False) -> None:
        self._is_cheap = is_cheap
        self._slots = BoundedSemaphore(CONCURRENT_HASHES_MAX)
        self._threads = ThreadPoolExecutor(CONCURRENT_HASHES_MAX, thread_name_prefix="tacit hash")

    def hash_password(self, text: str) -> str:
        """Return a new hash of a password."""
        with self._slot():
            return self._threads.submit(self._argon2.hash, text).result()

    def matches(self, hashed: str, text: str) -> bool:
        """Return whether a text is the one that was hashed."""
        from argon2.exceptions import InvalidHashError, VerificationError, VerifyMismatchError

        with self._slot():
            try:
                given = text.encode("utf-8", "surrogatepass")  # a request may hold lone surrogates
                verify = self._argon2.verify  # the parameters stand in the hash
                return self._threads.submit(verify, hashed, given).result()
            except VerifyMismatchError:
                return False
            except (InvalidHashError, VerificationError):
                raise StorageCorrupt("a hash in the server's own database is damaged; restore a backup") from None

    def close(self) -> None:
        """Stop the threads; no password can be hashed or verified afterwards."""
        self._threads.shutdown()

    def is_outdated(self, hashed: str) -> bool:
        """Return whether a hash was made with other parameters than the present ones."""
        return self._argon2.check_needs_rehash(hashed)

    @cached_property
    def dummy_hash(self) -> str:
        """A hash with the present parameters that no password matches."""
        own = self._argon2
        parameters = f"m={own.memory_cost},t={own.time_cost},p={own.parallelism}"
        return f"$argon2id$v=19${parameters}${'A' * 22}${'A' * 43}"

    @contextmanager
    def _slot(self) -> Iterator[None]:
        """Hold one of the slots for hashing, each of which takes memory and a core, or raise Throttled."""
        if not self._slots.acquire(timeout=HASHING_WAIT_S_MAX):
            raise Throttled("too many logins at once; try again soon", retry_after_s=HASHING_WAIT_S_MAX)
        try:
            yield
        finally:
            self._slots.release()

    @cached_property
    def _argon2(self) -> PasswordHasher:
        from argon2 import PasswordHasher

        return PasswordHasher(time_cost=1, memory_cost=8, parallelism=1) if self._is_cheap else PasswordHasher()


def sha256(text: str) -> str:
    """Return the digest of a text, for secrets that are random in full and for keys that are stored unreadable."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
