"""What operators watch, for Prometheus: requests, times, questions that run and wait, refusals by code.

Nothing is counted by table, person or question, so the figures say how busy the server is and not what is asked. With
several processes, each writes to files in one folder (`PROMETHEUS_MULTIPROC_DIR`), and any of them adds them up.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 60.0)


class Metrics:
    """The figures of one process."""

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
            "tacit_late_answers_total", "Questions that outlasted their class of time.", registry=self._registry
        )
        self._running = Gauge(
            "tacit_questions_running", "Questions that run.", multiprocess_mode="livesum", registry=self._registry
        )
        self._waiting = Gauge(
            "tacit_questions_waiting", "Questions that wait.", multiprocess_mode="livesum", registry=self._registry
        )
        self._stored = Gauge(
            "tacit_answer_bytes", "Bytes of stored answers.", multiprocess_mode="max", registry=self._registry
        )

    def page(self, running: Callable[[], int], waiting: Callable[[], int], stored: Callable[[], int]) -> bytes:
        """Return all figures as Prometheus reads them."""
        self._stored.set(stored())
        self._running.set(running())
        self._waiting.set(waiting())
        if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
            return generate_latest(self._registry)
        together = CollectorRegistry()
        MultiProcessCollector(together)  # type: ignore[no-untyped-call]
        return generate_latest(together)
