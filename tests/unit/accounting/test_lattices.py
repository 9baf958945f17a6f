"""Losses on a lattice: what composing them by one transform loses is less than what is set aside for it."""

import math

import numpy as np
import pytest

from tacit.accounting import composition, loss
from tacit.accounting.loss import Curve, Focus, Lattice
from tacit.accounting.pairs import (
    AtomPair,
    GaussianPair,
    LaplacePair,
    Pair,
    PoissonSampledPair,
    WithoutReplacementPair,
    lattice_pair,
    pure_pair,
)

PAIRS: list[Pair] = [
    GaussianPair(0.3),
    LaplacePair(0.4),
    pure_pair(0.7),
    pure_pair(0.3, 1e-4),
    lattice_pair(0.9, 3),
    PoissonSampledPair(0.01, GaussianPair(2.0), False),
    PoissonSampledPair(0.01, GaussianPair(2.0), True),
    PoissonSampledPair(0.3, LaplacePair(1.0), True),
    PoissonSampledPair(0.2, pure_pair(1.0, 1e-5), False),
    PoissonSampledPair(0.2, pure_pair(1.0, 1e-5), True),
    WithoutReplacementPair(0.1, GaussianPair(1.0)),
    WithoutReplacementPair(0.1, pure_pair(1.0, 1e-5)),
]


@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_both_laws_of_a_pair_are_whole(pair: Pair) -> None:
    edges = np.array([-np.inf, np.inf])
    p, q = (float(masses[0]) for masses in pair.cells(edges))
    losses, masses = pair.atoms
    assert p + masses.sum() + pair.only_p == pytest.approx(1, abs=1e-12)
    assert q + (masses * np.exp(-losses)).sum() + pair.only_q == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("pair", PAIRS, ids=str)
@pytest.mark.parametrize("tail", [1e-3, 1e-12, 1e-30])
def test_no_more_than_the_tail_lies_above_the_span(pair: Pair, tail: float) -> None:
    above = float(pair.cells(np.array([pair.span(tail)[1] + 1e-12, np.inf]))[0][0])
    assert above <= tail * (1 + 1e-6)
    assert pair.atoms.losses.max(initial=-np.inf) <= pair.span(tail)[1] + 1e-12


@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_a_lattice_keeps_the_mass_and_only_spreads_the_ratio(pair: Pair) -> None:
    step = 0.01
    lattice = loss.discretize(pair, step, 1e-9, 1)
    losses = step * (lattice.start + np.arange(len(lattice.masses)))
    assert lattice.masses.min() >= 0
    assert lattice.masses.sum() + lattice.infinite + lattice.given_away == pytest.approx(1, abs=1e-9)
    for epsilon in (0.0, 0.003, 0.05, 0.2):
        coarse = (lattice.masses * np.maximum(-np.expm1(epsilon - losses), 0)).sum()
        edges = np.array([epsilon, np.inf])
        p, q = (float(masses[0]) for masses in pair.cells(edges))
        exact = p - math.exp(epsilon) * q
        atoms = pair.atoms
        exact += float((atoms.masses * np.maximum(-np.expm1(epsilon - atoms.losses), 0)).sum())
        assert coarse + lattice.given_away >= exact * (1 - 1e-12)
        assert coarse <= exact + step


def directly(lattice: Lattice) -> tuple[np.ndarray, np.ndarray]:
    """Return indices and masses of a lattice composed by multiplying out, in extended precision."""
    masses, times = lattice.masses.astype(np.longdouble), 1
    while times < lattice.times:
        masses, times = np.convolve(masses, masses), 2 * times
    return lattice.start * times + np.arange(len(masses)), masses


def curve_at(lattice: Lattice, step: float, focus: Focus) -> Curve:
    return Curve([lattice], step, focus, loss.find_window([lattice], step, focus, loss.Sketch([lattice], step)))


@pytest.mark.sampled(12)
@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-13, 1e-20])
@pytest.mark.parametrize(
    ("pair", "points", "times"),
    [
        (PoissonSampledPair(0.01, GaussianPair(2.0), False), 4000, 4),
        (PoissonSampledPair(0.01, GaussianPair(2.0), True), 4000, 4),
        (PoissonSampledPair(1e-4, GaussianPair(2.5), False), 8000, 2),
        (PoissonSampledPair(0.3, GaussianPair(1.0), False), 2000, 8),
        (LaplacePair(0.5), 1000, 16),
        (pure_pair(0.3, 1e-9), 100, 64),
    ],
    ids=str,
)
def test_the_transform_is_as_good_as_multiplying_out(pair: Pair, points: int, times: int, delta: float) -> None:
    tail = delta * 1e-7 / times
    low, high = pair.span(tail)
    step = (high - low) / points
    lattice = loss.discretize(pair, step, tail, times)
    focus = loss.focus_on_delta(loss.Sketch([lattice], step), delta)
    curve = curve_at(lattice, step, focus)
    indices, masses = directly(lattice)
    losses = np.longdouble(step) * indices
    lost = -math.expm1(times * math.log1p(-lattice.infinite))
    for epsilon in {focus.epsilon, 0.9 * focus.epsilon, 1.05 * focus.epsilon, min(curve.epsilon_upper(delta), 99.0)}:
        exact = float((masses * np.maximum(-np.expm1(epsilon - losses), 0)).sum()) + lost
        assert curve.delta(epsilon, upper=False) <= exact * (1 + 1e-15)
        assert exact <= curve.delta(epsilon, upper=True)


@pytest.mark.parametrize("tilt", [1e-3, 1.0, 50.0, 1e4, 1e9])
def test_a_tilt_that_does_not_fit_costs_precision_but_never_soundness(tilt: float) -> None:
    lattice = loss.discretize(PoissonSampledPair(0.05, GaussianPair(1.0), False), 0.002, 1e-14, 8)
    indices, masses = directly(lattice)
    losses = np.longdouble(0.002) * indices
    for focus in (Focus(0.1, tilt), Focus(1.0, tilt), Focus(50.0, tilt)):
        curve = curve_at(lattice, 0.002, focus)
        for epsilon in (0.0, 0.05, 0.4, 1.0, 2.5):
            exact = float((masses * np.maximum(-np.expm1(epsilon - losses), 0)).sum())
            assert curve.delta(epsilon, upper=False) <= exact <= curve.delta(epsilon, upper=True)


def test_moves_to_the_lattice_are_bounded_as_the_lower_end_takes_them_to_be() -> None:
    for step in (1e-3, 0.1, 1.0):
        offsets = np.linspace(0, step, 1001)
        means = step * np.expm1(-offsets) / math.expm1(-step) - offsets
        assert means.min() >= -1e-15
        assert means.max() <= step**2 * (1 + step) / 8


@pytest.mark.parametrize("times", [1, 100, 10**6])
def test_a_composed_lattice_keeps_to_its_limit_of_points(times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    whole = composition.Curve

    def counted(*arguments: object) -> Curve:
        curve = whole(*arguments)  # type: ignore[arg-type]
        made.append(curve.points)
        return curve

    monkeypatch.setattr(composition, "Curve", counted)
    for delta in (0.3, 1e-3, 1e-15):
        composition._epsilon([(GaussianPair(1e-3), times)], delta, composition.WIDTH)
    composition._delta([(GaussianPair(1e-3), times)], 0.0)
    assert all(points <= 1.1 * composition.POINTS for points in made)


def test_an_outcome_that_only_one_law_has_is_given_away_however_often_it_is_composed() -> None:
    pair = AtomPair((-0.1, 0.1), (0.45, 0.45), only_p=0.1, only_q=0.1)
    lattice = loss.discretize(pair, 0.01, 1e-9, 3)
    curve = curve_at(lattice, 0.01, Focus(0.1, 1.0))
    assert curve.delta(5.0, upper=False) == pytest.approx(1 - 0.9**3)
    assert curve.delta(5.0, upper=True) == pytest.approx(1 - 0.9**3)
