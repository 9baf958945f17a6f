"""Documents as the contract has them, and a server that answers with what a test says."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import httpx

from tacit.client import Client

URL: Final = "http://127.0.0.1:8321"
SECRET: Final = "tacit_0123456789ab_" + "Zx9" * 14 + "Q"

COST: Final = {"epsilon": 0.5, "delta": 0.0, "rho": None}
NOTHING: Final = {"epsilon": 0.0, "delta": 0.0, "rho": 0.0}
RELEASE: Final[dict[str, Any]] = {
    "columns": [
        {"name": "sex", "kind": "text"},
        {"name": "day", "kind": "date"},
        {"name": "at", "kind": "time"},
        {"name": "n", "kind": "integer"},
        {"name": "mean", "kind": "real"},
    ],
    "rows": [
        {"sex": "F", "day": "2024-01-31", "at": "2024-01-31T12:00:00", "n": 601, "mean": 3},
        {"sex": "<b>", "day": None, "at": None, "n": 600, "mean": None},
    ],
    "intervals": [{"n": [594, 608], "mean": [2.5, 3.5]}, {"n": [593, 607], "mean": None}],
    "level": 0.95,
    "cost": COST,
    "remaining": {"visits": {"epsilon": 2.5, "delta": 1e-7, "rho": 0.1}},
    "permit": "7-abc",
    "permits": ["7-abc"],
    "datasets": ["visits"],
    "counted": "1 group a unit, 5 rows a group",
    "warnings": ["bounds are a guess"],
    "card": "Protected is each unit.",
    "simulated": False,
}
PREVIEW: Final[dict[str, Any]] = {
    "cost": COST,
    "widths": {"n": 7.0, "mean": None},
    "is_released": False,
    "lines": [{"label": "units", "text": "visits: a unit more or less"}],
    "remaining": {"visits": {"epsilon": 3.0, "delta": 1e-7, "rho": None}},
    "leaves": {"visits": {"epsilon": 2.5, "delta": 1e-7, "rho": None}},
    "fits": True,
    "refusal": "",
    "more_like_this": 6,
}
STATISTIC: Final[dict[str, Any]] = {
    "label": "mean of age",
    "value": 41.0,
    "keys": None,
    "key_names": [],
    "interval": [40.0, 42.0],
    "level": 0.95,
    "facts": {},
    "picture": "points",
    "cost": COST,
    "remaining": {},
    "permit": "8-abc",
    "warnings": [],
    "card": "Protected is each unit.",
    "simulated": False,
}
ME: Final[dict[str, Any]] = {
    "name": "ana",
    "token": "0123456789ab",
    "csrf": None,
    "grants": [{"role": "analyst", "dataset": "visits", "table": None}],
    "server": {"version": "1.0", "limits": {"rows": 100_000}},
}

Handler = Callable[[httpx.Request], httpx.Response]


class Served:
    """A client whose server is a function; requests and pauses are noted."""

    def __init__(self, handler: Handler, **settings: Any) -> None:
        self.requests: list[httpx.Request] = []
        self.pauses: list[float] = []
        self._handler = handler
        http = httpx.Client(transport=httpx.MockTransport(self._answer))
        self.client = Client(URL, SECRET, http=http, sleep=self._pause, **settings)

    def _pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        assert len(self.pauses) < 1000, "it goes on forever"

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        return self._handler(request)

    def bodies(self, path: str) -> list[dict[str, Any]]:
        """Return what was sent to a path."""
        return [json.loads(one.content) for one in self.requests if one.url.path == path]


def in_order(*answers: httpx.Response | BaseException) -> Handler:
    """Return a server that answers with one after another, and with the last one from then on."""
    left = list(answers)

    def handler(request: httpx.Request) -> httpx.Response:
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, BaseException):
            raise answer
        return answer

    return handler


def fine(document: Any, status: int = 200) -> httpx.Response:
    """Return an answer with a document."""
    return httpx.Response(status, json=document)


def refused(code: str, status: int, details: dict[str, Any] | None = None, **headers: str) -> httpx.Response:
    """Return an error as the server writes it."""
    document = {"error": {"code": code, "name": "Any", "message": f"a sentence for {code}", "details": details or {}}}
    return httpx.Response(status, json=document, headers={name.replace("_", "-"): one for name, one in headers.items()})
