"""Both ends of every bound hold against curves that were worked out in other ways (`truth`)."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tacit import accounting
from tacit.accounting import composition, loss
from tacit.accounting.pairs import AtomPair, GaussianPair
from tacit.privacy import events
from tacit.privacy.events import Composed, Event, Repeated
from tests.unit.accounting import truth

Curve = Callable[[float], Any]
DELTAS = (1e-2, 1e-5, 1e-10, 1e-25)


def hold(event: Event, curve: Curve, delta: float) -> None:
    """Require that the true delta is at most `delta` at the upper end, and at least that at the lower end."""
    bound = accounting.epsilon(event, delta)
    assert bound.lower <= bound.upper
    assert float(curve(bound.upper)) <= delta * (1 + 1e-9), f"the upper end {bound.upper} is below the truth"
    if bound.lower > 0:
        assert float(curve(bound.lower)) >= delta * (1 - 1e-9), f"the lower end {bound.lower} is above the truth"


def worst(*laws: Any) -> Curve:
    return lambda epsilon: max(law.delta(epsilon) for law in laws)


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize(("epsilon", "times"), [(0.1, 7), (1.0, 3), (0.02, 400), (3.0, 20)])
def test_pure_releases_keep_to_optimal_composition(epsilon: float, times: int, delta: float) -> None:
    hold(Repeated(events.Pure(epsilon), times), lambda at: truth.pure_fold(epsilon, times, at), delta)
    hold(Repeated(events.RandomizedResponse(epsilon), times), lambda at: truth.pure_fold(epsilon, times, at), delta)


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize(("epsilon", "times"), [(0.1, 1), (1.0, 2), (2.5, 3), (0.4, 4)])
def test_laplace_noise_keeps_to_its_exact_convolution(epsilon: float, times: int, delta: float) -> None:
    hold(Repeated(events.Laplace(epsilon), times), lambda at: truth.laplace_fold(epsilon, times, at), delta)


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("sigma", [0.3, 1.0, 20.0])
def test_gaussian_noise_keeps_to_its_closed_form_also_on_the_lattice(sigma: float, delta: float) -> None:
    curve = lambda at: truth.gaussian_delta(1 / sigma, at)  # noqa: E731
    hold(events.Gaussian(sigma), curve, delta)
    lower, upper = composition._epsilon([(GaussianPair(1 / sigma), 1)], delta, composition.WIDTH)
    assert float(curve(upper)) <= delta * (1 + 1e-9)
    assert lower == 0 or float(curve(lower)) >= delta * (1 - 1e-9)


@pytest.mark.parametrize("delta", [1e-2, 1e-5, 1e-12])
@pytest.mark.parametrize(("rate", "sigma"), [(0.01, 1.0), (0.5, 2.0), (1e-6, 0.6), (0.2, 0.4)])
def test_a_sampled_gaussian_keeps_to_the_worse_of_removal_and_addition(rate: float, sigma: float, delta: float) -> None:
    laws = [truth.Sampled(truth.Gaussian(1 / sigma), rate, addition) for addition in (False, True)]
    hold(events.Sampled(rate, events.Gaussian(sigma)), worst(*laws), delta)


@pytest.mark.parametrize("delta", [1e-3, 1e-6])
@pytest.mark.parametrize(("rate", "epsilon"), [(0.1, 1.0), (0.5, 3.0)])
def test_two_sampled_laplace_releases_keep_to_their_integral(rate: float, epsilon: float, delta: float) -> None:
    laws = [truth.Sampled(truth.Laplace(epsilon), rate, addition) for addition in (False, True)]
    event = Repeated(events.Sampled(rate, events.Laplace(epsilon)), 2)
    hold(event, lambda at: max(truth.twice(law, law, at) for law in laws), delta)


@pytest.mark.parametrize("delta", [1e-3, 1e-6])
def test_different_kinds_together_keep_to_their_integral(delta: float) -> None:
    gaussian, laplace = truth.Whole(truth.Gaussian(0.5)), truth.Whole(truth.Laplace(0.7))
    event = Composed([events.Gaussian(2.0), events.Laplace(0.7)])
    hold(event, lambda at: truth.twice(laplace, gaussian, at), delta)


@pytest.mark.parametrize("steps", [1, 2, 3, 10])
@pytest.mark.parametrize("delta", [1e-2, 1e-4])
def test_geometric_noise_keeps_to_its_own_curve(steps: int, delta: float) -> None:
    hold(events.DiscreteLaplace(1.5, steps), truth.geometric(1.5, steps).delta, delta)


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_geometric_noise_meets_the_laplace_curve_at_its_knots_and_lies_above_it_between(steps: int) -> None:
    law, smooth = truth.geometric(1.5, steps), truth.Whole(truth.Laplace(1.5))
    for j in range(steps + 1):
        knot = 1.5 * (1 - 2 * j / steps)
        assert float(law.delta(knot)) == pytest.approx(float(smooth.delta(knot)), abs=1e-12)
    for epsilon in np.linspace(0, 1.5, 13):
        assert law.delta(epsilon) >= smooth.delta(epsilon) - 1e-15


@pytest.mark.parametrize("delta", [1e-3, 1e-6])
@pytest.mark.parametrize(("epsilon", "times"), [(0.5, 1), (1.0, 3), (0.2, 30)])
def test_the_exponential_mechanism_keeps_above_every_two_outcome_mechanism(
    epsilon: float, times: int, delta: float
) -> None:
    """Losses t and t - epsilon, for each split t: all of them have range epsilon."""
    splits = []
    for t in np.linspace(0.05, 0.95, 19) * epsilon:
        p = (np.exp(epsilon) - np.exp(t)) / (np.exp(epsilon) - 1)
        splits.append(truth.two_point_fold(p, p * np.exp(-t), times))
    bound = accounting.epsilon(Repeated(events.Exponential(epsilon), times), delta)
    assert max(float(law.delta(bound.upper)) for law in splits) <= delta * (1 + 1e-6)
    assert bound.lower == 0 or max(float(law.delta(bound.lower)) for law in splits) >= delta * (1 - 1e-6)


@pytest.mark.parametrize(("sigma", "move"), [(2.0, 1), (5.0, 2), (1.0, 1), (4.0, 3)])
@pytest.mark.parametrize("delta", [1e-3, 1e-8])
def test_discrete_gaussian_noise_keeps_to_its_exact_curve(sigma: float, move: int, delta: float) -> None:
    """sigma is the deviation in steps; the event's is over the sensitivity, which is `move` steps."""
    law = truth.discrete_gaussian(sigma, move)
    hold(events.DiscreteGaussian(sigma / move, float(move)), law.delta, delta)


def test_the_deltas_given_back_are_at_most_those_asked_for() -> None:
    for event in (
        Repeated(events.Sampled(0.02, events.Gaussian(1.3)), 500),
        Repeated(events.Laplace(0.2), 50),
        Composed([events.Exponential(0.5), events.Gaussian(3.0), events.Approximate(0.1, 1e-9)]),
        Repeated(events.SampledWithoutReplacement(10, 1000, events.Gaussian(2.0, under="replace-one")), 100),
    ):
        for delta in (1e-3, 1e-6):
            upper = accounting.epsilon(event, delta).upper
            assert accounting.delta(event, upper).upper <= delta * (1 + 1e-4)


def sampled_truth(delta: float) -> None:
    laws = [truth.Sampled(truth.Gaussian(1.0), 0.1, addition) for addition in (False, True)]
    event = Repeated(events.Sampled(0.1, events.Gaussian(1.0)), 2)
    hold(event, lambda at: max(truth.twice(law, law, at) for law in laws), delta)


def test_giving_only_one_direction_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the addition, which is the milder one here."""
    sampled_truth(1e-5)
    monkeypatch.setattr(composition, "_directions", lambda _: (True,))
    with pytest.raises(AssertionError):
        sampled_truth(1e-5)


def test_dropping_the_upper_tail_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = loss.discretize

    def cut(pair: Any, step: float, tail: float, count: int) -> Any:
        return whole(pair, step, 1e-4, count)._replace(given_away=0.0)

    monkeypatch.setattr(composition, "discretize", cut)
    with pytest.raises(AssertionError):
        sampled_truth(1e-6)


def test_rounding_losses_down_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loss, "_mass_moved_up", lambda p, scaled_q, step, doubt: np.zeros_like(p))
    with pytest.raises(AssertionError):
        hold(Repeated(events.Pure(0.1003), 7), lambda at: truth.pure_fold(0.1003, 7, at), 1e-5)


def test_half_the_sensitivity_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.accounting.dominating.GaussianPair", lambda mu: GaussianPair(mu / 2))
    with pytest.raises(AssertionError):
        sampled_truth(1e-5)


def test_an_atom_pair_with_a_gap_gives_it_away_whole() -> None:
    pair = AtomPair((-0.1, 0.1), (0.4, 0.5), only_p=0.1, only_q=0.1)
    lower, upper = composition._epsilon([(pair, 1)], 1e-3, composition.WIDTH)
    assert upper == np.inf
    assert lower <= upper
