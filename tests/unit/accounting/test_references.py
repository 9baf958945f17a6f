"""Known numbers: certified brackets and published tables, and what must be finite."""

import math

import pytest

from tacit import accounting
from tacit.accounting.conversions import epsilon_of_renyi
from tacit.accounting.renyi import ORDERS, renyi_curve
from tacit.privacy import events
from tacit.privacy.errors import InvalidInput, MixedRelations, UnknownEvent
from tacit.privacy.events import Composed, Disjoint, Grouped, Repeated

TRAININGS = [
    # sigma, rate, steps, delta, certified lower end, the best upper end known, Rényi
    (1.0, 0.01, 1_000, 1e-5, 1.8181, 1.8282, 2.1014),
    (1.0, 0.01, 10_000, 1e-5, 6.1774, 6.1877, 6.7127),
    (1.0, 0.01, 100_000, 1e-5, 25.372, 25.573, 27.232),
    (4.0, 0.01, 10_000, 1e-5, 0.93681, 0.94700, 1.0355),
    (4.0, 0.01, 40_000, 1e-5, 2.0229, 2.0334, 2.2097),
    (0.8, 0.004, 10_000, 1e-6, 4.0182, 4.0285, 4.4600),
]
"""Lower ends of prv-accountant 0.2.0, upper ends of dp-accounting 0.6.0, and Rényi bounds of Opacus 1.6.0."""


@pytest.mark.parametrize(("sigma", "rate", "steps", "delta", "least", "best", "renyi"), TRAININGS)
def test_trainings_are_bounded_as_tightly_as_the_best_and_never_below_what_is_certain(
    sigma: float, rate: float, steps: int, delta: float, least: float, best: float, renyi: float
) -> None:
    event = Repeated(events.Sampled(rate, events.Gaussian(sigma)), steps)
    bound = accounting.epsilon(event, delta)
    assert least <= bound.upper <= best * 1.001
    assert bound.upper / bound.lower - 1 <= 0.01
    values = zip(ORDERS.tolist(), renyi_curve(event).tolist(), strict=True)
    assert min(epsilon_of_renyi(order, value, delta) for order, value in values) == pytest.approx(renyi, rel=0.005)


@pytest.mark.parametrize(
    ("times", "low", "high"), [(10, 0.98996, 0.98997), (100, 4.22032, 4.22037), (1000, 17.4225, 17.4248)]
)
def test_many_laplace_releases_lie_in_the_known_bracket(times: int, low: float, high: float) -> None:
    bound = accounting.epsilon(Repeated(events.Laplace(0.1), times), 1e-5)
    assert low <= bound.upper <= high * 1.0001
    assert bound.lower <= high


@pytest.mark.parametrize(("sigma", "times", "epsilon"), [(1.0, 1, 4.37718), (1.0, 100, 91.8173)])
def test_gaussian_releases_have_their_closed_form(sigma: float, times: int, epsilon: float) -> None:
    bound = accounting.epsilon(Repeated(events.Gaussian(sigma), times), 1e-5)
    assert bound.upper == pytest.approx(epsilon, rel=1e-5)
    assert bound.upper - bound.lower < 1e-6 * bound.upper


@pytest.mark.parametrize("delta", [1e-20, 1e-30, 1e-100])
def test_closed_forms_are_finite_however_small_delta_is(delta: float) -> None:
    assert math.isfinite(accounting.epsilon(events.Gaussian(1.0), delta).upper)
    assert math.isfinite(accounting.epsilon(Repeated(events.Sampled(0.01, events.Gaussian(1.0)), 100), delta).upper)


def test_mixed_releases_cost_less_than_by_any_single_measure() -> None:
    parts = []
    for index in range(60):
        parts += [events.Laplace(0.01 + 1e-4 * index), events.Gaussian(40 + index / 10), events.Exponential(0.02)]
    event = Composed(parts)
    best = accounting.epsilon(event, 1e-6).upper
    assert all(best <= bound.upper for bound in accounting.compare(event, 1e-6))


@pytest.mark.parametrize("delta", [0, 1e-6])
def test_disjoint_releases_cost_the_dearest(delta: float) -> None:
    event = Disjoint([events.Laplace(0.5), events.Laplace(0.2), events.Pure(0.1)])
    assert accounting.epsilon(event, delta).upper == pytest.approx(
        accounting.epsilon(events.Laplace(0.5), delta).upper, rel=1e-3
    )


def test_groups_cost_in_proportion_for_pure_releases() -> None:
    assert accounting.epsilon(Grouped(events.Laplace(0.1), 3), 0).upper == pytest.approx(0.3)
    grouped = accounting.epsilon(Grouped(events.Gaussian(6.0), 3), 1e-6)
    assert grouped.upper == pytest.approx(accounting.epsilon(events.Gaussian(2.0), 1e-6).upper, rel=1e-12)


def test_trees_and_noisy_maxima_are_gaussian_noise_by_another_name() -> None:
    tree = accounting.epsilon(events.TreeAggregation(10.0, 1024), 1e-5).upper
    assert tree == pytest.approx(accounting.epsilon(events.Gaussian(10 / math.sqrt(11)), 1e-5).upper, rel=1e-9)
    votes = accounting.epsilon(events.NoisyMax(40.0), 1e-5).upper
    assert votes == pytest.approx(accounting.epsilon(events.Gaussian(40 / math.sqrt(2)), 1e-5).upper, rel=1e-9)


def test_selecting_the_best_of_many_runs_costs_three_epsilons_at_most_for_geometric_stopping() -> None:
    event = events.Selected(events.Pure(0.1), 1.0, 0.01)
    assert accounting.epsilon(event, 0).upper == pytest.approx(0.3)


def test_shuffling_pays_for_many_and_never_harms() -> None:
    many = accounting.epsilon(events.Shuffled(1.0, 1_000_000), 1e-6).upper
    few = accounting.epsilon(events.Shuffled(1.0, 10), 1e-6).upper
    assert many < 0.05
    assert 0.9999 < few <= 1.0


@pytest.mark.parametrize(
    "event",
    [
        events.Shuffled(1.0, 100, under="add-remove"),
        events.Sampled(0.1, events.Gaussian(1.0, under="replace-one")),
        Disjoint([events.Laplace(1.0, under="replace-one")]),
    ],
)
def test_what_no_theorem_covers_is_refused(event: events.Event) -> None:
    with pytest.raises(UnknownEvent):
        accounting.epsilon(event, 1e-6)
    with pytest.raises(UnknownEvent):
        accounting.delta(event, 1.0)


def test_relations_are_never_mixed() -> None:
    with pytest.raises(MixedRelations):
        Composed([events.Laplace(1.0), events.Laplace(1.0, under="replace-one")])


@pytest.mark.parametrize("delta", [-1e-9, 1.0, 2.0, math.nan])
def test_a_delta_outside_its_range_is_refused(delta: float) -> None:
    with pytest.raises(InvalidInput):
        accounting.epsilon(events.Laplace(1.0), delta)


def test_what_is_no_event_is_refused() -> None:
    with pytest.raises(UnknownEvent):
        accounting.epsilon("laplace", 1e-6)  # type: ignore[arg-type]


def test_the_classical_chain_of_textbooks_is_the_worst_of_the_true_bounds() -> None:
    event = events.Repeated(events.Sampled(0.01, events.Gaussian(6.0)), 1000)
    bounds = {bound.method: bound.upper for bound in accounting.compare(event, 1e-5)}
    chain = bounds["classical Gaussian, sampled, advanced composition"]
    one = math.sqrt(2 * math.log(1.25 / (1e-5 / 2 / 1000 / 0.01))) / 6
    assert one < 1
    each = 2 * 0.01 * one
    assert chain == pytest.approx(math.sqrt(2000 * math.log(2e5)) * each + 1000 * each * math.expm1(each))
    assert bounds["privacy loss distribution"] < bounds["Rényi"] < chain


def test_the_classical_chain_is_no_bound_where_a_release_has_an_epsilon_of_one_or_more() -> None:
    event = events.Repeated(events.Sampled(0.01, events.Gaussian(1.0)), 1000)
    (chain,) = [bound for bound in accounting.compare(event, 1e-5) if bound.method.startswith("classical")]
    assert chain.upper == math.inf
    assert "is no bound, since a release has epsilon 5.43" in chain.method


def test_one_classical_gaussian_is_the_textbook_formula() -> None:
    (chain,) = [one for one in accounting.compare(events.Gaussian(6.0), 1e-5) if one.method == "classical Gaussian"]
    assert chain.upper == pytest.approx(math.sqrt(2 * math.log(1.25e5)) / 6)


def test_no_classical_chain_is_shown_for_other_noise() -> None:
    assert not [one for one in accounting.compare(events.Laplace(0.1), 1e-5) if one.method.startswith("classical")]
