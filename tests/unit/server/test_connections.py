"""Headers, trailers and connections are bounded before the application is called, whichever parser is installed."""

from __future__ import annotations

import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tacit.privacy.errors import NotKnown
from tacit.server import connections
from tacit.server.connections import LimitedConnection, connections_within
from tacit.server.middleware import HEADERS_MAX, RequestLimits
from tacit.server.settings import ServerLimits, Settings

LIMITS = ServerLimits(header_bytes=8192, connections=40, connections_each=40, body_s=5, headers_s=5)


class Httptools(LimitedConnection, HttpToolsProtocol):
    pass


class H11(LimitedConnection, H11Protocol):
    pass


@dataclass
class Running:
    """A server in a thread whose application notes the requests that it gets."""

    server: uvicorn.Server
    protocol: type[LimitedConnection]
    seen: list[dict[str, Any]]

    def connect(self) -> socket.socket:
        port = self.server.servers[0].sockets[0].getsockname()[1]
        return socket.create_connection(("127.0.0.1", port), timeout=10)

    def said(self, *parts: bytes) -> bytes:
        """Return all that comes back for some bytes; what breaks while they are sent is no answer."""
        with self.connect() as connection:
            try:
                for part in parts:
                    connection.sendall(part)
                return b"".join(iter(lambda: connection.recv(65_536), b""))
            except (ConnectionResetError, BrokenPipeError):
                return b""

    def status(self) -> bytes:
        return self.said(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")[9:12]


@pytest.fixture(scope="module", params=[Httptools, H11])
def started(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    seen: list[dict[str, Any]] = []

    async def app(scope: Any, receive: Callable[[], Any], send: Callable[[Any], Any]) -> None:
        body = (await receive())["body"]
        seen.append({"path": scope["path"], "headers": len(scope["headers"]), "body": len(body)})
        length = str(len(body)).encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
        await send({"type": "http.response.body", "body": body})

    request.param.limit(LIMITS)
    bodies = RequestLimits(app, Settings(folder=tmp_path_factory.getbasetemp(), limits=LIMITS))
    with running_server(bodies, request.param, seen) as made:
        yield made


@contextmanager
def running_server(
    app: Any, protocol: type[LimitedConnection], seen: list[dict[str, Any]] | None = None
) -> Iterator[Running]:
    config = uvicorn.Config(
        app,
        *("127.0.0.1", 0),
        http=protocol,
        lifespan="off",
        log_config=None,
        h11_max_incomplete_event_size=LIMITS.header_bytes,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield Running(server, protocol, [] if seen is None else seen)
    server.should_exit = True
    thread.join(10)


@pytest.fixture
def running(started: Running) -> Running:
    started.seen.clear()
    return started


HOST = b"GET / HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
MUCH = 4 * LIMITS.header_bytes
BEYOND = {
    "many headers": HOST + b"a: b\r\n" * (MUCH // 6) + b"\r\n",
    "one long header": HOST + b"a: " + b"x" * MUCH + b"\r\n\r\n",
    "one long name": HOST + b"x" * MUCH + b": a\r\n\r\n",
    "a header without end": HOST + b"a: " + b"x" * MUCH,
    "a long target": b"GET /" + b"x" * MUCH + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a target without end": b"GET /" + b"x" * MUCH,
    "a long query": b"GET /?" + b"x" * MUCH + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a long trailer": CHUNKED + b"1\r\nx\r\n0\r\nTrailer: " + b"x" * MUCH + b"\r\n\r\n",
    "many trailers": CHUNKED + b"1\r\nx\r\n0\r\n" + b"a: b\r\n" * (MUCH // 6) + b"\r\n",
    "a long extension of a chunk": CHUNKED + b"1;a=" + b"x" * MUCH + b"\r\nx\r\n0\r\n\r\n",
    "many extensions of chunks": CHUNKED + (b"1;a=" + b"x" * 100 + b"\r\nx\r\n") * (MUCH // 100) + b"0\r\n\r\n",
    "empty lines before a request": b"\r\n" * MUCH + HOST + b"\r\n",
}


@pytest.mark.parametrize("name", BEYOND)
@pytest.mark.parametrize("slices", [1, 50])
@pytest.mark.parametrize("before", [b"", HOST + b"\r\n"], ids=["first", "second"])
def test_what_is_not_a_body_has_a_limit(running: Running, name: str, slices: int, before: bytes) -> None:
    text = BEYOND[name]
    size = -(-len(text) // slices)
    if before:
        with running.connect() as connection:
            connection.sendall(before)
            assert connection.recv(4096).startswith(b"HTTP/1.1 200")
            answer = b""
            try:
                for start in range(0, len(text), size):
                    connection.sendall(text[start : start + size])
                answer = b"".join(iter(lambda: connection.recv(65_536), b""))
            except (ConnectionResetError, BrokenPipeError):
                pass
    else:
        answer = running.said(*(text[start : start + size] for start in range(0, len(text), size)))
    assert answer[:12] in (b"", b"HTTP/1.1 431", b"HTTP/1.1 400"), answer[:200]
    assert len(running.seen) == (1 if before else 0), "the application saw the request"
    assert running.status() == b"200"


def test_a_refusal_of_headers_is_a_document_with_a_code(running: Running) -> None:
    if running.protocol is H11:
        pytest.skip("h11 itself refuses an event of this size, with 400")
    answer = running.said(HOST + b"a: " + b"x" * (LIMITS.header_bytes - len(HOST)))
    assert answer.startswith(b"HTTP/1.1 431 ")
    assert b'"code": "T714"' in answer


@pytest.mark.parametrize(("count", "status"), [(HEADERS_MAX - 1, b"200"), (HEADERS_MAX, b"431")])
def test_headers_are_counted(running: Running, count: int, status: bytes) -> None:
    text = HOST + b"".join(b"a%d: b\r\n" % number for number in range(count - 1)) + b"Connection: close\r\n\r\n"
    assert running.said(text)[9:12] == status
    assert len(running.seen) == (status == b"200")


@pytest.mark.parametrize("chunk", [16, 1000, 65_536])
def test_bodies_in_chunks_are_taken_up_to_their_own_limit(running: Running, chunk: int) -> None:
    size = 500_000 // chunk * chunk
    parts = (b"%x\r\n" % chunk + b"x" * chunk + b"\r\n") * (size // chunk) + b"0\r\n\r\n"
    answer = running.said(CHUNKED.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"), parts)
    assert answer.startswith(b"HTTP/1.1 200")
    assert running.seen == [{"path": "/", "headers": 3, "body": size}]


def test_many_requests_on_one_connection_have_a_limit_each(running: Running) -> None:
    padding = b"a: " + b"x" * (LIMITS.header_bytes // 2) + b"\r\n\r\n"
    with running.connect() as connection:
        for _ in range(20):
            connection.sendall(HOST + padding)
            assert connection.recv(4096).startswith(b"HTTP/1.1 200")


def test_requests_that_nobody_waits_for_answers_to_are_few(running: Running) -> None:
    running.said((HOST + b"\r\n") * 2_000 + HOST + b"Connection: close\r\n\r\n")
    if running.protocol is Httptools:  # h11 does not parse a request before the one in front of it is answered
        assert len(running.seen) <= 2 * connections.PIPELINED_MAX
    assert running.status() == b"200"


def test_idle_connections_make_room_the_oldest_first(running: Running) -> None:
    held = [running.connect() for _ in range(3 * LIMITS.connections)]
    try:
        for _ in range(5):
            assert running.status() == b"200"
        assert running.protocol.registry.total <= LIMITS.connections
        assert held[0].recv(1) == b"", "the oldest is open"
        held[-1].sendall(HOST + b"\r\n")
        assert held[-1].recv(4096).startswith(b"HTTP/1.1 200")
    finally:
        for one in held:
            one.close()
    until = time.monotonic() + 5
    while running.protocol.registry.total and time.monotonic() < until:
        time.sleep(0.02)
    assert running.protocol.registry.total == 0


@pytest.mark.parametrize(
    "begun",
    [b"GET / HT", HOST, b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nx", CHUNKED],
    ids=["line", "headers", "body", "chunks"],
)
def test_connections_that_do_not_finish_a_request_make_room_too(running: Running, begun: bytes) -> None:
    held = [running.connect() for _ in range(LIMITS.connections)]
    try:
        for one in held:
            one.sendall(begun)
        time.sleep(0.2)
        assert running.status() == b"200"
    finally:
        for one in held:
            one.close()


class Fake(LimitedConnection):
    def __init__(self, address: str, is_waiting: bool = True) -> None:
        self.address, self._is_waiting, self.dropped = address, is_waiting, False

    @property
    def is_waiting(self) -> bool:
        return self._is_waiting

    def drop(self) -> None:
        self.dropped = True
        self.registry.leave(self)


def test_who_holds_the_most_gives_way_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LimitedConnection, "registry", connections.OpenConnections(10, 8), raising=False)
    registry = LimitedConnection.registry
    early, many = Fake("192.0.2.1"), [Fake("192.0.2.2") for _ in range(8)]
    last = Fake("192.0.2.3")
    assert not any(registry.enter(one) for one in (early, *many, last))
    newcomer = Fake("192.0.2.4")
    assert not registry.enter(newcomer)
    assert many[0].dropped
    assert not early.dropped
    ninth = Fake("192.0.2.2")
    assert not registry.enter(ninth)
    assert many[1].dropped, "an address that has its share makes room of its own"
    assert registry.total == 10


def test_nobody_whose_request_is_being_answered_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LimitedConnection, "registry", connections.OpenConnections(3, 3), raising=False)
    registry = LimitedConnection.registry
    busy = [Fake("192.0.2.1", is_waiting=False) for _ in range(3)]
    assert not any(registry.enter(one) for one in busy)
    assert registry.enter(Fake("192.0.2.9")), "there was no room"
    assert registry.total == 3


class Met(Fake):
    """A connection as uvicorn's protocol makes it known, from an address of the network."""

    def __init__(self, peer: str) -> None:
        super().__init__("")
        self.client = (peer, 1)
        base = type("Base", (), {"connection_made": lambda _self, _transport: None})
        known = {"client": self.client, "_set_timer": lambda _self: None, "is_waiting": False}
        made = type("Made", (LimitedConnection, base), known)()
        made.connection_made(type("Transport", (), {"abort": lambda _self: setattr(self, "dropped", True)})())
        self.address, self.is_proxy = made.address, made.is_proxy


@pytest.mark.parametrize(
    ("stated", "peer", "is_proxy"),
    [
        ("10.0.0.1", "10.0.0.1", True),
        ("10.0.0.0/8", "10.9.9.9", True),
        ("10.0.0.1", "::ffff:10.0.0.1", True),
        ("2001:db8::1", "2001:db8::1", True),
        ("*", "192.0.2.1", True),
        ("10.0.0.1", "10.0.0.2", False),
        ("localhost", "127.0.0.1", False),
    ],
)
def test_proxies_stand_for_many_callers(
    monkeypatch: pytest.MonkeyPatch, stated: str, peer: str, is_proxy: bool
) -> None:
    monkeypatch.setattr(LimitedConnection, "registry", connections.OpenConnections(100, 2), raising=False)
    monkeypatch.setattr(LimitedConnection, "proxies", connections.Proxies((stated,)), raising=False)
    held = [Met(peer) for _ in range(9)]
    assert {one.is_proxy for one in held} == {is_proxy}
    if is_proxy:
        assert not any(LimitedConnection.registry.enter(one) for one in held)
        assert LimitedConnection.registry.total == 2 * len(held), "those that uvicorn made are there as well"


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("::1", "::2", False),
    ],
)
def test_an_ipv6_network_is_one_address(monkeypatch: pytest.MonkeyPatch, one: str, other: str, is_same: bool) -> None:
    monkeypatch.setattr(LimitedConnection, "registry", connections.OpenConnections(100, 2), raising=False)
    monkeypatch.setattr(LimitedConnection, "proxies", connections.Proxies(()), raising=False)
    assert (Met(one).address == Met(other).address) is is_same


@pytest.mark.parametrize(
    ("soft", "hard", "expected"), [(1024, 1024, 768), (200, 200, 100), (1024, 4096, 1000), (-1, -1, 1000)]
)
def test_connections_stay_below_the_limit_on_open_files(
    monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, expected: int
) -> None:
    given = {"limits": (soft, hard)}
    monkeypatch.setattr(resource, "getrlimit", lambda _which: given["limits"])
    monkeypatch.setattr(resource, "setrlimit", lambda _which, limits: given.update(limits=limits))
    assert connections_within(ServerLimits(connections=1000)) == expected
    assert expected < given["limits"][0] or soft == resource.RLIM_INFINITY


@pytest.mark.parametrize("is_known", [False, True], ids=["stranger", "another host"])
def test_who_is_refused_before_the_body_was_read_gets_one_answer(tmp_path: Path, is_known: bool) -> None:
    """The rest of the body is not taken for headers that are too long, which would be a second answer."""

    def require_known(_scope: Any) -> None:
        if not is_known:
            raise NotKnown("say who you are")

    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError("the application saw the request")

    Httptools.limit(LIMITS)
    limits = RequestLimits(app, Settings(folder=tmp_path, limits=LIMITS), require_known)
    with running_server(limits, Httptools) as made:
        host = b"elsewhere.example" if is_known else b"localhost"
        size = 4 * LIMITS.header_bytes
        with made.connect() as connection:
            connection.sendall(b"POST / HTTP/1.1\r\nHost: %b\r\nContent-Length: %d\r\n\r\nx" % (host, size))
            answer = connection.recv(65_536)
            assert answer[9:12] == (b"421" if is_known else b"401")
            try:
                connection.sendall(b"x" * (size - 1))
                while more := connection.recv(65_536):
                    answer += more
            except (ConnectionResetError, BrokenPipeError):
                pass
        assert answer.count(b"HTTP/1.1") == 1
        assert b"connection: close" in answer.lower()
