"""What a lattice loses is accounted for: the moves to it, the lower tail, and the errors of gathered transforms."""

import math
from typing import Any

import numpy as np
import pytest

from tacit.accounting import loss, transforms
from tacit.accounting.closed_forms import log_delta
from tacit.accounting.loss import Curve, Focus, Lattice, Sketch, discretize, find_window, focus_on_epsilon
from tacit.accounting.pairs import AtomPair, GaussianPair, LaplacePair, Pair, PoissonSampledPair, pure_pair

ETA = 1e-3


def total_moves(loss_at: float, step: float, count: int) -> tuple[float, float]:
    """Return how far `count` moves of one loss lead, except with probability ETA, from their binomial law."""
    cell = math.floor(loss_at / step)
    offset = loss_at - cell * step
    chance = -math.expm1(-offset) / -math.expm1(-step)
    ups = np.arange(count + 1)
    logs = [math.lgamma(count + 1) - math.lgamma(up + 1) - math.lgamma(count - up + 1) for up in range(count + 1)]
    masses = np.exp(np.array(logs) + ups * math.log(chance) + (count - ups) * math.log1p(-chance))
    above = np.cumsum(masses[::-1])[::-1]
    return float(ups[above > ETA][-1]) * step - count * offset, chance


def curve_of(pair: Pair, step: float, count: int) -> Curve:
    lattices = [discretize(pair, step, 1e-12, count)]
    return curve_at(lattices, step, focus_on_epsilon(Sketch(lattices, step), 1.0))


def curve_at(lattices: list[Lattice], step: float, focus: Focus) -> Curve:
    return Curve(lattices, step, focus, find_window(lattices, step, focus, Sketch(lattices, step)))


@pytest.mark.parametrize("offset", [0.002, 0.01, 0.05, 0.5])
@pytest.mark.parametrize("count", [5, 60, 900])
def test_the_shift_is_beyond_all_but_eta_of_the_moves(offset: float, count: int) -> None:
    step = 0.01
    at = step * offset
    pair = AtomPair((at,), (1.0,))
    shift = curve_of(pair, step, count).shift(ETA)
    reached, chance = total_moves(at, step, count)
    assert reached <= shift
    hoeffding = step * math.sqrt(count * -math.log(ETA) / 2)
    if chance < 0.06 and count == 900:
        assert shift < 0.8 * hoeffding  # what Bernstein's inequality is for


@pytest.mark.parametrize("offset", [0.05, 0.5])
def test_a_shift_without_the_variance_of_the_moves_is_noticed(offset: float) -> None:
    step, count = 0.01, 900
    lattice = discretize(AtomPair((step * offset,), (1.0,)), step, 1e-12, count)._replace(variance=0.0)
    assert total_moves(step * offset, step, count)[0] > curve_at([lattice], step, Focus(1.0, 0.5)).shift(ETA)


@pytest.mark.parametrize(
    "pair", [GaussianPair(0.7), LaplacePair(0.9), PoissonSampledPair(0.3, GaussianPair(1.1), False)]
)
def test_the_variance_of_a_move_is_not_underestimated(pair: Pair) -> None:
    """By the law on a lattice a hundred times as fine, each point of which moves by itself."""
    step = 0.11
    fine = discretize(pair, step / 100, 1e-12, 1)
    losses = (fine.start + np.arange(len(fine.masses))) * (step / 100)
    offsets = losses - np.floor(losses / step) * step
    chances = -np.expm1(-offsets) / -math.expm1(-step)
    mean = float(fine.masses @ (chances * step - offsets))
    square = float(fine.masses @ (chances * (step - offsets) ** 2 + (1 - chances) * offsets**2))
    found = discretize(pair, step, 1e-12, 1).variance
    assert square - mean**2 <= found * (1 + 1e-3)
    assert found <= 1.6 * (square - mean**2)  # chances that are even over a cell: 1/4 in place of 1/6


CLOSE = [(GaussianPair(0.05), 400, 0.05 * 20), (GaussianPair(0.3), 9, 0.9), (GaussianPair(0.01), 10**4, 1.0)]


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 4.0])
@pytest.mark.parametrize(("pair", "count", "mu"), CLOSE, ids=str)
def test_the_lower_end_is_short_by_the_square_of_what_moves_spread(
    pair: Pair, count: int, mu: float, epsilon: float, share: float
) -> None:
    """The deviation of all moves is up to `share` of that of the loss; the truth is the closed form of one Gaussian."""
    step = 2 * share * mu / math.sqrt(count)
    lattices = [discretize(pair, step, 1e-20, count)]
    curve = curve_at(lattices, step, focus_on_epsilon(Sketch(lattices, step), epsilon))
    true = math.exp(log_delta(mu, epsilon, -1))
    lower = curve.delta_lower(epsilon, 1e-3 * true)
    assert lower <= true
    if share == 0.01:
        assert lower > (1 - 200 * share**2) * true
        assert curve.delta(epsilon + curve.shift(1e-3 * true), upper=False) < 0.97 * true  # what the shift alone gives


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 4.0])
def test_a_lower_end_that_keeps_what_moves_added_is_noticed(epsilon: float, monkeypatch: pytest.MonkeyPatch) -> None:
    pair, count, mu = CLOSE[0]
    step = 2 * 0.1 * mu / math.sqrt(count)
    lattices = [discretize(pair, step, 1e-20, count)]
    curve = curve_at(lattices, step, focus_on_epsilon(Sketch(lattices, step), epsilon))
    monkeypatch.setattr(Curve, "_before_moves", lambda self, at, delta: delta(at, upper=False))
    assert curve.delta_lower(epsilon, 1e-9) > math.exp(log_delta(mu, epsilon, 1))


def test_what_was_moved_up_from_the_lower_tail_is_taken_from_the_lower_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a loss that is -3 in a tenth of all cases and 1 otherwise; the lattice begins above -3."""
    pair = AtomPair((-3.0, 1.0), (0.1, 0.9))
    monkeypatch.setattr(AtomPair, "span", lambda self, tail: (0.5, 1.0))
    step = 0.25
    lattices = [discretize(pair, step, 1e-12, 2)]
    focus = Focus(0.3, 0.5)
    true = 0.81 * -math.expm1(0.3 - 2)
    lower = curve_at(lattices, step, focus).delta(0.3, upper=False)
    assert lower <= true
    forgotten = [one._replace(below=0.0) for one in lattices]
    assert curve_at(forgotten, step, focus).delta(0.3, upper=False) > true


def many_pairs() -> list[Pair]:
    responses: list[Pair] = [pure_pair(0.011 + 0.0003 * number) for number in range(60)]
    return [*responses, *(LaplacePair(0.02 + 0.0007 * number) for number in range(60))]


def composed(monkeypatch: pytest.MonkeyPatch, gathered_min: int) -> list[tuple[float, float]]:
    monkeypatch.setattr(loss, "GATHERED_MIN", gathered_min)
    monkeypatch.setattr(transforms, "GATHERED_MIN", gathered_min)
    step = 0.0007
    lattices = [discretize(pair, step, 1e-20, 1 + number % 7) for number, pair in enumerate(many_pairs())]
    curve = curve_at(lattices, step, focus_on_epsilon(Sketch(lattices, step), 1.5))
    return [(curve.delta(at, upper=False), curve.delta(at, upper=True)) for at in (1.2, 1.5, 2.0)]


def test_gathered_transforms_agree_with_one_for_each_part(monkeypatch: pytest.MonkeyPatch) -> None:
    gathered, apart = composed(monkeypatch, 32), composed(monkeypatch, 10**9)
    for (low, high), (least, most) in zip(gathered, apart, strict=True):
        assert low <= most
        assert least <= high
        assert high <= most * (1 + 1e-6)
        assert low >= least * (1 - 1e-6)


def test_a_gathered_part_that_is_lost_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    gather = transforms._compose_group

    def without_the_last(group: Any, length: int, times: int) -> Any:
        return gather(group[:-1] if len(group) > 1 else group, length, times)

    apart = composed(monkeypatch, 10**9)
    monkeypatch.setattr(transforms, "_compose_group", without_the_last)
    for (low, high), (least, most) in zip(composed(monkeypatch, 32), apart, strict=True):
        assert high < least or low > most


def test_gathered_transforms_count_as_more_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    step = 0.0007
    lattices = [discretize(pair, step, 1e-20, 1) for pair in many_pairs()]
    focus = focus_on_epsilon(Sketch(lattices, step), 1.5)
    gathered = curve_at(lattices, step, focus)
    monkeypatch.setattr(loss, "GATHERED_MIN", 10**9)
    assert gathered._error > 1.5 * curve_at(lattices, step, focus)._error


@pytest.mark.parametrize("times", [1, 2, 3, 100, 4096, 5000])
def test_a_spectrum_is_raised_to_its_power(times: int) -> None:
    angles = np.linspace(0, 3, 7)
    spectrum = (1 - 1e-4 * angles) * np.exp(1j * angles)
    wanted = (1 - 1e-4 * angles) ** times * np.exp(1j * angles * times)
    assert np.abs(transforms._power(spectrum, times) - wanted).max() <= times * 2.0**-50


def test_masses_near_the_least_float_do_not_mislead_the_focus() -> None:
    """The top loss decides the moment, however small its mass is: 1e-310 at a loss of 100."""
    lattice = discretize(AtomPair((0.0, 100.0), (1.0, 1e-310)), 0.5, 1e-320, 1)
    assert loss.Sketch([lattice], 0.5).log_moment(50.0) == pytest.approx(50 * 100 + math.log(1e-310), rel=1e-6)
