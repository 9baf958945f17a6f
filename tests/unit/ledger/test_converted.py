"""Trainings and other events of fixed parameters are counted at their own delta by their loss distribution."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tacit.accounting import Bound, calibrate, epsilon
from tacit.ledger import Budget, Ledger, accounts
from tacit.privacy import events
from tacit.privacy.errors import BudgetExceeded, NotPriced
from tacit.privacy.events import Converted

STEP = events.Sampled(0.01, events.Gaussian(1.0))
TRAINING = events.Repeated(STEP, 300)
DELTA = 1e-7


def test_a_training_costs_what_its_loss_distribution_says_at_its_delta() -> None:
    budget = Budget(5.0, 1e-5)
    permit = budget.charge(Converted(TRAINING, DELTA))
    assert permit.cost.epsilon == pytest.approx(epsilon(TRAINING, DELTA).upper)
    assert permit.cost.delta == DELTA
    budget.charge(events.Laplace(0.5))
    assert budget.spent().epsilon == pytest.approx(permit.cost.epsilon + 0.5)


def test_noise_that_was_calibrated_to_an_epsilon_fits_that_epsilon() -> None:
    sigma = calibrate(lambda sigma: events.Repeated(events.Sampled(0.01, events.Gaussian(sigma)), 300), 1.0, DELTA)
    training = events.Repeated(events.Sampled(0.01, events.Gaussian(sigma)), 300)
    Budget(1.0, 10 * DELTA).charge(Converted(training, DELTA))
    with pytest.raises(BudgetExceeded):
        Budget(0.99, 10 * DELTA).charge(Converted(training, DELTA))


def test_several_conversions_and_other_noise_add_up_to_their_sum() -> None:
    several = events.Composed((events.Repeated(Converted(TRAINING, DELTA), 2), events.Laplace(0.25)))
    cost = Budget(9.0, 1e-5).preview(several)
    assert cost.epsilon == pytest.approx(2 * epsilon(TRAINING, DELTA).upper + 0.25)
    assert cost.delta == pytest.approx(2 * DELTA)


def test_a_conversion_is_smaller_than_a_sum_of_pure_epsilons_and_pure_where_there_is_no_delta() -> None:
    many = Converted(events.Repeated(events.Laplace(0.01), 1_000), DELTA)
    assert Budget(20.0, 1e-5).preview(many).epsilon < 3
    assert Budget(20.0).preview(many).epsilon == pytest.approx(10.0)


@pytest.mark.parametrize("cap", [(5.0, DELTA), (5.0, 0.0)])
def test_a_delta_that_is_not_left_is_refused(cap: tuple[float, float]) -> None:
    budget = Budget(*cap)
    with pytest.raises((BudgetExceeded, NotPriced)):
        budget.charge(Converted(TRAINING, DELTA))
    assert budget.spent().epsilon == 0


def test_every_other_measure_is_that_of_the_event() -> None:
    inner, converted = accounts.Measured(TRAINING), accounts.Measured(Converted(TRAINING, DELTA))
    assert converted.renyi(8.0) == inner.renyi(8.0)
    gaussian = events.Gaussian(3.0)
    assert accounts.Measured(Converted(gaussian, DELTA)).concentrated == accounts.Measured(gaussian).concentrated
    assert accounts.Measured(Converted(gaussian, DELTA)).mu == accounts.Measured(gaussian).mu
    assert epsilon(Converted(TRAINING, 0.5), DELTA) == epsilon(TRAINING, DELTA)


@pytest.mark.parametrize("said", [-1.0, math.nan, math.inf])
def test_what_no_cost_can_be_is_no_bound(monkeypatch: pytest.MonkeyPatch, said: float) -> None:
    monkeypatch.setattr(accounts, "epsilon_at", lambda *_: Bound(0.0, said, "wrong"))
    accounts._epsilon_of_converted.cache_clear()
    with pytest.raises((NotPriced, BudgetExceeded)):
        Budget(5.0, 1e-5).charge(Converted(TRAINING, DELTA))
    accounts._epsilon_of_converted.cache_clear()


def test_steps_that_were_not_run_are_refunded_where_steps_are_counted(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "clinic") as ledger:
        ledger.create_budget("visits", epsilon=5.0, delta=1e-5, filter="renyi", order=8)
        before = ledger.budget("visits").remaining().epsilon
        permit = ledger.reserve("visits", Converted(TRAINING, DELTA), refundable=True)
        charged = ledger.budget("visits").remaining().epsilon
        ledger.refund(permit, events.Repeated(STEP, 3))
        assert charged < ledger.budget("visits").remaining().epsilon < before
