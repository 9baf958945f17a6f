"""Dividing a budget: parts never cost more than the whole, and one rule chooses between Laplace and Gaussian noise."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from sqlglot import exp

import tacit
from tacit.ledger.accounts import Measured, SumAccount
from tacit.measuring.allocation import Allocation, is_gaussian_narrower, noises
from tacit.mechanisms import Gaussian, Laplace
from tacit.privacy.events import Composed
from tacit.privacy.tables import Kind
from tacit.privacy.units import Relation
from tacit.query import BudgetTerms
from tacit.query.allocation import ReleaseItems, Target, allocate
from tacit.query.contribution import Bounding
from tacit.query.expressions import Expression
from tacit.query.measures import How, Measure
from tacit.query.private_choices import Candidates, PrivateChoice

BUDGET = tacit.Budget(epsilon=100.0, delta=1e-6)
WEIGHTS = ((1.0,), (0.5, 1.0), (0.8, 0.9, 1.0), (0.1,) * 7, (1 / 3, 0.7, 1e-9, 123.0))


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("epsilon", [0.1, 0.3, 1.0, 1e-7, 12.34])
def test_parts_of_epsilon_add_up_to_no_more_than_was_asked(epsilon: float, weights: tuple[float, ...]) -> None:
    parts = Allocation.of(BUDGET, epsilon).divided(*weights)
    total = sum(part.pure_epsilon for part in parts)
    assert Fraction(epsilon) * (1 - Fraction(1, 2**50)) <= total <= Fraction(epsilon)
    each = Allocation.of(BUDGET, epsilon).repeated(7).pure_epsilon
    assert 7 * each <= Fraction(epsilon)


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("rho", [0.1, 0.3, 1e-7, 12.34])
def test_noise_and_choices_of_divided_parts_of_rho_cost_no_more_than_was_asked(
    rho: float, weights: tuple[float, ...]
) -> None:
    whole = Allocation.of(BUDGET, rho=rho)
    inner = [part for one in whole.divided(*weights) for part in one.divided(*weights)]
    sigmas = [Fraction(one.noise().sigma or 0) for one in inner if isinstance(one.noise(), Gaussian)]  # type: ignore[union-attr]
    assert len(sigmas) == len(inner)
    assert sum(1 / (2 * sigma**2) for sigma in sigmas) <= Fraction(rho)
    assert sum(one.choice_epsilon**2 / 8 for one in inner) <= Fraction(rho)
    assert sum(one.pure_epsilon**2 / 2 for one in inner) <= Fraction(rho)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 7.0])
def test_gaussian_noise_for_an_epsilon_is_charged_no_more_than_that(epsilon: float) -> None:
    found = Allocation.of(BUDGET, epsilon).noises([1] * 60)
    assert all(isinstance(noise, Gaussian) for noise in found)
    charged, _ = SumAccount.of(BUDGET.cap).approximate(Measured(Composed(tuple(noise.event for noise in found))))
    assert charged <= epsilon


def test_the_choice_follows_the_exact_quantile_of_the_normal_law() -> None:
    half_width = -math.log(0.05)  # of Laplace noise of scale 1
    between = half_width / 1.95998  # narrower by the quantile 1.959964, wider by 1.96
    assert is_gaussian_narrower([Gaussian(1, sigma=between)], [Laplace(1, 1)])
    assert not is_gaussian_narrower([Gaussian(1, sigma=half_width / 1.95995)], [Laplace(1, 1)])


def test_the_choice_does_not_depend_on_bounds() -> None:
    """Where both laws are nearly even, sensitivities of any size leave the law as it is."""
    sigma = -math.log(0.05) / 1.9599639845400543
    for near in (sigma * (1 - 1e-15), sigma, sigma * (1 + 1e-15)):
        laws = {
            is_gaussian_narrower([Gaussian(one, sigma=near)], [Laplace(one, 1)]) for one in (1, 3, 10**9 + 7, 2**40 - 1)
        }
        assert len(laws) == 1


def test_measurements_that_share_a_part_pay_for_it_once() -> None:
    parts = Allocation(Relation.ADD_REMOVE, Fraction(1)).divided(1.0, 1.0)
    found = noises(parts, (1.0, 1.0), [(1, 1), (2, 2), (3, 3)], places=[0, 1, 0], times=2)
    assert [noise.scale for noise in found] == [4, 8, 12]


@pytest.mark.parametrize("epsilon", [0.2, 1.0])
@pytest.mark.parametrize("count", [1, 4, 60])
def test_private_sql_and_statistics_get_the_same_noise(count: int, epsilon: float) -> None:
    delta = SumAccount.of(BUDGET.cap).slice
    measures = tuple(Measure(How.ROWS, f"rows {index}") for index in range(count))
    items = ReleaseItems(measures, (1.0,) * count, (), selects_keys=False, bounding=Bounding(1, 1))
    price = allocate(items, Target(epsilon=epsilon), BudgetTerms(Relation.ADD_REMOVE, delta), lambda _: 0.0)
    assert [noise.event for noise in price.noises] == [
        noise.event for noise in Allocation.of(BUDGET, epsilon).noises([1] * count)
    ]


def test_a_choice_in_each_of_several_groups_takes_its_part_in_all_of_them() -> None:
    cells = Candidates(Fraction(0), Fraction(1), 10, Kind.INTEGER)
    choice = PrivateChoice("quantile", Expression(exp.column("x"), Kind.INTEGER), None, Fraction(1, 2), cells, "median")
    items = ReleaseItems((), (), (choice,), selects_keys=False, bounding=Bounding(3, 1))
    price = allocate(items, Target(rho=0.3), BudgetTerms(), lambda _: 0.0)
    assert 3 * Fraction(price.choices[0].epsilon) ** 2 / 8 == pytest.approx(0.3, rel=1e-9)
    assert 3 * Fraction(price.choices[0].epsilon) ** 2 / 8 <= Fraction(0.3)
