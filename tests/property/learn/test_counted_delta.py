"""The delta that a training takes: monotone, never used up, and the same in preview, cost and what is left."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit import Budget
from tacit.learn.counted_delta import counted_delta, default_delta
from tacit.ledger.accounts import SumAccount
from tacit.privacy import events
from tacit.privacy.errors import BudgetExceeded

DELTAS = st.floats(-12, -2).map(lambda exponent: 10.0**exponent)
SHARES = st.floats(0.0, 1.0)


def spent(delta: float, share: float) -> Budget:
    """Return a budget with a share of its tenth for stated deltas spent."""
    budget = Budget(10.0, delta)
    if taken := budget.remaining().delta * share:
        budget.charge(events.Approximate(0.1, taken))
    return budget


def taken(budget: Budget, stated: float) -> float:
    """Return the counted delta, 0 where it is refused."""
    try:
        return counted_delta(budget, stated)
    except BudgetExceeded:
        return 0.0


@given(DELTAS, SHARES, DELTAS, DELTAS)
@settings(max_examples=300)
def test_it_does_not_fall_when_more_is_stated_unless_it_is_refused(
    delta: float, share: float, one: float, other: float
) -> None:
    budget = spent(delta, share)
    less, more = sorted((one, other))
    few, many = taken(budget, less), taken(budget, more)
    assert few <= less
    assert many <= more
    assert few <= many or many == 0
    assert max(few, many) <= budget.stated_delta_left() / 2 * (1 + 2**-40)


@given(DELTAS, SHARES, SHARES, DELTAS)
@settings(max_examples=300)
def test_it_does_not_fall_when_more_is_left(delta: float, one: float, other: float, stated: float) -> None:
    much, little = (spent(delta, share) for share in sorted((one, other)))
    slice = SumAccount.of(much.cap).slice
    assert taken(little, stated) <= taken(much, stated)
    assert default_delta(little, slice) <= default_delta(much, slice) <= slice


@given(st.floats(0.3, 2.0), DELTAS, DELTAS, st.integers(1, 16))
@settings(max_examples=25, deadline=None)
def test_equal_trainings_are_accepted_as_long_as_epsilon_lasts(
    sigma: float, delta: float, stated: float, count: int
) -> None:
    """Each is charged what was previewed, and what is left falls by that; none is refused but for a millionth."""
    budget = Budget(1e4, delta)
    for _ in range(count):
        before = budget.remaining()
        counted = taken(budget, stated)
        assert counted >= min(stated, before.delta / 2) or counted == 0
        if not counted:
            assert before.delta / 2 < 1e-6 * stated * (1 + 1e-9)
            break
        event = events.Converted(events.Gaussian(sigma), counted)
        quote = budget.preview(event)
        cost = budget.charge(event).cost
        after = budget.remaining()
        assert quote == cost
        assert cost.delta == pytest.approx(counted)
        assert math.isclose(before.epsilon - after.epsilon, cost.epsilon, rel_tol=1e-9)
        assert math.isclose(before.delta - after.delta, counted, rel_tol=1e-6)
        assert after.delta > 0
