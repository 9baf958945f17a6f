"""Passwords as argon2id hashes with the library's default parameters, made by a few threads at a time.

A separate thread pool makes the hashes because each thread that ever made one keeps its memory. `dummy_hash` takes as
long to verify as a real hash, so the response time does not show whether a name is known. Secrets that are random in
full, such as tokens, are stored as plain digests instead (`sha256`).

Delays after failed logins, shared by all processes of a server.

From the fifth failure of a key on, the next attempt is accepted after 1 s, 2 s, 4 s and so on, up to 15 minutes; until
then even the right password is refused. Keys are the client's address, alone and together with the attempted name. A
name alone is not a key, since anyone who knows a name could then lock its owner out. Only digests of keys are stored.
"""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from threading import BoundedSemaphore
from typing import TYPE_CHECKING, Final

from tacit.privacy.errors import StorageCorrupt, Throttled
from tacit.server.database import Database

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


FREE_FAILURES: Final = 4
DELAY_S_MAX: Final = 15 * 60
FORGET_NAME_AFTER_S: Final = 24 * 3600
FORGET_ADDRESS_AFTER_S: Final = 3600
_SECOND_US: Final = 1_000_000
_ADDRESS: Final = "address:"


def guess_key(name: str, address: str) -> str:
    """Return the key of failed logins as a person from an address."""
    return "guess:" + sha256(f"{network_of(address)} {name.casefold()}")


def address_key(address: str) -> str:
    """Return the key of all failed logins from an address."""
    return _ADDRESS + sha256(network_of(address))


def network_of(address: str) -> str:
    """Return an address in its canonical form; of an IPv6 address, its /64 network."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address  # a host name, or empty
    if isinstance(parsed, ipaddress.IPv6Address) and not parsed.is_loopback:
        parsed = parsed.ipv4_mapped or ipaddress.ip_address(int(parsed) >> 64 << 64)
    return str(parsed)


class LoginThrottle:
    """Counts failed logins by key and enforces the delays."""

    def __init__(self, database: Database, clock: Callable[[], int]) -> None:
        self._database = database
        self._clock = clock

    def check(self, keys: Sequence[str]) -> None:
        """Raise Throttled while the delay of any of the keys lasts."""
        places = ", ".join("?" * len(keys))
        rows = self._database.read(f"SELECT until_us FROM failures WHERE key IN ({places})", list(keys))
        wait_us = max((until for (until,) in rows), default=0) - self._clock()
        if wait_us > 0:
            wait_s = -(-wait_us // _SECOND_US)
            raise Throttled(f"too many failed logins; try again in {wait_s} s", retry_after_s=float(wait_s))

    def record_failure(self, keys: Sequence[str]) -> None:
        """Count one failure of each key, and delete expired counts."""
        now = self._clock()
        with self._database.transaction() as execute:
            execute("DELETE FROM failures WHERE forgotten_at_us <= ?", (now,))
            for key in keys:
                rows = execute("SELECT count FROM failures WHERE key = ?", (key,))
                count = (rows[0][0] if rows else 0) + 1
                forget_after_s = FORGET_ADDRESS_AFTER_S if key.startswith(_ADDRESS) else FORGET_NAME_AFTER_S
                execute(
                    "INSERT INTO failures (key, count, until_us, forgotten_at_us) VALUES (?, ?, ?, ?) "
                    "ON CONFLICT (key) DO UPDATE SET count = excluded.count, until_us = excluded.until_us, "
                    "forgotten_at_us = excluded.forgotten_at_us",
                    (key, count, now + delay_s(count) * _SECOND_US, now + forget_after_s * _SECOND_US),
                )

    def clear(self, key: str) -> None:
        """Delete the failures of a key after a successful login.

        Those of an address stay; otherwise a person with one login could use it to go on guessing at others.
        """
        if self._database.read("SELECT 1 FROM failures WHERE key = ?", (key,)):
            self._database.write(("DELETE FROM failures WHERE key = ?", (key,)))


def delay_s(count: int) -> int:
    """Return the delay after a number of failures."""
    if count <= FREE_FAILURES:
        return 0
    return min(1 << min(count - FREE_FAILURES - 1, 30), DELAY_S_MAX)
