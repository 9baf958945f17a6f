"""Delays after failed logins, shared by all processes of a server.

From the fifth failure of a key on, the next attempt is accepted after 1 s, 2 s, 4 s and so on, up to 15 minutes; until
then even the right password is refused. Keys are the client's address, alone and together with the attempted name. A
name alone is not a key, since anyone who knows a name could then lock its owner out. Only digests of keys are stored.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Sequence
from typing import Final

from tacit.privacy.errors import Throttled
from tacit.server.access.passwords import sha256
from tacit.server.database import Database

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

        Those of an address stay; otherwise the owner of one account could use it to go on guessing at others.
        """
        if self._database.read("SELECT 1 FROM failures WHERE key = ?", (key,)):
            self._database.write(("DELETE FROM failures WHERE key = ?", (key,)))


def delay_s(count: int) -> int:
    """Return the delay after a number of failures."""
    if count <= FREE_FAILURES:
        return 0
    return min(1 << min(count - FREE_FAILURES - 1, 30), DELAY_S_MAX)
