# mypy: ignore-errors
"""OpenDP's noise on histograms and tables, each count released once: Laplace noise, and Gaussian noise under a delta.

Every vector of counts is moved by 1 in one place by a row; several of them together by as many ones. The noise is
scaled by OpenDP itself, by search over its privacy maps. Ranges are then sums of the noisy histogram.
"""

import json
import math
import sys

import numpy as np
import opendp.prelude as dp

dp.enable_features("contrib")
arguments = json.loads(sys.argv[1])
epsilon, delta, repeats = arguments["epsilon"], arguments["delta"], arguments["repeats"]
atom = dp.vector_domain(dp.atom_domain(T="i64"))


def laplace(vectors):
    """Return noisy copies of vectors that share epsilon."""

    def make(scale):
        return dp.m.make_laplace(atom, dp.l1_distance(T="i64"), scale)

    scale = dp.binary_search(lambda scale: make(scale).map(len(vectors)) <= epsilon, bounds=(1e-3, 1e6))
    release = make(scale)
    return lambda: [np.array(release(vector)) for vector in vectors]


def gaussian(vectors):
    """Return noisy copies of vectors that share epsilon and delta."""

    def make(scale):
        return dp.m.make_gaussian(atom, dp.l2_distance(T="f64"), scale)

    def fits(scale):
        approximate = dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(make(scale)), delta)
        return approximate.map(math.sqrt(len(vectors)))[0] <= epsilon

    release = make(dp.binary_search(fits, bounds=(5.0, 1e5)))  # below, its map overflows
    return lambda: [np.array(release(vector)) for vector in vectors]


def answers(make, vectors):
    """Return distances from the truth, of several releases."""
    release = make(vectors)
    exact = [np.array(vector) for vector in vectors]
    return [[noisy - one for noisy, one in zip(release(), exact, strict=True)] for _ in range(repeats)]


def ranges(distances):
    """Return the mean squared and mean absolute errors of all ranges."""
    squares, sizes = [], []
    for (off,) in distances:
        sums = np.r_[0, np.cumsum(off)]
        low, high = np.triu_indices(len(sums), 1)
        squares.append(float(np.mean((sums[high] - sums[low]) ** 2.0)))
        sizes.append(float(np.mean(np.abs(sums[high] - sums[low]))))
    return float(np.mean(squares)), float(np.mean(sizes))


def cells(distances):
    """Return the mean squared and mean absolute errors of all cells."""
    flat = np.concatenate([np.concatenate(one) for one in distances]).astype(float)
    return float(np.mean(flat**2)), float(np.mean(np.abs(flat)))


histogram, tables = arguments["histogram"], arguments["tables"]
print(
    json.dumps(
        {
            "ranges": ranges(answers(laplace, [histogram])),
            "tables": cells(answers(laplace, tables)),
            "tables, delta": cells(answers(gaussian, tables)),
        }
    )
)
