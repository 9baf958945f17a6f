"""The law of noise for many numbers: moments, cells, tails. Each check has a false-alarm rate of 1e-6 over its seed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

torch = pytest.importorskip("torch")

from tacit.mechanisms.bulk_gaussian import BulkGaussian, Scale  # noqa: E402
from tacit.mechanisms.simulation import SeededSource  # noqa: E402
from tests.statistical.evidence import Refuted, accept, binomial_p, chi_square_p  # noqa: E402

COUNT = 1_000_000


def _noise(deviation: float, offset: float = 0.0) -> np.ndarray:
    """Return released sums, all of them `offset`, in steps."""
    sums = {"x": torch.full((COUNT,), offset, dtype=torch.float64)}
    step = Scale.of(COUNT, deviation).step
    return BulkGaussian(SeededSource(7)).add(sums, deviation, 1.0)["x"].numpy() / step


def _check(noise: np.ndarray, deviation: float) -> None:
    """Raise `Refuted` unless whole numbers follow the Gaussian of this standard deviation in steps, rounded."""
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


@pytest.mark.parametrize("deviation", [1.0, 0.7123, 1.99 * 2.0**20])
def test_noise_has_the_law_of_rounded_gaussians(deviation: float) -> None:
    _check(_noise(deviation), Scale.of(COUNT, deviation).deviation_steps)


@pytest.mark.parametrize("offset", [0.5, 0.25, -1000.125])
def test_sums_between_two_multiples_have_the_law_of_rounded_sums(offset: float) -> None:
    noise = _noise(128.0, offset)
    spread = np.arange(-600, 601)
    edges = np.floor(offset) + spread + 0.5
    shares = np.diff(stats.norm.cdf(np.array([-np.inf, *edges, np.inf]), loc=offset, scale=128.0))
    accept(chi_square_p(np.bincount(np.searchsorted(edges, noise), minlength=len(shares)), shares / shares.sum()))
    accept(2 * stats.norm.sf(abs(noise.mean() - offset) * np.sqrt(COUNT) / 128), "unbiased sums")


def test_low_bits_are_uniform() -> None:
    low = _noise(1.9).astype(np.int64) % 16
    accept(chi_square_p(np.bincount(low, minlength=16), np.full(16, 1 / 16)), "uniform low bits")


@pytest.mark.parametrize(
    "bug",
    [
        lambda noise: np.rint(noise / 2),
        lambda noise: 2 * np.rint(noise / 2),
        lambda noise: np.rint(noise * 1.004),
        lambda noise: np.abs(noise),
        lambda noise: np.clip(noise, -3.25 * 128, 3.25 * 128),
        lambda noise: np.repeat(noise[::2], 2),
    ],
    ids=["half the noise", "wrong grid", "scale", "sign", "tail cut", "noise used twice"],
)
def test_planted_bugs_are_noticed(bug: object) -> None:
    noise = _noise(128.0)
    with pytest.raises(Refuted):
        _check(bug(noise), 128.0)  # type: ignore[operator]
