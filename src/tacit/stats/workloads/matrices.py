"""Strategies as matrices of whole numbers, so that what they measure is exact.

A fitted strategy is multiplied by 2^16 and rounded. The rounded matrix is the strategy: its sensitivity is the exact
length of its longest column, and least squares inverts it, so rounding costs a little error and no privacy.
"""

from __future__ import annotations

import hashlib
import math
from fractions import Fraction
from functools import cached_property
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
STEPS: Final = 2**16
_MEASURED_MAX: Final = 2**62


class Matrix:
    """Rows of whole numbers over cells, of full column rank."""

    def __init__(self, rows: NDArray[np.int64]) -> None:
        self.rows: Final = rows
        self.rows.setflags(write=False)

    @classmethod
    def of(cls, strategy: Numbers, law: Literal["Laplace", "Gaussian"]) -> Matrix:
        """Round a strategy whose columns have length 1; under Laplace noise rows that vanish are left out."""
        rows = np.rint(strategy * STEPS).astype(np.int64)
        return cls(rows[np.any(rows != 0, axis=1)] if law == "Laplace" else rows)

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return int(self.rows.shape[1])

    def length(self, law: Literal["Laplace", "Gaussian"]) -> Fraction:
        """Return how far one row of data moves the measured sums: in L1 exactly, in L2 rounded up by 2^-32."""
        if law == "Laplace":
            return Fraction(int(np.abs(self.rows).sum(axis=0).max()))
        squared = int(np.sum(self.rows**2, axis=0).max())  # entries are at most 2^16, so that 2^30 of them fit
        return Fraction(math.isqrt(squared << 64) + 1, 1 << 32)

    def measured(self, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the exact sums; cells beyond what 63 bits allow are clamped, which moves no neighbours apart."""
        most = _MEASURED_MAX // max(1, int(np.abs(self.rows).max())) // self.cells
        found: NDArray[np.int64] = self.rows @ np.clip(cells, -most, most)
        return found

    @cached_property
    def covariance(self) -> Numbers:
        """The covariance of the estimated cells for noise of variance 1 on each sum."""
        from scipy.linalg import cho_factor, cho_solve

        dense = self.rows.astype(np.float64)
        scale = float(np.abs(dense).max())
        factor = cho_factor((dense / scale).T @ (dense / scale))
        found: Numbers = cho_solve(factor, np.eye(self.cells)) / scale**2
        return found

    def estimate(self, noisy: NDArray[Any]) -> Numbers:
        """Return the cells by least squares."""
        found: Numbers = self.covariance @ (self.rows.T.astype(np.float64) @ np.asarray(noisy, dtype=np.float64))
        return found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Matrix) and np.array_equal(self.rows, other.rows)

    def __hash__(self) -> int:
        return hash(self.digest)

    @cached_property
    def digest(self) -> str:
        """Tells matrices apart."""
        return hashlib.sha256(repr(self.rows.shape).encode() + self.rows.tobytes()).hexdigest()[:16]

    def __repr__(self) -> str:
        return f"Matrix({self.rows.shape[0]}x{self.rows.shape[1]}, {self.digest})"
