"""The curve that plots and meanings are drawn from: many points for little more than the price of one."""

import numpy as np
import pytest

from tacit.accounting import delta, epsilon, meaning
from tacit.accounting.curves import deltas
from tacit.privacy.notation import parse

PLANS = [
    ("gaussian(2)", 1e-6),
    ("20 x sampled(0.1, gaussian(2))", 1e-5),
    ("20 x sampled(0.1, gaussian(2))", 1e-15),
    ("gaussian(2) + 10 x laplace(0.1) + exponential(0.5)", 1e-6),
    ("10 x laplace(0.3)", 1e-6),
    ("disjoint(10 x laplace(0.3), gaussian(3))", 1e-6),
    ("5 x sampled_without_replacement(10, 1000, gaussian(1))", 1e-6),
    ("zero_concentrated(0.1) + laplace(0.3)", 1e-6),
    ("selected(gaussian(5), 1, 0.1)", 1e-6),
    ("5 x approximate(0.1, 1e-8)", 1e-6),
    ("laplace(3) + 2 x sampled(0.3, laplace(2))", 0.0),
]


@pytest.mark.parametrize(("text", "at"), PLANS)
def test_every_point_is_an_upper_bound_as_good_as_one_that_was_asked_for_alone(text: str, at: float) -> None:
    event = parse(text)
    epsilons = np.linspace(0, epsilon(event, at).upper, 5).tolist()
    for one, found in zip(epsilons, deltas(event, epsilons), strict=True):
        alone = delta(event, one)
        assert alone.lower <= found <= alone.upper * 1.001


@pytest.mark.parametrize(("text", "at"), PLANS)
def test_the_curve_falls_and_ends_at_the_delta_that_was_asked_for(text: str, at: float) -> None:
    curve = meaning(parse(text), at).curve
    chances = [chance for _, chance in curve]
    assert chances == sorted(chances, reverse=True)
    assert chances[-1] <= at


def test_the_sentence_never_says_less_than_the_numbers() -> None:
    worth = meaning(parse("100 x laplace(0.1)"), 0.0011713)
    assert f"at most {np.ceil(1000 * worth.expected_posterior(0.5)) / 10:g}% on average" in worth.sentence
    said = float(worth.sentence.split("with a probability of at most ")[1].split(";")[0])
    assert worth.posterior_chance(0.5, 0.9) <= said <= worth.posterior_chance(0.5, 0.9) * 1.1
    assert f"at most {np.ceil(1000 * worth.true_positive_rate(0.01)) / 10:g}%" in worth.sentence


def test_the_sentence_bounds_posteriors_for_certain_where_pure_epsilon_does() -> None:
    worth = meaning(parse("laplace(1)"), 0)
    low, high = worth.posterior(0.5)
    assert f"between {np.floor(1000 * low) / 10:g}% and {np.ceil(1000 * high) / 10:g}%" in worth.sentence
