"""Shuffled reports: the pair holds for every local randomizer, is exactly the one that was published, and composes."""

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from mpmath import mpf
from scipy.special import gammaln, logsumexp
from scipy.stats import binom

from tacit.accounting import compare, delta, epsilon, measures, pairs, renyi, shuffling
from tacit.accounting.measures import approximate_zcdp
from tacit.privacy.events import Composed, Gaussian, RandomizedResponse, Repeated, Shuffled
from tacit.privacy.units import Relation
from tests.unit.accounting import checker, truth
from tests.unit.accounting.checker import Case, Unsound

PUBLISHED = [
    # local epsilon, count, delta, between which ends the code of Wang and others 2024 finds epsilon
    (1.0, 10**4, 1e-6, 0.0432059, 0.0432067),
    (3.0, 10**4, 1e-6, 0.2260787, 0.2260809),
    (0.1, 1000, 1e-6, 0.00991723, 0.00991726),
    (4.0, 10**5, 1e-6, 0.1181526, 0.1181613),
    (1.0, 1000, 1e-8, 0.1885859, 0.1885942),
]


def responses(size: float, categories: int) -> list[list[mpf]]:
    """Return randomized response over so many answers, one law for each true answer."""
    weight = truth.mpmath.exp(mpf(size))
    return [
        [(weight if seen == held else 1) / (weight + categories - 1) for seen in range(categories)]
        for held in range(categories)
    ]


def randomizers(seed: int, number: int) -> list[tuple[float, list[list[float]]]]:
    """Return random local randomizers with four inputs, and the epsilon of each."""
    source, made = np.random.default_rng(seed), []
    for _ in range(number):
        answers = int(source.integers(2, 5))
        base = source.dirichlet(np.full(answers, source.choice([0.3, 1.0, 3.0])))
        shape = source.random if source.random() < 0.3 else lambda count, s=source: s.integers(0, 2, count)
        laws = np.array([base * np.exp(source.choice([0.3, 1.0, 3.0]) * shape(answers)) for _ in range(4)])
        laws /= laws.sum(axis=1, keepdims=True)
        ratio = float(np.log(laws.max(axis=0) / laws.min(axis=0)).max())
        made.append((ratio * (1 + 1e-9) + 1e-9, laws.tolist()))
    return made


def hold(size: float, law: truth.Finite, count: int) -> None:
    """Require that the bounds of shuffled reports are not below one way to make them, in both directions."""
    for share in (0.0, 0.2, 0.5, 0.8, 0.97):
        at = share * size
        if max(law.delta(at), law.turned().delta(at)) > pair_delta(size, count, at) * (1 + 1e-13):
            raise Unsound(f"{count} reports at {size}: delta at {at}")
    for order in (1.01, 2.0, 30.0):
        if truth.renyi(law, order) > measures.renyi(Shuffled(size, count), order) * (1 + 1e-13):
            raise Unsound(f"{count} reports at {size}: Rényi divergence of order {order}")


def pair_delta(size: float, count: int, at: float) -> float:
    losses, masses = shuffling.shuffled_pair(size, count).atoms
    return float(masses @ -np.expm1(np.minimum(at - losses, 0)))


@pytest.mark.parametrize("count", [1, 2, 3, 6])
@pytest.mark.parametrize("size", [0.1, 1.0, 4.0])
def test_randomized_responses_cost_no_more_whatever_the_others_hold(size: float, count: int) -> None:
    for categories in (2, 3):
        laws = responses(size, categories)
        for held in range(categories):
            hold(size, truth.shuffled(laws[0], laws[1], [laws[held]] * (count - 1)), count)
        hold(size, truth.shuffled(laws[0], laws[1], [laws[unit % categories] for unit in range(count - 1)]), count)


@pytest.mark.parametrize("count", [2, 4])
def test_no_randomizer_costs_more(count: int) -> None:
    for size, laws in randomizers(seed=5, number=12):
        hold(size, truth.shuffled(laws[0], laws[1], [laws[2 + unit % 2] for unit in range(count - 1)]), count)


@pytest.mark.parametrize("count", [1, 2, 5, 20])
@pytest.mark.parametrize("size", [0.01, 1.0, 5.0, 30.0])
def test_the_pair_of_few_reports_is_the_published_one(size: float, count: int) -> None:
    equal(size, count)


def equal(size: float, count: int) -> None:
    exact = truth.clones(size, count)
    for share in (0.0, 0.1, 0.4, 0.7, 0.95):
        at = share * size
        found, true = pair_delta(size, count, at), float(exact.delta(at))
        if not true * (1 - 1e-14) <= found <= true * (1 + 1e-7):
            raise Unsound(f"{count} reports at {size}: delta at {at} is {true}, not {found}")
    for order in (1.001, 2.0, 17.0, 300.0):
        found, true = measures.renyi(Shuffled(size, count), order), float(truth.renyi(exact, order))
        if not true * (1 - 1e-12) <= found <= true * (1 + 1e-6) + 1e-12:
            raise Unsound(f"{count} reports at {size}: divergence of order {order} is {true}, not {found}")


def clone_tails(size: float, count: int, at: float) -> float:
    """Return delta as a sum over all numbers of clones of two binomial tails."""
    number = np.arange(count)
    weights = binom.pmf(number, count - 1, 2 / (math.exp(size) + 1))
    truth_share, growth = 1 / (1 + math.exp(-size)), math.exp(at)
    # a of a + b = number + 1 reports give (a e^size + b) / (a + b e^size) > e^at
    least = np.floor((number + 1) * (growth * math.exp(size) - 1) / ((growth + 1) * (math.exp(size) - 1))) + 1
    told, hidden = (binom.sf(least - shift, number, 0.5) for shift in (2, 1))
    p = truth_share * told + (1 - truth_share) * hidden
    q = (1 - truth_share) * told + truth_share * hidden
    return float(weights @ np.maximum(p - growth * q, 0.0))


@pytest.mark.parametrize("at", [1e-3, 1e-6, 1e-11])
@pytest.mark.parametrize(("size", "count"), [(0.5, 300), (1.0, 3000), (3.0, 20_000)])
def test_many_reports_cost_little_more_than_the_sum_over_all_clones_says(size: float, count: int, at: float) -> None:
    bound = epsilon(Shuffled(size, count), at)
    assert clone_tails(size, count, bound.upper) <= at * (1 + 1e-9)
    assert clone_tails(size, count, bound.upper * 0.995) >= at
    assert clone_tails(size, count, bound.lower) >= at


@pytest.mark.parametrize(("size", "count", "at", "low", "high"), PUBLISHED)
def test_published_numbers_are_met(size: float, count: int, at: float, low: float, high: float) -> None:
    assert low <= epsilon(Shuffled(size, count), at).upper <= 1.0015 * high


@pytest.mark.parametrize(
    ("size", "count", "at"), [(1.0, 10**6, 1e-6), (0.5, 10**4, 1e-4), (3.0, 10**8, 1e-9), (1e-3, 10**4, 0.1)]
)
def test_the_closed_form_is_never_better(size: float, count: int, at: float) -> None:
    """Feldman, McMillan, Talwar 2021, theorem 3.1."""
    growth = math.exp(size)
    root = 8 * math.sqrt(growth * math.log(4 / at) / count) + 8 * growth / count
    assert epsilon(Shuffled(size, count), at).upper < math.log1p((growth - 1) / (growth + 1) * root) / 2


def test_with_fewer_clones_it_is_the_earlier_published_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Feldman, McMillan, Talwar 2021 have e^-epsilon clones; the example of their code is 100,000 reports at 4."""
    monkeypatch.setattr(shuffling, "clone_rate", lambda size: math.exp(-size))
    clear()
    assert 0.16753 <= epsilon(Shuffled(4.0, 100_000), 1e-6).upper <= 0.17280
    clear()


@pytest.mark.parametrize("count", [10**3, 10**6, 10**9, 10**13])
@pytest.mark.parametrize("size", [1e-6, 1.0, 12.0, 600.0, 1e4])
def test_any_number_of_reports_has_a_price(size: float, count: int) -> None:
    event = Shuffled(size, count)
    bound = epsilon(event, 1e-9)
    assert 0 <= bound.lower <= bound.upper <= size
    assert 0 < approximate_zcdp(event)[0] <= measures.rho_of_pure(size) * (1 + 1e-12)
    assert all(0 < value <= size * (1 + 1e-9) for value in renyi.renyi_curve(event, np.array([1.5, 8.0, 64.0])))


@pytest.mark.parametrize(
    "price",
    [
        lambda event: epsilon(event, 1e-6).upper,
        lambda event: delta(event, 0.01).upper,
        lambda event: approximate_zcdp(event)[0],
        lambda event: measures.renyi(event, 8.0),
    ],
)
def test_more_reports_and_more_private_ones_cost_less(price: Callable[[Shuffled], float]) -> None:
    for prices in (
        [price(Shuffled(1.0, count)) for count in (3, 30, 290, 300, 310, 3000, 100_000, 10**7)],
        [price(Shuffled(size, 2000)) for size in (4.0, 2.0, 1.02, 1.0, 0.5, 0.05)],
    ):
        assert all(fewer >= more * (1 - 1e-6) for fewer, more in pairwise(prices))


@pytest.mark.parametrize("at", [1e-2, 1e-5])
def test_repeated_shuffles_cost_what_their_outcomes_say(at: float) -> None:
    size, count = 1.5, 4
    event = Repeated(Shuffled(size, count), 3)
    worst = truth.all_together([truth.clones(size, count)] * 3)
    bound = epsilon(event, at)
    checker.check_epsilon(Case(event, [worst.delta]), bound, at)
    laws = responses(size, 2)
    reached = truth.all_together([truth.shuffled(laws[1], laws[0], [laws[0]] * (count - 1))] * 3)
    assert reached.delta(bound.lower) >= at * (1 - 1e-12)
    assert worst.delta(bound.upper * 0.99) >= at


def test_shuffles_are_amplified_in_every_measure_and_every_mixture() -> None:
    one = Shuffled(1.0, 10_000)
    assert epsilon(Repeated(one, 10), 1e-6).upper < 0.15
    assert approximate_zcdp(one)[0] < 1e-4
    assert measures.renyi(one, 16.0) < 2e-3
    noise = Gaussian(5.0, under=Relation.REPLACE_ONE)
    mixed = Composed((one, RandomizedResponse(0.1, under=Relation.REPLACE_ONE), noise))
    alone = Composed((RandomizedResponse(0.1, under=Relation.REPLACE_ONE), noise))
    assert epsilon(alone, 1e-6).upper < epsilon(mixed, 1e-6).upper < epsilon(alone, 1e-6).upper + 0.044
    assert all(
        bound.upper < 0.4
        for bound in compare(Repeated(one, 10), 1e-6)
        if bound.method in ("Rényi", "zero-concentrated")
    )


def exact_renyi(size: float, count: int, orders: list[float]) -> list[float]:
    """Return the divergence at each order, by going through all outcomes."""
    rate, at = 2 / (math.exp(size) + 1), np.array(orders)[:, None]
    logs = []
    for number, chance in enumerate(binom.logpmf(np.arange(count), count - 1, rate)):
        seen = np.arange(number + 2.0)
        coins = gammaln(number + 2) - gammaln(seen + 1) - gammaln(number + 2 - seen) - (number + 1) * math.log(2)
        p = np.log(2 * (seen + (number + 1 - seen) * math.exp(-size)) / ((number + 1) * (1 + math.exp(-size))))
        powers = coins + at * p + (1 - at) * p[::-1]
        top = powers.max(axis=1)
        logs.append(chance + top + np.log(np.exp(powers - top[:, None]).sum(axis=1)))
    return (logsumexp(np.array(logs), axis=0) / (at[:, 0] - 1)).tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize(("size", "count"), [(0.3, 1800), (2.0, 1500), (5.0, 1500)])
def test_divergences_hold_also_far_out_in_the_tail(size: float, count: int) -> None:
    orders = [1.1, *np.geomspace(2, 5e4, 60).tolist()]
    exact = exact_renyi(size, count, orders)
    for order, true in zip(orders, exact, strict=True):
        found = measures.renyi(Shuffled(size, count), order)
        assert true * (1 - 1e-8) - 1e-12 <= found <= 1.02 * true + 1e-12
    sharpest = max(true / order for order, true in zip(orders, exact, strict=True))
    assert sharpest <= approximate_zcdp(Shuffled(size, count))[0] <= 1.02 * sharpest


outcomes, clone_blocks = shuffling._outcomes, shuffling._clone_blocks


def with_the_greatest_of_each_block(size: float, count: int) -> tuple[pairs.Floats, pairs.Floats]:
    starts, chances = clone_blocks(size, count)
    return np.append(starts[1:], starts[-1]), chances


PLANTED = {
    "half the clones": ("clone_rate", lambda size: 1 / (math.exp(size) + 1)),
    "twice the clones": ("clone_rate", lambda size: min(1.0, 4 / (math.exp(size) + 1))),
    "the clones of half the epsilon": ("clone_rate", lambda size: 2 / (math.exp(size / 2) + 1)),
    "a block by its greatest number": ("_clone_blocks", with_the_greatest_of_each_block),
    "one clone more": ("_outcomes", lambda size, clones, chance: outcomes(size, clones + 1, chance)),
    "a report at half its epsilon": ("_outcomes", lambda size, *rest: outcomes(size / 2, *rest)),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_noticed(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, planted = PLANTED[bug]
    monkeypatch.setattr(shuffling, name, planted)
    clear()
    with pytest.raises(Unsound):
        equal(1.0, 20)
    clear()


def test_moments_without_the_far_tail_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is too unlikely for the table shows at high orders."""
    (exact,) = exact_renyi(0.3, 1800, [5e4])
    assert measures.renyi(Shuffled(0.3, 1800), 5e4) >= exact * (1 - 1e-8)
    losses, logs = shuffling._moment_atoms(0.3, 1800)
    cut = losses[logs > shuffling.FAR], logs[logs > shuffling.FAR]
    monkeypatch.setattr(shuffling, "_moment_atoms", lambda *_: cut)
    assert measures.renyi(Shuffled(0.3, 1800), 5e4) < exact * (1 - 1e-3)


def clear() -> None:
    for cached in (shuffling.shuffled_pair, shuffling._moment_atoms, shuffling.shuffled_rho, shuffling.witness_pair):
        cached.cache_clear()
