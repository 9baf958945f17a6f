"""The law of noise for many numbers: moments, cells, tails. Each check has a false-alarm rate of 1e-6 over its seed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tacit.mechanisms.bulk_gaussian import rounded_gaussians
from tests.statistical.evidence import Refuted, accept, binomial_p, chi_square_p

COUNT = 1_000_000
KEY = bytes(range(100, 132))


def _check(noise: np.ndarray, deviation: float) -> None:
    """Raise `Refuted` unless whole numbers follow the Gaussian of this standard deviation, rounded."""
    assert np.array_equal(noise, np.rint(noise)), "noise is in whole steps"
    count = len(noise)
    accept(2 * stats.norm.sf(abs(noise.mean()) * np.sqrt(count) / deviation), "mean 0")
    spread = (np.square(noise).mean() - 1 / 12) / deviation**2
    accept(2 * stats.norm.sf(abs(spread - 1) * np.sqrt(count / 2)), "the stated variance")
    accept(2 * stats.norm.sf(abs(np.corrcoef(noise[:-1], noise[1:])[0, 1]) * np.sqrt(count)), "independent numbers")
    half = count // 2
    accept(2 * stats.norm.sf(abs((noise[:half] * noise[half:]).mean()) / deviation**2 * np.sqrt(half)), "no pairs")
    edges = np.rint(np.linspace(-4, 4, 257) * deviation) + 0.5
    shares = np.diff(stats.norm.cdf(np.array([-np.inf, *edges, np.inf]) / deviation))
    cells = np.bincount(np.searchsorted(edges, noise), minlength=len(shares))
    accept(chi_square_p(cells, shares / shares.sum()), "the stated cells")
    if deviation >= 10:
        accept(binomial_p(int((noise % 2).sum()), count, 0.5), "the stated grid")
    for level in (3, 4, 5, 6):
        limit = np.rint(level * deviation)
        beyond = int((np.abs(noise) > limit).sum())
        accept(binomial_p(beyond, count, 2 * stats.norm.sf((limit + 0.5) / deviation)), f"the tail at {level}")


@pytest.mark.parametrize("deviation", [2.0**20, 1234.56, 3.0])
def test_noise_has_the_law_of_rounded_gaussians(deviation: float) -> None:
    _check(rounded_gaussians(COUNT, deviation, KEY), deviation)


def test_low_bits_are_uniform() -> None:
    low = rounded_gaussians(COUNT, 2.0**20, KEY).astype(np.int64) % 256
    accept(chi_square_p(np.bincount(low, minlength=256), np.full(256, 1 / 256)), "uniform low bits")


@pytest.mark.parametrize(
    "bug",
    [
        lambda noise: np.rint(noise / 2),
        lambda noise: 2 * np.rint(noise / 2),
        lambda noise: np.rint(noise * 1.004),
        lambda noise: np.abs(noise),
        lambda noise: np.clip(noise, -3.2 * 50, 3.2 * 50),
        lambda noise: np.repeat(noise[::2], 2),
    ],
    ids=["half the noise", "wrong grid", "scale", "sign", "tail cut", "noise used twice"],
)
def test_planted_bugs_are_noticed(bug: object) -> None:
    noise = rounded_gaussians(COUNT, 50.0, KEY)
    with pytest.raises(Refuted):
        _check(bug(noise), 50.0)  # type: ignore[operator]
