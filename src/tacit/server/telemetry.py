"""Structured logs and Prometheus metrics.

Promise: no log line holds a value of the data, SQL, a token or a password. The event of a line is a fixed text; what
varies is in its fields, which only this package writes: method, route, status, milliseconds (after padding), caller,
error codes. Text of other libraries is not logged.

No metric is labelled by table, person or query, so metrics show the load and not what is asked. Several processes write
to files in one folder (`PROMETHEUS_MULTIPROC_DIR`), and each of them can report the sum.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, TextIO

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

LOG: Final = logging.getLogger("tacit.server")


class JsonFormatter(logging.Formatter):
    """Formats a record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; of a record of another library only its logger and place, as its text may hold data."""
        ours = record.name.startswith("tacit.")
        facts: dict[str, Any] = getattr(record, "facts", {}) if ours else {"at": f"{record.module}:{record.lineno}"}
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.msg if ours else "message",
            **facts,
        }
        return json.dumps(line, ensure_ascii=False, default=str)


def configure(stream: TextIO | None = None) -> None:
    """Write all logs of this process as lines of JSON."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    LOG.setLevel(logging.INFO)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        other = logging.getLogger(name)
        other.handlers.clear()
        other.propagate = True
        other.setLevel(logging.WARNING)


def log_event(event: str, **facts: Any) -> None:
    """Log an event with its fields."""
    LOG.info(event, extra={"facts": facts})


BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 60.0)


class Metrics:
    """The metrics of one process."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.requests = Counter(
            "tacit_requests_total", "Requests, by route and status.", ["route", "status"], registry=self._registry
        )
        self.seconds = Histogram(
            "tacit_request_seconds", "How long requests took.", ["route"], buckets=BUCKETS, registry=self._registry
        )
        self.refusals = Counter(
            "tacit_refusals_total", "Requests that failed, by code.", ["code"], registry=self._registry
        )
        self.released = Counter(
            "tacit_releases_total", "Answers, by whether they were new.", ["new"], registry=self._registry
        )
        self.late = Counter(
            "tacit_late_answers_total", "Queries that exceeded their time class.", registry=self._registry
        )
        self._running = Gauge(
            "tacit_questions_running", "Queries that are running.", multiprocess_mode="livesum", registry=self._registry
        )
        self._waiting = Gauge(
            "tacit_questions_waiting", "Queries that are waiting.", multiprocess_mode="livesum", registry=self._registry
        )
        self._stored = Gauge(
            "tacit_answer_bytes", "Bytes of stored answers.", multiprocess_mode="max", registry=self._registry
        )

    def page(self, running: Callable[[], int], waiting: Callable[[], int], stored: Callable[[], int]) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        self._stored.set(stored())
        self._running.set(running())
        self._waiting.set(waiting())
        if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
            return generate_latest(self._registry)
        merged = CollectorRegistry()
        MultiProcessCollector(merged)  # type: ignore[no-untyped-call]
        return generate_latest(merged)
