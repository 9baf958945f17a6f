"""How far the rounding of floating-point numbers can move a sum of clipped gradients, as a public share of the clip.

Promise: with noise scaled to clip (1 + `sum_error`), the rounding of norms, clip factors and sums is within the
sensitivity, for every content of the rows. What a step sums is one vector v_i for each sample (or unit) i: a function
of floating-point numbers that depend on this sample alone. Let u = 2^-24 (float32) or 2^-53 (float64), and
gamma_n = n u / (1 - n u): n roundings in a row change a product by a factor of at most 1 + gamma_n, and a sum or an
inner product of n terms x_k y_k by at most gamma_n sum |x_k y_k|, in any order of the additions (Higham, Accuracy and
Stability of Numerical Algorithms, 2nd edition 2002, lemma 3.1 and section 3.1; products of matrices: section 3.5).

Norms. A gradient that is formed is v_i itself, whatever rounding it has: it is computed for this sample. Its norm is a
sum of squares, without cancellation, in blocks of BLOCK numbers in float32 and over blocks in float64: relative
(BLOCK / 2 + 2) u < 2^-16. A gradient g a^T of one position has the norm |g| |a|, which is computed in float64, where no
square of a float32 number underflows that the other factor could make large again. NORM_SLACK is added for
both and for the rounding of the clip factor and its product with g; NORM_FLOOR for squares that underflow. Where the
gradient is a sum over positions g_t a_t^T that is not formed, its squared norm by the Gram form can cancel: it is
computed in float64, with an error of at most gamma_n M^2, where M = sum_t |g_t| |a_t| and n = 2 T + d_in + d_out + 2
< 2^25, so GRAM_ERROR M^2 is added. The norm is also taken as at least M / CANCELLATION. So every v_i has a norm of at
most clip, and every M_i, times the clip factor, is at most CANCELLATION clip.

Sums. S = sum_i v_i is computed with an error E. In float32 |E| <= gamma_n sum_i |v_i| <= gamma_n rows clip, where
n = TERMS + rows / TERMS + 3, since products of TERMS terms are added one by one; the matrix of the absolute values of
v_i has the norm of v_i where that was formed or is g a^T. Sums over positions that were not formed, and all sums of
batches with more than `single_rows` samples, are computed in float64: |E| <= gamma_n CANCELLATION rows clip, with
n <= 2^15 (up to TERMS_MAX terms in products of TERMS_DOUBLE), and so is the addition of up to CHUNKS_MAX chunks of a
batch. Over several layers these bounds hold for the vectors of all layers together (Minkowski's inequality). Numbers
that underflow are off by less than 2^-126, times inputs of norm at most VALUE_MAX; larger inputs are treated as not
finite. Two neighbours' sums then differ by at most clip + |E| + |E'|, with clips of at least CLIP_MIN and up to 2^32
parameters. A batch is summed in float32 or in float64 by its size alone, and `sum_error` is the larger bound of the
two, with the number of all units for the latter: no probability is needed.

Assumed: that what is computed for a sample, its forward and backward pass and its norm, does not depend on the other
samples of the batch, not even in its last bits; that products of matrices are sums of products in some order (no fast
algorithms like Strassen's); and that arithmetic rounds to nearest.
"""

from __future__ import annotations

import math
from typing import Any, Final

import torch

BLOCK: Final = 256
TERMS: Final = 64
TERMS_DOUBLE: Final = 1 << 14
TERMS_MAX: Final = 1 << 28
CHUNKS_MAX: Final = 1 << 15
NORM_SLACK: Final = 2.0**-15
NORM_FLOOR: Final = 2.0**-45
GRAM_ERROR: Final = 2.0**-28
CANCELLATION: Final = 64.0
VALUE_MAX: Final = 2.0**40
BATCH_SIZE_SINGLE: Final = 512
"""The largest expected batch size whose sums are in float32: rounding moves them by less than 1% of the clip."""
CLIP_MIN: Final = 2.0**-30
CLIP_MAX: Final = 2.0**30


def gamma(terms: int, unit: float) -> float:
    """Return Higham's gamma_n = n u / (1 - n u)."""
    return terms * unit / (1 - terms * unit)


def single_rows(batch_size: int) -> int:
    """Return the most samples whose sums are in float32, which Poisson samples of an expected size rarely exceed."""
    return 0 if batch_size > BATCH_SIZE_SINGLE else batch_size + 6 * (math.isqrt(batch_size) + 1)


def sum_error(batch_size: int, units: int) -> float:
    """Return how far rounding can move two neighbours' sums apart, over the clip; both numbers are public."""
    rows = min(single_rows(batch_size), units)
    single = rows * gamma(TERMS + rows // TERMS + 3, 2.0**-24)
    underflow = 2.0**16 * 2.0**-126 * VALUE_MAX / CLIP_MIN
    double = units * (gamma((1 << 15) + 3, 2.0**-53) * CANCELLATION + gamma(CHUNKS_MAX, 2.0**-53) + underflow)
    return 2 * (single + double)


def products_are_reduced() -> bool:
    """Return whether torch may multiply float32 matrices with fewer bits (TF32, bfloat16)."""
    mkldnn: Any = torch.backends.mkldnn
    backends = (torch.backends, mkldnn, mkldnn.matmul, torch.backends.cuda.matmul)
    if any(getattr(one, "fp32_precision", "none") not in ("none", "ieee") for one in backends):
        return True
    try:
        return torch.get_float32_matmul_precision() != "highest"
    except RuntimeError:  # torch does not say where its two ways of setting it are mixed
        return True
