"""Where a PostgreSQL database is: an address without a password, or where an address is kept.

    postgresql://user@host:port/database     the password is in ~/.pgpass, in PGPASSWORD, or not needed
    env:NAME                                 an environment variable that holds an address
    file:PATH                                a file that holds one, which only its owner can read
    service:NAME                             an entry of pg_service.conf

Promise: an address that holds a password is never a place, so that it is in no catalog; one that was read from
elsewhere is handed to the driver and kept nowhere.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from tacit.privacy.errors import InvalidInput, NotPermitted, SourceMissing

_SCHEMES: Final = ("postgresql", "postgres")
_SECRET: Final = ("password", "sslpassword", "scram_client_key", "scram_server_key", "oauth_client_secret")
_NAME: Final = re.compile(r"[\w.-]+")
_FORMS: Final = "postgresql://user@host:port/database, env:NAME, file:PATH or service:NAME"


def check(place: str) -> None:
    """Refuse a place that is none, or that holds a password."""
    kind, _, rest = place.partition(":")
    if kind in ("env", "service") and _NAME.fullmatch(rest):
        return
    if kind == "file" and rest:
        return
    if kind not in _SCHEMES or not rest.startswith("//"):
        raise InvalidInput(f"a PostgreSQL database is named as {_FORMS}", name="place")
    try:
        parts = urlsplit(place)
        secret = parts.password or any(name.lower() in _SECRET for name, _ in parse_qsl(parts.query))
    except ValueError:
        secret, parts = None, None
    if parts is None:
        raise InvalidInput(f"this address cannot be read; write it as {_FORMS}", name="place")
    if secret:
        raise InvalidInput(
            "a password does not stand in an address, which the catalog keeps; put it into ~/.pgpass or PGPASSWORD, "
            "or the whole address into an environment variable (env:NAME) or a file (file:PATH)",
            name="place",
        )


def address(place: str) -> str:
    """Return what the driver connects with; it may hold a password, so that it goes nowhere else."""
    kind, _, rest = place.partition(":")
    if kind == "env":
        found = os.environ.get(rest, "")
        if not found:
            raise SourceMissing(f"the environment variable {rest} is not set; it holds the address of the database")
        return found
    if kind == "file":
        return _in_file(Path(rest).expanduser())
    return f"service={rest}" if kind == "service" else place


def _in_file(path: Path) -> str:
    try:
        mode, text = path.stat().st_mode, path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        mode, text = 0, ""
    if not text:
        raise SourceMissing(f"{path} cannot be read; it holds the address of the database")
    if mode & 0o077:
        raise NotPermitted(f"{path} holds an address with a password and others can read it; run chmod 600 on it")
    return text
