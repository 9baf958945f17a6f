"""What sampling does to the whole privacy curve: one sampled event of any kind, and a delta that costs nothing."""

import math

import pytest
from mpmath import mpf

from tacit.accounting import curves, delta, epsilon
from tacit.accounting.curves import deltas
from tacit.privacy import Relation, events
from tacit.privacy.events import Composed, Disjoint, Event, Repeated, Sampled, SampledWithoutReplacement
from tests.unit.accounting import checker, truth
from tests.unit.accounting.checker import Case, Unsound

BOTH = Composed((events.Gaussian(1.25), events.Laplace(0.6)))
WORST = (truth.Whole(truth.Laplace(0.6)), truth.Whole(truth.Gaussian(0.8)))

ANYTHING: list[Event] = [
    BOTH,
    events.Gaussian(0.5),
    events.Pure(3.0),
    events.ZeroConcentrated(0.4),
    events.Approximate(1.0, 0.1),
    events.Selected(events.Gaussian(2.0), 1.0, 0.1),
    Disjoint((events.Gaussian(1.0), events.Laplace(1.0))),
    Composed((Sampled(0.5, events.Gaussian(1.0)), events.Exponential(1.0))),
]


def sampled_pair(rate: float) -> Case:
    """A sample of Gaussian and Laplace noise together, by the integral of one over the other."""

    def removal(at: truth.Real) -> mpf:
        return mpf(rate) * truth.twice(*WORST, truth.mpmath.log1p(truth.mpmath.expm1(at) / mpf(rate)))

    return Case(Sampled(rate, BOTH), [removal])


@pytest.mark.parametrize("rate", [1e-9, 0.01, 0.5])
@pytest.mark.parametrize("inner", ANYTHING, ids=str)
def test_a_delta_as_large_as_the_rate_costs_nothing(inner: Event, rate: float) -> None:
    assert epsilon(Sampled(rate, inner), rate).upper == 0
    assert delta(Sampled(rate, inner), 0.0).upper <= rate * (1 + 1e-9)
    several = Repeated(Sampled(rate, inner), 3)
    if 3 * rate < 1:
        assert epsilon(several, 3 * rate * (1 + 1e-9)).upper == 0


@pytest.mark.parametrize("inner", ANYTHING, ids=str)
def test_a_sample_of_anything_costs_less_than_the_whole(inner: Event) -> None:
    whole, part = epsilon(inner, 1e-2), epsilon(Sampled(0.1, inner), 1e-3)
    if math.isfinite(whole.upper):
        assert part.upper <= math.log1p(0.1 * math.expm1(whole.upper)) * (1 + 1e-6)
    assert deltas(Sampled(0.1, inner), [0.0, 0.1, 0.7]) == pytest.approx(
        [delta(Sampled(0.1, inner), at).upper for at in (0.0, 0.1, 0.7)], rel=0.02
    )


@pytest.mark.parametrize(
    ("rate", "at"), [(rate, at) for rate in (1e-4, 0.1, 0.9) for at in (1e-2, 1e-5, 1e-12) if at < rate]
)
def test_a_sample_of_a_composition_costs_what_its_integral_says(rate: float, at: float) -> None:
    bound = checker.check(sampled_pair(rate), at)
    assert bound.upper <= 1.04 * bound.lower or bound.upper < 1e-4


def test_a_sample_of_what_is_only_zero_concentrated_costs_more_than_that_of_gaussian_noise_and_not_much_more() -> None:
    for rate, at in ((0.01, 1e-6), (0.5, 1e-9), (0.1, 1e-3)):
        noise = checker.sampled(truth.Gaussian(1.0), events.Gaussian(1.0), rate)
        bound = epsilon(Sampled(rate, events.ZeroConcentrated(0.5)), at)
        checker.check_epsilon(noise, bound, at)
        assert bound.upper <= 1.4 * epsilon(noise.event, at).upper


@pytest.mark.parametrize("relation", list(Relation))
def test_a_sample_without_replacement_of_a_composition_is_amplified_too(relation: Relation) -> None:
    inner = Composed((events.Gaussian(1.0, under=relation), events.Laplace(0.5, under=relation)))
    one = SampledWithoutReplacement(10, 1000, inner)
    exchanged = inner if relation is Relation.REPLACE_ONE else events.Grouped(inner, 2)
    expected = math.log1p(0.01 * math.expm1(epsilon(exchanged, 1e-4).upper))
    assert epsilon(one, 1e-6).upper == pytest.approx(expected, rel=0.01)
    assert epsilon(one, 0.01).upper == 0


@pytest.mark.parametrize(
    ("event", "least"),
    [
        (events.Gaussian(1.0), lambda: truth.gaussian_delta(1.0, 0)),
        (events.Pure(0.7), lambda: truth.response(0.7).delta(0)),
        (events.Exponential(1.0), lambda: truth.mpmath.tanh(mpf(1) / 4)),
        (events.ZeroConcentrated(0.125), lambda: truth.gaussian_delta(0.5, 0)),
        (events.Approximate(0.5, 0.1), lambda: mpf("0.1") + mpf("0.9") * truth.response(0.5).delta(0)),
        (events.Grouped(events.Pure(0.5), 3), lambda: truth.geometric(1.5, 3).delta(0)),
        (Composed((events.Gaussian(1.25), events.Laplace(0.6))), lambda: truth.twice(*WORST, 0)),
    ],
)
def test_total_variation_is_never_below_the_exact_one(event: Event, least: object) -> None:
    exact = least()  # type: ignore[operator]
    found = curves.total_variation(event)
    assert exact <= mpf(found) * (1 + mpf(10) ** -15)
    assert found <= 2 * exact


PLANTED = {
    "delta is not divided by the rate": (curves, "inner_delta", lambda rate, at: at),
    "the rate is squared": (curves, "amplified_epsilon", lambda rate, at: math.log1p(rate**2 * math.expm1(at))),
    "epsilon is amplified twice": (
        curves,
        "inner_epsilon",
        lambda rate, at: math.log1p(math.expm1(at) / rate**2),
    ),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_in_the_amplification_is_noticed(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place, name, planted = PLANTED[bug]
    monkeypatch.setattr(place, name, planted)
    with pytest.raises(Unsound):
        checker.check(sampled_pair(0.1), 1e-5)


def test_a_planted_bug_in_the_total_variation_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    total_variation = curves.total_variation
    monkeypatch.setattr(curves, "total_variation", lambda event: total_variation(event) / 4)
    case = checker.sampled_twice(truth.Gaussian(1.0), events.Gaussian(1.0), 0.1)
    with pytest.raises(Unsound):
        checker.check_epsilon(case, epsilon(case.event, 0.04), 0.04)
