"""Noise on the integers: geometric and discrete Gaussian, on one coordinate and on several."""

import numpy as np
import pytest

from tacit.accounting import delta, epsilon
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
