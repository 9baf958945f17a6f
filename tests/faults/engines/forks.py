"""A process that forks while its engine has connections: `python -m tests.faults.engines.forks PLACE`.

It prints which sessions of PostgreSQL the parent and the child used, and what the parent found afterwards, as JSON.
"""

from __future__ import annotations

import json
import os
import sys

from tacit.engines import PostgresEngine

SESSION = "SELECT pg_backend_pid() AS session"


def session(engine: PostgresEngine) -> int:
    """Return the session in which a statement runs."""
    return int(engine.run(SESSION)["session"][0])


def said_by_child(engine: PostgresEngine) -> int:
    """Fork, and return the session that the child used before it closed the engine."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, str(session(engine)).encode())
        engine.close()
        sys.exit(0)
    found = int(os.read(reading, 64))
    assert os.waitpid(child, 0)[1] == 0
    return found


if __name__ == "__main__":
    used = PostgresEngine(sys.argv[1], salt=1)
    before = session(used)
    idle = said_by_child(used)
    lent = used._connections.acquire()
    during = said_by_child(used)
    used._connections.release(lent)
    sys.stdout.write(json.dumps({"parent": [before, lent.info.backend_pid, session(used)], "children": [idle, during]}))
    used.close()
