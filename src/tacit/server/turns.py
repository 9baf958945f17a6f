"""Fair turns: how many questions run at once, how many of one person, and how many may wait.

Promise: whoever waits gets the next free place before anybody gets two in a row, whatever number of questions others
have put into the queue; nobody has more than her share running while others wait or not; a queue that is full says so
at once. Places are those of one process; several processes have each their own. `FairThreads` runs work in threads of
its own by such turns, so that it takes none of the threads that answer light requests.
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
class Places:
    """How many questions run and wait."""

    running: int
    running_each: int
    waiting: int
    waiting_each: int


class Turns:
    """Who runs and who waits, in one event loop."""

    def __init__(self, places: Places) -> None:
        self.places = places
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
        if self._has_place(person) and not self._waiting.get(person):
            self._running[person] += 1
            return
        mine = len(self._waiting.get(person, ()))
        if mine >= self.places.waiting_each:
            raise TooManyAtOnce(
                f"{mine} requests of yours wait already; ask again when one of them is answered", retry_after_s=1.0
            )
        if self.waiting >= self.places.waiting:
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
        """Give free places to those who wait, each person in her turn."""
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
                    break

    def _has_place(self, person: str) -> bool:
        return self.running < self.places.running and self._running[person] < self.places.running_each

    def _forget(self, person: str, ready: asyncio.Future[None]) -> None:
        queue = self._waiting.get(person)
        if queue is not None and ready in queue:
            queue.remove(ready)
            if not queue:
                del self._waiting[person]


class FairThreads:
    """Threads of their own for work that takes a while, given out in fair turns."""

    def __init__(self, places: Places, name: str) -> None:
        self.turns = Turns(places)
        self._threads = ThreadPoolExecutor(places.running, thread_name_prefix=name)

    async def run(self, person: str, work: Callable[[], T], gone: Callable[[], Awaitable[None]]) -> T:
        """Return what `work` returns, when it is the person's turn; Cancelled if `gone` returns before that."""
        is_begun = asyncio.Event()

        async def in_turn() -> T:
            async with self.turns.turn(person):
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
