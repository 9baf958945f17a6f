"""A running total in memory uses the noise of a step once, whatever threads and interrupts do."""

import contextlib
import copy
import math
import os
import pickle
import threading
from typing import Any
from unittest.mock import patch

import pytest

import tacit
from tacit.mechanisms.simulation import SeededSource
from tacit.privacy.errors import InvalidInput, WrongType
from tacit.stats import RunningCount
from tacit.stats.prefix_sums import SquareRootSums, TreeSums

COSTS: dict[str, Any] = {"tree": {"epsilon": 1.0}, "root": {"rho": 0.5}}
costs = pytest.mark.parametrize("cost", COSTS.values(), ids=COSTS)


def begun(cost: Any, budget: tacit.Budget | None = None) -> RunningCount:
    paying = budget or tacit.Budget(epsilon=9.0, delta=1e-6)
    return RunningCount(8, budget=paying, source=SeededSource(3), **cost)


def totals(run: RunningCount) -> list[Any]:
    return [row["value"] for row in run.rows]


def interrupted_once(real: Any) -> Any:
    left = [KeyboardInterrupt()]

    def call(*given: Any) -> Any:
        if left:
            raise left.pop()
        return real(*given)

    return call


@costs
def test_threads_that_tell_steps_at_once_tell_one_after_another(cost: Any) -> None:
    budget = tacit.Budget(epsilon=9.0, delta=1e-6)
    run = begun(cost, budget)
    together = threading.Barrier(2)
    kind = type(run._sums)
    measure = kind.measure
    told: list[int] = []

    def meeting(self: Any, value: int) -> int:
        with contextlib.suppress(threading.BrokenBarrierError):
            together.wait(0.2)
        return measure(self, value)

    with patch.object(kind, "measure", meeting):
        threads = [threading.Thread(target=lambda: told.append(run.add(5).step)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(told) == [1, 2]
    assert totals(RunningCount.from_bytes(run.to_bytes(), budget=budget)) == totals(run)


@costs
def test_a_step_that_was_interrupted_was_not_told(cost: Any) -> None:
    run, plain = begun(cost), begun(cost)
    for one in (run, plain):
        one.add(3)
    owner, name = {TreeSums: (math, "fsum"), SquareRootSums: (SquareRootSums, "_keep")}[type(run._sums)]
    with patch.object(owner, name, interrupted_once(getattr(owner, name))), pytest.raises(KeyboardInterrupt):
        run.add(4)
    assert run.steps == 1
    for one in (run, plain):
        one.add(6)
    assert totals(run) == totals(plain)
    assert run._records == plain._records


@costs
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_running_total_cannot_be_copied_by_accident(cost: Any, copied: Any) -> None:
    with pytest.raises(WrongType, match="to_bytes"):
        copied(begun(cost))


def test_a_forked_process_cannot_go_on_with_a_running_total() -> None:
    run = begun(COSTS["tree"])
    child = os.fork()
    if not child:
        try:
            run.add(5)
        except InvalidInput:
            os._exit(7)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert run.add(5).step == 1
