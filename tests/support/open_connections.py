"""Which connections a test leaves open.

`watch` replaces `sqlite3.connect`, so that every connection remembers which test opened it where, and listens to what
closes the connections of ledgers that were forgotten. Python 3.13 warns of a connection that the collector finds open,
in whichever test runs then; this names the right one, and on 3.11 and 3.12 too, which say nothing.
"""

from __future__ import annotations

import os
import sqlite3
import traceback
import weakref
from typing import Any

from tests.style.rules import ROOT

_found: weakref.WeakSet[Watched] = weakref.WeakSet()
_forgotten: list[str] = []


class Watched(sqlite3.Connection):
    """A connection that knows who opened it, and whether it was closed."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.origin = f"SQLite: {_origin()}"
        self.is_open = True
        _found.add(self)

    def close(self) -> None:
        self.is_open = False
        super().close()

    def __del__(self) -> None:
        if getattr(self, "is_open", False):
            _forgotten.append(self.origin)
            self.close()


def watch() -> None:
    """Watch all connections from now on."""
    connect = sqlite3.connect

    def watched(*arguments: Any, **settings: Any) -> sqlite3.Connection:
        return connect(*arguments, **{"factory": Watched, **settings})

    sqlite3.connect = watched  # type: ignore[assignment]
    from tacit.storage import connections  # only now, for stores take `sqlite3.connect` when they are imported

    close_forgotten = connections.close_forgotten

    def noticed(connections: list[Any], lock: Any) -> None:
        _forgotten.extend(one.origin if isinstance(one, Watched) else repr(one) for one in connections if _is_open(one))
        close_forgotten(connections, lock)

    connections.close_forgotten = noticed


def left_open() -> list[str]:
    """Return who left connections open since the last call; a connection is not named again."""
    still = [one for one in _found if one.is_open]
    for one in still:
        one.is_open = False
    names = [*_forgotten, *(one.origin for one in still)]
    _forgotten.clear()
    return sorted(set(names))


def _is_open(connection: Any) -> bool:
    """Return whether a connection of SQLite, or of psycopg, is open and was not named yet."""
    return connection.is_open if isinstance(connection, Watched) else getattr(connection, "closed", None) is False


def _origin() -> str:
    """Return the test that runs now, and the innermost line of the tests that leads here."""
    lines = [f for f in traceback.extract_stack(limit=40) if "/tests/" in f.filename and f.filename != __file__]
    where = f"{os.path.relpath(lines[-1].filename, ROOT)}:{lines[-1].lineno}" if lines else "no line of a test"
    return f"{os.environ.get('PYTEST_CURRENT_TEST', 'no test')}, {where}"
