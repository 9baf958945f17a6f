"""Running totals: one price for all of them, the least noise, and a state to go on with."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit import Budget
from tacit.ledger import Ledger, LedgerBudget
from tacit.mechanisms.simulation import SeededSource
from tacit.privacy.errors import (
    AlreadySettled,
    BudgetExceeded,
    EmptyInput,
    EngineFailed,
    Exhausted,
    InvalidInput,
    OutOfRange,
    TooLarge,
)
from tacit.stats import RunningCount, RunningSum
from tacit.stats.prefix_sums import (
    SquareRootSums,
    TreeSums,
    best_tree,
    digits,
    root_coefficients,
    root_error,
    root_inverse,
    root_length,
    tree_levels,
    tree_spreads,
)


@pytest.fixture
def ledger_budget(tmp_path: Path) -> Iterator[Callable[..., LedgerBudget]]:
    with Ledger.open(tmp_path / "ledger") as ledger:
        yield lambda delta=0.0: ledger.create_budget("visits", 1.0, delta)


def both() -> list[Any]:
    return [pytest.param({"epsilon": 1.0}, 0.0, id="Laplace"), pytest.param({"rho": 0.02}, 1e-6, id="Gaussian")]


def test_the_roots_multiply_to_running_totals() -> None:
    first, second = root_coefficients(300).astype(float), root_inverse(300)
    np.testing.assert_allclose(np.convolve(first, second)[:300], 1.0)
    assert (np.diff(first) <= 0).all()
    assert first[0] == 2**16


def test_neighbouring_first_steps_of_a_unit_move_the_measured_numbers_most() -> None:
    horizon = 8
    first = root_coefficients(horizon)
    columns = np.array([np.r_[np.zeros(at, dtype=np.int64), first[: horizon - at]] for at in range(horizon)])
    for steps in (1, 2, 3, 5):
        worst = max(
            int((columns[list(chosen)].sum(axis=0) ** 2).sum()) for chosen in combinations(range(horizon), steps)
        )
        assert worst <= root_length(horizon, steps) ** 2 <= worst * (1 + 1e-6)


def test_roots_without_noise_give_the_exact_totals() -> None:
    values = [5, 0, 7, 2**33, 1, -3]
    counter = SquareRootSums(8, np.zeros(8, dtype=np.int64), 1.0)
    for value in values:
        counter.measure(value)
    assert [round(counter.total(at)[0]) for at in range(1, 7)] == np.cumsum(values).tolist()


@pytest.mark.parametrize(("branch", "levels"), [(2, 1), (2, 4), (3, 3), (4, 2)])
def test_trees_without_noise_give_the_exact_totals(branch: int, levels: int) -> None:
    horizon = 40
    noises = tuple(np.zeros(horizon // branch**level, dtype=np.int64) for level in range(levels))
    counter = TreeSums(branch, noises, tuple(1.0 + level for level in range(levels)))
    for value in range(horizon):
        counter.measure(value)
    assert [round(counter.total(at)[0], 6) for at in range(1, 41)] == np.cumsum(range(horizon)).tolist()


def test_the_variance_of_a_tree_is_that_of_its_coefficients() -> None:
    """Each unit of noise, alone, shows its coefficient."""
    branch, levels, horizon, variances = 3, 3, 27, (1.0, 2.0, 0.5)
    sizes = [horizon // branch**level for level in range(levels)]
    squares, fourths = np.zeros(horizon), np.zeros(horizon)
    for level, size in enumerate(sizes):
        for node in range(size):
            noises = tuple(np.zeros(one, dtype=np.int64) for one in sizes)
            noises[level][node] = 1
            counter = TreeSums(branch, noises, variances)
            for _ in range(horizon):
                counter.measure(0)
            shares = np.array([counter.total(at)[0] for at in range(1, horizon + 1)])
            squares += shares**2 * variances[level]
            fourths += 3 * shares**4 * variances[level] ** 2
    counter = TreeSums(branch, tuple(np.zeros(one, dtype=np.int64) for one in sizes), variances)
    for _ in range(horizon):
        counter.measure(0)
    stated = np.array([counter.total(at) for at in range(1, horizon + 1)])
    np.testing.assert_allclose(stated[:, 1], squares)
    np.testing.assert_allclose(stated[:, 2], fourths / squares**2)


def test_the_chosen_mechanisms_beat_plain_trees() -> None:
    horizon = 1024
    levels = tree_levels(horizon, 2)
    uses = np.mean([digits(at, 2, levels) for at in range(1, horizon + 1)], axis=0)
    plain = float(uses.sum()) * levels
    assert root_error(horizon, 1) < plain / 5
    branch, shares, error = best_tree(horizon)
    assert error < plain * levels / 4
    assert sum(shares) == pytest.approx(1)
    spreads, _ = tree_spreads(branch, [1 / share**2 for share in shares])
    uses = np.mean([digits(at, branch, len(shares)) for at in range(1, horizon + 1)], axis=0)
    assert float(uses @ spreads) == pytest.approx(error)


@pytest.mark.parametrize(("price", "delta"), both())
def test_all_totals_are_paid_for_at_the_start_and_once(price: Any, delta: float) -> None:
    budget = Budget(1.0, delta)
    counter = RunningCount(20, budget=budget, **price)
    spent = budget.spent().epsilon
    assert spent > 0
    totals = [counter.add(100) for _ in range(20)]
    assert budget.spent().epsilon == spent
    assert abs(totals[-1].value - 2000) < 400
    assert isinstance(totals[0].value, int)
    low, high = totals[-1].interval(0.95)
    assert low < high
    assert [row["value"] for row in counter.rows] == [total.value for total in totals]
    assert counter.last == totals[-1]
    with pytest.raises(Exhausted, match="20 steps"):
        counter.add(1)
    with pytest.raises(BudgetExceeded):
        RunningCount(20, budget=budget, epsilon=1.0)
    assert "Running count over 20 steps" in counter.card
    assert counter.cost.epsilon > 0


def test_more_steps_of_a_unit_cost_more_noise() -> None:
    def error(**stated: Any) -> float:
        return RunningCount(64, budget=Budget(1.0, 1e-6), **stated).expected_error

    alone = error(epsilon=0.5)
    assert error(epsilon=0.5, per_step=3) == pytest.approx(9 * alone, rel=1e-6)
    many = error(rho=0.01, steps_per_unit=4)
    assert 4 < many / error(rho=0.01) < 16  # less than by the triangle inequality
    assert RunningCount(64, budget=Budget(1.0), epsilon=0.5, steps_per_unit=4).expected_error == pytest.approx(
        16 * RunningCount(64, budget=Budget(1.0), epsilon=0.5).expected_error
    )


def test_sums_are_of_values_within_bounds() -> None:
    budget = Budget(1000.0)
    counter = RunningSum(10, bounds=(0.0, 2.5), epsilon=900.0, budget=budget)
    assert counter.add([1.0, 2.0, 9.0]).value == pytest.approx(5.5, abs=0.1)
    assert counter.add([]).value == pytest.approx(5.5, abs=0.1)
    assert counter.add([None, 1.0]).value == pytest.approx(6.5, abs=0.1)
    again = RunningSum.from_bytes(counter.to_bytes(), budget=budget)
    assert again.last == counter.last
    assert "values between 0 and 2.5" in again.card
    assert counter.expected_error < 0.01
    with pytest.raises(InvalidInput, match="running sum"):
        RunningCount.from_bytes(counter.to_bytes(), budget=budget)


@pytest.mark.parametrize(("price", "delta"), both())
def test_a_state_goes_on_with_the_same_noise_and_costs_nothing(price: Any, delta: float) -> None:
    budget = Budget(1.0, delta)
    counter = RunningCount(30, budget=budget, **price)
    for _ in range(7):
        counter.add(11)
    state = counter.to_bytes()
    spent = budget.spent()
    again = RunningCount.from_bytes(state, budget=budget)
    assert again.last == counter.last
    again.add(5)
    assert RunningCount.from_bytes(again.to_bytes(), budget=budget).rows == again.rows
    assert budget.spent() == spent


def test_a_step_that_is_told_again_is_not_counted_again() -> None:
    counter = RunningCount(5, budget=Budget(1.0), epsilon=1.0)
    first = counter.add(10, step=0)
    second = counter.add(20, step=1)
    assert counter.add(99, step=0) == first
    assert counter.add(99, step=1) == second
    assert counter.steps == 2
    with pytest.raises(InvalidInput, match="the next step is 2"):
        counter.add(1, step=3)


@pytest.mark.parametrize(("price", "delta"), both())
def test_a_file_is_gone_on_with_by_one_at_a_time(
    ledger_budget: Callable[..., LedgerBudget], price: Any, delta: float, tmp_path: Path
) -> None:
    path, budget = tmp_path / "states" / "visits.state", ledger_budget(delta)
    path.parent.mkdir()
    counter = RunningCount(9, budget=budget, path=path, **price)
    total = counter.add(10)
    assert path.read_bytes() == counter.to_bytes()
    assert oct(os.stat(path).st_mode)[-3:] == "600"
    with pytest.raises(InvalidInput, match="another process"):
        RunningCount.open(path, budget=budget)
    with pytest.raises(InvalidInput, match="exists already"):
        RunningCount(9, budget=budget, epsilon=1.0, path=path)
    counter.close()
    with RunningCount.open(path, budget=budget) as again:
        assert again.last == total
        again.add(3)
    assert [one.name for one in path.parent.iterdir()] == ["visits.state"]


def test_what_is_no_state_is_refused(ledger_budget: Callable[..., LedgerBudget], tmp_path: Path) -> None:
    path, budget = tmp_path / "visits.state", ledger_budget()
    with RunningCount(9, budget=budget, epsilon=1.0, path=path) as counter:
        for _ in range(3):
            counter.add(1)
    state = path.read_bytes()
    for cut in (5, 28):  # what was cut off was released, as the ledger knows
        with pytest.raises(AlreadySettled, match="has 2 steps"):
            RunningCount.from_bytes(state[:-cut], budget=budget)
    for place in (30, 200, len(state) - 60):
        broken = bytearray(state)
        broken[place] ^= 1
        with pytest.raises(InvalidInput, match=r"damaged|not the state"):
            RunningCount.from_bytes(bytes(broken), budget=budget)
    with pytest.raises(InvalidInput, match="not the state"):
        RunningCount.from_bytes(b"", budget=budget)
    with pytest.raises(InvalidInput, match="there is no state"):
        RunningCount.open(tmp_path / "other", budget=budget)


def test_nothing_is_released_where_nothing_can_be_stored(
    ledger_budget: Callable[..., LedgerBudget], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counter = RunningCount(9, budget=ledger_budget(), epsilon=1.0, path=tmp_path / "state")

    def full(*_: Any) -> int:
        raise OSError("no space")

    with monkeypatch.context() as patch:
        patch.setattr("os.pwrite", full)
        with pytest.raises(EngineFailed, match="add it again"):
            counter.add(4)
    assert counter.steps == 0
    assert counter.add(4).step == 1


def test_what_was_closed_cannot_go_on_beside_its_file(
    ledger_budget: Callable[..., LedgerBudget], tmp_path: Path
) -> None:
    """Two that go on with one state are told different steps, and the difference of their totals has no noise."""
    budget = ledger_budget()
    with RunningCount(8, epsilon=1, budget=budget, path=tmp_path / "state") as running:
        first = running.add(3)
    with pytest.raises(InvalidInput, match=r"was closed; continue it with RunningCount\.open"):
        running.add(1_000)
    assert running.last == running.add(3, step=0) == first
    running.close()
    with RunningCount.open(tmp_path / "state", budget=budget) as again:
        assert again.steps == 1


def test_a_forked_process_cannot_go_on(
    ledger_budget: Callable[..., LedgerBudget], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counter = RunningCount(9, budget=ledger_budget(), epsilon=1.0, path=tmp_path / "state")
    monkeypatch.setattr("os.getpid", lambda: -1)
    with pytest.raises(InvalidInput, match="forked"):
        counter.add(4)


@pytest.mark.parametrize(
    ("error", "stated"),
    [
        (TooLarge, {"horizon": 2**21}),
        (OutOfRange, {"horizon": 0}),
        (InvalidInput, {"horizon": 4, "steps_per_unit": 5}),
        (InvalidInput, {"horizon": 4, "rho": 1.0}),
        (InvalidInput, {"horizon": 4, "budget": None}),
        (InvalidInput, {"horizon": 4, "path": "no-ledger.state"}),
        (OutOfRange, {"horizon": 4, "per_step": 0}),
    ],
)
def test_what_cannot_be_promised_is_refused_before_anything_is_charged(error: type[Exception], stated: Any) -> None:
    budget = Budget(1.0)
    with pytest.raises(error):
        RunningCount(**{"epsilon": 0.1, "budget": budget, **stated})
    assert budget.spent().epsilon == 0


def test_steps_are_whole_and_totals_need_one() -> None:
    counter = RunningCount(4, epsilon=0.1, budget=Budget(1.0), source=SeededSource(1))
    with pytest.raises(EmptyInput):
        _ = counter.last
    for wrong in (-1, 2.5, "many"):
        with pytest.raises(InvalidInput):
            counter.add(wrong)  # type: ignore[arg-type]
    assert counter.simulated
    assert "gives no privacy" in counter.card
    assert "0 of 4 steps" in repr(counter)
