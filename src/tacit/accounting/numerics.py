"""Numerical tools of the accountants: bisection, golden-section search, and functions of SciPy.

SciPy is imported when one of its functions is first called: importing it takes longer than pricing a query, and most
queries need none of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, Final

_GOLDEN: Final = (math.sqrt(5) - 1) / 2


def bisect(low: float, high: float, is_low: Callable[[float], bool], share: float) -> tuple[float, float]:
    """Return numbers in [`low`, `high`] on either side of where `is_low` ends, at most a share of them apart.

    The search always ends: neighbouring floats are as close as numbers get, whatever the share.
    """
    while high - low > share * high and low < (middle := low + (high - low) / 2) < high:
        low, high = (middle, high) if is_low(middle) else (low, middle)
    return low, high


def golden_section(function: Callable[[float], float], low: float, high: float, width: float) -> tuple[float, float]:
    """Return about where a function with one minimum in [`low`, `high`] is least, and the least value that was met.

    The search ends when the interval is no longer than `width`.
    """
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = function(left), function(right)
    while high - low > width:
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = function(right)
    return (low + high) / 2, min(at_left, at_right)


def _deferred(module: str, name: str) -> Callable[..., Any]:
    """Return a function of a module that is imported at the first call."""
    load = cache(lambda: getattr(import_module(module), name))

    def call(*arguments: Any, **settings: Any) -> Any:
        """Call the function of SciPy of the same name."""
        return load()(*arguments, **settings)

    return call


betainc: Final = _deferred("scipy.special", "betainc")
erfcx: Final = _deferred("scipy.special", "erfcx")
erfinv: Final = _deferred("scipy.special", "erfinv")
gammaln: Final = _deferred("scipy.special", "gammaln")
log_ndtr: Final = _deferred("scipy.special", "log_ndtr")
logsumexp: Final = _deferred("scipy.special", "logsumexp")
ndtr: Final = _deferred("scipy.special", "ndtr")
ndtri: Final = _deferred("scipy.special", "ndtri")
xlog1py: Final = _deferred("scipy.special", "xlog1py")
irfft: Final = _deferred("scipy.fft", "irfft")
next_fast_len: Final = _deferred("scipy.fft", "next_fast_len")
rfft: Final = _deferred("scipy.fft", "rfft")
