"""The judge is judged: p-values are those of the laws, and what is impossible is never accepted."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tests.statistical.evidence import FALSE_ALARM, Refuted, accept, binomial_p, chi_square_p
from tests.statistical.exact_laws import laplace_at_least, laplace_at_most, laplace_mass


def test_what_cannot_happen_and_did_has_no_probability() -> None:
    assert chi_square_p([10_000, 1], [1, 0]) == 0
    assert chi_square_p([10_000, 0], [1, 0]) == 1
    assert binomial_p(1, 10, 0.0) == 0
    assert binomial_p(9, 10, 1.0) == 0
    assert binomial_p(10, 10, 1.0) == 1


def test_cells_that_expect_little_are_judged_together() -> None:
    law = np.array([0.5, 0.4, *[0.1 / 1_000] * 1_000])
    counts = np.zeros(1_002)
    counts[:3] = [500, 400, 100]
    assert chi_square_p(counts, law) == 1
    counts[:3] = [450, 350, 200]
    assert chi_square_p(counts, law) < FALSE_ALARM


def test_p_values_of_the_right_law_are_spread_evenly() -> None:
    law = np.array([0.4, 0.3, 0.2, 0.09, 0.01])
    rng = np.random.default_rng(1)
    chi_squares = [chi_square_p(rng.multinomial(1_000, law), law) for _ in range(1_000)]
    binomials = [binomial_p(int(rng.binomial(1_000, 0.3)), 1_000, 0.3) for _ in range(1_000)]
    accept(stats.kstest(chi_squares, "uniform").pvalue)
    assert 0.02 < np.mean(np.array(binomials) < 0.05) < 0.08


def test_the_wrong_law_is_refuted() -> None:
    with pytest.raises(Refuted, match="not a fair die"):
        accept(chi_square_p([200, 100, 100, 100, 100, 100], [1 / 6] * 6), "a fair die")
    with pytest.raises(Refuted):
        accept(float("nan"))
    accept(FALSE_ALARM)


@pytest.mark.parametrize("scale", [0.3, 1.0, 20.0])
def test_the_sums_of_the_laplace_law_agree_with_each_other(scale: float) -> None:
    steps = np.arange(-2_000, 2_001)
    masses = laplace_mass(steps, scale)
    assert masses.sum() == pytest.approx(1, abs=1e-12)
    assert np.allclose(np.cumsum(masses), laplace_at_most(steps, scale), rtol=1e-9, atol=1e-15)
    assert np.allclose(laplace_at_least(steps, scale), 1 - laplace_at_most(steps - 1, scale), rtol=1e-9, atol=1e-15)
