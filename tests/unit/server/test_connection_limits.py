"""Each limit of a connection, by itself: alarms, counted bytes, waiting requests and room, without a network."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import uvicorn
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from tacit.server import connections
from tacit.server.connections import FEED_BYTES, PIPELINED_MAX, LimitedConnection, OpenConnections, Proxies
from tacit.server.middleware import HEADERS_MAX
from tacit.server.settings import ServerLimits

LIMITS = ServerLimits(header_bytes=8192, connections=40, connections_each=3, headers_s=600)
GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n"


class Limited(LimitedConnection, HttpToolsProtocol):
    pass


@pytest.fixture(autouse=True)
def limited() -> Iterator[None]:
    Limited.limit(LIMITS)
    yield
    assert not Limited.registry._by_address, "connections that ended are remembered"


class Transport(asyncio.Transport):
    """Notes what is done to it."""

    def __init__(self, peer: str) -> None:
        super().__init__({"peername": (peer, 1), "sockname": ("127.0.0.1", 2)})
        self.sent, self.done = b"", list[str]()

    def write(self, data: Any) -> None:
        self.sent += bytes(data)

    def close(self) -> None:
        self.done.append("close")

    def abort(self) -> None:
        self.done.append("abort")

    def is_closing(self) -> bool:
        return bool(self.done)

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


class Place:
    """Connections to an application that answers when it is let."""

    def __init__(self) -> None:
        self.gate, self.seen = asyncio.Event(), 0
        self.made: list[Limited] = []
        self._config = uvicorn.Config(self._app, interface="asgi3", lifespan="off", log_config=None)
        self._config.load()

    async def _app(self, _scope: Any, _receive: Any, send: Callable[[Any], Any]) -> None:
        self.seen += 1
        await self.gate.wait()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    def connect(self, peer: str = "192.0.2.1") -> tuple[Limited, Transport]:
        made, transport = Limited(self._config, ServerState(), {}), Transport(peer)
        made.connection_made(transport)
        self.made.append(made)
        return made, transport

    async def answered(self) -> None:
        self.gate.set()
        for _ in range(5):
            await asyncio.sleep(0)
        self.gate.clear()


def run(work: Callable[[Place], Coroutine[Any, Any, None]]) -> None:
    async def whole() -> None:
        place = Place()
        try:
            await work(place)
        finally:
            for one in place.made:
                one.connection_lost(None)

    asyncio.run(asyncio.wait_for(whole(), 30))


def test_the_timer_is_set_for_the_headers_of_each_request_and_never_put_off() -> None:
    async def work(place: Place) -> None:
        one, transport = place.connect()
        first = one._timer
        assert first is not None
        assert first.when() == pytest.approx(asyncio.get_running_loop().time() + LIMITS.headers_s, abs=60)
        one.data_received(GET)
        assert one._timer is first, "bytes put the timer off"
        one.data_received(b"\r\n")
        assert (one._timer, first.cancelled()) == (None, True), "the timer of a request that has come is left"
        await place.answered()
        assert transport.sent.startswith(b"HTTP/1.1 200")
        assert one._timer is None, "who is idle has uvicorn's limit"
        one.data_received(b"G")
        second = one._timer
        assert second is not None, "the second request has no timer"
        one.data_received(b"ET")
        assert one._timer is second
        second._run()
        assert (one._timer, transport.done) == (None, ["close"])

    run(work)


def test_a_timer_closes_neither_who_is_answered_nor_who_is_gone() -> None:
    async def work(place: Place) -> None:
        one, transport = place.connect()
        one.data_received(GET + b"\r\n")
        one._expire()
        assert transport.done == []
        other, gone = place.connect()
        gone.done.append("closed by the caller")
        other._expire()
        assert gone.done == ["closed by the caller"]
        third, _ = place.connect()
        timer = third._timer
        third.connection_lost(None)
        assert timer is not None
        assert timer.cancelled()
        assert third not in third.connections, "uvicorn does not know that it is lost"

    run(work)


@pytest.mark.parametrize(
    ("cycle", "is_paused", "is_waiting"),
    [
        (None, False, True),
        (SimpleNamespace(response_complete=True, more_body=False), False, True),
        (SimpleNamespace(response_complete=False, more_body=True), False, True),
        (SimpleNamespace(response_complete=False, more_body=False), False, False),
        (SimpleNamespace(response_complete=False, more_body=False), True, True),
    ],
    ids=["no request", "answered", "body to come", "being answered", "answer not read"],
)
def test_who_is_to_speak_or_to_read_next_can_be_closed(cycle: Any, is_paused: bool, is_waiting: bool) -> None:
    async def work(place: Place) -> None:
        one, transport = place.connect()
        one.cycle, one.flow = cycle, FlowControl(transport)
        if is_paused:
            one.pause_writing()
        assert one.is_waiting is is_waiting
        one.cycle = None

    run(work)


def test_bytes_of_a_request_are_counted_exactly_however_they_are_cut() -> None:
    async def work(place: Place) -> None:
        for size, is_taken in ((LIMITS.header_bytes, True), (LIMITS.header_bytes + 1, False)):
            for first in (1, 100, FEED_BYTES, size - 1):
                one, transport = place.connect()
                text = GET + b"a: " + b"x" * (size - len(GET) - 7) + b"\r\n\r\n"
                before = place.seen
                one.data_received(text[:first])
                one.data_received(text[first:])
                await asyncio.sleep(0)
                assert (place.seen == before + 1, transport.sent[9:12] != b"431") == (is_taken, is_taken), (size, first)
                assert transport.done == ([] if is_taken else ["close"])
                assert transport.sent.count(b"HTTP/1.1") == (not is_taken)
                one.connection_lost(None)

    run(work)


def test_a_request_behind_another_in_one_piece_is_counted() -> None:
    async def work(place: Place) -> None:
        one, transport = place.connect()
        one.data_received(GET + b"\r\n" + GET + b"a: " + b"x" * (LIMITS.header_bytes + FEED_BYTES) + b"\r\n\r\n")
        await place.answered()
        assert transport.done == ["abort"], "the first is being answered, so nothing is written"
        assert place.seen <= 1

    run(work)


def test_many_headers_are_refused_before_they_end() -> None:
    async def work(place: Place) -> None:
        one, transport = place.connect()
        lines = b"".join(b"a%d: b\r\n" % number for number in range(HEADERS_MAX + 1))
        one.data_received(GET + lines)
        assert (transport.sent[9:12], transport.done, place.seen) == (b"431", ["close"], 0)
        one.data_received(b"\r\n" + GET)
        assert transport.sent.count(b"HTTP/1.1") == 1, "who is refused is still listened to"

    run(work)


def test_trailers_that_are_too_long_end_a_connection_without_a_second_answer() -> None:
    async def work(place: Place) -> None:
        one, transport = place.connect()
        one.data_received(b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n")
        one.data_received(b"a: " + b"x" * LIMITS.header_bytes)
        assert (transport.sent, transport.done) == (b"", ["abort"])
        assert Limited.registry.total == 0, "what was dropped still takes room"

    run(work)


def test_bytes_of_a_body_pay_for_its_framing_and_not_for_later_headers() -> None:
    async def work(place: Place) -> None:
        one, transport = place.connect()
        body = b"x" * 3 * LIMITS.header_bytes
        one.data_received(b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        one.data_received(b"%x\r\n" % len(body) + body + b"\r\n0\r\n")
        assert transport.done == []
        one.data_received(b"a: " + b"x" * LIMITS.header_bytes * 2)
        assert transport.done == ["abort"], "a large body leaves credit for trailers"

    run(work)


def test_requests_wait_up_to_a_number() -> None:
    async def work(place: Place) -> None:
        one, transport = place.connect()
        one.data_received((GET + b"\r\n") * (1 + PIPELINED_MAX))
        assert transport.done == []
        one.data_received(GET + b"\r\n")
        assert transport.done == ["abort"]

    run(work)


def test_an_address_that_has_its_share_closes_the_one_that_was_silent_longest() -> None:
    async def work(place: Place) -> None:
        held = [place.connect() for _ in range(3)]
        held[0][0].data_received(b"G")
        other, _ = place.connect("192.0.2.2")
        assert not any(transport.done for _, transport in held)
        place.connect()
        assert [transport.done for _, transport in held] == [[], ["abort"], []]
        assert Limited.registry.total == 4
        other.connection_lost(None)
        assert Limited.registry.total == 3

    run(work)


def test_who_finds_no_room_is_closed_and_has_no_timer() -> None:
    async def work(place: Place) -> None:
        for _ in range(3):
            place.connect()[0].data_received(GET + b"\r\n")
        one, transport = place.connect()
        assert (transport.done, one._timer) == (["abort"], None)
        one.connection_lost(None)
        assert Limited.registry.total == 3, "who was never taken in is counted out"

    run(work)


def test_a_process_with_little_room_gives_no_address_more_than_that() -> None:
    Limited.limit(ServerLimits(connections=2, connections_each=5))
    assert Limited.registry._most_each == 2
    Limited.limit(LIMITS)
    assert Limited.registry._most_each == 3


def test_when_all_room_is_taken_whoever_holds_the_most_and_waits_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Limited, "registry", OpenConnections(5, 5))

    async def work(place: Place) -> None:
        few = [place.connect("192.0.2.1") for _ in range(2)]
        many = [place.connect("192.0.2.2") for _ in range(3)]
        many[0][0].data_received(GET + b"\r\n")
        place.connect("192.0.2.3")
        assert [transport.done for _, transport in few] == [[], []]
        assert [transport.done for _, transport in many] == [[], ["abort"], []]
        assert Limited.registry.total == 5

    run(work)


@pytest.mark.parametrize(
    ("stated", "peer", "is_proxy"),
    [("10.0.0.1/8", "10.9.9.9", True), ("*", "", True), ("*", "a socket", True), ("10.0.0.1", "", False)],
)
def test_proxies_are_known_by_networks_and_where_all_are_also_without_an_address(
    stated: str, peer: str, is_proxy: bool
) -> None:
    assert (peer in Proxies((stated,))) is is_proxy


@pytest.mark.parametrize(
    ("before", "after"),
    [((-1, -1), (-1, -1)), ((100, -1), (1256, -1)), ((100, 500), (500, 500)), ((2000, -1), (2000, -1))],
)
def test_the_limit_on_open_files_is_raised_as_far_as_needed(
    monkeypatch: pytest.MonkeyPatch, before: tuple[int, int], after: tuple[int, int]
) -> None:
    given = {"limits": before}
    monkeypatch.setattr(connections.resource, "getrlimit", lambda _which: given["limits"])
    monkeypatch.setattr(connections.resource, "setrlimit", lambda _which, limits: given.update(limits=limits))
    connections.connections_within(ServerLimits(connections=1000))
    assert given["limits"] == after
