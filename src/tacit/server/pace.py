"""Connections that never get to the end of their headers are closed.

Uvicorn waits for a request's first line and headers without limit, so whoever opens many connections and says little
would hold them all. Here a connection has so many seconds from its beginning, and again from the first byte of each
further request, until its headers are complete.
"""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

from uvicorn.protocols.http.auto import AutoHTTPProtocol

_Base: Any = AutoHTTPProtocol


class Paced(_Base):  # type: ignore[misc]
    """A connection whose headers have a time limit."""

    headers_s: ClassVar[float] = 10.0
    """The limit of this process."""

    _alarm: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._set_alarm()

    def data_received(self, data: bytes) -> None:
        """Read on; once a request has begun the alarm is off."""
        super().data_received(data)
        if self._is_in_request():
            self._drop_alarm()
        elif self._alarm is None:
            self._set_alarm()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the alarm."""
        self._drop_alarm()
        super().connection_lost(exc)

    def _is_in_request(self) -> bool:
        cycle = getattr(self, "cycle", None)
        return cycle is not None and not cycle.response_complete

    def _set_alarm(self) -> None:
        self._alarm = asyncio.get_running_loop().call_later(self.headers_s, self._ring)

    def _drop_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _ring(self) -> None:
        self._alarm = None
        if not self._is_in_request() and not self.transport.is_closing():
            self.transport.close()
