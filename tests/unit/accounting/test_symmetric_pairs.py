"""Pairs that stand for symmetric laws on a grid: both laws keep their totals, and no delta is below the exact one."""

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from tacit.accounting.pairs import AtomPair, Floats, curve_pair, symmetric_pair
from tests.unit.accounting import truth


def exact_delta(losses: Floats, masses: Floats, only: float, at: float) -> mpf:
    """Return delta of atoms at losses of either sign, and what P has alone."""
    pairs = zip(losses.tolist(), masses.tolist(), strict=True)
    return only + mpmath.fsum(mpf(mass) * -mpmath.expm1(mpf(at) - loss) for loss, mass in pairs if loss > at)


def delta_of(pair: AtomPair, at: float) -> mpf:
    return exact_delta(pair.atoms.losses, pair.atoms.masses, pair.only_p, at)


@pytest.mark.parametrize("only", [0.0, 1e-9, 0.1])
def test_atoms_on_a_coarser_grid_keep_both_totals_and_lower_no_delta(only: float) -> None:
    losses = np.linspace(0.013, 0.97, 23)
    masses = np.full(23, 0.02)
    pair = symmetric_pair(np.linspace(0.0, 1.0, 6), losses, masses, only)
    assert sum(pair.masses) + pair.only_p == pytest.approx(1, abs=1e-14)
    turned = float((np.array(pair.masses) * np.exp(-np.array(pair.losses))).sum())
    assert turned + pair.only_q == pytest.approx(1, abs=1e-12)
    mirrored = np.concatenate([-losses, losses]), np.concatenate([masses * np.exp(-losses), masses])
    for at in [*np.linspace(0.0, 0.99, 34).tolist(), *losses.tolist()]:
        assert delta_of(pair, at) >= exact_delta(*mirrored, only, at) * (1 - mpf(10) ** -14)


@pytest.mark.parametrize("mu", [0.2, 1.0, 3.0])
def test_a_pair_made_from_points_of_a_curve_is_nowhere_below_it(mu: float) -> None:
    epsilons = np.linspace(0.0, 6 * mu, 40)
    bounds = np.array([float(truth.gaussian_delta(mu, at)) for at in epsilons.tolist()])
    pair = curve_pair(epsilons, bounds)
    for at in np.linspace(0.0, 6 * mu, 157).tolist():
        assert delta_of(pair, at) >= truth.gaussian_delta(mu, at) * (1 - mpf(10) ** -12)
