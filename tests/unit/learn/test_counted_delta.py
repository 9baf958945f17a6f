"""A training takes the delta that is stated, and at most half of what its budget has left for such: it is warned of."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.tree import DecisionTreeClassifier

import tacit
from tacit import learn
from tacit.learn.counted_delta import budget_delta, counted_delta, default_delta
from tacit.ledger.accounts import SumAccount
from tacit.privacy import CountedDeltaWarning, events
from tacit.privacy.errors import BudgetExceeded, NotPermitted

RANDOM = np.random.default_rng(0)
ROWS = RANDOM.normal(size=(200, 3)).astype(np.float32)
LABELS = (ROWS[:, 0] > 0).astype(np.int64)
LESS = pytest.mark.filterwarnings("ignore::tacit.privacy.CountedDeltaWarning")


def train(budget: tacit.Budget, epsilon: float | None = None, delta: float = 1e-5, **stated: Any) -> Any:
    model = torch.nn.Linear(3, 2)
    return learn.make_private(
        model,
        torch.optim.SGD(model.parameters(), lr=0.1),
        (ROWS, LABELS),
        epsilon=epsilon,
        delta=delta,
        batch_size=20,
        epochs=1,
        budget=budget,
        audit=False,
        **stated,
    )


def logistic(budget: Any, delta: float | None, epsilon: float = 0.5) -> Any:
    """Return a fitted estimator that has Gaussian noise where it may take a delta."""
    model = learn.LogisticRegression(
        epsilon=epsilon, delta=delta, bounds=(-3, 3), classes=[0, 1], max_iter=50, budget=budget
    )
    return model.fit(ROWS, LABELS)


def search(budget: Any, delta: float | None) -> Any:
    own = learn.LogisticRegression(bounds=(-3, 3), classes=[0, 1], max_iter=5)
    made = learn.PrivateSearch(own, {"clip": [1.0, 2.0]}, epsilon=1.0, delta=delta, budget=budget, mean_runs=2)
    return made.fit(ROWS, LABELS)


def student(budget: tacit.Budget, delta: float | None) -> Any:
    return learn.PATE(
        teacher=lambda x, y: lambda queries: (queries[:, 0] > 0).astype(int),
        teachers=5,
        classes=[0, 1],
        aggregator=learn.GNMax(4.0),
        student=DecisionTreeClassifier(),
        budget=budget,
        delta=delta,
        queries=2,
    )


TRAINED = {
    "DP-SGD": lambda budget, delta: train(budget, 0.5, delta),
    "an estimator": lambda budget, delta: logistic(budget, delta),
    "a search": lambda budget, delta: search(budget, delta),
    "PATE": lambda budget, delta: student(budget, delta).fit(ROWS, LABELS, public=ROWS),
}


@LESS
def test_several_trainings_state_the_whole_delta_of_their_budget() -> None:
    budget = tacit.Budget(epsilon=3.0, delta=1e-5)
    costs = [train(budget, 0.5).cost for _ in range(3)]
    assert all(0.49 < one.epsilon <= 0.5 for one in costs)
    assert [one.delta for one in costs] == pytest.approx([5e-7, 2.5e-7, 1.25e-7])
    assert budget.spent().delta <= 1e-6


@LESS
def test_a_training_that_states_the_whole_tenth_leaves_the_next_ones_as_much_noise_as_its_own() -> None:
    """It took all but a rounding error of 1.4e-21, and the next was counted at half of that, with twice the noise."""
    budget = tacit.Budget(epsilon=4.0, delta=1e-4)
    noises = [train(budget, 1.0).schedule.noise[0][0] for _ in range(3)]
    assert noises[2] < 1.15 * noises[0]
    assert logistic(budget, None).cost_.delta == pytest.approx(1e-5 / 1024)


@LESS
def test_trainings_of_equal_noise_cost_about_the_same_each() -> None:
    budget = tacit.Budget(epsilon=100.0, delta=1e-4)
    costs = [train(budget, noise_multiplier=1.0).cost.epsilon for _ in range(3)]
    assert costs[2] < 1.15 * costs[0]


@LESS
def test_many_fits_that_state_the_whole_delta_never_use_it_up() -> None:
    """Once a delta did not fit, the sum of epsilons was left for good, and 4 of 5 epsilons were gone."""
    budget = tacit.Budget(epsilon=5.0, delta=1e-5)
    for count in range(1, 7):
        model = learn.LinearRegression(epsilon=0.5, delta=3e-6, bounds=(-9, 9), target_bounds=(0, 1), budget=budget)
        model.fit(ROWS, LABELS)
        assert budget.remaining().epsilon == pytest.approx(5.0 - 0.5 * count)


@pytest.mark.parametrize("name", TRAINED)
def test_every_kind_of_training_warns_once_and_says_on_its_card_that_it_is_counted_at_less(name: str) -> None:
    sentence = (
        r"^the budget counts this training at delta 5e-7, not 1e-5, .*; "
        r"a budget with a delta of at least 0\.0002 counts it as stated$"
    )
    with pytest.warns(CountedDeltaWarning, match=sentence) as caught:
        made = TRAINED[name](tacit.Budget(50.0, 1e-5), 1e-5)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    card = made.card_ if hasattr(made, "card_") else made.card
    assert (
        "It is counted at delta 5e-7, not at the stated 1e-5: a training takes at most half of what its budget" in card
    )


@pytest.mark.parametrize("name", TRAINED)
def test_the_delta_of_the_warning_is_enough_and_is_not_warned_of(name: str) -> None:
    made = TRAINED[name](tacit.Budget(50.0, budget_delta(1e-5)), 1e-5)
    assert "counted at delta" not in (made.card_ if hasattr(made, "card_") else made.card)


@pytest.mark.parametrize("stated", [1e-5, 3e-5, 7e-6, 1.3e-6, 7e-8, 6e-9, 7e-12, 0.049])
def test_twenty_times_a_decimal_is_enough(stated: float) -> None:
    assert counted_delta(tacit.Budget(1.0, float(f"{20 * stated:.12g}")), stated) == stated


def test_a_search_that_states_no_delta_takes_none() -> None:
    assert search(tacit.Budget(2.0, 1e-5), None).cost_.delta == 0


def test_a_fit_with_laplace_noise_is_not_warned_about() -> None:
    model = learn.GaussianNB(epsilon=0.5, delta=1e-5, bounds=(-3, 3), classes=[0, 1], budget=tacit.Budget(1.0, 1e-5))
    assert model.fit(ROWS[:, :1], LABELS).cost_.delta == 0


def test_a_fit_without_a_budget_is_counted_as_stated() -> None:
    assert logistic(None, 1e-5).cost_.delta == 1e-5
    with pytest.raises(BudgetExceeded):
        logistic(tacit.Budget(2.0, 2e-4), 1e-5, epsilon=3.0)


def used_up(epsilon: float = 4.0, delta: float = 1e-4, left: float = 0.0) -> tacit.Budget:
    """Return a budget of whose tenth of delta only `left` is left."""
    budget = tacit.Budget(epsilon, delta)
    budget.charge(events.Approximate(0.1, budget.remaining().delta - left))
    return budget


@pytest.mark.parametrize("left", [0.0, 1e-21, 1.9e-11])
@pytest.mark.parametrize("name", TRAINED)
def test_less_than_a_millionth_of_a_stated_delta_is_refused_before_the_charge(name: str, left: float) -> None:
    budget = used_up(left=left)
    before = budget.remaining()
    with pytest.raises(
        BudgetExceeded, match=r"^asked for delta 1e-5, .* is left of the tenth for stated deltas"
    ) as refused:
        TRAINED[name](budget, 1e-5)
    assert refused.value.code == "T300"
    assert budget.remaining() == before


@LESS
@pytest.mark.parametrize("left", [2.1e-11, 1e-7])
def test_what_is_more_than_a_millionth_is_taken_by_half(left: float) -> None:
    assert counted_delta(used_up(left=left), 1e-5) == pytest.approx(left / 2)


def test_a_fit_without_a_delta_takes_half_of_less_than_two_slices_and_then_has_purely_private_noise() -> None:
    """It was refused for want of delta, although epsilon was left."""
    slice = SumAccount.of(tacit.Budget(4.0, 1e-4).cap).slice
    for left, taken in (
        (3 * slice, slice),
        (slice, slice / 2),
        (slice / 100, slice / 200),
        (slice / 600, 0.0),
        (0.0, 0.0),
    ):
        budget = used_up(left=left)
        fitted = logistic(budget, None)
        assert fitted.cost_.delta == pytest.approx(taken)
        assert fitted.cost_.epsilon == pytest.approx(0.5)
        assert budget.remaining().epsilon == pytest.approx(3.4)


def exceeded(epsilon: float, delta: float, **stated: Any) -> tacit.Budget:
    """Return a budget whose plain sum is exceeded, and whose rho is not."""
    budget = tacit.Budget(epsilon, delta, **stated)
    while budget.stated_delta_left() != math.inf:
        budget.charge(events.Gaussian(40.0 / epsilon))
    return budget


@LESS
def test_where_the_sum_is_exceeded_a_training_takes_half_of_the_tenth_and_costs_no_delta() -> None:
    budget = exceeded(2.0, 1e-5)
    before = budget.remaining().delta
    assert counted_delta(budget, 1e-5) == pytest.approx(5e-7)
    assert counted_delta(budget, 4e-7) == 4e-7
    assert default_delta(budget, 1e-9) == 1e-9
    assert logistic(budget, 1e-5, epsilon=0.05).cost_.epsilon == pytest.approx(0.05)
    assert budget.remaining().delta == before
    with pytest.raises(BudgetExceeded, match="left of the tenth for stated deltas"):
        logistic(budget, 0.9, epsilon=0.05)


@LESS
@pytest.mark.parametrize("name", ["an estimator", "PATE"])  # those of which another account has a price
def test_no_training_is_counted_at_more_than_the_delta_of_its_budget(name: str) -> None:
    budget = exceeded(50.0, 1e-7)
    made = TRAINED[name](budget, 1e-3)
    cost = made.cost_ if hasattr(made, "cost_") else made.cost
    assert cost.delta == pytest.approx(5e-9)


@LESS
@pytest.mark.parametrize("name", ["DP-SGD", "a search"])
def test_a_training_that_no_open_account_has_a_price_for_is_not_told_that_less_would_fit(name: str) -> None:
    sentence = r", 0 is left; purely private noise of epsilon=\S+ would fit: leave delta= out, where that is possible"
    for stated in (1e-5, 1e-7):
        with pytest.raises(BudgetExceeded, match=sentence):
            TRAINED[name](exceeded(3.0, 1e-5), stated)


@LESS
def test_a_training_with_a_report_takes_half_of_what_the_open_account_has_left() -> None:
    report = learn.SanitisedReport(order=8, sigma=100, beta=0.002, scale_sigma=100)
    budget = exceeded(50.0, 1e-5)
    for taken in (5e-7, 2.5e-7, 1.25e-7):
        asked = student(budget, 1e-5).set_params(report=report, aggregator=learn.GNMax(150.0))
        assert asked.preview().delta == pytest.approx(taken)
        assert asked.fit(ROWS, LABELS, public=ROWS).cost_.delta == pytest.approx(taken)
    assert counted_delta(budget, 1e-5) == pytest.approx(5e-7)


@pytest.mark.parametrize("name", TRAINED)
def test_a_budget_without_delta_refuses_a_stated_one_with_the_way_out(name: str) -> None:
    with pytest.raises(BudgetExceeded, match=r"this budget has no delta: leave delta= out, or give it one$"):
        TRAINED[name](tacit.Budget(50.0), 1e-5)


def test_what_was_asked_for_in_epsilon_is_refused_in_epsilon() -> None:
    budget = tacit.Budget(2.0, 2e-4)
    with pytest.raises(BudgetExceeded, match=r"^asked for epsilon 10 at delta 1e-5, 2 is left; epsilon=2 would fit$"):
        logistic(budget, 1e-5, epsilon=10.0)
    with pytest.raises(BudgetExceeded, match=r"^asked for epsilon 10 at delta .*, 2 is left; epsilon=2 would fit$"):
        logistic(budget, None, epsilon=10.0)
    with pytest.raises(
        BudgetExceeded, match=r"^asked for epsilon \d\S* at delta 1e-5, 2 is left; epsilon=2 would fit$"
    ):
        train(budget, noise_multiplier=0.4)
    assert logistic(budget, 1e-5, epsilon=2.0).cost_.epsilon == pytest.approx(2.0)


class TestTables:
    """On tables, the payer's cap and the data set's are both charged."""

    @pytest.fixture
    def curator(self, tmp_path: Path) -> Iterator[tacit.Curator]:
        frame = pd.DataFrame({"person": range(200), "x": ROWS[:, 0], "y": LABELS})
        columns = {"x": tacit.Bounds(-3, 3), "y": tacit.Categories([0, 1])}
        with tacit.Curator(tmp_path / "folder") as curator:
            curator.add_table("t", frame, unit="person", limits=tacit.Limits(rows_per_unit=1), columns=columns)
            curator.set_budget("t", epsilon=6.0, delta=1e-5)
            curator.add_analyst("ana", {"t": tacit.Budget(2.0, 1e-6)})
            yield curator

    def fitted(self, curator: tacit.Curator, delta: float | None, rounds: int = 50, **options: Any) -> Any:
        model = options.pop("model", None) or learn.LogisticRegression(max_iter=rounds)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CountedDeltaWarning)
            return curator.train("t", model, features=["x"], target="y", epsilon=0.5, delta=delta, **options)

    def test_the_cap_of_the_analyst_decides_where_it_is_the_lesser(self, curator: tacit.Curator) -> None:
        """The data set's alone decided: the analyst lost 1.6 of epsilon 2 by a training of epsilon 0.1."""
        assert self.fitted(curator, 1e-5, analyst="ana").cost.delta == pytest.approx(1e-7 / 2)
        assert curator.budget("t", "ana").remaining().epsilon == pytest.approx(1.5)
        assert curator.budget("t").remaining().epsilon == pytest.approx(5.5)

    def test_the_cap_of_the_data_set_decides_where_it_is_the_lesser(self, curator: tacit.Curator) -> None:
        curator.budget("t").charge(events.Approximate(0.1, 1e-6 - 4e-9))
        assert self.fitted(curator, 1e-5, analyst="ana").cost.delta == pytest.approx(2e-9)

    def test_a_search_takes_a_half_as_others_do(self, curator: tacit.Curator) -> None:
        own = learn.PrivateSearch(learn.LogisticRegression(max_iter=5), {"clip": [1.0, 2.0]}, mean_runs=2)
        assert self.fitted(curator, 1e-6, model=own).cost.delta == pytest.approx(5e-7)
        assert self.fitted(curator, 1e-6, rounds=7).cost.delta == pytest.approx(2.5e-7)
        assert curator.budget("t").remaining().epsilon == pytest.approx(5.0, abs=1e-4)

    @pytest.mark.parametrize("delta", [1e-3, 4e-7])
    def test_repeating_a_training_costs_nothing_although_less_is_left(
        self, curator: tacit.Curator, delta: float
    ) -> None:
        first = self.fitted(curator, delta)
        for rounds in (51, 52):
            assert self.fitted(curator, 1e-3, rounds).cost.epsilon == pytest.approx(0.5)
        again = self.fitted(curator, delta)
        assert (again.cost.epsilon, again.model_id) == (0, first.model_id)
        assert curator.budget("t").remaining().epsilon == pytest.approx(4.5)

    def test_a_repeated_training_without_a_delta_costs_nothing_although_less_is_left(
        self, curator: tacit.Curator
    ) -> None:
        first = self.fitted(curator, None)
        curator.budget("t").charge(events.Approximate(0.1, curator.budget("t").remaining().delta))
        assert self.fitted(curator, None).model_id == first.model_id
        assert self.fitted(curator, None, 51).cost.delta == 0

    @pytest.mark.parametrize("delta", [1e-4, 4e-7, None])
    def test_repeating_a_training_costs_nothing_where_the_sum_is_exceeded(
        self, curator: tacit.Curator, delta: float | None
    ) -> None:
        budget = curator.budget("t")
        budget.charge(events.Approximate(0.1, 1e-6 - 1.1e-9))
        first = self.fitted(curator, delta)
        assert first.cost.delta < 6e-10
        while budget.stated_delta_left() != math.inf:
            budget.charge(events.Gaussian(10.0))
        again = self.fitted(curator, delta)
        assert (again.cost.epsilon, again.model_id) == (0, first.model_id)

    def test_repeating_a_training_costs_nothing_after_a_refund(self, curator: tacit.Curator) -> None:
        budget = curator.budget("t")
        other = events.Converted(events.Repeated(events.Gaussian(20.0), 10), 5e-7)
        permit = budget.reserve(other, refundable=True)
        first = self.fitted(curator, 1e-5)
        budget.refund(permit, None)
        again = self.fitted(curator, 1e-5)
        assert (again.cost.epsilon, again.model_id) == (0, first.model_id)
        assert self.fitted(curator, 3e-7).cost.delta == 3e-7  # which is left in full

    def test_a_repeated_training_is_the_payers_own_and_another_ones_without_a_delta(
        self, curator: tacit.Curator
    ) -> None:
        hers = self.fitted(curator, 1e-5, analyst="ana")
        owners = self.fitted(curator, 1e-5)
        assert owners.cost.epsilon == 0
        assert owners.coef_.tolist() == hers.coef_.tolist()
        curator.add_analyst("bob", {"t": tacit.Budget(1.0)})
        assert self.fitted(curator, 1e-5, analyst="bob").coef_.tolist() == hers.coef_.tolist()
        other = self.fitted(curator, 1e-6, 51), self.fitted(curator, 4e-8, 51)  # the second is left in full
        assert [one.cost.epsilon > 0 for one in other] == [True, True]
        curator.add_analyst("eve", {"t": tacit.Budget(2.0, 1e-6)})
        own = self.fitted(curator, 1e-8, 52, analyst="eve")
        self.fitted(curator, 2e-7, 52)
        again = self.fitted(curator, 1e-5, 52, analyst="eve")
        assert (again.cost.epsilon, again.model_id) == (0, own.model_id)

    def test_an_analyst_without_a_delta_has_purely_private_noise(self, curator: tacit.Curator) -> None:
        curator.add_analyst("bob", {"t": tacit.Budget(1.0)})
        assert self.fitted(curator, None, analyst="bob").cost.delta == 0
        with pytest.raises(BudgetExceeded, match="this budget has no delta: leave delta= out, or"):
            self.fitted(curator, 1e-8, analyst="bob")

    def test_preview_cost_and_what_is_left_agree(self, curator: tacit.Curator) -> None:
        for delta in (1e-5, 1e-9, None):
            left = curator.budget("t", "ana").remaining()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", CountedDeltaWarning)
                quote = curator.prepare_training(
                    "t", learn.LogisticRegression(max_iter=9), ["x"], "y", 0.5, delta=delta, analyst="ana"
                ).preview()
            made = self.fitted(curator, delta, 9, analyst="ana")
            assert (quote.epsilon, quote.delta) == (made.cost.epsilon, made.cost.delta)
            now = curator.budget("t", "ana").remaining()
            assert now == quote.leaves["t"]
            assert left.delta - now.delta == pytest.approx(made.cost.delta)
            assert left.epsilon - now.epsilon == pytest.approx(made.cost.epsilon)

    def test_a_training_for_a_rho_takes_no_delta(self, curator: tacit.Curator) -> None:
        curator.budget("t").charge(events.Approximate(0.1, curator.budget("t").remaining().delta))
        model = learn.LogisticRegression(max_iter=5)
        assert model.fit_table(curator.table("t"), ["x"], "y", rho=0.01).cost_.rho == pytest.approx(0.01)

    def test_an_analyst_without_a_cap_is_not_permitted_to_plan_a_training(self, curator: tacit.Curator) -> None:
        for delta in (None, 1e-6):
            with pytest.raises(NotPermitted, match="zoe has no cap on t"):
                self.fitted(curator, delta, analyst="zoe")

    def test_too_much_is_refused_in_epsilon(self, curator: tacit.Curator) -> None:
        with pytest.raises(
            BudgetExceeded, match=r"^asked for epsilon 10 at delta .*, 6 is left for t; epsilon=6 would fit"
        ):
            curator.train("t", learn.LogisticRegression(max_iter=9), ["x"], "y", 10.0)
