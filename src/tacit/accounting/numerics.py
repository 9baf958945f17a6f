"""Numerical tools of the accountants: bisection, and special functions that are loaded when first called.

Bisection that ends for every float, the smallest included.

The special functions that accountants need, loaded when the first of them is called.

Loading SciPy takes longer than pricing a question, and most questions need none of it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any


def narrowed(low: float, high: float, is_low: Callable[[float], bool], share: float) -> tuple[float, float]:
    """Return numbers between `low` and `high`, on either side of where `is_low` ends, at most a share of them apart.

    Neighbouring floats are as close as numbers get, whatever share was asked for.
    """
    while high - low > share * high and low < (middle := low + (high - low) / 2) < high:
        low, high = (middle, high) if is_low(middle) else (low, middle)
    return low, high


def betainc(first: Any, second: Any, point: Any) -> Any:
    """The regularized incomplete beta function: a binomial distribution function."""
    return _special().betainc(first, second, point)


def erfcx(point: Any) -> Any:
    """e^(x^2) erfc(x)."""
    return _special().erfcx(point)


def erfinv(point: Any) -> Any:
    """The inverse of the error function."""
    return _special().erfinv(point)


def gammaln(point: Any) -> Any:
    """The logarithm of the gamma function."""
    return _special().gammaln(point)


def ndtr(point: Any) -> Any:
    """The normal distribution function."""
    return _special().ndtr(point)


def ndtri(share: Any) -> Any:
    """The inverse of the normal distribution function."""
    return _special().ndtri(share)


def log_ndtr(point: Any) -> Any:
    """The logarithm of the normal distribution function."""
    return _special().log_ndtr(point)


def logsumexp(values: Any, **settings: Any) -> Any:
    """The logarithm of a sum of exponentials."""
    return _special().logsumexp(values, **settings)


def xlog1py(factor: Any, point: Any) -> Any:
    """The factor times ln(1 + point), 0 where the factor is."""
    return _special().xlog1py(factor, point)


def rfft(values: Any, *arguments: Any, **settings: Any) -> Any:
    """The Fourier transform of real values."""
    return _fft().rfft(values, *arguments, **settings)


def irfft(values: Any, *arguments: Any, **settings: Any) -> Any:
    """The real values of a Fourier transform."""
    return _fft().irfft(values, *arguments, **settings)


def next_fast_len(length: int, **settings: Any) -> int:
    """A length not below the given one, for which transforms are fast."""
    return int(_fft().next_fast_len(length, **settings))


@cache
def _special() -> ModuleType:
    return import_module("scipy.special")


@cache
def _fft() -> ModuleType:
    return import_module("scipy.fft")
