"""A budget in memory: charge or refuse, and say why in one sentence."""

import copy
import math
import pickle
import sys
from typing import Any

import pytest

from tacit.ledger import Budget
from tacit.ledger.budget import DISTINCT_MAX
from tacit.privacy import events
from tacit.privacy.errors import BudgetExceeded, InvalidInput, MixedRelations, NotPriced, TooLarge, WrongType
from tacit.privacy.units import Relation


def test_a_charge_gives_a_permit_with_the_price_that_the_preview_showed() -> None:
    budget = Budget(epsilon=1.0, delta=1e-6)
    event = events.Gaussian(20)
    shown = budget.preview(event)
    permit = budget.charge(event, purpose="mean age")
    assert permit.cost == shown
    assert (permit.event, permit.purpose) == (event, "mean age")
    assert budget.events == {event: 1}


def test_a_preview_spends_nothing() -> None:
    budget = Budget(epsilon=1.0)
    budget.preview(events.Laplace(0.7))
    assert budget.spent().epsilon == 0
    assert budget.events == {}


def test_ten_charges_of_a_tenth_are_a_whole() -> None:
    budget = Budget(epsilon=1.0)
    for _ in range(10):
        budget.charge(events.Laplace(0.1))
    assert budget.spent().epsilon == 1.0
    with pytest.raises(BudgetExceeded):
        budget.charge(events.Laplace(1e-9))


def test_a_refusal_says_what_was_asked_what_is_left_and_what_would_fit() -> None:
    budget = Budget(epsilon=1.0)
    budget.charge(events.Laplace(0.8))
    with pytest.raises(
        BudgetExceeded, match=r"^asked for epsilon 0\.5, 0\.2 is left; epsilon=0\.2 would fit$"
    ) as refused:
        budget.charge(events.Laplace(0.5))
    error = refused.value
    assert error.asked is not None
    assert error.remaining is not None
    assert error.fits is not None
    assert error.asked.epsilon == 0.5
    assert error.fits.epsilon == error.remaining.epsilon == pytest.approx(0.2)
    budget.charge(events.Laplace(error.fits.epsilon))


@pytest.mark.parametrize(
    ("asked", "shown"), [(0.1000000000001, r"0\.100001"), (0.2, r"0\.2"), (0.1 + 1e-7, r"0\.100001")]
)
def test_what_is_said_to_fit_fits_and_is_shown_as_less_than_what_was_asked(asked: float, shown: str) -> None:
    budget = Budget(epsilon=1.0)
    for _ in range(9):
        budget.charge(events.Laplace(0.1))
    with pytest.raises(
        BudgetExceeded, match=rf"^asked for epsilon {shown}, 0\.1 is left; epsilon=0\.1 would fit$"
    ) as refused:
        budget.charge(events.Laplace(asked))
    assert refused.value.asked is not None
    assert refused.value.fits is not None
    assert refused.value.asked.epsilon == pytest.approx(asked, rel=2**-40)
    assert 0.1 * (1 - 1e-9) < refused.value.fits.epsilon < asked
    budget.charge(events.Laplace(refused.value.fits.epsilon))


def test_a_refusal_of_gaussian_noise_speaks_of_rho() -> None:
    budget = Budget(epsilon=1.0, delta=1e-6)
    with pytest.raises(
        BudgetExceeded, match=r"^asked for rho 0\.5, 0\.0\d+ is left; rho=0\.0\d+ would fit$"
    ) as refused:
        budget.charge(events.Gaussian(1))
    assert refused.value.fits is not None
    budget.charge(events.ZeroConcentrated(refused.value.fits.rho))


def test_a_refusal_for_delta_speaks_of_delta() -> None:
    budget = Budget(epsilon=1.0, delta=1e-6)
    with pytest.raises(BudgetExceeded, match=r"^asked for delta 2e-7, 1e-7 is left; delta=1e-7 would fit$"):
        budget.charge(events.Approximate(0.1, 2e-7))
    budget.charge(events.Approximate(0.1, 1e-7))
    with pytest.raises(BudgetExceeded, match=r"0 is left; purely private noise of epsilon=0\.9 would fit$"):
        budget.charge(events.Approximate(0.1, 2e-7))
    budget.charge(events.Laplace(0.9))


def test_a_refusal_of_what_states_an_epsilon_speaks_of_epsilon_also_where_its_noise_is_gaussian() -> None:
    """It spoke of rho, which nobody had asked for."""
    budget, training = Budget(epsilon=2.0, delta=2e-4), events.Repeated(events.Gaussian(2.0), 20)
    for event in (
        events.Converted(training, 1e-5),
        events.Composed((events.Laplace(0.1), events.Converted(training, 1e-5))),
    ):
        with pytest.raises(
            BudgetExceeded, match=r"^asked for epsilon \d\S* at delta 1e-5, 2 is left; epsilon=2 would fit$"
        ):
            budget.charge(event)
    with pytest.raises(BudgetExceeded, match=r", 2 is left; epsilon=2 at delta=2e-5 would fit$"):
        budget.charge(events.Converted(training, 1e-3))
    with pytest.raises(BudgetExceeded, match=r"^asked for delta 0\.001, 2e-5 is left; delta=2e-5 would fit$"):
        budget.charge(events.Converted(events.Gaussian(1.67), 1e-3))


def test_a_refusal_of_what_states_an_epsilon_speaks_of_rho_once_the_sum_is_exceeded() -> None:
    budget = Budget(epsilon=2.0, delta=1e-5)
    for _ in range(50):
        budget.charge(events.Laplace(0.05))
    with pytest.raises(BudgetExceeded, match=r"^asked for rho 2, 0\.0\d+ is left; rho=0\.0\d+ would fit$") as refused:
        budget.charge(events.Converted(events.Gaussian(0.5), 1e-5))
    assert refused.value.fits is not None
    budget.charge(events.Converted(events.ZeroConcentrated(refused.value.fits.rho), 1e-5))


def test_a_budget_without_a_delta_refuses_a_stated_one_with_the_way_out() -> None:
    for event in (events.Approximate(0.1, 1e-7), events.Converted(events.Gaussian(9.0), 1e-7)):
        with pytest.raises(
            BudgetExceeded, match=r"0 is left; this budget has no delta: leave delta= out, or give it one$"
        ):
            Budget(epsilon=2.0).charge(event)


def test_what_is_left_for_stated_deltas_is_that_of_the_sum_and_unlimited_where_the_sum_is_exceeded() -> None:
    budget = Budget(epsilon=2.0, delta=1e-5)
    budget.charge(events.Approximate(0.1, 4e-7))
    assert budget.stated_delta_left() == pytest.approx(6e-7)
    assert Budget(epsilon=2.0).stated_delta_left() == 0
    budget.charge(events.Approximate(0.1, 6e-7))
    assert budget.stated_delta_left() == pytest.approx(0, abs=1e-20)
    for _ in range(40):
        budget.charge(events.Laplace(0.05))
    assert budget.stated_delta_left() == math.inf


def test_remaining_is_at_most_the_epsilon_of_the_cap_although_more_may_be_admitted_as_a_rho() -> None:
    budget = Budget(epsilon=0.01, delta=0.1)
    assert budget.remaining().epsilon == 0.01
    budget.charge(events.Laplace(0.02))
    assert "up to the cap's" in str(Budget.remaining.__doc__)


def test_a_refusal_when_nothing_is_left_says_so() -> None:
    budget = Budget(epsilon=1.0)
    budget.charge(events.Laplace(1))
    with pytest.raises(BudgetExceeded, match="0 is left; nothing more fits") as refused:
        budget.charge(events.Laplace(0.1))
    assert refused.value.fits is None


@pytest.mark.parametrize("caps", [{}, {"delta": 1e-6}, {"delta": 1e-6, "filter": "renyi", "order": 16}])
def test_an_epsilon_beyond_all_amounts_is_refused_with_what_would_fit(caps: dict[str, Any]) -> None:
    sentence = r"no budget can pay so much: asked for epsilon 1e300, 5 is left; epsilon=5 would fit"
    with pytest.raises(NotPriced, match=sentence):
        Budget(epsilon=5.0, **caps).charge(events.Laplace(1e300))


def test_an_event_without_a_price_is_refused_with_a_way_out() -> None:
    with pytest.raises(NotPriced, match="no price for a gaussian event; use noise that is purely private") as refused:
        Budget(epsilon=1.0).charge(events.Gaussian(5))
    assert refused.value.code == "T301"
    assert refused.value.asked is not None
    assert math.isinf(refused.value.asked.epsilon)
    with pytest.raises(NotPriced, match="filter renyi"):
        Budget(epsilon=1.0, delta=1e-6).charge(events.Sampled(0.01, events.Gaussian(2)))


def test_a_refusal_changes_nothing() -> None:
    budget = Budget(epsilon=1.0, delta=1e-6)
    budget.charge(events.Laplace(0.5))
    before = (budget.spent(), budget.remaining(), budget.events)
    for event in (events.Laplace(0.6), events.Gaussian(1), events.Approximate(0.1, 1e-3)):
        with pytest.raises(BudgetExceeded):
            budget.charge(event)
    assert (budget.spent(), budget.remaining(), budget.events) == before


@pytest.mark.parametrize(
    ("event", "purpose", "error"),
    [
        ("laplace", "", WrongType),
        (events.Laplace(0.1, under=Relation.REPLACE_ONE), "", MixedRelations),
        (events.Laplace(0.1), "x" * 2_001, TooLarge),
        (events.Laplace(0.1), "two\nlines", InvalidInput),
        (events.Laplace(0.1), 7, WrongType),
    ],
)
def test_what_cannot_be_charged_is_refused_before_anything_is_spent(
    event: Any, purpose: Any, error: type[Exception]
) -> None:
    budget = Budget(epsilon=1.0)
    with pytest.raises(error):
        budget.charge(event, purpose)
    assert budget.spent().epsilon == 0


def test_its_size_does_not_grow_with_a_thousands_of_charges() -> None:
    budget = Budget(epsilon=100.0, delta=1e-6)
    sizes = []
    for number in range(6_000):
        budget.charge(events.Laplace(1e-9 * (1 + number)))
        if number in (2_000, 5_999):
            sizes.append((len(budget.events), sys.getsizeof(budget._tally._counts), sys.getsizeof(budget._totals)))
    assert sizes[0] == sizes[1]
    assert len(budget.events) == DISTINCT_MAX + 1


def test_what_is_no_longer_listed_one_by_one_is_kept_as_its_total_rho() -> None:
    budget = Budget(epsilon=100.0, delta=1e-6)
    charged = [events.Gaussian(100 + number) for number in range(DISTINCT_MAX + 50)]
    for event in charged:
        budget.charge(event)
    (rest,) = set(budget.events) - set(charged)
    assert isinstance(rest, events.ZeroConcentrated)
    assert rest.rho == pytest.approx(sum(1 / (2 * event.sigma**2) for event in charged[DISTINCT_MAX:]), rel=1e-9)
    assert rest.rho >= sum(1 / (2 * event.sigma**2) for event in charged[DISTINCT_MAX:])


def test_a_delta_that_would_let_units_be_published_is_warned_about_loudly() -> None:
    assert Budget(1, 1e-10).warnings(10_000) == ()
    assert Budget(1).warnings(10_000) == ()
    assert Budget(1, 1e-6).warnings() == ()
    (advice,) = Budget(1, 1e-6).warnings(10_000)
    assert "1/n^2" in advice
    (alarm,) = Budget(1, 1e-3).warnings(10_000)
    assert "record whole" in alarm
    (doubt,) = Budget(50).warnings()
    assert "epsilon 50" in doubt


def test_it_shows_itself_without_what_was_charged() -> None:
    assert repr(Budget(1, 1e-6)) == "Budget(epsilon=1, delta=1e-06, filter='zcdp')"


def test_a_copy_is_the_budget_itself_and_pickling_it_is_refused() -> None:
    budget = Budget(epsilon=1.0)
    assert copy.copy(budget) is copy.deepcopy(budget) is budget
    with pytest.raises(WrongType, match="cannot be pickled"):
        pickle.dumps({"budget": budget})
