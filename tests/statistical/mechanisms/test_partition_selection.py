"""The selection of groups: shown as often as `chance` says, which is as often as the truncated law says.

False alarms: one in a million for each check; seeds are fixed.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.mechanisms import KeySelection
from tacit.mechanisms.simulation import SeededSource
from tests.statistical.evidence import Refuted, accept, binomial_p, chi_square_p

DRAWS = 40_000


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-3), (0.2, 0.01), (5.0, 1e-9), (0.5, 0.4)])
def test_a_group_is_shown_as_often_as_chance_says(epsilon: float, delta: float) -> None:
    selection = KeySelection(epsilon, delta)
    for count in {1, 2, selection.reach, selection.threshold, 2 * selection.reach}:
        shown = selection.release(np.full(DRAWS, count), source=SeededSource(count))
        accept(binomial_p(int(np.count_nonzero(shown)), DRAWS, selection.chance(count)))
    sharper = KeySelection(2 * epsilon, delta)
    shown = sharper.release(np.full(DRAWS, selection.threshold), source=SeededSource(3))
    with pytest.raises(Refuted):
        accept(binomial_p(int(np.count_nonzero(shown)), DRAWS, selection.chance(selection.threshold)))


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-3), (0.3, 0.05), (0.02, 0.04)])
def test_the_noise_is_the_cut_off_geometric_law(epsilon: float, delta: float) -> None:
    selection = KeySelection(epsilon, delta)
    noise = selection._draw_noise(DRAWS, SeededSource(4))
    lattice = np.arange(-selection.reach, selection.reach + 1)
    masses = np.array([math.exp(-epsilon * abs(place)) for place in lattice])
    accept(chi_square_p(np.bincount(noise + selection.reach, minlength=len(lattice)), masses / masses.sum()))
