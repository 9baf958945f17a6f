"""Costs that must not be lower: each value is worked out by hand from the inequality that its function states."""

import math

from tacit.accounting.measures import approximate_zcdp, mu_of_pure, smoothed_mu
from tacit.accounting.parts import group_event, simplify
from tacit.privacy import Relation, events


def test_a_smoothed_gaussian_pays_for_four_steps_of_variance() -> None:
    assert 1 / math.sqrt(96) <= smoothed_mu(10.0, 1.0) < 1.0001 / math.sqrt(96)


def test_the_mu_of_a_tiny_pure_epsilon_is_not_below_its_slope_at_zero() -> None:
    assert math.sqrt(math.pi / 2) * 1e-120 <= mu_of_pure(1e-120) < 1.26e-120


def test_deltas_that_add_up_to_one_leave_no_rho() -> None:
    assert math.isinf(approximate_zcdp(events.Repeated(events.Approximate(0.1, 0.6), 2))[0])


def test_a_unit_that_is_exchanged_moves_two_paths_of_a_tree_less_their_root() -> None:
    noise = simplify(events.TreeAggregation(sigma=3.0, leaves=8, under=Relation.REPLACE_ONE))
    assert isinstance(noise, events.Gaussian)
    assert 0.9999 * 3 / math.sqrt(7) < noise.sigma <= 3 / math.sqrt(7)


def test_rho_grows_with_the_square_of_a_group() -> None:
    group = group_event(events.ZeroConcentrated(0.1), 3)
    assert isinstance(group, events.ZeroConcentrated)
    assert group.rho >= 0.9
