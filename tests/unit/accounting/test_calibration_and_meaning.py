"""Noise for a target, and what an epsilon is worth to an attacker."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from tacit import accounting
from tacit.accounting.composition import WIDTH
from tacit.accounting.conversions import Bound
from tacit.accounting.meaning import delta_warning
from tacit.privacy import events
from tacit.privacy.errors import InvalidInput, OutOfRange
from tacit.privacy.events import Event, Repeated, Sampled


@pytest.mark.parametrize(("epsilon", "rate", "steps"), [(1.0, 0.01, 1000), (8.0, 0.02, 500)])
def test_calibrated_training_keeps_the_target_and_wastes_little(epsilon: float, rate: float, steps: int) -> None:
    def make(sigma: float) -> Event:
        return Repeated(Sampled(rate, events.Gaussian(sigma)), steps)

    spent = accounting.epsilon(make(accounting.calibrate(make, epsilon, 1e-5)), 1e-5).upper
    assert epsilon * (1 - 1e-3) <= spent <= epsilon


@pytest.mark.parametrize("delta", [0, 1e-6])
def test_parameters_may_rise_with_the_cost(delta: float) -> None:
    def make(epsilon: float) -> Event:
        return Repeated(events.Laplace(epsilon), 20)

    parameter = accounting.calibrate(make, 2.0, delta)
    assert 2.0 * (1 - 1e-3) <= accounting.epsilon(make(parameter), delta).upper <= 2.0
    assert parameter >= 0.0999


def test_gaussian_noise_is_calibrated_in_closed_form() -> None:
    sigma = accounting.calibrate(lambda sigma: Repeated(events.Gaussian(sigma), 10), 1.0, 1e-6)
    assert accounting.epsilon(Repeated(events.Gaussian(sigma), 10), 1e-6).upper == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize("power", [1, -1])
@pytest.mark.parametrize("more", [1e-3, 3e-3])
def test_what_is_returned_keeps_the_target_also_if_the_accountant_finds_more_in_the_end(
    power: int, more: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An accountant that knows the cost on a coarse lattice, and finds a little more on the one that it prices with."""

    def found(event: Event, delta: float, *, width: float = WIDTH) -> Bound:
        assert isinstance(event, events.Pure)
        return Bound(0.0, event.epsilon * (1 + more if width <= WIDTH else 1.0), "a lattice")

    monkeypatch.setattr("tacit.accounting.calibration.epsilon", found)
    parameter = accounting.calibrate(lambda one: events.Pure(3 * one**power), 0.7, 1e-6)
    assert 0.7 * (1 - 2e-3) <= found(events.Pure(3 * parameter**power), 1e-6).upper <= 0.7


def test_a_target_that_nothing_keeps_is_refused() -> None:
    with pytest.raises(OutOfRange):
        accounting.calibrate(lambda _: events.Approximate(0.1, 1e-3), 1.0, 1e-6)


@pytest.mark.parametrize("epsilon", [0, -1.0, math.nan])
def test_a_target_must_be_positive(epsilon: float) -> None:
    with pytest.raises(InvalidInput):
        accounting.calibrate(events.Gaussian, epsilon, 1e-6)


def test_true_positives_keep_to_the_curve_and_rise_with_false_ones() -> None:
    meaning = accounting.meaning(Repeated(events.Laplace(0.2), 10), 1e-5)
    rates = [meaning.true_positive_rate(rate) for rate in np.linspace(0, 1, 21)]
    assert rates == sorted(rates)
    assert rates[-1] == 1.0
    for false_positives, true_positives in zip(np.linspace(0, 1, 21), rates, strict=True):
        for epsilon, delta in meaning.curve:
            assert false_positives + math.exp(epsilon) * (1 - true_positives) >= 1 - delta - 1e-9 or (
                true_positives <= math.exp(epsilon) * false_positives + delta + 1e-9
            )


def test_the_advantage_over_gaussian_noise_is_its_total_variation() -> None:
    advantage = accounting.meaning(events.Gaussian(2.0), 1e-6).advantage
    assert advantage == pytest.approx(math.erf(0.25 / math.sqrt(2)), rel=1e-6)


def test_the_meaning_is_said_in_a_sentence() -> None:
    sentence = accounting.meaning(events.Laplace(1.0), 0).sentence
    assert "26.8%" in sentence
    assert "73.2%" in sentence


@pytest.mark.parametrize(("delta", "units", "words"), [(1e-3, 1000, "not below"), (1e-5, 1000, "recommended")])
def test_a_delta_that_promises_little_is_warned_of(delta: float, units: int, words: str) -> None:
    assert words in str(delta_warning(delta, units))


def test_a_small_delta_is_not_warned_of() -> None:
    assert delta_warning(1e-7, 1000) is None


@pytest.mark.parametrize(
    ("make", "target", "delta"),
    [
        (lambda x: events.Repeated(events.RandomizedResponse(x, 3), 747), 0.10759392951769926, 0.00010186817013592544),
        (lambda x: events.Repeated(events.Laplace(1 / x), 671), 2.300360826995638, 1.3857897788753029e-09),
        (
            lambda x: events.Repeated(events.Sampled(0.05, events.Gaussian(x)), 424),
            3.6415688057713846,
            1.7864574141903837e-10,
        ),
    ],
)
def test_an_answer_beside_a_power_of_two_is_found_without_waste(
    make: Callable[[float], events.Event], target: float, delta: float
) -> None:
    """At the power itself the rough bound is above the target, and the fine one below."""
    found = accounting.epsilon(make(accounting.calibrate(make, target, delta)), delta).upper
    assert target * (1 - 1e-3) < found <= target
