"""How statistical tests speak: a p-value from counts, and one rule for when it is too small to be chance.

Every p-value here is exact or an upper bound up to the chi-square approximation, whose cells are pooled until each
expects at least five. A test that calls `accept` once raises a false alarm with probability FALSE_ALARM, over the
choice of its seed; with the seed fixed it passes or fails always. A planted bug must raise `Refuted` in the same check.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import stats

FALSE_ALARM: Final = 1e-6
"""How likely one `accept` fails although the law is the stated one."""

EXPECTED_MIN: Final = 5.0
"""Cells that expect fewer than this are put together with others, where the chi-square law would not be near."""

Numbers: TypeAlias = Sequence[Any] | NDArray[Any]


class Refuted(AssertionError):
    """A claim was put to the test and did not hold; other failed assertions are mistakes of the test itself."""


def accept(p: float, claim: str = "the stated law") -> None:
    """Raise `Refuted` if chance alone explains what was seen with a probability below FALSE_ALARM."""
    if not p >= FALSE_ALARM:
        raise Refuted(f"this is not {claim}: p = {p:.3g} is below the false-alarm rate of {FALSE_ALARM:g}")


def chi_square_p(counts: Numbers, probabilities: Numbers) -> float:
    """Return how likely counts at least this far from `probabilities` are; 0 if what is impossible was counted.

    The probabilities cover every cell and sum to 1. With fewer than two cells left after pooling there is nothing to
    compare, and the answer is 1.
    """
    observed = np.asarray(counts, dtype=np.float64)
    shares = np.asarray(probabilities, dtype=np.float64)
    assert observed.shape == shares.shape, "one probability for each count"
    assert observed.min() >= 0, "counts are not negative"
    assert shares.min() >= 0, "probabilities are not negative"
    assert abs(shares.sum() - 1) < 1e-9, "probabilities sum to 1"
    if np.any(observed[shares == 0] > 0):
        return 0.0
    observed, expected = _pooled(observed.ravel(), shares.ravel() * observed.sum())
    if len(expected) < 2:
        return 1.0
    statistic = float((np.square(observed - expected) / expected).sum())
    return float(stats.chi2.sf(statistic, len(expected) - 1))


def binomial_p(successes: int, trials: int, probability: float) -> float:
    """Return twice the smaller tail of the binomial law at `successes`, at most 1: never too small."""
    assert 0 <= successes <= trials, "successes are some of the trials"
    assert 0 <= probability <= 1, "a probability lies between 0 and 1"
    below = float(stats.binom.cdf(successes, trials, probability))
    above = float(stats.binom.sf(successes - 1, trials, probability))
    return min(1.0, 2 * min(below, above))


def _pooled(
    observed: NDArray[np.float64], expected: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Put the least likely cells together until each of the cells left expects enough."""
    order = np.argsort(expected)[::-1]
    observed, expected = observed[order], expected[order]
    kept = int(np.count_nonzero(expected >= EXPECTED_MIN))
    if kept == len(expected):
        return observed, expected
    if kept and expected[kept:].sum() < EXPECTED_MIN:
        kept -= 1
    return (
        np.append(observed[:kept], observed[kept:].sum()),
        np.append(expected[:kept], expected[kept:].sum()),
    )
