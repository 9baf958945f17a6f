"""Noise taken off numbers of which something is certain: that rows cannot be fewer than one, nor squares negative.

What may have been there before the noise follows the law of the noise around what was released, given what is certain.
Laws are taken for continuous here, which their steps are fine enough for.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tacit.measuring.allocation import Noise
from tacit.mechanisms import Laplace
from tacit.mechanisms.randomness import Source, words

LEAST: Final = 1e-300
_BITS: Final = 53

Numbers = NDArray[np.float64]


def uniform(source: Source, *shape: int) -> Numbers:
    """Return numbers between 0 and 1, neither of which is drawn."""
    drawn = words(source, int(np.prod(shape, dtype=np.int64)), 8) >> np.uint64(64 - _BITS)
    return ((drawn.astype(np.float64) + 0.5) * 2.0**-_BITS).reshape(shape)


def off_above(least: float, released: Numbers, noise: Noise, levels: Numbers) -> Numbers:
    """Return numbers by the law of `released` less noise, given that they are above `least`: by inverting its tail."""
    from scipy.special import ndtr, ndtri

    scale = float(noise.scale)
    gap = (least - released) / scale
    if not isinstance(noise, Laplace):
        share = np.maximum(ndtr(-gap), LEAST) * levels
        return np.asarray(np.maximum(released - scale * ndtri(share), least))
    tail = np.where(gap < 0, 1 - 0.5 * np.exp(np.minimum(gap, 0)), 0.5 * np.exp(-np.maximum(gap, 0)))
    share = tail * levels
    # a share below 1/2 lies on the upper side; the logarithm of the tail itself is used where it would underflow
    upper = -np.where(gap > 0, np.log(0.5) - gap + np.log(levels), np.log(np.maximum(share, LEAST))) + np.log(0.5)
    lower = np.log(np.maximum(2 * (1 - share), LEAST))
    return np.asarray(np.maximum(released + scale * np.where(share <= 0.5, upper, lower), least))
