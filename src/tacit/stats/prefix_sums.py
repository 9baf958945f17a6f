"""Prefix sums with little noise: by the square root of their matrix, or by trees.

Both measure linear functions of the steps x_1, x_2, ... exactly, add noise to each once, and estimate every running
total from the measurements so far; no total is released by itself.

Square roots, for Gaussian noise: the matrix of running totals (ones on and below the diagonal) is the square of the
Toeplitz matrix of f_k = binom(2k, k) / 4^k, so y = F x + z and total = F y has noise F z (Fichtenberger, Henzinger,
Upadhyay 2022; Henzinger, Upadhyay, Upadhyay 2023: its mean squared error is within a factor 1 + o(1) of the least). F
is scaled by 2^16 and rounded to integers, and the second factor is the exact inverse of the rounded one times the
totals.
Sensitivity: columns of F are not negative and fall, so their inner products are greatest for the first, neighbouring
ones; k steps of one unit, by `per_step` each, move y by at most per_step |f shifted by 0 + ... + f shifted by k - 1|.

Trees, for Laplace noise: nodes of b^l steps at level l (Dwork, Naor, Pitassi, Rothblum 2010; Chan, Shi, Song 2010),
each measured when it is complete, and estimated from itself and its children together (Honaker 2015, from below). A
total is the sum of its digits' worth of nodes. The branching b and the shares of epsilon are those of least mean
variance. A unit with k steps moves each level by at most k * per_step.

Mean variance of a total for unit noise, beside that of a plain binary tree under the same noise:

    horizon    roots    binary, Gaussian    trees    binary, Laplace
         64      5.0                  18       26                109
       1024      9.7                  50      114                500
      65536     19.7                 128      457               2048
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Final, Protocol

import numpy as np

from tacit.measuring.intervals import Summand
from tacit.privacy.arrays import Numbers, Whole

BITS: Final = 16
SPLIT: Final = 20
STEP_MAX: Final = 2**40
"""The greatest size of one step; larger ones are clamped, which moves no neighbours apart."""
BRANCHES: Final = (2, 4, 6, 8, 10, 12, 14, 16, 20, 24, 32)
SHARE_MIN: Final = 1e-3


class PrefixSums(Protocol):
    """Measured steps, and running totals estimated from them."""

    values: list[int]
    """The steps, clamped."""

    @property
    def done(self) -> int:
        """The number of measured steps."""
        ...

    def measure(self, value: int) -> int:
        """Add the next step, and return its noisy measurement."""
        ...

    def restore(self, value: int, measured: int) -> None:
        """Add a step that was measured before."""
        ...

    def total(self, steps: int) -> tuple[float, float, float]:
        """Return the total after a number of steps, its variance and its excess kurtosis."""
        ...

    def summands(self, steps: int) -> tuple[Summand, ...]:
        """Return the noises in a total, where they are discrete Laplace noises."""
        ...


@lru_cache(maxsize=8)
def root_coefficients(horizon: int) -> Whole:
    """Return f_k, in steps of 2^-16, not rising: f_0 = 1 and f_k = f_(k-1) (1 - 1 / (2k))."""
    places = np.arange(1, horizon, dtype=np.float64)
    found: Whole = np.rint(np.r_[1.0, np.cumprod(1 - 0.5 / places)] * 2.0**BITS).astype(np.int64)
    found.setflags(write=False)
    return found


@lru_cache(maxsize=8)
def root_inverse(horizon: int) -> Numbers:
    """Return g with g * f = ones (as power series), by Newton's iteration: the second factor."""
    from scipy.signal import fftconvolve

    first = root_coefficients(horizon).astype(np.float64)
    found = np.array([1 / first[0]])
    while len(found) < horizon:
        size = min(horizon, 2 * len(found))
        wrong = -fftconvolve(first[:size], found)[:size]
        wrong[0] += 2.0
        found = fftconvolve(found, wrong)[:size]
    return np.asarray(np.cumsum(found))  # over 1 - u


def root_length(horizon: int, steps: int) -> Fraction:
    """Return the L2 sensitivity of all measurements to a unit with `steps` steps of size 1, rounded up by 2^-32."""
    sums = np.cumsum(root_coefficients(horizon))
    window = sums.copy()
    window[steps:] -= sums[:-steps]
    squared = sum(int(one) ** 2 for one in window.tolist())
    return Fraction(math.isqrt(squared << 64) + 1, 1 << 32)


def root_error(horizon: int, steps: int) -> float:
    """Return the mean variance of a total, for noise whose deviation over the L2 sensitivity is 1."""
    spread = float(np.mean(np.cumsum(root_inverse(horizon) ** 2)))
    return spread * float(root_length(horizon, steps)) ** 2


@dataclass
class SquareRootSums:
    """Running totals by the square root of their matrix."""

    horizon: int
    noise: Whole
    variance: float
    """The variance of the noise of each measurement."""
    values: list[int] = field(default_factory=list)
    measured: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._first = root_coefficients(self.horizon)
        self._second = root_inverse(self.horizon)
        self._high, self._low = np.zeros((2, self.horizon), dtype=np.int64)
        self._floats = np.zeros(self.horizon)
        self._spreads = np.cumsum(self._second**2) * self.variance

    @property
    def done(self) -> int:
        return len(self.values)

    def measure(self, value: int) -> int:
        at = self._append(value)
        back = self._first[: at + 1][::-1]
        exact = (int(back @ self._high[: at + 1]) << SPLIT) + int(back @ self._low[: at + 1])
        noisy = exact + int(self.noise[at])
        self._keep(noisy)
        return noisy

    def restore(self, value: int, measured: int) -> None:
        self._append(value)
        self._keep(measured)

    def _append(self, value: int) -> int:
        """Append a step in two parts, whose sums stay within 63 bits."""
        clamped = max(-STEP_MAX, min(value, STEP_MAX))
        at = self.done
        self.values.append(clamped)
        self._high[at], self._low[at] = clamped >> SPLIT, clamped & (2**SPLIT - 1)
        return at

    def _keep(self, noisy: int) -> None:
        self._floats[len(self.measured)] = float(noisy)
        self.measured.append(noisy)

    def total(self, steps: int) -> tuple[float, float, float]:
        found = float(self._second[:steps][::-1] @ self._floats[:steps])
        return found, float(self._spreads[steps - 1]), 0.0

    def summands(self, steps: int) -> tuple[Summand, ...]:
        return ()


def tree_levels(horizon: int, branch: int) -> int:
    """Return the number of levels with a node that is complete before the end, at least one."""
    levels = 1
    while branch**levels < horizon:
        levels += 1
    return levels


def tree_spreads(branch: int, variances: Sequence[float]) -> tuple[list[float], list[float]]:
    """Return the variance of an estimated node of each level, and its fourth cumulant under Laplace noise."""
    spreads, fourths = [variances[0]], [3 * variances[0] ** 2]
    for own in variances[1:]:
        below = branch * spreads[-1]
        share = below / (own + below)
        fourths.append(share**4 * 3 * own**2 + (1 - share) ** 4 * branch * fourths[-1])
        spreads.append(own * share)
    return spreads, fourths


def digits(number: int, branch: int, levels: int) -> list[int]:
    """Return the digits of a number in base `branch`, the lowest first; the last one holds the rest."""
    found = []
    for _ in range(levels - 1):
        number, digit = divmod(number, branch)
        found.append(digit)
    return [*found, number]


@lru_cache(maxsize=32)
def best_tree(horizon: int) -> tuple[int, tuple[float, ...], float]:
    """Return the branching factor, the shares of epsilon by level, and the mean variance of a total for unit noise.

    A level with the share s has noise of variance 1 / s^2.
    """
    found = []
    for branch in BRANCHES:
        levels = tree_levels(horizon, branch)
        found += [_fit_shares(horizon, branch, fewer) for fewer in range(max(1, levels - 1), levels + 1)]
        if branch >= horizon:
            break
    least, branch, shares = min(found)
    return branch, shares, least


def _fit_shares(horizon: int, branch: int, levels: int) -> tuple[float, int, tuple[float, ...]]:
    """Return the least mean variance, the branching factor, and the shares of epsilon, each at least a thousandth."""
    from scipy.optimize import minimize

    uses = np.zeros(levels)
    left = np.arange(1, horizon + 1)
    for level in range(levels - 1):
        left, digit = np.divmod(left, branch)
        uses[level] = digit.mean()
    uses[-1] = left.mean()

    def shares(logits: Numbers) -> Numbers:
        weights = np.exp(logits - logits.max())
        return np.asarray((1 - SHARE_MIN) * weights / weights.sum() + SHARE_MIN / levels)

    def error(logits: Numbers) -> float:
        spreads, _ = tree_spreads(branch, (1 / shares(logits) ** 2).tolist())
        return float(np.log(np.dot(uses, spreads)))

    found = minimize(error, np.zeros(levels), method="L-BFGS-B", options={"maxiter": 60})
    return float(np.exp(found.fun)), branch, tuple(shares(found.x).tolist())


@dataclass
class TreeSums:
    """Running totals by a tree whose nodes are estimated from below."""

    branch: int
    noises: tuple[Whole, ...]
    variances: tuple[float, ...]
    values: list[int] = field(default_factory=list)
    totals: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._spreads, self._fourths = tree_spreads(self.branch, self.variances)
        levels = len(self.noises)
        self._exact, self._estimates = [0] * levels, [0.0] * levels
        """For each level, sums over the complete nodes that are in no complete node of the next level."""

    @property
    def done(self) -> int:
        return len(self.values)

    def measure(self, value: int) -> int:
        clamped = max(-STEP_MAX, min(value, STEP_MAX))
        self.values.append(clamped)
        exact, below = clamped, 0.0
        for level, noise in enumerate(self.noises):
            node = self.done // self.branch**level - 1
            noisy = float(exact + int(noise[node]))
            share = 1.0 if not level else self._spreads[level] / self.variances[level]
            estimate = share * noisy + (1 - share) * below
            self._exact[level] += exact
            self._estimates[level] += estimate
            if self.done % self.branch ** (level + 1) or level + 1 == len(self.noises):
                break
            exact, below = self._exact[level], self._estimates[level]
            self._exact[level], self._estimates[level] = 0, 0.0
        self.totals.append(math.fsum(self._estimates))
        return 0

    def restore(self, value: int, measured: int) -> None:
        self.measure(value)

    def total(self, steps: int) -> tuple[float, float, float]:
        uses = digits(steps, self.branch, len(self.noises))
        variance = sum(use * spread for use, spread in zip(uses, self._spreads, strict=True))
        fourth = sum(use * one for use, one in zip(uses, self._fourths, strict=True))
        return self.totals[steps - 1], variance, fourth / variance**2

    def summands(self, steps: int) -> tuple[Summand, ...]:
        """Return the noises of the nodes of a total, and of those below them, with their coefficients."""
        found = []
        for level, use in enumerate(digits(steps, self.branch, len(self.noises))):
            left, count = 1.0, use
            for below in range(level, -1, -1):
                share = self._spreads[below] / self.variances[below] if below else 1.0
                found.append(Summand(left * share, discrete_laplace_scale(self.variances[below]), count))
                left, count = left * (1 - share), count * self.branch
        return tuple(one for one in found if one.count)


def discrete_laplace_scale(variance: float) -> float:
    """Return the scale of a discrete Laplace noise from its variance 1 / (cosh(1 / scale) - 1)."""
    return 1 / math.acosh(1 + 1 / variance)
