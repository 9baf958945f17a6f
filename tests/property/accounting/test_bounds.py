"""Whatever the plan: two ends in order, costs that fall as delta grows, and both questions telling the same story."""

import math

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tacit.accounting import calibrate, delta, epsilon, meaning
from tacit.accounting.curves import deltas
from tacit.accounting.measures import concentrated, gaussian_mu, pure_epsilon, renyi
from tacit.accounting.parts import attained, parts
from tacit.privacy import events
from tacit.privacy.errors import TacitError
from tests.property.accounting.everyday import deltas as some_deltas
from tests.property.accounting.everyday import plans, sizes
from tests.property.privacy.strategies import any_event

LATTICES_DIFFER = 1e-3
"""By how much, relatively, two upper bounds may disagree because each was found on a lattice of its own."""


@settings(max_examples=150)
@given(plans, some_deltas)
def test_both_ends_are_in_order_and_every_accountant_stays_above_the_lower_one(plan: events.Event, at: float) -> None:
    bound = epsilon(plan, at)
    assert 0 <= bound.lower <= bound.upper < math.inf
    rho, given_away = concentrated(plan)
    if given_away == 0 and math.isfinite(rho):
        from tacit.accounting.conversions import epsilon_of_rho

        assert epsilon_of_rho(rho, at) >= bound.lower
    assert pure_epsilon(plan) >= bound.lower


@settings(max_examples=80)
@given(plans, some_deltas, st.floats(1.5, 1000))
def test_a_smaller_delta_never_costs_less(plan: events.Event, at: float, factor: float) -> None:
    tight, loose = epsilon(plan, at / factor), epsilon(plan, at)
    assert tight.upper >= loose.upper * (1 - LATTICES_DIFFER)
    assert tight.upper >= loose.lower


@settings(max_examples=80)
@given(plans, some_deltas)
def test_delta_at_the_epsilon_that_was_found_is_the_delta_that_was_asked_for(plan: events.Event, at: float) -> None:
    assume(at > 1e-10)
    bound = epsilon(plan, at)
    there = delta(plan, bound.upper)
    assert 0 <= there.lower <= there.upper <= 1
    assert there.lower <= at
    assert there.upper <= at * 1.05


@settings(max_examples=40)
@given(plans, some_deltas)
def test_more_releases_never_cost_less(plan: events.Event, at: float) -> None:
    more = events.Composed((plan, events.Gaussian(3.0, under=plan.relation)))
    assert epsilon(more, at).upper >= epsilon(plan, at).upper * (1 - LATTICES_DIFFER)
    assert epsilon(more, at).upper >= epsilon(plan, at).lower


@settings(max_examples=40)
@given(plans, st.lists(st.floats(0, 5), min_size=1, max_size=6).map(sorted))
def test_many_deltas_are_as_sound_as_one(plan: events.Event, at: list[float]) -> None:
    found = deltas(plan, at)
    assert found == sorted(found, reverse=True)
    for one, upper in zip(at, found, strict=True):
        assert upper >= delta(plan, one).lower


@settings(max_examples=150)
@given(any_event, st.floats(-300, -0.01).map(lambda power: 10.0**power))
def test_any_event_has_a_price_or_is_refused(event: events.Event, at: float) -> None:
    try:
        bound = epsilon(event, at)
        there = delta(event, min(bound.upper, 1e6))
    except TacitError:
        return
    assert 0 <= bound.lower <= bound.upper
    assert 0 <= there.lower <= there.upper <= 1


@settings(max_examples=150)
@given(any_event, st.floats(1.001, 1e4))
def test_measures_that_decide_are_never_negative(event: events.Event, order: float) -> None:
    try:
        measured = [*concentrated(event), gaussian_mu(event), renyi(event, order), pure_epsilon(event)]
    except TacitError:
        return
    assert all(one >= 0 for one in measured)


@given(any_event)
def test_taking_an_event_apart_once_more_changes_nothing(event: events.Event) -> None:
    try:
        inside = parts(event)
    except TacitError:
        return
    again = parts(events.Composed(tuple(events.Repeated(part, count) for part, count in inside.items())))
    assert again == inside


@given(plans)
def test_what_is_attained_is_part_of_the_event(plan: events.Event) -> None:
    certain = attained(plan)
    if certain is not None:
        inside = parts(plan)
        assert all(inside[part] >= count for part, count in parts(certain).items())


@settings(max_examples=12)
@given(sizes, st.sampled_from([1e-3, 1e-6, 1e-9]), st.integers(1, 200))
def test_what_was_calibrated_keeps_its_target(target: float, at: float, count: int) -> None:
    def rising(size: float) -> events.Event:
        return events.Repeated(events.Exponential(size), count)

    def falling(sigma: float) -> events.Event:
        return events.Composed((events.Repeated(events.Gaussian(sigma), count), events.Pure(target / 9)))

    for make in (rising, falling):
        spent = epsilon(make(calibrate(make, target, at)), at).upper
        assert target * (1 - 2e-3) <= spent <= target * (1 + 1e-9)


@settings(max_examples=15)
@given(plans, st.sampled_from([1e-3, 1e-6]))
def test_no_test_beats_the_meaning(plan: events.Event, at: float) -> None:
    told = meaning(plan, at)
    rates = np.linspace(0, 1, 11).tolist()
    found = [told.true_positive_rate(rate) for rate in rates]
    assert found == sorted(found)
    for rate, true_positives in zip(rates, found, strict=True):
        assert rate <= true_positives <= 1
        for one, given_away in told.curve:
            assert true_positives <= math.exp(min(one, 700.0)) * rate + given_away + 1e-12
            assert rate + math.exp(one) * (1 - true_positives) >= 1 - given_away - 1e-9
    low, high = told.posterior(0.4)
    floor, ceiling = told.textbook_posterior(0.4)
    assert floor <= low <= 0.4 <= high <= ceiling
