"""Clients with persistent connections: plain HTTP/1.1 over sockets, which need little processor time."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Body = Callable[[int], dict[str, Any]]


@dataclass(frozen=True)
class Load:
    """Measurements of the clients."""

    seconds: float
    latencies_s: list[float]

    @property
    def per_second(self) -> float:
        """Requests per second."""
        return len(self.latencies_s) / self.seconds

    def quantile_ms(self, share: float) -> float:
        """Return a quantile of the response times."""
        ordered = sorted(self.latencies_s)
        return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]


class Caller:
    """Requests to one server."""

    def __init__(self, port: int, token: str) -> None:
        self._port, self._token = port, token
        self._number = 0

    def measure(self, path: str, body: Body, clients: int, *, seconds: float = 0.0, requests: int = 0) -> Load:
        """Run clients that each send one request after another, for some seconds or a number of requests."""
        return asyncio.run(self._measure(path, body, clients, seconds, requests))

    async def _measure(self, path: str, body: Body, clients: int, seconds: float, requests: int) -> Load:
        latencies: list[float] = []
        started_s = time.perf_counter()

        def goes_on() -> bool:
            return len(latencies) < requests if requests else time.perf_counter() - started_s < seconds

        async def client() -> None:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
            while goes_on():
                asked_s = time.perf_counter()
                await self._ask(reader, writer, path, body)
                latencies.append(time.perf_counter() - asked_s)
            writer.close()

        await asyncio.gather(*(client() for _ in range(clients)))
        return Load(time.perf_counter() - started_s, latencies)

    async def _ask(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str, body: Body) -> None:
        self._number += 1
        content = json.dumps(body(self._number)).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self._token}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        writer.write(head.encode() + content)
        answer = await reader.readuntil(b"\r\n\r\n")
        length = next(line for line in answer.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        text = await reader.readexactly(int(length.partition(b":")[2]))
        if not answer.startswith(b"HTTP/1.1 200"):
            raise SystemExit(f"{path}: {answer[:20]!r} {text[:300]!r}")
