"""Every additive mechanism keeps its event's privacy curve, by the exact masses of what it releases.

Nothing is drawn: see `exact_masses`. Covered are all mechanisms that add noise, at scales from 1/20 to 2^45 with both
sides of every threshold in the code, on every route through `release`. The dense form runs with `make soak`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cache
from typing import Any, Final

import numpy as np
import pytest

from tacit import accounting
from tacit.mechanisms import DiscreteGaussian, Gaussian, Geometric, Laplace
from tacit.mechanisms.additive import Additive, Noise
from tacit.mechanisms.laws import GaussianLaw, LaplaceLaw
from tacit.privacy.events import Event
from tests.conformance.mechanisms.exact_masses import (
    ONE_FLOAT,
    ONE_INT,
    ONE_NUMPY_FLOAT,
    ONE_NUMPY_INT,
    Cells,
    Route,
    all_points,
    cells_of,
    delta,
    delta_of_pairs,
    delta_of_shift,
    floats,
    ints,
    law_of,
    listed,
    most_apart,
    require_delta,
    require_even,
    shifted_by,
    windows,
)
from tests.statistical.evidence import Refuted

BELOW: Final = 1 - Fraction(1, 2**30)
FINENESS_SWITCHES: Final = [Fraction(512, odd) for odd in (1, 3, 5, 17, 1023, 1025)]
BLOCK_SWITCHES: Final = [Fraction(2**power) for power in (8, 9, 10, 11, 20)]
SCALES: Final = [Fraction(1, 20), Fraction(1, 3), Fraction(1), Fraction(9, 2), Fraction(2**32), Fraction(2**45)]
ROOT_TWO: Final = math.nextafter(math.sqrt(2), 2)
EPSILONS: Final = (0.3, 1.5, 5.0)


def both_sides(switches: Iterable[Fraction]) -> list[Fraction]:
    return [side for switch in sorted(switches) for side in (switch * BELOW, switch)]


def named(mechanism: Any) -> str:
    on = "" if mechanism.grid is None else f" on {mechanism.grid}"
    return f"{type(mechanism).__name__} {float(mechanism.scale):.10g} for {float(mechanism.sensitivity):g}{on}"


@cache
def promised(event: Event, epsilon: float) -> float:
    return accounting.delta(event, epsilon).upper


def epsilons_of(mechanism: Any) -> list[float]:
    """From 0 to where hardly any delta is left."""
    if isinstance(mechanism, Gaussian):
        sigma = float(mechanism.sigma or 0)
        return [0.0, *(1 / (2 * sigma**2) + place / sigma for place in EPSILONS)]
    return [share * mechanism.event.epsilon for share in (0.0, 0.3, 1.0)]  # type: ignore[attr-defined]


def require_curve(mechanism: Additive, needed: Callable[[float], Any], what: str) -> None:
    for epsilon in epsilons_of(mechanism):
        require_delta(needed(epsilon), promised(mechanism.event, epsilon), f"{what} at epsilon {epsilon:g}")


def require_even_cells(mechanism: Any, cells: Cells, step: Fraction, what: str) -> None:
    """Neighbouring cells may differ by as much as the law of the mechanism's scale allows, and no more."""
    scale = Fraction(mechanism.scale) / step
    if isinstance(mechanism, Gaussian):
        require_even(cells, lambda place: (place + 1) / scale**2, 100, what)
    else:
        require_even(cells, lambda _: 1 / scale, 100, what)


def points_max(route: Route, fineness: int) -> int:
    """Up to how many lattice points are put through `release`; always all of them where they are rounded."""
    return 60_000 if fineness > 1 else 16_000 if route.is_whole else 4_000


def hold(mechanism: Additive, route: Route, value: Any, neighbour: Any, step: Fraction, fineness: int = 1) -> None:
    """Hold one pair of neighbours on one route to the event's curve, and the cells to each other."""
    what = f"{named(mechanism)}, {route.name}"
    law = law_of(mechanism, route, value)
    apart = math.ceil(abs(Fraction(neighbour) - Fraction(value)) / step) * fineness
    points = all_points(law, apart, points_max(route, fineness))
    if points is None:
        law, steps = shifted_by(mechanism, route, value, neighbour, windows(law, apart))
        require_curve(mechanism, lambda epsilon: delta_of_shift(law, steps, epsilon), what)
        return
    route = ints(len(points)) if route.is_whole else route
    left, right = (cells_of(mechanism, route, one, points) for one in (value, neighbour))
    require_even_cells(mechanism, left, step, what)
    require_curve(mechanism, lambda epsilon: delta(left, right, epsilon), what)


# Integers


def hold_integers(mechanism: Any) -> None:
    sensitivity = int(mechanism.sensitivity)
    fineness = mechanism._integer_noise().fineness
    hold(mechanism, ints(64), 0, sensitivity, Fraction(1), fineness)
    edges = np.arange(-5, 6)[:, None] * fineness + fineness // 2 + np.arange(-2, 3)
    near = np.unique([*range(-20, 21), *edges.ravel().tolist()])
    for value in (0, -(10**6)):
        expected = ints(len(near)).released(mechanism, value, near)
        for route in (ONE_INT, ONE_NUMPY_INT, listed(len(near))):
            assert route.released(mechanism, value, near) == expected, f"{route.name} as in an array"


def gaussians(deviations: Iterable[Fraction], kind: type[Gaussian] = Gaussian) -> list[Gaussian]:
    return [
        kind(sensitivity, sigma=deviation / sensitivity)
        for deviation in deviations
        for sensitivity in sorted({1, max(1, int(2 * deviation))})
    ]


def laplaces(scales: Iterable[Fraction], kind: type[Laplace] = Laplace) -> list[Laplace]:
    return [
        kind(sensitivity, sensitivity / scale)
        for scale in scales
        for sensitivity in sorted({1, max(1, int(2 * scale))})
    ]


INTEGERS: Final[list[Any]] = [
    *gaussians([*SCALES, Fraction(300)]),
    *(Gaussian(1, sigma=deviation) for deviation in both_sides({*FINENESS_SWITCHES, *BLOCK_SWITCHES})),
    *(Gaussian(1, 0.01, 1e-9), Gaussian(3, 1, 1e-6), Gaussian(1, rho=0.5)),
    *gaussians(SCALES, DiscreteGaussian),
    *laplaces([*SCALES, *both_sides(BLOCK_SWITCHES)]),
    *laplaces(SCALES, Geometric),
]


@pytest.mark.sampled(40)
@pytest.mark.parametrize("mechanism", INTEGERS, ids=named)
def test_integers_keep_the_curve_at_every_scale(mechanism: Any) -> None:
    hold_integers(mechanism)


def cells_apart(mechanism: Any, move: int) -> tuple[Cells, Cells]:
    law = law_of(mechanism, ints(1), 0)
    points = all_points(law, move * mechanism._integer_noise().fineness, 60_000)
    assert points is not None
    return cells_of(mechanism, ints(len(points)), 0, points), cells_of(mechanism, ints(len(points)), move, points)


@pytest.mark.parametrize("sigma", [0.5, 1, 3, 120])
@pytest.mark.parametrize("kind", [Gaussian, DiscreteGaussian])
def test_two_integers_that_move_together_keep_the_curve(kind: type[Gaussian], sigma: float) -> None:
    mechanism = kind(ROOT_TWO, sigma=sigma)
    pair = cells_apart(mechanism, 1)
    require_curve(mechanism, lambda epsilon: delta_of_pairs(pair, pair, epsilon), named(mechanism))


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 5.0])
@pytest.mark.parametrize("kind", [Laplace, Geometric])
def test_an_l1_move_may_be_spread_over_two_integers(kind: type[Laplace], epsilon: float) -> None:
    mechanism = kind(3, epsilon)
    one, two = cells_apart(mechanism, 1), cells_apart(mechanism, 2)
    require_curve(mechanism, lambda asked: delta_of_pairs(one, two, asked), named(mechanism))


# Floats


def hold_floats(mechanism: Any, length: int) -> None:
    """Hold a vector of a length: one coordinate that moves all the way, and all that move together."""
    route = ONE_FLOAT if length == 0 else floats(length)
    law, (zero, one) = route.released(mechanism, 0.0, np.array([0, 1]))
    step = Fraction(one) - Fraction(zero)
    sensitivity = Fraction(mechanism.sensitivity)
    hold(mechanism, route, *most_apart(step, sensitivity), step)
    if length < 2:
        for same in (floats(1), listed(1), ONE_NUMPY_FLOAT, ONE_INT):
            assert same.released(mechanism, 0.0, np.arange(-3, 4)) == route.released(mechanism, 0.0, np.arange(-3, 4))
        return
    assert listed(length).released(mechanism, 0.0, np.arange(-3, 4)) == route.released(mechanism, 0.0, np.arange(-3, 4))
    each = sensitivity / length
    if isinstance(mechanism, Gaussian):
        each = sensitivity / Fraction(math.nextafter(math.sqrt(length), math.inf))
    low, high = most_apart(step, each)
    law, apart = shifted_by(mechanism, route, low, high, windows(law, 1))
    what = f"{named(mechanism)}, {length} floats at once"
    if isinstance(law, GaussianLaw):
        # The loss depends on the sum alone, which is discrete Gaussian of `length` times the variance, up to e^-pi^2 v.
        assert law.variance >= 16
        joint = GaussianLaw(law.variance * length)
        require_curve(mechanism, lambda epsilon: delta_of_shift(joint, apart * length, epsilon), what)
    elif law.exponent(apart * length) > Fraction(mechanism.event.epsilon):
        raise Refuted(f"{what}: neighbours differ by {float(law.exponent(apart * length)):g} in the logarithm")


def float_mechanisms(length: int) -> list[Any]:
    """Mechanisms on both sides of where the grid's size changes its reason (see `Grid.fitting`)."""
    spread = max(1, length)
    root = math.isqrt(spread - 1) + 1
    laplace = both_sides([Fraction(4, spread), Fraction(spread, 2**28)])
    deviation = both_sides([Fraction(root, 4), Fraction(2**28, root)])
    found: list[Any] = [Laplace(1.0, epsilon) for epsilon in (Fraction(20), Fraction(1, 3), *laplace)]
    found += [Gaussian(1.0, sigma=sigma) for sigma in (Fraction(1, 20), Fraction(3), *deviation)]
    found += [Laplace(0.1, 0.7), Gaussian(0.1, sigma=0.7), Laplace(3e-200, 1), Gaussian(1e200, sigma=5)]
    return found


@pytest.mark.parametrize("length", [0, 1, 2, 1000])
def test_floats_keep_the_curve_wherever_they_lie_between_the_marks_of_the_grid(length: int) -> None:
    for mechanism in float_mechanisms(length):
        hold_floats(mechanism, length)


GRIDS: Final[list[Any]] = [
    *(Laplace(1.0, epsilon, grid) for epsilon in (0.5, 4) for grid in (Fraction(1, 8), 1, 16)),
    *(Gaussian(1.0, sigma=sigma, grid=grid) for sigma in (0.5, 4) for grid in (Fraction(1, 8), 1, 16)),
    *(Laplace(0.3, 2, Fraction(1, 4)), Gaussian(0.3, sigma=2, grid=Fraction(1, 4))),
    *(Laplace(1.0, 0.1, Fraction(1, 2**30)), Gaussian(1.0, sigma=10, grid=Fraction(1, 2**30))),
]


@pytest.mark.sampled(24)
@pytest.mark.parametrize("mechanism", GRIDS, ids=named)
@pytest.mark.parametrize("length", [0, 1, 2])
def test_floats_keep_the_curve_on_a_given_grid(mechanism: Any, length: int) -> None:
    hold_floats(mechanism, length)


# Planted bugs


def half_away_from_zero(self: Noise, drawn: Any) -> Any:
    """Round as if the noise stood alone: the cell at 0 gets one lattice point fewer than any other."""
    fineness = self.fineness + 1 if self.fineness > 1 else 2
    return np.sign(drawn) * ((np.abs(drawn) + fineness // 2) // fineness)


@pytest.mark.parametrize("deviation", [Fraction(30), Fraction(300), Fraction(513)])
def test_rounding_the_noise_away_from_zero_is_noticed(monkeypatch: Any, deviation: Fraction) -> None:
    mechanism = Gaussian(1, sigma=deviation)
    hold_integers(mechanism)
    monkeypatch.setattr(Noise, "rounded", half_away_from_zero)
    with pytest.raises(Refuted, match="cells"):
        hold_integers(mechanism)
    monkeypatch.setattr(f"{__name__}.require_even_cells", lambda *_: None)
    with pytest.raises(Refuted, match="need a delta"):
        hold_integers(mechanism)


class HalfTheNoise(Gaussian):
    """Claims sigma, and draws half of it."""

    def _integer_noise(self) -> Noise:
        return Gaussian(self.sensitivity, sigma=Fraction(self.sigma or 0) / 2)._integer_noise()

    def _grid_noise(self, dimension: int) -> Noise:
        return Gaussian(self.sensitivity, sigma=Fraction(self.sigma or 0) / 2)._grid_noise(dimension)


class HalfTheLaplace(Laplace):
    """Claims epsilon, and draws noise for twice as much."""

    def _integer_noise(self) -> Noise:
        return Laplace(self.sensitivity, Fraction(self.epsilon) * 2)._integer_noise()

    def _grid_noise(self, dimension: int) -> Noise:
        return Laplace(self.sensitivity, Fraction(self.epsilon) * 2)._grid_noise(dimension)


@pytest.mark.parametrize("kind", [HalfTheNoise, HalfTheLaplace])
@pytest.mark.parametrize("scale", [1, 40, 2**20])
def test_half_the_noise_is_noticed(kind: Any, scale: int) -> None:
    def made(sensitivity: int | float) -> Any:
        return kind(sensitivity, sigma=scale) if kind is HalfTheNoise else kind(sensitivity, Fraction(1, scale))

    with pytest.raises(Refuted):
        hold_integers(made(1))
    with pytest.raises(Refuted):
        hold_floats(made(1.0), 0)
    with pytest.raises(Refuted):
        hold_floats(made(1.0), 2)


class RoundingIsFree(Laplace):
    """Forgets that rounding moves neighbours one step further apart."""

    def _grid_noise(self, dimension: int) -> Noise:
        right = Laplace._grid_noise(self, dimension)
        steps_apart = max(1, Fraction(self.sensitivity) // right.grid.step)
        return Noise(LaplaceLaw(steps_apart / Fraction(self.epsilon)), right.grid)


class GaussianRoundingIsFree(Gaussian):
    """The same with Gaussian noise."""

    def _grid_noise(self, dimension: int) -> Noise:
        right = Gaussian._grid_noise(self, dimension)
        steps_apart = Fraction(self.sensitivity) / right.grid.step
        return Noise(GaussianLaw((Fraction(self.sigma or 0) * steps_apart) ** 2 + 16), right.grid)


@pytest.mark.parametrize(
    "mechanism",
    [
        *(RoundingIsFree(0.3, 0.5, grid) for grid in (None, Fraction(1, 4), Fraction(1, 64))),
        *(GaussianRoundingIsFree(0.3, sigma=8, grid=grid) for grid in (None, Fraction(1, 4), Fraction(1, 64))),
    ],
    ids=named,
)
@pytest.mark.parametrize("length", [0, 1, 2])
def test_a_sensitivity_without_the_rounding_is_noticed(mechanism: Any, length: int) -> None:
    with pytest.raises(Refuted):
        hold_floats(mechanism, length)


def test_one_wrong_cell_is_noticed_at_any_scale(monkeypatch: Any) -> None:
    def one_wrong(self: Noise, drawn: Any) -> Any:
        return np.where(drawn == -3, -2, drawn) if isinstance(drawn, np.ndarray) else drawn

    monkeypatch.setattr(Noise, "rounded", one_wrong)
    for scale in (2, 600, 2**20, 2**45):
        with pytest.raises(Refuted):
            hold_integers(Gaussian(1, sigma=scale) if scale > 512 else DiscreteGaussian(1, sigma=scale))
        with pytest.raises(Refuted):
            hold_integers(Laplace(1, Fraction(1, scale)))


# The dense form


@pytest.mark.soak
@pytest.mark.parametrize("odd", range(1, 400, 2))
def test_integers_keep_the_curve_at_every_fineness(odd: int) -> None:
    for deviation in both_sides([Fraction(512, odd)]):
        for mechanism in gaussians([deviation]):
            hold_integers(mechanism)


@pytest.mark.soak
@pytest.mark.parametrize("power", range(-5, 46))
def test_integers_keep_the_curve_at_every_power_of_two(power: int) -> None:
    for scale in both_sides(Fraction(2) ** power * Fraction(part, 4) for part in range(4, 8)):
        for mechanism in (*gaussians([scale]), *laplaces([scale]), *laplaces([scale], Geometric)):
            hold_integers(mechanism)


@pytest.mark.soak
@pytest.mark.parametrize("power", range(-24, 6))
@pytest.mark.parametrize("length", [0, 1, 2, 3, 100])
def test_floats_keep_the_curve_at_every_power_of_two(power: int, length: int) -> None:
    epsilon = Fraction(2) ** power
    for sensitivity in (1.0, 1 / 3):
        for part in (1, Fraction(5, 4), Fraction(7, 4)):
            hold_floats(Laplace(sensitivity, epsilon * part), length)
            hold_floats(Gaussian(sensitivity, sigma=1 / (epsilon * part)), length)
