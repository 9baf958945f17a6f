"""Groups, disjoint data, selection: what follows from theorems about one unit, by direct computation."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from tacit.accounting import delta, epsilon
from tacit.accounting.measures import approximate_zcdp, gaussian_mu, pure_epsilon, renyi
from tacit.privacy import Relation, events
from tacit.privacy.errors import UnknownEvent
from tests.unit.accounting import checker, truth

REPLACE = Relation.REPLACE_ONE


@pytest.mark.parametrize("size", [2, 3, 7])
@pytest.mark.parametrize("at", [1e-2, 1e-6])
def test_noise_protects_a_group_as_if_its_sum_moved_further(size: int, at: float) -> None:
    laplace = checker.Case(events.Grouped(events.Laplace(0.2), size), [lambda e: truth.laplace_fold(0.2 * size, 1, e)])
    gaussian = checker.Case(
        events.Grouped(events.Gaussian(4.0), size), [lambda e: truth.gaussian_delta(mpf(size) / 4, e)]
    )
    steps = truth.geometric(0.3 * size, 2 * size)
    geometric = checker.Case(events.Grouped(events.DiscreteLaplace(0.3, 2), size), [steps.delta])
    for case in (laplace, gaussian, geometric):
        checker.check(case, at)


@pytest.mark.parametrize("moves", [2, 3])
@pytest.mark.parametrize("at", [1e-2, 1e-6])
def test_discrete_gaussian_noise_protects_a_group(moves: int, at: float) -> None:
    law = truth.discrete_gaussian(4.0, moves)
    event = events.Grouped(events.DiscreteGaussian(4.0), moves)
    checker.check(checker.Case(event, [law.delta], is_worst=False), at)


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("at", [1e-2, 1e-4])
def test_pure_privacy_of_a_group_is_that_of_geometric_noise(size: int, at: float) -> None:
    """No chain of epsilon-close laws leads further apart: the trade-off put into itself says so."""
    law = truth.geometric(0.5 * size, size)
    checker.check(checker.Case(events.Grouped(events.Pure(0.5), size), [law.delta]), at)


def trade_off(errors: mpf, size: float) -> mpf:
    """Return the least share of misses of a test between epsilon-close laws, at a share of false alarms."""
    return max(mpf(0), 1 - mpmath.exp(size) * errors, mpmath.exp(-size) * (1 - errors))


@pytest.mark.parametrize("size", [2, 3, 5])
def test_the_trade_off_of_pure_privacy_put_into_itself_is_that_of_geometric_noise(size: int) -> None:
    epsilon_ = 0.5
    law = truth.geometric(epsilon_ * size, size)
    for share in np.linspace(0, 1, 41):
        alarms = mpf(share)
        for _ in range(size):
            alarms = 1 - trade_off(alarms, epsilon_)
        chain = 1 - alarms
        knots = [epsilon_ * size * (1 - mpf(2) * j / size) for j in range(size + 1)]
        lines = [1 - law.delta(knot) - mpmath.exp(knot) * mpf(share) for knot in knots]
        lines += [mpmath.exp(-knot) * (1 - law.delta(knot) - mpf(share)) for knot in knots]
        assert float(max(mpf(0), *lines)) == pytest.approx(float(chain), abs=1e-12)


def close_laws(middles: np.ndarray, step: float, generator: np.random.Generator) -> np.ndarray:
    """Return a random law for each middle law whose log-ratios to it lie within `step`: shifted to sum to one."""
    wished = generator.choice([-4 * step, 4 * step], middles.shape)
    lower, upper = np.full((len(middles), 1), -6 * step), np.full((len(middles), 1), 6 * step)
    for _ in range(80):
        shift = (lower + upper) / 2
        is_heavy = (middles * np.exp(np.clip(wished + shift, -step, step))).sum(axis=1, keepdims=True) > 1
        lower, upper = np.where(is_heavy, lower, shift), np.where(is_heavy, shift, upper)
    return middles * np.exp(np.clip(wished + lower, -step, step))


def test_random_chains_of_private_laws_never_lead_further_than_is_charged_and_nearly_as_far() -> None:
    generator, step = np.random.default_rng(7), 0.4
    middles = generator.dirichlet(np.ones(4), 3000)
    first, last = (close_laws(middles, step, generator) for _ in range(2))
    for law in (first, last):
        assert np.abs(law.sum(axis=1) - 1).max() < 1e-12
        assert np.abs(np.log(law / middles)).max() <= step * (1 + 1e-9)
    for at in (0.0, 0.2, 0.5):
        upper = delta(events.Grouped(events.Pure(step), 2), at).upper
        found = np.maximum(first - np.exp(at) * last, 0).sum(axis=1).max()
        assert upper / 2 < found <= upper * (1 + 1e-9)


def test_an_epsilon_and_a_delta_of_a_group_hold_along_a_chain() -> None:
    """Three laws, each (epsilon, delta)-close to the next: what is given away first is spread by the steps after."""
    size, given = 0.5, 1e-3
    growth = math.expm1(3 * size) / math.expm1(size)
    bound = epsilon(events.Grouped(events.Approximate(size, given), 3), given * growth * 1.001)
    assert bound.upper <= 3 * size * 1.001
    assert bound.lower == 0
    likely = [mpf("0.1"), mpf("0.1") * mpmath.exp(size) + given]
    for _ in range(2):
        likely.append(likely[-1] * mpmath.exp(size) + given)
    true = likely[3] - mpmath.exp(3 * size) * likely[0]
    assert delta(events.Grouped(events.Approximate(size, given), 3), 3 * size).upper >= true * (1 - mpf(10) ** -12)


@pytest.mark.parametrize("size", [1000, 10**9, 2**400], ids=["thousand", "milliard", "absurd"])
def test_a_group_of_any_size_has_a_price_or_none_and_never_an_accident(size: int) -> None:
    for inner in (events.Approximate(1.0, 1e-6), events.Gaussian(1.0), events.Pure(1e-6), events.ZeroConcentrated(0.1)):
        assert epsilon(events.Grouped(inner, size), 1e-5).upper > 0


@pytest.mark.parametrize(
    "event",
    [
        events.NoisyMax(5.0),
        events.Grouped(events.RandomizedResponse(1.0), 3),
        events.Grouped(events.Approximate(0.5, 1e-7), 2),
        events.Sampled(0.1, events.NoisyMax(2.0)),
    ],
)
def test_what_is_only_bounded_from_above_has_no_lower_end(event: events.Event) -> None:
    assert epsilon(event, 1e-5).lower == 0
    assert delta(event, 0.1).lower == 0


def test_the_greatest_of_two_noisy_counts_tells_less_than_both() -> None:
    """One vote moves from one candidate to the other: the difference moves by 2, the answer is its sign."""
    sigma, at = 5.0, 1e-3
    bound = epsilon(events.NoisyMax(sigma), at)
    worst = mpf(0)
    for difference in range(-40, 41):
        p, q = (truth.upper_normal(-mpf(d) / (sigma * mpmath.sqrt(2))) for d in (difference, difference - 2))
        law = truth.Finite(((p, q), (1 - p, 1 - q)))
        worst = max(worst, law.delta(bound.upper), law.turned().delta(bound.upper))
    assert worst <= at


def test_a_part_without_a_lower_end_takes_nothing_from_those_with_one() -> None:
    alone = epsilon(events.Repeated(events.Laplace(0.1), 50), 1e-6)
    together = epsilon(
        events.Composed((events.Repeated(events.Laplace(0.1), 50), events.NoisyMax(50.0), events.Exponential(0.1))),
        1e-6,
    )
    assert together.lower >= alone.lower * 0.99
    assert together.upper >= alone.upper


@pytest.mark.parametrize("at", [1e-2, 1e-6])
def test_disjoint_releases_cost_the_worst_way_to_lie_in_them(at: float) -> None:
    """Of two splits, a unit lies in one part each: four ways, each composed with what all share."""
    first = events.Disjoint((events.Laplace(0.3), events.Pure(0.5)))
    second = events.Disjoint((events.Gaussian(2.0), events.Laplace(0.2)))
    bound = epsilon(events.Composed((first, second, events.Pure(0.1))), at)
    ways = [
        epsilon(events.Composed((one, other, events.Pure(0.1))), at) for one in first.events for other in second.events
    ]
    assert bound.upper == max(way.upper for way in ways)
    assert bound.lower == max(way.lower for way in ways)


WRAPPED = [
    lambda inner: inner,
    lambda inner: events.Grouped(inner, 2),
    lambda inner: events.Selected(inner, 1.0, 0.1),
    lambda inner: events.Repeated(inner, 3),
    lambda inner: events.Composed((events.Pure(1.0, under=REPLACE), inner)),
    lambda inner: events.SampledWithoutReplacement(1, 10, inner),
]
UNPRICED = [
    events.Disjoint((events.Gaussian(1.0, under=REPLACE), events.Gaussian(2.0, under=REPLACE))),
    events.Sampled(0.1, events.Gaussian(1.0, under=REPLACE)),
]


@pytest.mark.parametrize("inner", UNPRICED)
@pytest.mark.parametrize("wrap", WRAPPED)
def test_what_is_not_priced_is_refused_however_it_is_wrapped(wrap, inner: events.Event) -> None:  # type: ignore[no-untyped-def]
    event = wrap(inner)
    with pytest.raises(UnknownEvent):
        epsilon(event, 1e-5)
    with pytest.raises(UnknownEvent):
        delta(event, 1.0)


@pytest.mark.parametrize("inner", UNPRICED)
@pytest.mark.parametrize("wrap", WRAPPED)
def test_measures_that_decide_do_not_guess_a_price(wrap, inner: events.Event) -> None:  # type: ignore[no-untyped-def]
    """A replaced unit may move from one part of disjoint data to another, so the dearest part is no bound."""
    event = wrap(inner)
    assert pure_epsilon(event) == approximate_zcdp(event)[0] == gaussian_mu(event) == renyi(event, 8.0) == math.inf


@pytest.mark.parametrize(
    "wrap",
    [
        lambda inner: inner,
        lambda inner: events.Grouped(inner, 2),
        lambda inner: events.Repeated(inner, 3),
        lambda inner: events.Composed((events.Pure(1.0), inner)),
        lambda inner: events.Disjoint((events.Pure(1.0), inner)),
        lambda inner: events.Sampled(0.1, inner),
        lambda inner: events.SampledWithoutReplacement(1, 10, inner),
    ],
)
def test_shuffled_reports_have_no_price_where_their_number_may_change(wrap) -> None:  # type: ignore[no-untyped-def]
    event = wrap(events.Shuffled(1.0, 100, under=Relation.ADD_REMOVE))
    assert pure_epsilon(event) == approximate_zcdp(event)[0] == gaussian_mu(event) == renyi(event, 8.0) == math.inf
    with pytest.raises(UnknownEvent):
        epsilon(event, 1e-5)


def test_an_epsilon_without_a_delta_is_pure() -> None:
    event = events.Approximate(0.3, 0.0)
    assert pure_epsilon(event) == 0.3
    assert epsilon(event, 0).upper == 0.3
    assert pure_epsilon(events.Approximate(0.3, 5e-324)) == math.inf


@pytest.mark.parametrize(("shape", "factor"), [(0.0, 2), (1.0, 3), (0.5, 2.5)])
def test_the_best_of_many_runs_costs_two_and_its_shape_times_epsilon(shape: float, factor: float) -> None:
    assert epsilon(events.Selected(events.Pure(0.2), shape, 0.01), 0).upper == pytest.approx(0.2 * factor)


@pytest.mark.parametrize("shape", [0.0, 1e-300, 1e-18, 1e-9])
def test_a_shape_next_to_nothing_is_the_logarithmic_one(shape: float) -> None:
    found = epsilon(events.Selected(events.Gaussian(1.0), shape, 0.1), 1e-5).upper
    assert found == pytest.approx(epsilon(events.Selected(events.Gaussian(1.0), 0.0, 0.1), 1e-5).upper, rel=1e-6)


def test_selection_is_paid_for_when_the_number_of_runs_is_geometric() -> None:
    """Randomized response whose best run wins: the chance of a one among the runs, worked out from the law of runs."""
    size, stop = mpf(0.5), mpf(0.2)
    likely = 1 / (1 + mpmath.exp(-size))
    some = [1 - stop * (1 - p) / (1 - (1 - stop) * (1 - p)) for p in (likely, 1 - likely)]
    law = truth.Finite(((some[0], some[1]), (1 - some[0], 1 - some[1])))
    for at in (1e-2, 1e-6):
        bound = epsilon(events.Selected(events.Pure(float(size)), 1.0, float(stop)), at)
        assert max(law.delta(bound.upper), law.turned().delta(bound.upper)) <= at


@pytest.mark.parametrize("count", [3, 10, 1000])
def test_sums_of_epsilons_lie_between_both_ends(count: int) -> None:
    bound = epsilon(events.Repeated(events.Pure(0.1), count), 0)
    exact = count * Fraction(0.1)
    assert Fraction(bound.lower) <= exact <= Fraction(bound.upper)
