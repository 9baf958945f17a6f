"""Noise on the integers: geometric and discrete Gaussian, on one coordinate and on several."""

import sys

import numpy as np
import pytest

from tacit.accounting import delta, dominating, epsilon
from tacit.accounting.pairs import lattice_pair
from tacit.privacy import events
from tests.unit.accounting import checker, truth


@pytest.mark.parametrize("steps", [1, 2, 4])
@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("at", [1e-2, 1e-5, 1e-15])
def test_geometric_noise_several_times_costs_what_its_outcomes_say(steps: int, times: int, at: float) -> None:
    together = truth.all_together([truth.geometric(0.9, steps)] * times)
    event = events.Repeated(events.DiscreteLaplace(0.9, steps), times)
    checker.check(checker.Case(event, [together.delta]), at)


@pytest.mark.parametrize("at", [0.0, 0.15, 0.5, 0.85])
def test_chords_join_the_points_where_geometric_noise_meets_laplace_noise(at: float) -> None:
    steps, size = 4, 1.0
    law = truth.geometric(size, steps)
    knots = [size * (1 - 2 * j / steps) for j in range(steps + 1)]
    low, high = max(knot for knot in knots if knot <= at), min(knot for knot in knots if knot > at)
    share = (np.exp(at) - np.exp(low)) / (np.exp(high) - np.exp(low))
    chord = (1 - share) * truth.laplace_fold(size, 1, low) + share * truth.laplace_fold(size, 1, high)
    assert float(law.delta(at)) == pytest.approx(float(chord), rel=1e-12)


@pytest.mark.parametrize("at", [1e-2, 1e-6])
@pytest.mark.parametrize("times", [1, 20])
def test_more_steps_in_a_multiple_never_cost_more(times: int, at: float) -> None:
    found = [epsilon(events.Repeated(events.DiscreteLaplace(0.5, steps), times), at) for steps in (1, 3, 6, 24, 96)]
    smooth = epsilon(events.Repeated(events.Laplace(0.5), times), at)
    for fewer, more in zip(found, [*found[1:], smooth], strict=True):
        assert more.lower <= fewer.upper
        assert more.upper <= fewer.upper * (1 + 1e-4)


@pytest.mark.parametrize("steps", [4099, 99_991, 2**40])
def test_where_there_are_too_many_steps_to_list_both_ends_still_hold(steps: int) -> None:
    """The exact curve lies between that of Laplace noise and, by less than its distance to a few steps, above it."""
    event = events.Repeated(events.DiscreteLaplace(0.5, steps), 20)
    smooth = epsilon(events.Repeated(events.Laplace(0.5), 20), 1e-6)
    bound = epsilon(event, 1e-6)
    assert bound.upper >= smooth.lower
    assert bound.lower <= smooth.upper


@pytest.mark.parametrize("at", [1e-1, 1e-3, 1e-9])
@pytest.mark.parametrize(("steps", "times"), [(3, 1), (3, 2), (4, 1), (4, 3)])
def test_fewer_steps_are_listed_than_there_are_only_where_that_costs_more(
    steps: int, times: int, at: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With two steps as the most that are listed: three are priced as one, and four as two."""
    monkeypatch.setattr(dominating, "STEPS_MAX", 2)
    law = truth.all_together([truth.geometric(0.9, steps)] * times)
    event = events.Repeated(events.DiscreteLaplace(0.9, steps), times)
    case = checker.Case(event, [law.delta])
    checker.check(case, at)
    checker.check_delta(case, delta(event, 0.0), 0.0)


@pytest.mark.parametrize("epsilon", [1e308, sys.float_info.max])
def test_geometric_noise_of_the_greatest_epsilon_has_losses(epsilon: float) -> None:
    losses, masses = lattice_pair(epsilon, 18).atoms
    assert losses.max() == epsilon == -losses.min()
    assert masses.tolist() == [1.0, *[0.0] * 18]


@pytest.mark.parametrize(("epsilon", "steps"), [(1e-9, 4096), (1e-6, 1000), (0.1, 7), (5.0, 3), (600.0, 2)])
def test_the_masses_of_geometric_noise_are_precise_and_whole(epsilon: float, steps: int) -> None:
    losses, masses = lattice_pair(epsilon, steps).atoms
    exact = truth.geometric(epsilon, steps).outcomes if steps < 50 else None
    assert sum(truth.mpf(mass) for mass in masses.tolist()) == pytest.approx(1, abs=1e-14)
    assert masses[1:-1] == pytest.approx(
        np.exp(losses[1:-1] / 2 - epsilon / 2) * np.tanh(epsilon / steps / 2), rel=1e-9
    )
    if exact is not None:
        assert masses == pytest.approx([float(p) for p, _ in exact], rel=1e-12)


@pytest.mark.parametrize("at", [1e-2, 1e-5, 1e-9])
@pytest.mark.parametrize("moves", [(1, 1), (2, 1), (1, 1, 1)])
def test_discrete_gaussian_noise_on_several_coordinates_is_paid_for(moves: tuple[int, ...], at: float) -> None:
    """All outcomes at once, as a sum of positive doubles."""
    deviation, length = 3.0, sum(move**2 for move in moves) ** 0.5
    p, q = np.ones(1), np.ones(1)
    for move in moves:
        outcomes = np.array(truth.discrete_gaussian(deviation, move).outcomes, dtype=np.float64)
        outcomes = outcomes[outcomes.sum(axis=1) > 1e-25]
        p, q = np.outer(p, outcomes[:, 0]).ravel(), np.outer(q, outcomes[:, 1]).ravel()
    upper = epsilon(events.DiscreteGaussian(deviation / length * (1 - 1e-15), length), at).upper
    assert np.maximum(p - np.exp(upper) * q, 0).sum() <= at


@pytest.mark.parametrize("sigma", [0.6, 1.0, 2.5])
def test_narrow_discrete_gaussian_noise_is_paid_for(sigma: float) -> None:
    law = truth.discrete_gaussian(sigma, 1)
    for at in (1e-2, 1e-5, 1e-10):
        checker.check(checker.Case(events.DiscreteGaussian(sigma), [law.delta]), at)


def test_wide_discrete_gaussian_noise_costs_hardly_more_than_continuous_noise() -> None:
    discrete = epsilon(events.Repeated(events.DiscreteGaussian(2.0, 50.0), 10), 1e-6).upper
    smooth = epsilon(events.Repeated(events.Gaussian(2.0), 10), 1e-6).upper
    assert smooth <= discrete <= smooth * 1.002
    assert delta(events.DiscreteGaussian(2.0, 50.0), 1.0).upper >= delta(events.Gaussian(2.0), 1.0).lower


def scalar(deviation: float, move: int) -> events.DiscreteGaussian:
    return events.DiscreteGaussian(deviation / move, float(move), scalar=True)


@pytest.mark.parametrize("at", [0.05, 1e-5, 1e-10, 1e-30])
@pytest.mark.parametrize("move", [1, 2, 5])
@pytest.mark.parametrize("deviation", [0.3, 0.6, 1.0, 2.5, 7.0, 30.0])
def test_discrete_gaussian_noise_on_one_integer_has_its_own_price(deviation: float, move: int, at: float) -> None:
    event = scalar(deviation, move)
    bound = checker.check(checker.Case(event, [truth.discrete_gaussian(event.sigma * move, move).delta]), at)
    assert bound.upper <= bound.lower * 1.02


@pytest.mark.parametrize("at", [0.05, 1e-6, 1e-12])
@pytest.mark.parametrize(("deviation", "move", "times"), [(0.5, 1, 7), (1.0, 1, 40), (3.0, 2, 10), (6.0, 1, 12)])
def test_composed_discrete_gaussian_noise_on_one_integer_has_its_own_price(
    deviation: float, move: int, times: int, at: float
) -> None:
    event = scalar(deviation, move)
    law = truth.discrete_gaussian_fold(event.sigma * move, move, times)
    bound = checker.check(checker.Case(events.Repeated(event, times), [law]), at)
    assert bound.upper <= bound.lower * 1.02


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("rate", [0.5, 0.01])
@pytest.mark.parametrize(("deviation", "move"), [(0.7, 1), (1.5, 2)])
def test_sampled_discrete_gaussian_noise_on_one_integer_is_paid_for(
    deviation: float, move: int, rate: float, times: int
) -> None:
    event, share = scalar(deviation, move), truth.mpf(rate)
    outcomes = truth.discrete_gaussian(event.sigma * move, move).outcomes
    seen = [(p, q) for p, q in outcomes if p + q > 1e-20]
    removal = truth.Finite(tuple(((1 - share) * q + share * p, q) for p, q in seen))
    laws = [truth.all_together([law] * times) for law in (removal, removal.turned())]
    for at in (1e-2, 1e-6):
        checker.check(
            checker.Case(events.Repeated(events.Sampled(rate, event), times), [one.delta for one in laws]), at
        )


@pytest.mark.parametrize("at", [1e-2, 1e-6])
@pytest.mark.parametrize("deviation", [0.6, 1.3, 4.0])
def test_an_integer_that_moves_less_than_the_sensitivity_costs_no_more(deviation: float, at: float) -> None:
    event = scalar(deviation, 3)
    upper = epsilon(event, at).upper
    for move in (1, 2, 3):
        assert truth.discrete_gaussian(event.sigma * 3, move).delta(upper) <= at


@pytest.mark.parametrize("sensitivity", [0.9999999999999999, 1.5, 2.0000000000000004])
def test_a_sensitivity_that_is_no_whole_number_of_steps_is_priced_as_spread_over_coordinates(
    sensitivity: float,
) -> None:
    one, several = (events.DiscreteGaussian(3.0, sensitivity, scalar=one) for one in (True, False))
    assert epsilon(one, 1e-6) == epsilon(several, 1e-6)


@pytest.mark.parametrize("times", [1, 100])
@pytest.mark.parametrize("deviation", [2.5, 20.0, 63.9, 64.1, 1000.0])
def test_noise_on_one_integer_never_costs_more_than_on_several(deviation: float, times: int) -> None:
    one, several = (events.Repeated(events.DiscreteGaussian(deviation, scalar=one), times) for one in (True, False))
    assert epsilon(one, 1e-6).upper <= epsilon(several, 1e-6).upper * (1 + 1e-4)


@pytest.mark.parametrize("deviation", [1e-200, 0.005, 0.01, 0.05, 64.0])
@pytest.mark.parametrize("move", [1.0, 2.0**60])
def test_extreme_noise_on_one_integer_is_priced_without_an_error(deviation: float, move: float) -> None:
    event = events.DiscreteGaussian(deviation / move, move, scalar=True)
    for at in (0.5, 1e-9, 1e-300):
        bound = epsilon(event, at)
        assert 0 <= bound.lower <= bound.upper
