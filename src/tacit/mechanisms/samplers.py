"""Exact samplers as functions.

Promise: the output has exactly the stated distribution, for any scale given as a rational from far below 1 to 2^50.
Parameters may be ints, floats (read as exact rationals) or fractions; `size` is a length, or None for one Python
number. Sensitivity and cost are left to mechanisms: a number drawn here has no privacy guarantee by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms import exact_sampling
from tacit.mechanisms.categorical import CategoricalSampler, weights_of
from tacit.mechanisms.exact_sampling import biased_coins, exponential_coins
from tacit.mechanisms.integer_sampler import sampler_for
from tacit.mechanisms.laws import GaussianLaw, LaplaceLaw, Law
from tacit.mechanisms.randomness import SYSTEM, Source
from tacit.privacy.errors import EmptyInput, OutOfRange, TooLarge
from tacit.privacy.numbers import Real, exact, not_negative, positive, whole

Drawn: TypeAlias = Any
"""An int or a bool for `size=None`, otherwise an array of `size` of them."""


def bernoulli(chance: Real, size: int | None = None, *, source: Source = SYSTEM) -> Drawn:
    """Draw booleans that are true with the rational probability `chance`."""
    probability = exact("chance", chance)
    if not 0 <= probability <= 1:
        raise OutOfRange(f"a chance lies between 0 and 1, and this one is {float(probability):g}", name="chance")
    return _unwrap(biased_coins(probability, _length(size), source), size)


def bernoulli_exp(exponent: Real, size: int | None = None, *, source: Source = SYSTEM) -> Drawn:
    """Draw booleans that are true with probability e^-exponent, for an exponent of at least 0."""
    rational = not_negative("exponent", exponent)
    doubles = np.full(_length(size), float(rational))
    return _unwrap(exponential_coins(doubles, lambda _: rational, source), size)


def geometric(scale: Real, size: int | None = None, *, source: Source = SYSTEM) -> Drawn:
    """Draw k = 0, 1, … with probability proportional to e^(-k / scale)."""
    return _from_law(LaplaceLaw(positive("scale", scale), two_sided=False), size, source)


def discrete_laplace(scale: Real, size: int | None = None, *, source: Source = SYSTEM) -> Drawn:
    """Draw integers k with probability proportional to e^(-|k| / scale)."""
    return _from_law(LaplaceLaw(positive("scale", scale)), size, source)


def discrete_gaussian(variance: Real, size: int | None = None, *, source: Source = SYSTEM) -> Drawn:
    """Draw integers k with probability proportional to e^(-k^2 / (2 variance))."""
    return _from_law(GaussianLaw(positive("variance", variance)), size, source)


def uniform_integers(bound: int, size: int | None = None, *, source: Source = SYSTEM) -> Drawn:
    """Draw integers uniformly from 0 … bound - 1."""
    limit = whole("bound", bound)
    if size is None:
        return exact_sampling.integer_below(limit, source)
    if limit > 2**63:
        raise TooLarge("arrays of uniform integers have a bound of at most 2^63", name="bound", value=bound)
    return exact_sampling.integers_below(limit, _length(size), source)


def permutation(count: int, *, source: Source = SYSTEM) -> NDArray[np.int64]:
    """Draw a uniform permutation of 0 … count - 1."""
    return exact_sampling.permutation(whole("count", count, at_least=0), source)


def select(
    exponents: NDArray[np.float64], exact_exponents: Callable[[], Sequence[Fraction]], *, source: Source = SYSTEM
) -> int:
    """Draw one index i with probability proportional to e^-exponent_i.

    `exponents` are the doubles nearest to the exact ones, which `exact_exponents()` returns only when needed; all are
    at least 0, and the least of them is 0.
    """
    if not len(exponents):
        raise EmptyInput("there must be at least one candidate to choose from", name="candidates")
    return CategoricalSampler(exponents, weights_of(exact_exponents)).draw_one(source)


def _from_law(law: Law, size: int | None, source: Source) -> Drawn:
    sampler = sampler_for(law)
    return sampler.draw_one(source) if size is None else sampler.draw(_length(size), source)


def _length(size: int | None) -> int:
    return 1 if size is None else whole("size", size, at_least=0)


def _unwrap(coins: NDArray[np.bool_], size: int | None) -> Drawn:
    return bool(coins[0]) if size is None else coins
