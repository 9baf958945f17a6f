"""A process that closes nothing: `python -X dev -W error -m tests.faults.forgotten collected|exit FOLDER ADDRESS`.

It opens and uses one of everything that holds a connection or a lock. With `collected` it forgets them at once and runs
the collector, with `exit` it keeps them until the interpreter exits. It prints how many it has opened.
"""

from __future__ import annotations

import gc
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import tacit
from tacit.engines import PostgresEngine
from tacit.ledger import Ledger, PostgresStore
from tacit.privacy import events
from tacit.server.database import PostgresDatabase, open_database


class Answering(BaseHTTPRequestHandler):
    """Answers every request with an empty object, and keeps the connection."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def opened(folder: Path, address: str, url: str) -> list[Any]:
    """Open and use one of everything, and close nothing."""
    ledger = Ledger.open(folder / "ledger")
    ledger.create_budget("visits", epsilon=1.0)
    ledger.budget("visits").charge(events.Pure(0.1))
    curator = tacit.Curator(folder / "clinic")
    frame = pa.table({"patient": np.arange(100), "age": np.arange(100) % 90})
    curator.add_table("visits", frame, unit="patient", columns={"age": tacit.Bounds(0, 90)})
    curator.set_budget("visits", epsilon=1.0)
    curator.sql("SELECT SUM(age) AS s FROM visits", epsilon=0.5)
    database = open_database(folder / "clinic")
    database.read("SELECT 1")
    running = tacit.stats.RunningCount(8, epsilon=0.5, budget=ledger.budget("visits"), path=folder / "running.state")
    running.add(1)
    client = tacit.connect(url, token="tacit_x")
    client._transport.ask("GET", "tables")
    shared = Ledger.open(PostgresStore(address, schema="forgotten"))
    shared.head()
    server = PostgresDatabase(address, schema="forgotten_server")
    server.open()
    server.read("SELECT 1")
    engine = PostgresEngine(address.replace("postgres:@", "postgres@"), salt=1)
    engine.run("SELECT 1 AS one")
    return [ledger, curator, database, running, client, shared, server, engine]


if __name__ == "__main__":
    when, folder_name, postgres_address = sys.argv[1:]
    answering = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    answering.daemon_threads = True
    threading.Thread(target=answering.serve_forever, daemon=True).start()
    kept = opened(Path(folder_name), postgres_address, f"http://127.0.0.1:{answering.server_address[1]}")
    sys.stdout.write(json.dumps(len(kept)))
    if when == "collected":
        del kept
        gc.collect()
        folder = Path(folder_name)
        with (
            Ledger.open(folder / "ledger") as ledger,
            tacit.stats.RunningCount.open(folder / "running.state", budget=ledger.budget("visits")) as again,
        ):  # its lock was given back
            assert again.steps == 1
    answering.shutdown()
    answering.server_close()
