"""FairQueue are fair: nobody gets two places in a row while another waits, and a full queue says so at once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tacit.privacy.errors import Cancelled, QueueFull, TooManyAtOnce
from tacit.server.fair_queue import FairQueue, FairThreads, QueueLimits


def run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(work(), timeout=10))


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def test_one_who_floods_waits_for_each_of_the_others() -> None:
    async def work() -> None:
        turns, order = FairQueue(QueueLimits(1, 1, 1_000, 1_000)), []

        async def ask(person: str) -> None:
            async with turns.slot(person):
                order.append(person)
                await asyncio.sleep(0)

        flood = [asyncio.create_task(ask("mallory")) for _ in range(50)]
        await settled()
        others = [asyncio.create_task(ask(name)) for name in ("ana", "bo")]
        await asyncio.gather(*flood, *others)
        first = {name: order.index(name) for name in ("ana", "bo")}
        already = order[: min(first.values())].count("mallory")
        assert order[already : already + 4].count("mallory") <= 2
        assert len(order) == 52

    run(work)


def test_nobody_has_more_than_her_share_running_though_places_are_free() -> None:
    async def work() -> None:
        turns, gate = FairQueue(QueueLimits(4, 2, 10, 10)), asyncio.Event()

        async def ask(person: str) -> None:
            async with turns.slot(person):
                await gate.wait()

        tasks = [asyncio.create_task(ask("ana")) for _ in range(4)]
        await settled()
        assert (turns.running, turns.waiting) == (2, 2)
        tasks += [asyncio.create_task(ask("bo")) for _ in range(2)]
        await settled()
        assert (turns.running, turns.waiting) == (4, 2)
        gate.set()
        await asyncio.gather(*tasks)
        assert (turns.running, turns.waiting) == (0, 0)

    run(work)


def test_full_queues_refuse_at_once_each_with_its_own_error() -> None:
    async def work() -> None:
        turns, gate = FairQueue(QueueLimits(1, 1, 3, 2)), asyncio.Event()

        async def ask(person: str) -> None:
            async with turns.slot(person):
                await gate.wait()

        tasks = [asyncio.create_task(ask("ana")) for _ in range(3)]
        await settled()
        with pytest.raises(TooManyAtOnce):
            await ask("ana")
        tasks.append(asyncio.create_task(ask("bo")))
        await settled()
        with pytest.raises(QueueFull):
            await ask("cy")
        gate.set()
        await asyncio.gather(*tasks)

    run(work)


def test_who_goes_away_leaves_her_place_to_the_next() -> None:
    async def work() -> None:
        turns, gate = FairQueue(QueueLimits(1, 1, 10, 10)), asyncio.Event()
        answered: list[str] = []

        async def ask(person: str) -> None:
            async with turns.slot(person):
                await gate.wait()
                answered.append(person)

        first, gone, next_one = [asyncio.create_task(ask(name)) for name in ("ana", "bo", "cy")]
        await settled()
        gone.cancel()
        await settled()
        assert turns.waiting == 1
        first.cancel()
        await settled()
        assert (turns.running, turns.waiting) == (1, 0)
        gate.set()
        await next_one
        assert answered == ["cy"]
        assert turns.running == 0

    run(work)


def test_a_place_that_comes_while_one_goes_away_is_not_lost() -> None:
    async def work() -> None:
        turns = FairQueue(QueueLimits(1, 1, 10, 10))

        async def ask() -> None:
            async with turns.slot("bo"):
                pass

        await turns._enter("ana")
        waiter = asyncio.create_task(ask())
        await settled()
        turns._leave("ana")  # the place is bo's now, and she has not run yet
        waiter.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiter
        assert turns.running == 0
        await ask()

    run(work)


async def never() -> None:
    await asyncio.Event().wait()


def test_threads_are_shared_by_turns_and_a_full_queue_refuses() -> None:
    async def work() -> None:
        threads, gate = FairThreads(QueueLimits(2, 1, 10, 2), "test"), threading.Event()
        mine = [asyncio.create_task(threads.run("mallory", gate.wait, never)) for _ in range(3)]
        await settled()
        with pytest.raises(TooManyAtOnce):
            await threads.run("mallory", gate.wait, never)
        assert await threads.run("ana", threading.active_count, never) > 0, "another's work waits for hers"
        gate.set()
        assert await asyncio.gather(*mine) == [True] * 3

    run(work)


def test_who_is_gone_before_her_turn_is_not_worked_for() -> None:
    async def work() -> None:
        threads, gate, done = FairThreads(QueueLimits(1, 1, 10, 10), "test"), threading.Event(), list[str]()
        left = asyncio.Event()

        async def gone() -> None:
            await left.wait()

        first = asyncio.create_task(threads.run("ana", gate.wait, gone))
        second = asyncio.create_task(threads.run("ana", lambda: done.append("second"), gone))
        await settled()
        left.set()
        with pytest.raises(Cancelled):
            await second
        gate.set()
        assert await first, "what had begun is finished"
        assert (done, threads.queue.running, threads.queue.waiting) == ([], 0, 0)

    run(work)


def test_those_who_wait_are_served_one_after_another() -> None:
    async def work() -> None:
        turns, order, gate = FairQueue(QueueLimits(1, 1, 10, 10)), list[str](), asyncio.Event()

        async def ask(person: str) -> None:
            async with turns.slot(person):
                order.append(person)
                await gate.wait()

        tasks = [asyncio.create_task(ask(name)) for name in ("mallory", "mallory", "mallory", "mallory", "ana", "bo")]
        await settled()
        gate.set()
        await asyncio.gather(*tasks)
        assert order == ["mallory", "mallory", "ana", "bo", "mallory", "mallory"]
        assert (turns._running, turns._waiting) == ({}, {}), "those who are gone are remembered"

    run(work)


def test_a_place_goes_past_those_who_went_away_at_the_same_moment() -> None:
    async def work() -> None:
        turns, answered = FairQueue(QueueLimits(1, 1, 10, 10)), list[int]()

        async def ask(number: int) -> None:
            async with turns.slot("ana"):
                answered.append(number)

        await turns._enter("bo")
        first, second = (asyncio.create_task(ask(number)) for number in (1, 2))
        await settled()
        first.cancel()
        turns._leave("bo")  # before the one that was cancelled could take itself off the queue
        await second
        assert first.cancelled()
        assert (answered, turns.running, turns._waiting) == ([2], 0, {})

    run(work)


def test_who_waits_and_goes_away_leaves_nothing_behind() -> None:
    async def work() -> None:
        turns = FairQueue(QueueLimits(1, 1, 10, 10))
        await turns._enter("bo")
        waiter = asyncio.create_task(turns._enter("ana"))
        await settled()
        waiter.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiter
        assert (turns._waiting, dict(turns._running)) == ({}, {"bo": 1})

    run(work)


def test_nobody_listens_any_longer_for_a_caller_whose_work_is_done() -> None:
    async def work() -> None:
        threads, listening = FairThreads(QueueLimits(1, 1, 10, 10), "test"), list[str]()

        async def gone() -> None:
            try:
                await never()
            finally:
                listening.append("ended")

        assert await threads.run("ana", lambda: 7, gone) == 7
        await settled()
        assert listening == ["ended"]
        threads.close()
        with pytest.raises(RuntimeError):
            await threads.run("ana", lambda: 7, gone)

    run(work)


def test_work_that_has_begun_is_finished_though_its_request_is_cancelled() -> None:
    """The place is held until the thread is free, or the next one would wait in the pool and not in her turn."""

    async def work() -> None:
        threads, gate = FairThreads(QueueLimits(1, 1, 10, 10), "test"), threading.Event()
        first = asyncio.create_task(threads.run("ana", lambda: gate.wait(10), never))
        while not threads.queue.running:
            await asyncio.sleep(0)
        await settled()
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        held = threads.queue.running
        gate.set()
        assert held == 1, "a place was given away while its thread was at work"
        threads.close()

    run(work)
