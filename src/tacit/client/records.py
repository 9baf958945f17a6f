"""What a server lists: jobs, requests, people, tokens, records of the ledger; each a frozen record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tacit.client.failures import understood
from tacit.client.values import cost_of
from tacit.ledger.requests import Request


@dataclass(frozen=True, slots=True)
class Job:
    """A question that outlasts its request."""

    id: str
    state: str
    asked_at: datetime
    elapsed_s: float
    expected_s: float | None

    @property
    def is_running(self) -> bool:
        """Whether it can still be cancelled."""
        return self.state in ("waiting", "running")

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Job:
        """Read a job."""
        with understood("the job"):
            expected_s = document["expected_s"]
            return cls(
                str(document["id"]),
                str(document["state"]),
                datetime.fromisoformat(document["asked_at"]),
                float(document["elapsed_s"]),
                None if expected_s is None else float(expected_s),
            )


def request_of(document: Mapping[str, Any]) -> Request:
    """Read a request for more budget."""
    with understood("the request"):
        return Request(
            str(document["id"]),
            str(document["dataset"]),
            str(document["analyst"]),
            cost_of(document["cost"]),
            str(document["reason"]),
            datetime.fromisoformat(document["filed_at"]),
            document["state"],
            str(document["decided_by"] or ""),
            str(document["note"] or ""),
        )
