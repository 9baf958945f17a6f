"""Where a PostgreSQL database is: an address without a password, or where an address is kept.

    postgresql://user@host:port/database     the password is in ~/.pgpass, in PGPASSWORD, or not needed
    env:NAME                                 an environment variable that holds an address
    file:PATH                                a file that holds one, which only its owner can read
    service:NAME                             an entry of pg_service.conf

Promise: an address that holds a password is never a place, so that it is in no catalog (`engines.addresses`); one that
was read from elsewhere is handed to the driver and kept nowhere.
"""

from __future__ import annotations

from tacit.engines.addresses import check_postgres as check
from tacit.engines.addresses import kept

__all__ = ["address", "check"]


def address(place: str) -> str:
    """Return what the driver connects with; it may hold a password, so that it goes nowhere else."""
    found = kept(place)
    if found is not None:
        return found
    return f"service={place.removeprefix('service:')}" if place.startswith("service:") else place
