"""Threads that share a budget: never more than the cap, exactly what fits, and the same price in any order."""

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tacit.ledger import Budget, Ledger, SqliteStore
from tacit.privacy import events
from tacit.privacy.errors import BudgetExceeded, LedgerBusy

THREADS = 64


def in_threads(count: int, work: Callable[[int], None]) -> None:
    """Let threads do something at once, and fail if one of them fails or does not end."""
    errors: list[BaseException] = []
    ready = threading.Barrier(count)

    def run(number: int) -> None:
        try:
            ready.wait(30)
            work(number)
        except BaseException as error:  # shown by the assertion below
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "a thread hangs"
    assert errors == []


@pytest.mark.parametrize("settings", [{"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-6}])
def test_sixty_four_threads_spend_a_budget_in_memory_to_its_last_drop(settings: dict[str, float]) -> None:
    budget, admitted = Budget(**settings), [0] * THREADS

    def work(number: int) -> None:
        while True:
            try:
                budget.charge(events.Laplace(0.01))
            except BudgetExceeded:
                return
            admitted[number] += 1

    in_threads(THREADS, work)
    alone = Budget(**settings)
    for _ in range(sum(admitted)):
        alone.charge(events.Laplace(0.01))
    with pytest.raises(BudgetExceeded):
        alone.charge(events.Laplace(0.01))
    assert sum(admitted) >= 100
    assert budget._totals == alone._totals


def test_sixty_four_threads_spend_a_durable_budget_to_its_last_drop(tmp_path: Path) -> None:
    admitted = [0] * THREADS
    with Ledger.open(tmp_path) as ledger:
        ledger.create_budget("visits", epsilon=1.0)
        ledger.create_cap("visits", "ana", epsilon=1.0)

        def work(number: int) -> None:
            while True:
                try:
                    ledger.commit(ledger.reserve("visits", events.Laplace(0.01), analyst="ana"))
                except BudgetExceeded:
                    return
                admitted[number] += 1

        in_threads(THREADS, work)
        assert sum(admitted) == 100
        assert ledger.reservations() == []
        ledger.verify(full=True)


def test_the_order_in_which_threads_come_does_not_change_the_price(tmp_path: Path) -> None:
    charges = [events.Laplace(0.001 * (1 + number)) for number in range(12)]
    charges += [events.Gaussian(100 + number) for number in range(12)]
    totals = []
    for run in range(3):
        with Ledger.open(tmp_path / str(run)) as ledger:
            ledger.create_budget("visits", epsilon=1.0, delta=1e-6)
            in_threads(len(charges), lambda number, ledger=ledger: ledger.reserve("visits", charges[number]))
            totals.append(ledger.budget("visits")._read()[1])
    assert totals[0] == totals[1] == totals[2]


def test_two_who_create_the_same_ledger_at_once_share_it(tmp_path: Path) -> None:
    opened: list[Ledger] = []
    in_threads(8, lambda number: opened.append(Ledger.open(tmp_path / "clinic")))
    opened[0].create_budget("visits", epsilon=1.0)
    for ledger in opened:
        ledger.reserve("visits", events.Laplace(0.1))
    assert opened[-1].budget("visits").spent().epsilon == pytest.approx(0.8)
    for ledger in opened:
        ledger.close()
    assert sorted(os.listdir(tmp_path / "clinic")) == ["ledger.head", "ledger.sqlite"], "nothing half-made is left"


def test_whoever_waits_too_long_for_the_lock_is_told_and_charged_nothing(tmp_path: Path) -> None:
    with (
        Ledger.open(SqliteStore(tmp_path)) as holder,
        Ledger.open(SqliteStore(tmp_path, busy_timeout_s=0.1)) as waiting,
    ):
        holder.create_budget("visits", epsilon=1.0)
        with holder._store.transaction(), pytest.raises(LedgerBusy, match=r"longer than 0\.1 s: nothing was charged"):
            waiting.reserve("visits", events.Laplace(0.1))
        waiting.reserve("visits", events.Laplace(0.1))
        assert holder.budget("visits").spent().epsilon == 0.1


def test_nobody_is_blocked_between_a_reservation_and_its_commit(tmp_path: Path) -> None:
    with Ledger.open(tmp_path) as slow, Ledger.open(SqliteStore(tmp_path, busy_timeout_s=0.1)) as quick:
        slow.create_budget("visits", epsilon=1.0)
        held = slow.reserve("visits", events.Laplace(0.1))
        quick.commit(quick.reserve("visits", events.Laplace(0.1)))
        slow.commit(held)
        assert quick.reservations() == []
