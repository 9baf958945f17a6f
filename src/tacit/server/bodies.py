"""What every request passes before the application sees it: its size, its pace, and the headers of its answer.

A body is read whole, within its limits, before anything is done with it; so a slow or endless one costs memory and
time up to a stated bound and nothing else. Answers say to browsers that they are neither to be kept, nor framed, nor
run, nor guessed at.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

from tacit.privacy.errors import BodyTooLarge, ServerLimit, SlowRequest
from tacit.server.failures import response_of
from tacit.server.settings import Limits

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

HEADERS: Final = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
)
STRICT: Final = (b"strict-transport-security", b"max-age=31536000")


class Bodies:
    """The outermost layer of the application."""

    def __init__(self, app: App, limits: Limits, *, has_tls: bool) -> None:
        self._app, self._limits = app, limits
        self._headers = (*HEADERS, STRICT) if has_tls else HEADERS

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Take one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(one for one in self._headers if one[0] not in given)]
            await send(message)

        try:
            body = await self._read(scope, receive)
        except ServerLimit as error:
            response = response_of(error)
            response.headers["Connection"] = "close"
            await response(scope, receive, answer)
            return
        if body is None:
            return
        left = [body]

        async def replay() -> Message:
            if left:
                return {"type": "http.request", "body": left.pop(), "more_body": False}
            return await receive()

        await self._app(scope, replay, answer)

    async def _read(self, scope: Message, receive: Receive) -> bytes | None:
        """Return the whole body, or None if the caller is gone."""
        stated = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        most = self._limits.body_bytes
        if stated.isdigit() and int(stated) > most:
            raise _too_large(most)
        deadline_s = asyncio.get_running_loop().time() + self._limits.body_s
        parts, size = [], 0
        while True:
            try:
                async with asyncio.timeout_at(deadline_s):
                    message = await receive()
            except TimeoutError:
                raise SlowRequest(f"a request arrives within {self._limits.body_s:g} s; this one did not") from None
            if message["type"] == "http.disconnect":
                return None
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > most:
                raise _too_large(most)
            if not message.get("more_body", False):
                return b"".join(parts)


def _too_large(most: int) -> BodyTooLarge:
    return BodyTooLarge(f"the body of a request has at most {most:,} bytes; send less, or ask for a larger limit")
