"""Rounding to the grid widens noise by less than one part in a thousand, for every epsilon that is a double, or is
refused by public parameters alone."""

from __future__ import annotations

import re
import sys
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tacit.mechanisms import Gaussian, Laplace, ReportNoisyMax, SparseVector
from tacit.mechanisms.grid import Grid
from tacit.privacy.errors import OutOfRange, TooLarge

EPSILONS = [5e-324, sys.float_info.min, *(2.0**power for power in range(-1073, 1000, 9)), 1e-12, 1e-9, 0.1, 1.0]
LENGTHS = [1, 2, 3, 1000, 10**5, 10**7]
LIMIT = Fraction(1001, 1000)


def laplace_widening(mechanism: Laplace, length: int) -> Fraction:
    noise: Any = mechanism._grid_noise(length)
    return noise.law.scale * noise.grid.step / mechanism.scale


def gaussian_widening(mechanism: Gaussian, length: int) -> Fraction:
    noise: Any = mechanism._grid_noise(length)
    nominal = Fraction(mechanism.sigma or 0) * Fraction(mechanism.sensitivity)
    squared = noise.law.variance * noise.grid.step**2 / nominal**2
    return squared if squared > 2 else (squared + 1) / 2  # sqrt(1 + x) <= 1 + x / 2


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("sensitivity", [1.0, 0.1, 1e-100, 1e100])
def test_noise_is_widened_by_less_than_a_thousandth_or_refused(sensitivity: float, length: int) -> None:
    kept = 0
    for epsilon in EPSILONS:
        for widened in (
            lambda: laplace_widening(Laplace(sensitivity, epsilon), length),  # noqa: B023
            lambda: gaussian_widening(Gaussian(sensitivity, sigma=1 / Fraction(epsilon)), length),  # noqa: B023
        ):
            try:
                found = widened()
            except TooLarge:  # numbers or grids beyond what doubles hold
                continue
            except OutOfRange:
                found = None
            assert epsilon < 1.1e-9 * length if found is None else 1 <= found <= LIMIT, (epsilon, found)
            kept += found is not None
    assert kept > 50


@pytest.mark.parametrize("epsilon", [0.02, 0.5, 10.0])
def test_ten_million_numbers_are_released_at_usual_epsilons(epsilon: float) -> None:
    assert laplace_widening(Laplace(1.0, epsilon), 10**7) <= LIMIT
    assert gaussian_widening(Gaussian(1.0, sigma=1 / epsilon), 10**7) <= LIMIT


@pytest.mark.parametrize("epsilon", [1e-10, 1e-12, 1e-14])
@pytest.mark.parametrize("length", [1, 5])
def test_the_grid_that_the_refusal_names_accepts_the_widening(epsilon: float, length: int) -> None:
    values = np.zeros(length)
    for make in (
        lambda **grid: Laplace(1.0, epsilon, **grid),
        lambda **grid: Gaussian(1.0, sigma=1 / epsilon, **grid),
    ):
        with pytest.raises(OutOfRange, match="1/1000") as refused:
            make().release(values)
        with pytest.raises(OutOfRange):
            make().interval(0.9, values)
        named = re.search(r"grid=(\S+)$", str(refused.value))
        assert named is not None
        wide = make(grid=float(named[1]))
        assert np.isfinite(wide.release(values)).all()
        low, high = wide.interval(0.9, 0.0)
        assert high - low > 2 / epsilon


@pytest.mark.parametrize("epsilon", [1e-18, 1e-300])
def test_where_no_grid_would_do_none_is_named(epsilon: float) -> None:
    for mechanism in (Laplace(1.0, epsilon), Gaussian(1.0, sigma=1 / Fraction(max(epsilon, 1e-300)))):
        with pytest.raises(OutOfRange) as refused:
            mechanism.release(0.0)
        assert "grid=" not in str(refused.value)


def test_choices_that_add_noise_are_refused_as_well() -> None:
    for epsilon in (1e-10, 1e-30):
        with pytest.raises(OutOfRange, match="1/1000"):
            SparseVector(1, epsilon, 0)
        with pytest.raises(OutOfRange, match="1/1000"):
            ReportNoisyMax(1.0, epsilon).release([0.0, 1.0])
    assert ReportNoisyMax(1, 1e-10).release([0, 1]) in (0, 1)
    assert ReportNoisyMax(1.0, 1e-8).release([0.0, 1.0]) in (0, 1)
    assert SparseVector(1, 1e-8, 0).release([0]) in ((True,), (False,))


def test_a_refusal_does_not_depend_on_the_values() -> None:
    for values in ([0.0], [1e-30], [1e12]):
        with pytest.raises(OutOfRange, match="1/1000"):
            Laplace(1.0, 1e-11).release(values)
    with pytest.raises(OutOfRange, match="1/1000"):
        Laplace(1.0, 1e-3).release(np.zeros(5 * 10**6))


@pytest.mark.parametrize("monotonic", [False, True])
@pytest.mark.parametrize("sensitivity", [0.1, 1 / 3, 2.7])
def test_the_noisy_maximum_covers_the_steps_that_rounding_puts_between_neighbours(
    sensitivity: float, monotonic: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neighbours that round away from one another lie a step further apart; noise for less would be a lost promise."""
    scales: list[Fraction] = []
    grids: list[Grid] = []
    fitting = Grid.fitting

    def fitted(*given: Any) -> Grid:
        grids.append(fitting(*given))
        return grids[-1]

    def prepared(law: Any) -> Any:
        scales.append(law.scale)
        return SimpleNamespace(draw=lambda count, source: np.zeros(count, dtype=np.int64))

    monkeypatch.setattr("tacit.mechanisms.selection.sampler_for", prepared)
    monkeypatch.setattr(Grid, "fitting", staticmethod(fitted))
    epsilon = Fraction(1, 2)
    ReportNoisyMax(sensitivity, epsilon, monotonic).release([0.0, 1.0])
    step = float(grids[0].step)
    below = np.linspace(-step, step, 1001)
    apart = int((grids[0].encode(below + sensitivity) - grids[0].encode(below)).max())
    assert apart == Fraction(sensitivity) // grids[0].step + 1
    assert scales[0] >= (1 if monotonic else 2) * apart / epsilon
