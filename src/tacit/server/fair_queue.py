"""A fair queue: how many questions run at once, how many of one person, and how many may wait.

Promise: people are served round robin, so nobody gets two slots before everyone who waits got one; a person has at most
their share of the slots; a full queue raises at once. Limits are those of one process; several processes have each
their own. `FairThreads` runs work in a thread pool behind such a queue, apart from the threads of light requests.
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
    """How many questions run and wait, in all and of one person."""

    running: int
    running_each: int
    waiting: int
    waiting_each: int


class FairQueue:
    """Slots that are handed out round robin by person, in one event loop."""

    def __init__(self, limits: QueueLimits) -> None:
        self.limits = limits
        self._running: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @property
    def running(self) -> int:
        """How many questions run."""
        return self._running.total()

    @property
    def waiting(self) -> int:
        """How many questions wait."""
        return sum(map(len, self._waiting.values()))

    @asynccontextmanager
    async def turn(self, person: str) -> AsyncIterator[None]:
        """Wait for a place, and hold it while the block lasts."""
        await self._enter(person)
        try:
            yield
        finally:
            self._leave(person)

    async def _enter(self, person: str) -> None:
        if self._has_place(person):  # then nobody of that name waits: a free place goes to the next at once
            self._running[person] += 1
            return
        mine = len(self._waiting.get(person, ()))
        if mine >= self.limits.waiting_each:
            raise TooManyAtOnce(
                f"{mine} requests of yours wait already; ask again when one of them is answered", retry_after_s=1.0
            )
        if self.waiting >= self.limits.waiting:
            raise QueueFull("as many requests wait as the server lets wait; ask again in a moment", retry_after_s=2.0)
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(person, deque()).append(ready)
        try:
            await ready
        except asyncio.CancelledError:
            if ready.done() and not ready.cancelled():
                self._leave(person)  # the place came at the same moment
            else:
                self._forget(person, ready)
            raise

    def _leave(self, person: str) -> None:
        self._running[person] -= 1
        if not self._running[person]:
            del self._running[person]
        self._let_in()

    def _let_in(self) -> None:
        """Give free slots to those who wait, round robin by person."""
        for person in list(self._waiting):
            while self._waiting.get(person) and self._has_place(person):
                ready = self._waiting[person].popleft()
                if self._waiting[person]:
                    self._waiting.move_to_end(person)
                else:
                    del self._waiting[person]
                if not ready.done():
                    self._running[person] += 1
                    ready.set_result(None)

    def _has_place(self, person: str) -> bool:
        return self.running < self.limits.running and self._running[person] < self.limits.running_each

    def _forget(self, person: str, ready: asyncio.Future[None]) -> None:
        queue = self._waiting.get(person)
        if queue is not None and ready in queue:
            queue.remove(ready)
            if not queue:
                del self._waiting[person]


class FairThreads:
    """A thread pool behind a fair queue, for work that takes a while."""

    def __init__(self, limits: QueueLimits, name: str) -> None:
        self.queue = FairQueue(limits)
        self._threads = ThreadPoolExecutor(limits.running, thread_name_prefix=name)

    async def run(self, person: str, work: Callable[[], T], gone: Callable[[], Awaitable[None]]) -> T:
        """Return what `work` returns, when it is the person's turn; Cancelled if `gone` returns before that."""
        is_begun = asyncio.Event()

        async def in_turn() -> T:
            async with self.queue.turn(person):
                is_begun.set()
                return await asyncio.get_running_loop().run_in_executor(self._threads, work)

        task, leaving = asyncio.create_task(in_turn()), asyncio.ensure_future(gone())
        try:
            await asyncio.wait({task, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not (task.done() or is_begun.is_set()):
                raise Cancelled("the caller is gone, and what was asked for had not begun")
            return await task
        finally:
            leaving.cancel()
            if not is_begun.is_set():
                task.cancel()

    def close(self) -> None:
        """End the threads, each after the work that it is at; nothing more is begun."""
        self._threads.shutdown(wait=False, cancel_futures=True)
