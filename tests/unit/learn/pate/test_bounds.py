"""Bounds and sensitivities of PATE have the values of the authors' reference code (tensorflow/privacy, pate_2018)."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from bench.learning.pate_reference import (
    ORDERS,
    gnmax_renyi,
    lnmax_log_q,
    lnmax_renyi,
    log_probability_answered,
    loose_epsilon,
    published_gnss_renyi,
    threshold_renyi,
    tight_epsilon,
)
from tacit.learn.pate.aggregators import ConfidentGNMax, GNMax
from tacit.learn.pate.bounds import confident_moments, confident_renyi, gnmax_log_q
from tacit.learn.pate.sanitised_epsilon import data_dependent, gnss_renyi
from tacit.learn.pate.smooth_sensitivity import GNMaxBound, confident_local, gnmax_bound_at, smooth_bound
from tacit.privacy.errors import OutOfRange

A = np.array([230, 10, 5, 5, 0, 0, 0, 0, 0, 0])
B = np.array([150, 60, 20, 10, 5, 5, 0, 0, 0, 0])
C = np.array([90, 80, 40, 20, 10, 5, 5, 0, 0, 0])
MIX = np.repeat([A, B, C], [200, 50, 36], axis=0)
FIRST, SECOND = [200, 20, 10, 5, 5, 5, 2, 1, 1, 1], [120, 60, 30, 20, 10, 5, 2, 1, 1, 1]


def exactly(value: float) -> object:
    return pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize(
    ("votes", "sigma", "log_q"),
    [
        (FIRST, 40, -5.8577425283017615),
        (SECOND, 40, -1.0291011427515033),
        ([240, 10, 0, 0, 0, 0, 0, 0, 0, 0], 100, -0.8899356833282046),
    ],
)
def test_gnmax_errs_with_the_reference_probability(votes: list[int], sigma: float, log_q: float) -> None:
    assert gnmax_log_q(np.array([votes]), sigma)[0] == exactly(log_q)


@pytest.mark.parametrize(
    ("votes", "log_q"),
    [(FIRST, -6.409816559073228), (SECOND, -2.064715118248885), ([250] + [0] * 9, -9.014921134357142)],
)
def test_lnmax_errs_with_the_reference_probability(votes: list[int], log_q: float) -> None:
    assert lnmax_log_q(np.array([votes]), 20)[0] == exactly(log_q)


@pytest.mark.parametrize(
    ("log_q", "sigma", "order", "bound"),
    [
        (-5, 40, 10, 0.0020864807926273187),
        (-10, 40, 10, 2.3747833342818693e-05),
        (-20, 40, 10, 2.0089588179534135e-09),
        (-50, 40, 10, 5.794693559037195e-22),
        (-10, 40, 25, 9.113976254154333e-05),
        (-50, 40, 25, 3.958204085725366e-20),
        (-30, 100, 20, 4.544847986770835e-14),
        (-2.8, 1.5, 1.1, 0.48888888888888893),
        (-300, 15, 250, 1.1090262440945136),
    ],
)
def test_the_gnmax_bound_has_the_reference_value(log_q: float, sigma: float, order: float, bound: float) -> None:
    assert gnmax_renyi(log_q, sigma, order)[0, 0] == exactly(bound)
    if bound < order / sigma**2:
        assert GNMaxBound(sigma, 10, order).renyi(log_q) == exactly(bound)


@pytest.mark.parametrize(
    ("log_q", "epsilon", "order", "bound"),
    [
        (-10, 0.1, 10, 1.2137078793135588e-05),
        (-5, 0.1, 10, 0.001789431203196099),
        (-2, 0.1, 10, 0.03225720787708551),
        (-20, 0.1, 20, 8.33589303504244e-10),
        (-10, 1, 5, 0.0006854226851574563),
    ],
)
def test_the_lnmax_bound_has_the_reference_value(log_q: float, epsilon: float, order: float, bound: float) -> None:
    assert lnmax_renyi(log_q, epsilon, order)[0, 0] == exactly(bound)


@pytest.mark.parametrize(
    ("threshold", "sigma", "top", "log_answered"),
    [
        (200, 150, 200, math.log(0.5)),
        (200, 150, 240, -0.502300252345562),
        (200, 150, 120, -1.21435508548991),
        (300, 200, 250, -0.913061764811135),
    ],
)
def test_the_threshold_test_has_the_reference_values(threshold: int, sigma: int, top: int, log_answered: float) -> None:
    found = log_probability_answered(top, threshold, sigma)
    assert found == exactly(log_answered)
    independent = np.array([10, 20]) / (2 * sigma**2)
    assert threshold_renyi(found, sigma, [10, 20])[0] == pytest.approx(independent, rel=1e-6)


def composed_lnmax(votes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    dependent = lnmax_renyi(lnmax_log_q(votes, 20), 0.1, ORDERS).sum(axis=0)
    return dependent, lnmax_renyi(0.0, 0.1, ORDERS)[0] * len(votes)


def composed_gnmax(votes: np.ndarray, sigma: float) -> tuple[np.ndarray, np.ndarray]:
    dependent = gnmax_renyi(gnmax_log_q(votes, sigma), sigma, ORDERS).sum(axis=0)
    return dependent, len(votes) * ORDERS / sigma**2


def expected_confident(votes: np.ndarray, threshold: float, test_sigma: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the costs of the published tables: an expectation over the coins, dependent and independent."""
    passing = log_probability_answered(votes.max(axis=1), threshold, test_sigma)
    chance = np.exp(passing)[:, None]
    label = gnmax_renyi(gnmax_log_q(votes, 40), 40, ORDERS)
    dependent = (threshold_renyi(passing, test_sigma, ORDERS) + chance * label).sum(axis=0)
    independent = len(votes) * ORDERS / (2 * test_sigma**2) + chance.sum() * ORDERS / 1600
    return dependent, independent, float(chance.sum())


@pytest.mark.parametrize(
    ("curves", "dependent", "independent"),
    [
        (composed_lnmax(np.tile(A, (100, 1))), (0.32654282732797885, 46.5), (5.3025850929940415, 6.0)),
        (composed_lnmax(np.tile(A, (1000, 1))), (0.6370557576491043, 29.5), (20.17528364331331, 2.5)),
        (composed_gnmax(np.tile(A, (100, 1)), 40), (0.443620287120186, 34.0), (1.7590592937014966, 14.5)),
        (composed_gnmax(np.tile(A, (1000, 1)), 100), (2.2464690919019157, 11.5), (2.2464690919019157, 11.5)),
        (composed_gnmax(MIX, 40), (1.6609416293767638, 15.5), (3.0478656831212767, 9.0)),
        (expected_confident(MIX, 200, 150)[:2], (1.0898798362198532, 22.0), (2.1928792662694443, 12.0)),
        (
            expected_confident(np.tile(A, (1500, 1)), 300, 200)[:2],
            (1.1115746020478063, 20.5),
            (4.428197394847752, 6.5),
        ),
    ],
)
def test_compositions_have_the_reference_epsilons(
    curves: tuple[np.ndarray, np.ndarray], dependent: tuple[float, float], independent: tuple[float, float]
) -> None:
    for curve, (epsilon, order) in zip(curves, (dependent, independent), strict=True):
        found = loose_epsilon(ORDERS, curve, 1e-5)
        assert found == (exactly(epsilon), exactly(order))
        assert tight_epsilon(ORDERS, curve, 1e-5)[0] < found[0]


def test_the_expected_number_of_answers_has_the_reference_value() -> None:
    assert expected_confident(MIX, 200, 150)[2] == exactly(142.6644015837613)
    assert expected_confident(np.tile(A, (1500, 1)), 300, 200)[2] == exactly(544.7540232365772)


@pytest.mark.parametrize(
    ("asked", "answered", "test_sigma", "delta", "epsilon"),
    [(640, 286, 150, 1e-5, 3.175), (8500, 3098, 200, 1e-6, 12.675), (1500, 524, 200, 1e-5, 4.343)],
)
def test_the_published_settings_have_the_reference_independent_epsilons(
    asked: int, answered: int, test_sigma: float, delta: float, epsilon: float
) -> None:
    curve = ORDERS * (asked / (2 * test_sigma**2) + answered / 1600)
    assert loose_epsilon(ORDERS, curve, delta)[0] == pytest.approx(epsilon, abs=5e-4)


@pytest.mark.parametrize(
    ("sigma", "order", "log_q0"),
    [
        (40, 10, -3.6809333817669687),
        (40, 14, -3.4029724173980505),
        (40, 25, -3.041883614341884),
        (100, 20, -3.886507649757032),
        (100, 50, -3.167274054311601),
    ],
)
def test_the_data_dependent_bound_takes_over_at_the_reference_point(sigma: float, order: float, log_q0: float) -> None:
    assert GNMaxBound(sigma, 10, order).log_q0 == exactly(log_q0)


@pytest.mark.parametrize(
    ("sigma", "order", "conditions"), [(20, 25, (True, False)), (30, 25, (True, True)), (40, 14, (True, True))]
)
def test_the_conditions_of_smooth_sensitivity_hold_where_the_reference_says(
    sigma: float, order: float, conditions: tuple[bool, bool]
) -> None:
    bound = GNMaxBound(sigma, 10, order)
    assert bound.conditions == conditions
    if conditions != (True, True):
        with pytest.raises(OutOfRange, match="condition C6"):
            bound.require_conditions()


def test_local_sensitivities_of_gnmax_have_the_reference_values() -> None:
    first = GNMaxBound(0.5, 3, 1.5).local(np.array([10, 0, 0]), 10)[0]
    assert first == pytest.approx([3.13503646e-17, 1.60178280e-08, 5.90681786e-03] + [5.99981308] * 7, rel=1e-6)
    second = GNMaxBound(250.0, 5, 10).local(np.array([1000, 500, 300, 200, 0]), 2000)[0]
    expected = [0.0] * 298 + [2.77693450548e-7, 2.10853979548e-6] + [2.73113623988e-6] * 1700
    assert second == pytest.approx(expected, rel=1e-6, abs=1e-18)
    third = GNMaxBound(40, 10, 14).local(A, 250)
    assert third[0, :3] == pytest.approx([2.14564017e-05, 2.30666863e-05, 2.48000844e-05], rel=1e-6)
    assert third[0, -1] == exactly(6.699072431377868e-04)
    assert smooth_bound(third, 0.03) == exactly(1.3569906579887075e-04)


def test_local_sensitivities_of_the_published_threshold_bound_have_the_reference_values() -> None:
    tops = np.arange(31)
    bound = threshold_renyi(log_probability_answered(tops, 16, 2), 2, 10)[:, 0]
    steps = np.abs(np.diff(bound))
    at = np.maximum(np.append(0, steps), np.append(steps, 0))
    found = [max(at[20 + d] if 20 + d <= 30 else 0, at[20 - d]) for d in range(20)]
    expected = [0] * 3 + [
        *(1.48454129e-04, 1.47826870e-02, 3.94153241e-02, 6.45775697e-02, 9.01543247e-02, 1.16054002e-01),
        *(1.42180452e-01, 1.42180452e-01, 1.48454129e-04, 1.47826870e-02, 3.94153241e-02, 6.45775697e-02),
        *(9.01543266e-02, 1.16054000e-01, 1.42180452e-01, 1.68302106e-01, 1.93127860e-01),
    ]
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-12)
    flat = threshold_renyi(log_probability_answered(np.arange(251), 200, 150), 150, 14)
    assert float(np.ptp(flat)) == 0


@pytest.mark.parametrize(
    ("beta", "sigma", "order", "value"),
    [
        (0.02, 20, 14, 0.089543013714804),
        (0.0329, 32.35, 14, 0.14744296578237914),
        (0.01, 50, 20, 0.03213070608247696),
    ],
)
def test_the_published_cost_of_gnss_has_the_reference_values(
    beta: float, sigma: float, order: float, value: float
) -> None:
    assert published_gnss_renyi(beta, sigma, order) == exactly(value)


def gaussian_divergence(shift: float, first: float, second: float, order: float) -> float:
    """Return the Rényi divergence of N(0, first^2) from N(shift, second^2) by integration."""
    points = np.linspace(-40 * first, 40 * first, 400_001)
    logs = order * (-(points**2) / (2 * first**2) - math.log(first))
    logs += (1 - order) * (-((points - shift) ** 2) / (2 * second**2) - math.log(second))
    top = logs.max()
    total = np.exp(logs - top).sum() * (points[1] - points[0]) / math.sqrt(2 * math.pi)
    return float((top + math.log(total)) / (order - 1))


@pytest.mark.parametrize(("beta", "sigma", "order"), list(itertools.product([0.005, 0.02, 0.03], [3, 12, 60], [2, 14])))
def test_the_cost_of_gnss_is_that_of_its_worst_pair(beta: float, sigma: float, order: float) -> None:
    ratios = np.exp(np.linspace(-beta, beta, 9))
    pairs = [gaussian_divergence(min(1, one), sigma, sigma * one, order) for one in ratios]
    assert gnss_renyi(beta, sigma, order) >= max(pairs) * (1 - 1e-6)
    assert gnss_renyi(beta, sigma, order) <= max(pairs) * 1.1


def test_the_published_cost_of_gnss_is_below_a_pair_that_it_should_cover() -> None:
    beta, sigma, order = 0.4 / 14, 5.0, 14.0
    pair = gaussian_divergence(math.exp(-beta), sigma, sigma * math.exp(-beta), order)
    assert published_gnss_renyi(beta, sigma, order) < 0.6 * pair
    assert gnss_renyi(beta, sigma, order) == pytest.approx(pair, rel=1e-6)


def test_the_bound_of_a_confident_query_is_above_the_expected_cost_and_below_the_independent_one() -> None:
    order = 14.0
    tops = np.array([90, 150, 230, 250])
    moments = confident_moments(250, 200, 150, order)
    for label in (0.0, 1e-4, order / 1600):
        found = confident_renyi(moments, tops, label, order)
        chance = np.exp(log_probability_answered(tops, 200, 150))
        assert (found >= chance * label).all()
        assert (found <= order / (2 * 150**2) + label).all()


def brute_force_change(votes: tuple[int, ...], bound: GNMaxBound, moments: tuple[np.ndarray, np.ndarray]) -> float:
    """Return how far one moved vote changes the bound of a confident query."""

    def value(counts: tuple[int, ...]) -> float:
        label = float(bound.renyi(gnmax_log_q(np.array([counts]), bound.sigma))[0])
        return float(confident_renyi(moments, max(counts), label, bound.order))

    here = value(votes)
    moved = [
        tuple(count - (index == j) + (index == k) for index, count in enumerate(votes))
        for j, k in itertools.permutations(range(len(votes)), 2)
        if votes[j]
    ]
    return max(abs(value(one) - here) for one in moved)


def test_local_sensitivities_cover_every_neighbour_of_every_vote() -> None:
    teachers, bound = 24, GNMaxBound(4.0, 3, 3.0)
    bound.require_conditions()
    moments = confident_moments(teachers, 16, 8, bound.order)
    every = np.array([(a, b, teachers - a - b) for a in range(teachers + 1) for b in range(teachers + 1 - a)])
    changes = np.array([brute_force_change(tuple(one), bound, moments) for one in every.tolist()])
    label = bound.local(every, teachers)
    local = confident_local(label, every.max(axis=1), bound.independent, moments, bound.order)
    local = np.maximum.accumulate(local, axis=1)
    apart = np.abs(every[:, None] - every[None]).sum(axis=2) // 2
    for distance in range(0, teachers, 3):
        worst = np.where(apart <= distance, changes[None], 0).max(axis=1)
        assert (local[:, distance] >= worst * (1 - 1e-9) - 1e-15).all()


def test_the_smooth_bound_of_several_queries_is_smooth() -> None:
    rng, bound, beta = np.random.default_rng(5), GNMaxBound(40.0, 3, 8.0), 0.02
    moments = confident_moments(250, 200, 150, bound.order)

    def smooth(votes: np.ndarray) -> float:
        local = confident_local(bound.local(votes, 251), votes.max(axis=1), bound.independent, moments, bound.order)
        return smooth_bound(local, beta)

    for _ in range(20):
        votes = rng.multinomial(250, [0.7, 0.2, 0.1], size=6)
        neighbour = votes.copy()
        for query in range(6):  # one teacher changes its vote wherever it likes
            j, k = rng.permutation(3)[:2]
            neighbour[query, j] -= 1
            neighbour[query, k] += 1
        assert abs(math.log(smooth(votes) / smooth(neighbour))) <= beta * (1 + 1e-9)


def votes_and_neighbours(teachers: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return all votes and, for each, where its neighbours are: itself where a class has no vote to give."""
    every = [one for one in itertools.product(range(teachers + 1), repeat=classes) if sum(one) == teachers]
    at = {one: index for index, one in enumerate(every)}
    near = [
        [
            at.get(tuple(count - (index == j) + (index == k) for index, count in enumerate(one)), at[one])
            for j, k in itertools.permutations(range(classes), 2)
        ]
        for one in every
    ]
    return np.array(every), np.array(near)


def smoothness(aggregator: GNMax, teachers: int, classes: int, order: float, beta: float) -> float:
    """Return by how many beta the smooth bounds of neighbours differ, at most, over all votes and some of 5 queries."""
    every, near = votes_and_neighbours(teachers, classes)
    local = data_dependent(aggregator, every, order)[1]
    assert (np.diff(local, axis=1) >= -1e-12 * local.max()).all()
    weights = np.exp(-beta * np.arange(local.shape[1]))
    assert float(np.ptp(local[:, -1])) <= 1e-9 * local.max()
    single = np.log((local * weights).max(axis=1))
    worst = float(np.abs(single[near] - single[:, None]).max())
    rng = np.random.default_rng(teachers + classes)
    for _ in range(100):  # one teacher changes its vote in every query, wherever it likes
        asked = rng.integers(len(every), size=5)
        moved = near[asked, rng.integers(near.shape[1], size=5)]
        both = [math.log((local[which].sum(axis=0) * weights).max()) for which in (asked, moved)]
        worst = max(worst, abs(both[0] - both[1]))
    return worst / beta


SMALL = list(
    itertools.product(
        [(2, 2), (14, 2), (30, 2), (14, 3), (20, 3), (9, 4), (3, 5), (5, 5)], [1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 4.0, 8.0]
    )
)


@pytest.mark.parametrize(("size", "sigma"), SMALL)
def test_no_report_is_accepted_whose_smooth_bound_is_not_smooth(size: tuple[int, int], sigma: float) -> None:
    (teachers, classes), accepted = size, 0
    for order, beta in itertools.product([1.5, 2.0, 3.0, 6.0], [0.02, 0.2]):
        for aggregator in (GNMax(sigma), ConfidentGNMax(sigma, threshold=0.7 * teachers, test_sigma=2 * sigma)):
            try:
                gnmax_bound_at(sigma, classes, order).require_conditions()
            except OutOfRange:
                continue
            accepted += 1
            assert smoothness(aggregator, teachers, classes, order, beta) <= 1 + 1e-6, (order, beta, aggregator)
    assert accepted or sigma <= 1.5


@pytest.mark.parametrize(("sigma", "order"), list(itertools.product([1.0, 1.25, 1.5], [1.5, 2.0])))
@pytest.mark.parametrize("classes", [2, 3, 10])
def test_a_bound_that_jumps_to_the_independent_one_is_refused(sigma: float, order: float, classes: int) -> None:
    bound = GNMaxBound(sigma, classes, order)
    assert float(bound.renyi(bound.log_q0 - 1e-9)) < 0.97 * bound.independent
    with pytest.raises(OutOfRange, match="jumps"):
        bound.require_conditions()


@pytest.mark.parametrize("place", [-1.0, -8.0])
def test_a_change_that_is_not_greatest_at_q1_is_refused(place: float, monkeypatch: pytest.MonkeyPatch) -> None:
    sound, change = GNMaxBound(40.0, 3, 8.0), GNMaxBound.change
    sound.require_conditions()
    assert place > sound.log_q0 or place < sound.log_q1
    peak = 0.01 * float(change(sound, sound.log_q1))
    monkeypatch.setattr(
        GNMaxBound, "change", lambda self, log_q: change(self, log_q) + peak * (np.abs(log_q - place) < 0.01)
    )
    with pytest.raises(OutOfRange, match="greatest change"):
        GNMaxBound(40.0, 3, 8.0).require_conditions()


def test_a_sequence_that_decreases_counts_with_its_greatest_value_so_far() -> None:
    local = np.array([[0.0, 2.0, 0.0], [1.0, 0.0, 1.0]])
    assert smooth_bound(local, 0.1) == pytest.approx(3 * math.exp(-0.1))
