"""What is said of every request: a line of the log, and the figures for Prometheus; and an answer to what failed.

It lies around the routes as plain ASGI, because what every request passes through should cost none of them much.
"""

from __future__ import annotations

import time
from typing import Any

from tacit.server import failures
from tacit.server.bodies import App, Message, Receive, Send
from tacit.server.logs import note
from tacit.server.metrics import Metrics

_CODE = failures.CODE_HEADER.lower().encode()


class Watch:
    """The layer that sees each request come and each answer go."""

    def __init__(self, app: App, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Pass one request on, and say what became of it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started_s, begun = time.perf_counter(), list[Message]()

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                begun.append(message)
            await send(message)

        try:
            await self._app(scope, receive, answer)
        except Exception as error:
            response = failures.response_of_unforeseen(error)
            if begun:
                raise  # half an answer is on its way, and the connection ends with it
            await response(scope, receive, answer)
        finally:
            if begun:
                self._say(scope, begun[0], time.perf_counter() - started_s)

    def _say(self, scope: Message, begun: Message, taken_s: float) -> None:
        route: Any = scope.get("route")
        path, status = getattr(route, "path", "none"), begun["status"]
        code = next((value.decode() for name, value in begun["headers"] if name.lower() == _CODE), None)
        self._metrics.requests.labels(path, str(status)).inc()
        self._metrics.seconds.labels(path).observe(taken_s)
        if code is not None:
            self._metrics.refusals.labels(code).inc()
        seen = scope.get("state", {}).get("seen", ())
        who = next(iter(seen), None)
        note("request", method=scope["method"], route=path, status=status, code=code, ms=_ms(taken_s), who=who)


def _ms(seconds: float) -> float:
    return round(1000 * seconds, 1)
