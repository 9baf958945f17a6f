"""Aggregators answer with labels, and their events are what the literature charges."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit import accounting
from tacit.accounting.measures import approximate_zcdp, pure_epsilon
from tacit.learn.pate.aggregators import Aggregator, ConfidentGNMax, GNMax, InteractiveGNMax, LNMax
from tacit.mechanisms.simulation import SeededSource, is_simulated
from tacit.privacy.errors import InvalidInput, OutOfRange, WrongType
from tacit.privacy.events import Composed, Gaussian, NoisyMax, Repeated

CONFIDENT = ConfidentGNMax(40, threshold=200, test_sigma=150)
SURE = [250, 0, 0]


def test_lnmax_costs_two_over_its_scale_and_half_the_rho_of_that() -> None:
    event = LNMax(20).event
    assert pure_epsilon(event) == pytest.approx(0.1, rel=1e-9)
    assert approximate_zcdp(event)[0] == pytest.approx(0.05**2, rel=1e-3)


def test_gnmax_costs_rho_one_over_sigma_squared() -> None:
    assert GNMax(40).event == NoisyMax(40)
    assert approximate_zcdp(GNMax(40).event)[0] == pytest.approx(1 / 1600, rel=1e-9)


def test_a_confident_query_costs_its_test_and_a_label_only_if_answered() -> None:
    assert CONFIDENT.test_event == Gaussian(150)
    assert CONFIDENT.event == Composed((Gaussian(150), NoisyMax(40)))
    plan = CONFIDENT.plan(640, 286)
    assert plan == Composed((Repeated(Gaussian(150), 640), Repeated(NoisyMax(40), 286)))
    mu = math.sqrt(640 / 150**2 + 2 * 286 / 1600)
    assert accounting.epsilon(plan, 1e-5).upper == pytest.approx(
        accounting.epsilon(Gaussian(1 / mu), 1e-5).upper, rel=1e-6
    )


def test_aggregators_without_a_test_answer_every_query() -> None:
    assert LNMax(20).plan(10, 10) == Repeated(LNMax(20).event, 10)
    with pytest.raises(OutOfRange, match="must not exceed"):
        CONFIDENT.plan(10, 11)


@pytest.mark.parametrize("aggregator", [LNMax(2), GNMax(2), ConfidentGNMax(2, threshold=200, test_sigma=2)])
def test_clear_votes_are_answered(aggregator: GNMax) -> None:
    assert aggregator.release([0, 250, 0]) == 1
    assert is_simulated(aggregator.release([0, 250, 0], source=SeededSource(1)))


def test_votes_far_below_the_threshold_are_not_answered() -> None:
    assert ConfidentGNMax(2, threshold=200, test_sigma=2).release([90, 80, 80]) is None


def test_an_interactive_query_answers_where_teachers_contradict_the_student() -> None:
    aggregator = InteractiveGNMax(2, threshold=150, test_sigma=2, certainty=0.9)
    assert aggregator.compare(SURE, [0, 1, 0]) == (0, True)
    assert aggregator.compare(SURE, [0.98, 0.02, 0]) == (0, False)
    assert aggregator.compare([240, 5, 5], [0.6, 0.2, 0.2]) == (None, False)
    assert aggregator.release(SURE) == 0


@pytest.mark.parametrize(
    ("aggregator", "words"),
    [
        (LNMax(20), "LNMax(scale 20)"),
        (GNMax(2.5), "GNMax(sigma 2.5)"),
        (CONFIDENT, "ConfidentGNMax(sigma 40, threshold 200, test_sigma 150)"),
        (
            InteractiveGNMax(2, 150, 2, certainty=0.9),
            "InteractiveGNMax(sigma 2, threshold 150, test_sigma 2, certainty 0.9)",
        ),
    ],
)
def test_aggregators_are_written_with_their_parameters(aggregator: Aggregator, words: str) -> None:
    assert str(aggregator) == words


@pytest.mark.parametrize(
    ("votes", "error"),
    [
        ([1.0, 2.0], WrongType),
        ([5], WrongType),
        ([-1, 3], OutOfRange),
        ([[1, 2], [3, 4]], WrongType),
        (np.zeros((2, 2, 2), dtype=int), WrongType),
        ([2**21, 0], OutOfRange),
    ],
)
def test_votes_of_the_wrong_kind_are_refused(votes: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        GNMax(40).release(votes)


def test_a_prediction_that_is_none_is_refused() -> None:
    aggregator = InteractiveGNMax(2, threshold=150, test_sigma=2, certainty=0.9)
    with pytest.raises(InvalidInput, match="add up to 1"):
        aggregator.compare(SURE, [0.5, 0.1, 0.1])
    with pytest.raises(WrongType, match="one probability"):
        aggregator.compare(SURE, [0.5, 0.5])


@pytest.mark.parametrize("make", [lambda: LNMax(0), lambda: GNMax(-1), lambda: ConfidentGNMax(40, 200, 0)])
def test_noise_must_be_positive(make: object) -> None:
    with pytest.raises(InvalidInput):
        make()  # type: ignore[operator]
