"""Waiting after failures: who guesses has to wait, longer each time, whichever process of the server is asked.

From the fifth failure of a key on, the next attempt is looked at after 1 s, 2 s, 4 s and so on, up to 15 minutes; a
right password during the wait is refused, too, so that guesses cannot be made meanwhile. Keys are where guesses come
from (an address), by itself and together with the name that is guessed at; a name alone is no key, for whoever knows it
could keep its person from logging in. Only digests of keys are stored. Counts lie in the server's database, so several
processes share them.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Sequence
from typing import Final

from tacit.privacy.errors import Throttled
from tacit.server.access.hashing import sha256
from tacit.server.database import Database

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
