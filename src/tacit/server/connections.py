"""Connections as callers hold them: how many, how slow, and how much they say before a request is complete.

Uvicorn bounds none of it before the application is called. Here

- the target, the headers, the trailers and the framing of chunks of a request have a total limit (431, T714), counted
  on raw bytes, so that it holds for whichever parser is installed; so has the number of headers;
- headers have a time limit from the beginning of a connection, and again from the first byte of each further request;
- few requests are taken from a connection before they are answered;
- a process holds so many connections, and so many of one address. When one more comes, the oldest that waits for its
  caller (idle, headers or body not complete, answer not read) is closed: of the same address if that has its share,
  else of the address that has the most. So idle connections of others lock nobody out.

Not here: TLS handshakes, which have asyncio's time limit of a minute and are counted when they have ended.
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
from tacit.server.error_responses import CODE_HEADER, document_of, status_of
from tacit.server.middleware import HEADERS, HEADERS_MAX, headers_too_large
from tacit.server.settings import Limits

PIPELINED_MAX: Final = 8
"""How many requests of one connection wait for an answer to the one before them."""
FEED_BYTES: Final = 4096
BACKLOG: Final = 128
"""How many connections the system accepts before the process sees them."""
FILES_KEPT: Final = 256
"""How many file descriptors stay free of connections: for databases, tables, logs, and what is being accepted."""

_Base: Any = AutoHTTPProtocol


def connections_within(limits: Limits) -> int:
    """Return how many connections a process can hold: its setting, or less where it may open fewer files.

    The soft limit on open files is raised first, as far as the system lets it.
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
    """The addresses and networks of a setting, as uvicorn reads them; * is every address."""

    def __init__(self, stated: Iterable[str]) -> None:
        self._all, self._networks = False, list[ipaddress.IPv4Network | ipaddress.IPv6Network]()
        for one in stated:
            self._all = self._all or one == "*"
            with suppress(ValueError):  # a name, by which no address is known
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
        """Take a connection in, and make room for it; return whether there is none."""
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
        """Forget a connection; one that was never taken in is no matter."""
        own = self._by_address.get(connection.address)
        if own is not None and connection in own:
            del own[connection]
            self.total -= 1
            if not own:
                del self._by_address[connection.address]

    def used(self, connection: LimitedConnection) -> None:
        """Put a connection behind those that were silent for longer."""
        own = self._by_address.get(connection.address)
        if own is not None and connection in own:
            own.move_to_end(connection)


def _close_oldest(connections: Iterable[LimitedConnection]) -> bool:
    """Close the connection that has waited longest for its caller; return whether there is one."""
    oldest = next((one for one in connections if one.is_waiting), None)
    if oldest is not None:
        oldest.drop()
    return oldest is not None


class LimitedConnection(asyncio.Protocol):
    """A connection with limits on what it says and how long that takes; `limit` sets those of the process.

    A mixin in front of one of uvicorn's protocols, whose attributes it reads.
    """

    headers_s: ClassVar[float]
    header_bytes: ClassVar[int]
    registry: ClassVar[OpenConnections]
    proxies: ClassVar[Proxies]

    _alarm: asyncio.TimerHandle | None = None
    _overhead = 0
    """Bytes of the current message that are not of its body."""
    address = ""
    is_proxy = False
    """Whether it comes from a proxy, which stands for many callers."""
    client: Any
    cycle: Any
    flow: Any
    headers: Any
    transport: Any

    @classmethod
    def limit(cls, limits: Limits, proxies: Iterable[str] = ()) -> int:
        """Set the limits of this process, and return how many connections it holds."""
        cls.headers_s, cls.header_bytes = limits.headers_s, limits.header_bytes
        most = connections_within(limits)
        cls.registry, cls.proxies = OpenConnections(most, min(most, limits.connections_each)), Proxies(proxies)
        return most

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        peer = self.client[0] if self.client else ""
        self.address, self.is_proxy = network_of(peer), peer in self.proxies
        if self.registry.enter(self):
            transport.abort()
            return
        self._set_alarm()

    def data_received(self, data: bytes) -> None:
        """Read on, never more than the limit beyond what belongs to bodies."""
        self.registry.used(self)
        while data and not self.transport.is_closing():
            room = self.header_bytes - self._overhead
            if room <= 0:
                self._refuse()
                return
            piece, data = data[: min(room, FEED_BYTES)], data[min(room, FEED_BYTES) :]
            self._feed(piece)
        if self._is_in_request:
            self._drop_alarm()
        elif self._alarm is None:
            self._set_alarm()

    def _feed(self, piece: bytes) -> None:
        """Give a piece to the parser, and count what of it was not the body."""
        before = self.cycle
        held, was_open = (0, False) if before is None else (len(before.body), before.more_body)
        super().data_received(piece)
        cycle = self.cycle
        body = 0 if cycle is None else len(cycle.body) - (held if cycle is before else 0)
        # the framing of chunks is paid for by the bytes in them, so that only chunks of a byte or two are too costly
        self._overhead = max(0, self._overhead + len(piece) - 2 * body)
        if len(getattr(self, "pipeline", ())) > PIPELINED_MAX:
            self.drop()
        elif not self._is_in_request and len(self.headers or ()) > HEADERS_MAX:
            self._refuse()
        elif cycle is not None and not cycle.more_body and (was_open or cycle is not before):
            self._overhead = 0  # a message is complete, and the next byte begins another

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection and its alarm."""
        self._drop_alarm()
        self.registry.leave(self)
        super().connection_lost(exc)

    @property
    def is_waiting(self) -> bool:
        """Whether it is the caller's turn: to send a request, the rest of one, or to read an answer."""
        return not self._is_in_request or self.cycle.more_body or self.flow.write_paused

    def drop(self) -> None:
        """Close at once, whatever has not been sent."""
        self.registry.leave(self)
        self.transport.abort()

    @property
    def _is_in_request(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _refuse(self) -> None:
        """Say that there are too many headers, unless an answer has begun, and close."""
        if self.transport.is_closing():
            return
        if not self._is_in_request:
            self.transport.write(_refusal(self.header_bytes))
            self.transport.close()
        else:
            self.drop()

    def _set_alarm(self) -> None:
        self._alarm = asyncio.get_running_loop().call_later(self.headers_s, self._ring)

    def _drop_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _ring(self) -> None:
        self._alarm = None
        if not self._is_in_request and not self.transport.is_closing():
            self.transport.close()


class LimitedProtocol(LimitedConnection, _Base):  # type: ignore[misc]
    """The protocol of the parser that is installed, with limits."""


def _refusal(most: int) -> bytes:
    error = headers_too_large(most)
    body = json.dumps(document_of(error).model_dump()).encode()
    lines = [
        f"HTTP/1.1 {status_of(error)} Request Header Fields Too Large".encode(),
        b"content-type: application/json",
        f"content-length: {len(body)}".encode(),
        f"{CODE_HEADER}: {error.code}".encode(),
        b"connection: close",
        *(b"%b: %b" % one for one in HEADERS),
    ]
    return b"\r\n".join([*lines, b"", body])
