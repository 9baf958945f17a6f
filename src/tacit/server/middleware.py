"""ASGI middleware around all routes: limits on requests, security headers on responses, logs and metrics.

A request with a Host header that is not the server's is refused, against DNS rebinding. If others can connect, an IP
address is accepted as well: it cannot be rebound.

A body is read whole, within limits on size and time, before it is used, and JSON that is nested too deeply is refused
before it is parsed. Responses forbid browsers to cache, frame, execute or sniff them.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import time
from collections.abc import Awaitable, Callable, MutableMapping
from itertools import accumulate
from typing import Any, Final

from tacit.privacy.errors import (
    BodyTooLarge,
    HeadersTooLarge,
    SlowRequest,
    TacitError,
    TooLarge,
    WrongHost,
)
from tacit.server.error_responses import CODE_HEADER, respond_to, respond_to_defect
from tacit.server.settings import Settings
from tacit.server.telemetry import Metrics, log_event

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
HEADERS_MAX: Final = 100
"""Headers of one request."""
LOCAL: Final = frozenset({"localhost", "127.0.0.1", "::1"})
UNKNOWN_CALLER_BYTES: Final = 16_384
"""Bytes read of an unauthenticated caller: validating a megabyte takes seconds of the event loop."""
JSON_DEPTH_MAX: Final = 32
"""Nesting depth of a body; valid requests have a few levels, and parsers recurse."""
_TEXTS: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)  # an unclosed one extends to the end, in linear time
_NOT_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_IN_THREAD_BYTES: Final = 65_536
_CODE: Final = CODE_HEADER.lower().encode()


class RequestLimits:
    """Checks host, size, duration and nesting of requests, and adds security headers to responses."""

    def __init__(self, app: App, settings: Settings, require_known: Callable[[Message], None] | None = None) -> None:
        """Wrap an application; `require_known` authenticates the caller before a large body is read."""
        self._app, self._limits, self._require_known = app, settings.limits, require_known
        self._headers = (*HEADERS, STRICT) if settings.is_encrypted else HEADERS
        self._hosts = frozenset(one.lower() for one in (settings.host, *settings.hosts, *settings.proxies)) | LOCAL
        self._accepts_addresses = not settings.is_local

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(one for one in self._headers if one[0] not in given)]
            await send(message)

        try:
            if len(scope["headers"]) > HEADERS_MAX:
                raise headers_too_large(self._limits.header_bytes)
            self._require_host(scope)
            body = await self._read(scope, receive)
            if body is not None:
                await _require_shallow(body)
        except TacitError as error:
            response = respond_to(error)
            response.headers["Connection"] = "close"  # or the rest of the body would be read as a request
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

    def _require_host(self, scope: Message) -> None:
        """Raise WrongHost unless there is one Host header and it is this server's."""
        named = [value for name, value in scope["headers"] if name == b"host"]
        host = _host_of(named[0].decode("latin-1")) if len(named) == 1 else ""
        if host not in self._hosts and not (self._accepts_addresses and _is_address(host)):
            raise WrongHost(
                "the Host header is not a name of this server; use its own name, or ask its owner to add the name to "
                "the setting `hosts`"
            )

    async def _read(self, scope: Message, receive: Receive) -> bytes | None:
        """Return the whole body, or None if the client disconnected."""
        stated = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        most = self._limits.body_bytes
        if stated.isdigit() and int(stated) > most:
            raise _too_large(most)
        deadline_s = asyncio.get_running_loop().time() + self._limits.body_s
        parts, size, is_checked = [], 0, False
        while True:
            if max(size, int(stated) if stated.isdigit() else 0) > UNKNOWN_CALLER_BYTES and not is_checked:
                is_checked = True
                if self._require_known is not None:
                    await asyncio.to_thread(self._require_known, scope)
            try:
                async with asyncio.timeout_at(deadline_s):
                    message = await receive()
            except TimeoutError:
                raise SlowRequest(f"the body of the request did not arrive within {self._limits.body_s:g} s") from None
            if message["type"] == "http.disconnect":
                return None
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > most:
                raise _too_large(most)
            if not message.get("more_body", False):
                return b"".join(parts)


class RequestLog:
    """Logs and counts each request, and answers unexpected exceptions with T000."""

    def __init__(self, app: App, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Handle one request."""
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
            response = respond_to_defect(error)
            if begun:
                raise  # a part of the response was sent already, so the connection is closed
            await response(scope, receive, answer)
        finally:
            if begun:
                self._log(scope, begun[0], time.perf_counter() - started_s)

    def _log(self, scope: Message, begun: Message, taken_s: float) -> None:
        route: Any = scope.get("route")
        path, status = getattr(route, "path", "none"), begun["status"]
        code = next((value.decode() for name, value in begun["headers"] if name.lower() == _CODE), None)
        self._metrics.requests.labels(path, str(status)).inc()
        self._metrics.seconds.labels(path).observe(taken_s)
        if code is not None:
            self._metrics.refusals.labels(code).inc()
        names = scope.get("state", {}).get("caller_names", ())
        log_event(
            "request",
            method=scope["method"],
            route=path,
            status=status,
            code=code,
            ms=round(1000 * taken_s, 1),
            who=next(iter(names), None),
        )


def headers_too_large(most: int) -> HeadersTooLarge:
    """Return the error for headers that are too large or too many."""
    return HeadersTooLarge(f"target and headers of a request are limited to {most:,} bytes and {HEADERS_MAX} headers")


def _too_large(most: int) -> BodyTooLarge:
    return BodyTooLarge(
        f"the body of a request is limited to {most:,} bytes; send less, or ask the owner to raise the limit"
    )


def _host_of(text: str) -> str:
    """Return the host of a Host header, without its port and the brackets of an IPv6 address."""
    if text.startswith("["):
        return text[1:].partition("]")[0].lower()
    return text.partition(":")[0].rstrip(".").lower()


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


async def _require_shallow(body: bytes) -> None:
    """Raise TooLarge if JSON is nested too deeply; a large body is examined in a thread."""
    if body.count(b"[") + body.count(b"{") <= JSON_DEPTH_MAX:
        return
    depth = _depth(body) if len(body) < _IN_THREAD_BYTES else await asyncio.to_thread(_depth, body)
    if depth > JSON_DEPTH_MAX:
        raise TooLarge(f"the body of a request may be nested {JSON_DEPTH_MAX} levels deep at most", name="body")


def _depth(body: bytes) -> int:
    """Return the nesting depth of brackets outside of JSON strings."""
    brackets = _TEXTS.sub(b"", body).translate(None, _NOT_BRACKETS)
    return max(accumulate(1 if one in b"[{" else -1 for one in brackets), default=0)
