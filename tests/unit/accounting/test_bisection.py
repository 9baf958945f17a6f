"""Bisection ends on both sides of the boundary, for every float."""

import math

import pytest

from tacit.accounting.conversions import mu_for, rho_for
from tacit.accounting.numerics import bisect
from tacit.ledger import Budget

FLOATS = [5e-324, 1.5e-323, 2.3e-308, 1e-300, 1e-17, 1.0, 3.0, 1e300, 1.7e308]


@pytest.mark.parametrize("boundary", FLOATS)
@pytest.mark.parametrize("share", [0.0, 2.0**-50, 0.1])
def test_the_boundary_is_between_the_two_numbers_which_are_close(boundary: float, share: float) -> None:
    low, high = bisect(0.0, boundary * 1.05, lambda point: point < boundary, share)
    assert low < boundary <= high
    assert high - low <= share * high or math.nextafter(low, math.inf) == high


@pytest.mark.parametrize("epsilon", FLOATS)
@pytest.mark.parametrize("delta", [1e-300, 1e-6, 0.5, 1 - 2**-53])
def test_every_epsilon_and_delta_has_a_rho_and_a_mu(epsilon: float, delta: float) -> None:
    assert rho_for(epsilon, delta) >= 0
    assert mu_for(epsilon, delta) >= 0


def test_the_least_budget_is_opened_and_has_nothing_to_give() -> None:
    assert Budget(5e-324, 1e-300).remaining().rho == 0
