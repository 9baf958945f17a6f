"""DP-FTRL with banded matrix noise: the noise of a step is cancelled in part by that of the next `bands` - 1 steps.

Promise: with b bands, step t releases y_t = sum_{k < b} c_k x_{t-k} + z_t, x_t the sum of clipped gradients of step t,
z_t independent Gaussian noise, and c_k >= 0 public numbers with |c|_2 <= 1. Optimizers get x + C^-1 z, where C is the
banded Toeplitz matrix of c: xhat_t = (y_t - sum_{k >= 1} c_k xhat_{t-k}) / c_0, computed from what was released.

Theorem (Choquette-Choo, Ganesh, McKenna, McMahan, Rush, Thakurta, Xu 2023, "(Amplified) Banded Matrix Factorization").
Each unit is in one of b groups, drawn uniformly and independently of all else, and step t samples the units of group
t mod b alone, each with probability q. For one unit more or less, all y together are at most ceil(steps / b) adaptively
composed Gaussian mechanisms on Poisson samples of rate q, at the multiplier of z over the greatest |x_t - x'_t|.

Proof. Condition on the unit's group g, on the groups of all others and on their coins; none of them depends on the
unit, and hockey-stick divergences are jointly convex. Rows t, ..., t + b - 1 with t = g mod b are a block; the rows
before the first one do not depend on the unit. The unit adds v to x_t if its coin of step t falls so, where v is a
function of y before the block; no other step of the block samples it, and x_{t-b} has left the window. So row t + j
is c_j v coin + f_j + z, where f_j is a function of earlier rows. Subtracting f_j row by row is a bijection, after which
the block is N((c_0 v, ..., c_{b-1} v) coin, s^2 I), with |(c_0 v, ..., c_{b-1} v)| = |c| |v|, against N(0, s^2 I):
`Sampled(q, Gaussian)`. Blocks are disjoint and follow each other: adaptive composition with parameters fixed
beforehand. Rows that are never released (the end of a training, steps that were lost) only shorten (c_0, ..., c_{b-1}).

A loader of the caller's own (one row replaced): if the order is the same in all passes of S >= b steps, or there is one
pass, a row takes part at steps that are S apart; its blocks are disjoint, each a Gaussian mechanism of sensitivity
2 |c| clip, one for each pass. There are no coins and no groups.

Finite precision. Let B = clip (1 + sum_error) bound |x_t - x'_t| for the sums as they are computed (`rounding`). The
sums of the other steps of a block are over the same units in both data sets. A row is computed in float64 from up to b
products, so it is off by at most gamma_b sum_k c_k |x_{t-k}| <= gamma_b sqrt(b) units B (Cauchy-Schwarz, |c| <= 1). By
Minkowski's inequality the b rows of a block move by at most B (|c| + 2 b gamma_b units) together. `BulkGaussian` rounds
after the noise, which is post-processing. With `exact_noise` a row is rounded to the grid before, which moves
neighbours up to one step further apart in each of d numbers, sqrt(b d) steps in a block; `mechanisms.Gaussian` widens
the noise of a call for sqrt(d) steps (rounded up to a whole number), and there are at least SENSITIVITY_STEPS_MIN
sqrt(d) in its sensitivity: one that is greater by the share (sqrt(b) - 1) / (SENSITIVITY_STEPS_MIN - sqrt(b) + 1) has
room for the other (sqrt(b) - 1) sqrt(d) steps. Both are in `encoding_error`, for either noise. Products that underflow
move a sum by less than 2^-900 of the clip, far below the margin by which deviations are rounded up
(`private_training.ROUNDING`).

The last b - 1 sums x are private: they are held until the training ends, and are in its checkpoints.

Coefficients minimise the squared error of the prefix sums of x + C^-1 z, from the square root of the matrix of ones
(Fichtenberger, Henzinger, Upadhyay 2023) on, truncated to b bands (banded Toeplitz matrices: McKenna 2024).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from tacit.learn.dpsgd.rounding import gamma
from tacit.mechanisms.grid import SENSITIVITY_STEPS_MIN

BANDS_MAX: Final = 256
HORIZON_MAX: Final = 10_000
"""The most steps for which coefficients are optimised; longer trainings use those for so many."""
NORM_MAX: Final = 1 - 2.0**-40
"""The norm of coefficients, so that rounding them does not bring it above 1."""
Tensors = dict[str, Tensor]


def coefficients(bands: int, steps: int) -> tuple[float, ...]:
    """Return c_0, ..., c_{bands - 1} for a training of so many steps; they depend on these numbers alone."""
    if bands == 1:
        return (1.0,)
    from scipy.optimize import minimize

    start = np.cumprod([1.0, *((2 * k - 1) / (2 * k) for k in range(1, bands))])
    horizon = max(min(steps, HORIZON_MAX), bands)
    bounds = [(0.0, 1.0)] * (bands - 1)
    options = {"maxiter": 500, "ftol": 1e-12, "gtol": 1e-9}
    found = minimize(_error, start[1:], (horizon,), "L-BFGS-B", jac=True, bounds=bounds, options=options)
    better = np.array([1.0, *found.x])
    if prefix_error(better, horizon) * np.linalg.norm(better) > prefix_error(start, horizon) * np.linalg.norm(start):
        better = start
    return tuple(float(one) for one in better * (NORM_MAX / np.linalg.norm(better)))


def prefix_error(c: Any, steps: int) -> float:
    """Return the root mean squared error of the prefix sums of x + C^-1 z, for noise z of deviation 1."""
    errors = _prefix_weights(np.asarray(c, dtype=float), steps)
    return math.sqrt(float(np.arange(steps, 0, -1) @ np.square(errors)) / steps)


def _prefix_weights(c: NDArray[np.float64], steps: int) -> NDArray[np.float64]:
    """Return the first column of A C^-1, where A sums up: the prefix sums of the power series 1 / c."""
    from scipy.signal import lfilter

    return np.asarray(lfilter([1.0], c, np.ones(steps)))


def _error(rest: NDArray[np.float64], steps: int) -> tuple[float, NDArray[np.float64]]:
    """Return the logarithm of |c|^2 times the squared error for c = (1, *rest), and its gradient."""
    from scipy.signal import lfilter

    c = np.array([1.0, *rest])
    weights = _prefix_weights(c, steps)
    counted = np.arange(steps, 0, -1) * weights
    error, norm = float(counted @ weights), float(c @ c)
    slopes = lfilter([1.0], c, weights)  # d weights_s / d c_k = -slopes_{s - k}
    gradient = np.array([-2 * counted[k:] @ slopes[: steps - k] for k in range(1, len(c))])
    return math.log(error) + math.log(norm), gradient / error + 2 * rest / norm


def encoding_error(bands: int, units: int) -> float:
    """Return by what share the sensitivity of a row is widened, so that noise covers all rows of a block together."""
    if bands == 1:
        return 0.0
    grid = (math.sqrt(bands) - 1) / (SENSITIVITY_STEPS_MIN - math.sqrt(bands) + 1)
    return (1 + 2 * bands * gamma(bands, 2.0**-53) * units) * (1 + grid) - 1


@dataclass(frozen=True, eq=False)
class _Past:
    """A step that others build on: its sums, which are private, and what the optimizer got."""

    step: int
    sums: Tensors
    released: Tensors


class MatrixNoise:
    """The last steps of a training with banded matrix noise."""

    def __init__(self, c: tuple[float, ...], tensors: Mapping[str, Tensor] | None = None) -> None:
        self._c = c
        self._sums: Tensors = {}
        self._past: deque[_Past] = deque(_read(tensors or {}), maxlen=len(c) - 1)

    def encoded(self, step: int, sums: Tensors) -> Tensors:
        """Return what step `step` adds noise to: its sums, and those of the steps before, with their coefficients."""
        if len(self._c) == 1:
            return sums
        self._sums = sums
        found = {name: one.double() * self._c[0] for name, one in sums.items()}
        for weight, past in self._weighted(step):
            for name, one in past.sums.items():
                found[name].add_(one.double(), alpha=weight)
        return found

    def decoded(self, step: int, noisy: Tensors) -> Tensors:
        """Return the sums of a step with correlated noise, from what it released; post-processing."""
        if len(self._c) == 1:
            return noisy
        found = {name: one.clone() for name, one in noisy.items()}
        for weight, past in self._weighted(step):
            for name, one in past.released.items():
                found[name].sub_(one, alpha=weight)
        for one in found.values():
            one.div_(self._c[0])
        self._past.append(_Past(step, self._sums, found))
        self._sums = {}
        return found

    def _weighted(self, step: int) -> list[tuple[float, _Past]]:
        """Return the steps before that are in a row; steps that were lost are not."""
        return [(self._c[step - one.step], one) for one in self._past if step - one.step < len(self._c)]

    def forget(self) -> None:
        """Drop the sums, at the end of a training."""
        self._past.clear()

    @property
    def tensors(self) -> Tensors:
        """The last steps, for a checkpoint; their sums are as private as the data."""
        found: Tensors = {}
        for one in self._past:
            for kind, values in (("sums", one.sums), ("released", one.released)):
                found |= {
                    f"past.{one.step}.{kind}.{name}": value.detach().clone().contiguous()
                    for name, value in values.items()
                }
        return found


def _read(tensors: Mapping[str, Tensor]) -> list[_Past]:
    """Return the steps of `MatrixNoise.tensors`, the oldest first."""
    steps: dict[int, _Past] = {}
    for key, value in tensors.items():
        if key.startswith("past."):
            _, step, kind, name = key.split(".", 3)
            past = steps.setdefault(int(step), _Past(int(step), {}, {}))
            (past.sums if kind == "sums" else past.released)[name] = value
    return [steps[step] for step in sorted(steps)]
