"""Passwords as argon2id hashes, and delays after failed attempts.

Passwords as argon2id hashes: slow to guess, salted, and never more than a few at a time.

They get the library's own parameters. Tokens are random in full and have a plain digest (`tokens`). Hashes are made in
few threads of their own, because each thread that ever made one keeps its memory. A hash that belongs to nobody
(`nobodys_password`) takes as long to check as a real one, so the time does not tell whether a name is known.

Waiting after failures: who guesses has to wait, longer each time, whichever process of the server is asked.

From the fifth failure of a key on, the next attempt is looked at after 1 s, 2 s, 4 s and so on, up to 15 minutes; a
right password during the wait is refused, too, so that guesses cannot be made meanwhile. Keys are where guesses come
from (an address), by itself and together with the name that is guessed at; a name alone is no key, for whoever knows it
could keep its person from logging in. Only digests of keys are stored. Counts lie in the server's database, so several
processes share them.
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
AT_ONCE_MAX: Final = 2
HASHING_WAIT_S_MAX: Final = 5.0


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
                raise StorageCorrupt("a hash in the server's own database is damaged; restore a backup") from None

    def close(self) -> None:
        """End the threads; no password is hashed or compared afterwards."""
        self._threads.shutdown()

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
        if not self._turns.acquire(timeout=HASHING_WAIT_S_MAX):
            raise Throttled("too many passwords are being checked; try again soon", retry_after_s=HASHING_WAIT_S_MAX)
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


FREE_FAILURES: Final = 4
WAIT_S_MAX: Final = 15 * 60
FORGET_NAME_AFTER_S: Final = 24 * 3600
FORGET_ADDRESS_AFTER_S: Final = 3600
_SECOND_US: Final = 1_000_000
_ADDRESS: Final = "address:"


def guess_key(name: str, address: str) -> str:
    """Return the key of guesses at a person's password that come from one address."""
    return "guess:" + sha256(f"{network_of(address)} {name.casefold()}")


def address_key(address: str) -> str:
    """Return the key of guesses that come from one address, at whatever name."""
    return _ADDRESS + sha256(network_of(address))


def network_of(address: str) -> str:
    """Return an address in its usual form; a whole IPv6 network counts as one."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address  # a name, or nothing at all
    if isinstance(parsed, ipaddress.IPv6Address) and not parsed.is_loopback:
        parsed = parsed.ipv4_mapped or ipaddress.ip_address(int(parsed) >> 64 << 64)
    return str(parsed)


class Throttle:
    """Counts failures, and says who has to wait."""

    def __init__(self, database: Database, clock: Callable[[], int]) -> None:
        self._database = database
        self._clock = clock

    def check(self, keys: Sequence[str]) -> None:
        """Refuse while any of the keys has to wait."""
        places = ", ".join("?" * len(keys))
        rows = self._database.read(f"SELECT until_us FROM failures WHERE key IN ({places})", list(keys))
        wait_us = max((until for (until,) in rows), default=0) - self._clock()
        if wait_us > 0:
            wait_s = -(-wait_us // _SECOND_US)
            raise Throttled(
                f"too many attempts failed; the next one is looked at in {wait_s} s", retry_after_s=float(wait_s)
            )

    def note(self, keys: Sequence[str]) -> None:
        """Count one failure of each key, and forget those of long ago."""
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
                    (key, count, now + wait_s(count) * _SECOND_US, now + forget_after_s * _SECOND_US),
                )

    def clear(self, key: str) -> None:
        """Forget the failures of a key, because somebody proved to be the one who is guessed at.

        Those of an address stay: who has one account could otherwise use it to go on guessing at others.
        """
        if self._database.read("SELECT 1 FROM failures WHERE key = ?", (key,)):
            self._database.write(("DELETE FROM failures WHERE key = ?", (key,)))


def wait_s(count: int) -> int:
    """Return how long to wait after so many failures."""
    if count <= FREE_FAILURES:
        return 0
    return min(1 << min(count - FREE_FAILURES - 1, 30), WAIT_S_MAX)
