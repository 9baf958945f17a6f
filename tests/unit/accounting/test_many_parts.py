"""Very long lists of events: counted once, each as often as it stands there, and priced as if they were short."""

import pytest

from tacit.accounting import composition, epsilon, loss
from tacit.accounting.closed_forms import pure_epsilon
from tacit.accounting.pairs import Pair
from tacit.accounting.parts import LISTED_MIN, attained_part, parts
from tacit.privacy import events
from tacit.privacy.events import Composed, Event, Repeated


def alternating(number: int) -> Composed:
    return Composed(tuple(events.Laplace(0.25) if one % 3 else events.Pure(0.5) for one in range(number)))


@pytest.mark.parametrize("number", [6, 3 * LISTED_MIN])
def test_a_long_list_has_the_parts_of_a_short_one(number: int) -> None:
    wanted: dict[Event, int] = {events.Laplace(0.25): 2 * number // 3, events.Pure(0.5): number // 3}
    event = alternating(number)
    assert parts(event) == wanted
    assert parts(event) == wanted
    assert pure_epsilon(event) == number / 3
    assert attained_part(event) is event


def test_another_list_is_not_taken_for_the_last_one() -> None:
    for number in (LISTED_MIN, LISTED_MIN + 3, LISTED_MIN):
        assert sum(parts(alternating(number)).values()) == number


def test_parts_cannot_be_changed_by_whoever_reads_them() -> None:
    with pytest.raises(TypeError):
        parts(alternating(LISTED_MIN))[events.Pure(9)] = 1  # type: ignore[index]


def test_what_is_only_bounded_is_left_out_of_a_long_list_too() -> None:
    bounded = events.NoisyMax(2.0)
    kept = attained_part(Composed((*alternating(LISTED_MIN).events, bounded)))
    assert kept is not None
    assert parts(kept) == parts(alternating(LISTED_MIN))


def test_a_long_list_costs_what_its_repetition_costs() -> None:
    listed = Composed((events.Laplace(0.01),) * 1000)
    assert epsilon(listed, 1e-6) == epsilon(Repeated(events.Laplace(0.01), 1000), 1e-6)


def test_many_different_samples_take_few_points_and_their_ends_stay_close(monkeypatch: pytest.MonkeyPatch) -> None:
    """Points are what the time goes into: two lattices of the limit, and a half for what is tried out beforehand."""
    points: list[int] = []

    def counted(pair: Pair, step: float, tail: float, count: int) -> loss.Lattice:
        made = loss.discretize(pair, step, tail, count)
        points.append(len(made.masses))
        return made

    monkeypatch.setattr(composition, "discretize", counted)
    steps = (events.Sampled(0.005 + 2e-5 * one, events.Gaussian(0.8 + 2e-3 * one)) for one in range(500))
    bound = epsilon(Composed(tuple(steps)), 1e-6)
    assert bound.upper < 1.008 * bound.lower
    assert sum(points) < 2.5 * composition.CELLS
