"""Attacks on the low bits of released floats, over every numeric mechanism.

Mironov (2012): textbook noise added to different values can be told apart by which doubles are reachable at all.
Haney et al. (2022): added to 1, a small noise loses the low bits that it keeps when added to 0.
Each attack is an event on the output; the checker compares its rates under two neighbours and raises when one is more
than e^epsilon times the other plus chance (false alarms: one in a million a comparison, by the binomial law), or
when an output is not a multiple of one public grid. A textbook Laplace planted beside them must be caught.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from tacit.mechanisms import Gaussian, Laplace, SmoothMedian, SmoothSensitivity
from tacit.mechanisms.simulation import SeededSource
from tests.statistical.evidence import FALSE_ALARM

DRAWS = 20_000
DRAWS_ONE_BY_ONE = 4_000
Release = Callable[[float, int], NDArray[np.float64]]


def below_precision_of_one(outputs: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Haney et al.: between 0 and 1/2 and no multiple of 2^-53; impossible when noise was added to 1."""
    return (outputs > 0) & (outputs < 0.5) & (outputs * 2.0**53 % 1 != 0)


def low_bits(bits: int) -> Callable[[NDArray[np.float64]], NDArray[np.bool_]]:
    """Mironov: the low bits of the mantissa are all zero."""

    def event(outputs: NDArray[np.float64]) -> NDArray[np.bool_]:
        mantissas = np.asarray(outputs, dtype=np.float64).view(np.uint64) & np.uint64(2**bits - 1)
        return mantissas == 0

    return event


def reachable_from(value: float) -> Callable[[NDArray[np.float64]], NDArray[np.bool_]]:
    """Whether output - value, as doubles, gives the output back when value is added: a gap that textbook noise has."""
    return lambda outputs: (outputs - value) + value == outputs


EVENTS: dict[str, Callable[[NDArray[np.float64]], NDArray[np.bool_]]] = {
    "below the precision of one": below_precision_of_one,
    **{f"{bits} low bits are zero": low_bits(bits) for bits in (1, 2, 4, 8, 16)},
    "reachable from a third": reachable_from(1 / 3),
    "reachable from one": reachable_from(1.0),
}


def tell_apart(release: Release, first: float, second: float, epsilon: float, delta: float) -> list[str]:
    """Return the events whose rates under two neighbours differ by more than the promise and chance allow."""
    outputs = [release(value, seed) for seed, value in enumerate((first, second))]
    caught = []
    for name, event in EVENTS.items():
        hits = [int(np.count_nonzero(event(output))) for output in outputs]
        for one, other in (hits, hits[::-1]):
            draws = len(outputs[0])
            likely = stats.beta.ppf(1 - FALSE_ALARM, other + 1, draws - other) if other < draws else 1.0
            allowed = min(1.0, math.exp(epsilon) * likely + delta)
            if stats.binom.sf(one - 1, draws, allowed) < FALSE_ALARM:
                caught.append(name)
    return caught


def each(mechanism: Any) -> Release:
    return lambda value, seed: np.asarray(mechanism.release(np.full(DRAWS, value), source=SeededSource(seed)))


def one_by_one(mechanism: Any) -> Release:
    def release(value: float, seed: int) -> NDArray[np.float64]:
        source = SeededSource(seed)
        return np.array([mechanism.release(value, source=source) for _ in range(DRAWS_ONE_BY_ONE)])

    return release


def smooth(value: float, seed: int) -> NDArray[np.float64]:
    source = SeededSource(seed)
    mechanism = SmoothSensitivity(1, 2.0**-20)
    return np.array([mechanism.release(value, 1.0, source=source) for _ in range(DRAWS_ONE_BY_ONE)])


def median(value: float, seed: int) -> NDArray[np.float64]:
    source = SeededSource(seed)
    mechanism = SmoothMedian(1, 0, 1)
    return np.array([mechanism.release([0.0, value, 1.0], source=source) for _ in range(DRAWS_ONE_BY_ONE)])


SOUND: dict[str, tuple[Release, float, float]] = {
    "Laplace": (each(Laplace(1, 1)), 1.0, 0.0),
    "Laplace, one by one": (one_by_one(Laplace(1.0, 1)), 1.0, 0.0),
    "Laplace, small epsilon": (each(Laplace(1, 0.01)), 0.01, 0.0),
    "Laplace on a given grid": (each(Laplace(1, 1, grid=2**-10)), 1.0, 0.0),
    "Gaussian": (each(Gaussian(1, 1, 1e-3)), 1.0, 1e-3),
    "Gaussian, one by one": (one_by_one(Gaussian(1.0, 1, 1e-3)), 1.0, 1e-3),
    "smooth sensitivity": (smooth, 1.0, 0.0),
    "smooth median": (median, 1.0, 0.0),
}


@pytest.mark.sampled(12, each="name")
@pytest.mark.parametrize("name", SOUND)
@pytest.mark.parametrize(("first", "second"), [(0.0, 1.0), (1 / 3, 1.0), (0.0, 1e-9)])
def test_low_bits_do_not_tell_neighbours_apart(name: str, first: float, second: float) -> None:
    release, epsilon, delta = SOUND[name]
    assert tell_apart(release, first, second, epsilon, delta) == []


@pytest.mark.parametrize("name", SOUND)
def test_every_output_lies_on_a_grid_that_both_neighbours_share(name: str) -> None:
    release, *_ = SOUND[name]
    steps = {common_step(release(value, seed)) for seed, value in enumerate((0.0, 1 / 3, 1.0))}
    assert len(steps) == 1
    assert max(steps) >= 2.0**-40


def common_step(outputs: NDArray[np.float64]) -> float:
    """Return the greatest power of two of which all outputs are multiples."""
    exponents = [math.frexp(output)[1] - 53 for output in outputs if output]
    step = 2.0 ** min(exponents)
    while np.all(outputs % (2 * step) == 0):
        step *= 2
    return step


def textbook_laplace(value: float, seed: int) -> NDArray[np.float64]:
    return np.asarray(value + np.random.default_rng(seed).laplace(0, 1, DRAWS))


def textbook_gaussian(value: float, seed: int) -> NDArray[np.float64]:
    return np.asarray(value + np.random.default_rng(seed).normal(0, 3.73, DRAWS))


@pytest.mark.parametrize("planted", [textbook_laplace, textbook_gaussian])
def test_textbook_noise_is_caught(planted: Release) -> None:
    assert "below the precision of one" in tell_apart(planted, 0.0, 1.0, 1.0, 0.0)
    assert common_step(planted(0.0, 1)) < 2.0**-50


def test_a_grid_finer_than_a_double_is_caught() -> None:
    """Noise on a grid of 2^-57 of its scale: doubles drop the odd multiples far out, differently for each input."""

    def fine(value: float, seed: int) -> NDArray[np.float64]:
        noise = np.random.default_rng(seed).laplace(0, 1, DRAWS)
        return np.asarray(value + np.rint(noise * 2.0**57) / 2.0**57)

    assert tell_apart(fine, 0.0, 1.0, 1.0, 0.0)
