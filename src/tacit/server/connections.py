"""Limits on connections that apply before the application is called, where uvicorn has none:

- the target, the headers, the trailers and the framing of chunks of a request have a total limit (431, T714), counted
  on raw bytes, so that it holds for whichever parser is installed; so has the number of headers;
- headers have a time limit from the beginning of a connection, and again from the first byte of each further request;
- few requests of a connection are accepted before the first is answered;
- connections are limited in total and by address. When one more arrives, the oldest that waits for its client (idle,
  headers or body incomplete, response not read) is closed: of the same address if that has reached its limit, else of
  the address with the most connections. So idle connections lock no other client out.

TLS handshakes have asyncio's time limit of a minute and are counted when they are complete.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import resource
from collections import OrderedDict
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, ClassVar, Final

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from tacit.server.access.passwords import network_of
from tacit.server.error_responses import CODE_HEADER, error_response, status_of
from tacit.server.middleware import HEADERS, HEADERS_MAX, headers_too_large
from tacit.server.settings import ServerLimits

PIPELINED_MAX: Final = 8
"""Requests of one connection that wait for the response to the one before them."""
FEED_BYTES: Final = 4096
BACKLOG: Final = 128
"""Connections that the operating system queues for the process."""
FILES_KEPT: Final = 256
"""File descriptors kept for databases, tables, logs and connections being accepted."""

_Base: Any = AutoHTTPProtocol


def connections_within(limits: ServerLimits) -> int:
    """Return the limit on connections of a process: the setting, or less if it may open fewer files.

    The soft limit on open files is raised first, up to the hard limit.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = limits.connections + FILES_KEPT
    if soft != resource.RLIM_INFINITY and soft < wanted:
        raised = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
        soft = raised
    if soft == resource.RLIM_INFINITY:
        return limits.connections
    return min(limits.connections, soft - min(FILES_KEPT, soft // 2))


class Proxies:
    """The addresses and networks of trusted proxies, as uvicorn reads them; * is every address."""

    def __init__(self, stated: Iterable[str]) -> None:
        self._all, self._networks = False, list[ipaddress.IPv4Network | ipaddress.IPv6Network]()
        for one in stated:
            self._all = self._all or one == "*"
            with suppress(ValueError):  # a name, which matches no address
                self._networks.append(ipaddress.ip_network(one, strict=False))

    def __contains__(self, address: object) -> bool:
        try:
            parsed = ipaddress.ip_address(str(address))
        except ValueError:
            return self._all
        mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
        return self._all or any(parsed in one or (mapped is not None and mapped in one) for one in self._networks)


class OpenConnections:
    """The connections of one process, the oldest of each address first."""

    def __init__(self, most: int, most_each: int) -> None:
        self.most, self._most_each = most, most_each
        self._by_address: dict[str, OrderedDict[LimitedConnection, None]] = {}
        self.total = 0

    def enter(self, connection: LimitedConnection) -> bool:
        """Add a connection, closing another if needed; return whether there is no room for it."""
        address = connection.address
        own = self._by_address.get(address, OrderedDict())
        is_full = True
        if len(own) >= self._most_each and not connection.is_proxy:
            is_full = not _close_oldest(own)
        elif self.total < self.most:
            is_full = False
        else:
            ranked = sorted(self._by_address.values(), key=len, reverse=True)
            is_full = not any(_close_oldest(one) for one in ranked)
        if not is_full:
            self._by_address.setdefault(address, OrderedDict())[connection] = None
            self.total += 1
        return is_full

    def leave(self, connection: LimitedConnection) -> None:
        """Remove a connection, if it was added."""
        own = self._by_address.get(connection.address)
        if own is not None and connection in own:
            del own[connection]
            self.total -= 1
            if not own:
                del self._by_address[connection.address]

    def touch(self, connection: LimitedConnection) -> None:
        """Mark a connection as the most recently used of its address."""
        own = self._by_address.get(connection.address)
        if own is not None and connection in own:
            own.move_to_end(connection)


def _close_oldest(connections: Iterable[LimitedConnection]) -> bool:
    """Close the connection that has waited longest for its client; return whether there is one."""
    oldest = next((one for one in connections if one.is_waiting), None)
    if oldest is not None:
        oldest.drop()
    return oldest is not None


class LimitedConnection(asyncio.Protocol):
    """A mixin in front of one of uvicorn's protocols that limits size and duration of requests.

    `limit` sets the limits of the process.
    """

    headers_s: ClassVar[float]
    header_bytes: ClassVar[int]
    registry: ClassVar[OpenConnections]
    proxies: ClassVar[Proxies]

    _timer: asyncio.TimerHandle | None = None
    _overhead = 0
    """Bytes of the current message that are not part of its body."""
    address = ""
    is_proxy = False
    """Whether the client is a trusted proxy, which stands for many clients."""
    client: Any
    cycle: Any
    flow: Any
    headers: Any
    transport: Any

    @classmethod
    def limit(cls, limits: ServerLimits, proxies: Iterable[str] = ()) -> int:
        """Set the limits of this process, and return the limit on connections."""
        cls.headers_s, cls.header_bytes = limits.headers_s, limits.header_bytes
        most = connections_within(limits)
        cls.registry, cls.proxies = OpenConnections(most, min(most, limits.connections_each)), Proxies(proxies)
        return most

    def connection_made(self, transport: Any) -> None:
        """Register the connection and start the timer for its first request."""
        super().connection_made(transport)
        peer = self.client[0] if self.client else ""
        self.address, self.is_proxy = network_of(peer), peer in self.proxies
        if self.registry.enter(self):
            transport.abort()
            return
        self._set_timer()

    def data_received(self, data: bytes) -> None:
        """Pass data to the parser in pieces within the limit on headers."""
        self.registry.touch(self)
        while data and not self.transport.is_closing():
            room = self.header_bytes - self._overhead
            if room <= 0:
                self._refuse()
                return
            piece, data = data[: min(room, FEED_BYTES)], data[min(room, FEED_BYTES) :]
            self._feed(piece)
        if self._is_in_request:
            self._drop_timer()
        elif self._timer is None:
            self._set_timer()

    def _feed(self, piece: bytes) -> None:
        """Pass a piece to the parser, and count the bytes that are not part of the body."""
        before = self.cycle
        held, was_open = (0, False) if before is None else (len(before.body), before.more_body)
        super().data_received(piece)
        cycle = self.cycle
        body = 0 if cycle is None else len(cycle.body) - (held if cycle is before else 0)
        # body bytes offset the framing of chunks, so that only chunks of a byte or two reach the limit
        self._overhead = max(0, self._overhead + len(piece) - 2 * body)
        if len(getattr(self, "pipeline", ())) > PIPELINED_MAX:
            self.drop()
        elif not self._is_in_request and len(self.headers or ()) > HEADERS_MAX:
            self._refuse()
        elif cycle is not None and not cycle.more_body and (was_open or cycle is not before):
            self._overhead = 0  # a message is complete, and the next byte begins another

    def connection_lost(self, exc: Exception | None) -> None:
        """Unregister the connection and cancel its timer."""
        self._drop_timer()
        self.registry.leave(self)
        super().connection_lost(exc)

    @property
    def is_waiting(self) -> bool:
        """Whether the client has to act: send a request, the rest of one, or read a response."""
        return not self._is_in_request or self.cycle.more_body or self.flow.write_paused

    def drop(self) -> None:
        """Abort the connection."""
        self.registry.leave(self)
        self.transport.abort()

    @property
    def _is_in_request(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _refuse(self) -> None:
        """Respond with 431, unless a response has begun, and close."""
        if self.transport.is_closing():
            return
        if not self._is_in_request:
            self.transport.write(_refusal(self.header_bytes))
            self.transport.close()
        else:
            self.drop()

    def _set_timer(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self.headers_s, self._expire)

    def _drop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expire(self) -> None:
        self._timer = None
        if not self._is_in_request and not self.transport.is_closing():
            self.transport.close()


class LimitedProtocol(LimitedConnection, _Base):  # type: ignore[misc]
    """The protocol of the installed HTTP parser, with limits."""


def _refusal(most: int) -> bytes:
    error = headers_too_large(most)
    body = json.dumps(error_response(error).model_dump()).encode()
    lines = [
        f"HTTP/1.1 {status_of(error)} Request Header Fields Too Large".encode(),
        b"content-type: application/json",
        f"content-length: {len(body)}".encode(),
        f"{CODE_HEADER}: {error.code}".encode(),
        b"connection: close",
        *(b"%b: %b" % one for one in HEADERS),
    ]
    return b"\r\n".join([*lines, b"", body])
