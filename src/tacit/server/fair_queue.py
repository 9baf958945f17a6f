"""A fair queue: slots handed out round robin by person, with limits on running and waiting requests.

Promise: no person gets a second slot before every other waiting person got one; a person holds a limited number of
slots; a full queue raises at once. The limits are those of one process. `FairThreads` is a thread pool behind such a
queue, separate from the threads of light requests.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

from tacit.privacy.errors import Cancelled, QueueFull, TooManyAtOnce

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """Requests that run and wait, in total and of one person."""

    running: int
    running_each: int
    waiting: int
    waiting_each: int


class FairQueue:
    """Hands out slots round robin by person, in one event loop."""

    def __init__(self, limits: QueueLimits) -> None:
        self.limits = limits
        self._running: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @property
    def running(self) -> int:
        """Slots in use."""
        return self._running.total()

    @property
    def waiting(self) -> int:
        """Requests that wait for a slot."""
        return sum(map(len, self._waiting.values()))

    @asynccontextmanager
    async def slot(self, person: str) -> AsyncIterator[None]:
        """Wait for a slot, and hold it during the block."""
        await self._enter(person)
        try:
            yield
        finally:
            self._leave(person)

    async def _enter(self, person: str) -> None:
        if self._has_slot(person):  # no request of that person waits: free slots are handed out at once
            self._running[person] += 1
            return
        mine = len(self._waiting.get(person, ()))
        if mine >= self.limits.waiting_each:
            raise TooManyAtOnce(
                f"{mine} of your requests are waiting already; retry when one of them is answered", retry_after_s=1.0
            )
        if self.waiting >= self.limits.waiting:
            raise QueueFull("the queue of the server is full; retry in a moment", retry_after_s=2.0)
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(person, deque()).append(ready)
        try:
            await ready
        except asyncio.CancelledError:
            if ready.done() and not ready.cancelled():
                self._leave(person)  # the slot was handed out at the same moment
            else:
                self._remove(person, ready)
            raise

    def _leave(self, person: str) -> None:
        self._running[person] -= 1
        if not self._running[person]:
            del self._running[person]
        self._hand_out()

    def _hand_out(self) -> None:
        """Hand free slots to waiting requests, round robin by person."""
        for person in list(self._waiting):
            while self._waiting.get(person) and self._has_slot(person):
                ready = self._waiting[person].popleft()
                if self._waiting[person]:
                    self._waiting.move_to_end(person)
                else:
                    del self._waiting[person]
                if not ready.done():
                    self._running[person] += 1
                    ready.set_result(None)

    def _has_slot(self, person: str) -> bool:
        return self.running < self.limits.running and self._running[person] < self.limits.running_each

    def _remove(self, person: str, ready: asyncio.Future[None]) -> None:
        queue = self._waiting.get(person)
        if queue is not None and ready in queue:
            queue.remove(ready)
            if not queue:
                del self._waiting[person]


class FairThreads:
    """A thread pool behind a fair queue, for work that takes long."""

    def __init__(self, limits: QueueLimits, name: str) -> None:
        self.queue = FairQueue(limits)
        self._threads = ThreadPoolExecutor(limits.running, thread_name_prefix=name)

    async def run(self, person: str, work: Callable[[], T], disconnected: Callable[[], Awaitable[None]]) -> T:
        """Return what `work` returns; raise Cancelled if `disconnected` returns before the work has begun."""
        is_begun = asyncio.Event()

        async def in_slot() -> T:
            async with self.queue.slot(person):
                is_begun.set()
                return await asyncio.get_running_loop().run_in_executor(self._threads, work)

        task, leaving = asyncio.create_task(in_slot()), asyncio.ensure_future(disconnected())
        try:
            await asyncio.wait({task, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not (task.done() or is_begun.is_set()):
                raise Cancelled("the client disconnected before the request was begun")
            return await task
        finally:
            leaving.cancel()
            if not is_begun.is_set():
                task.cancel()

    def close(self) -> None:
        """Stop the threads after their current work; nothing more is begun."""
        self._threads.shutdown(wait=False, cancel_futures=True)
