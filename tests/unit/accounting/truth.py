"""Privacy curves worked out in other ways than the accountants do: closed forms, integrals and full enumeration.

Everything is computed with mpmath to many digits, from densities and tails; nothing here is put on a lattice, tilted or
transformed. A law is that of the privacy loss L = ln(dP/dQ) between two neighbours, and is told by two questions: its
delta at any epsilon, also a negative one, and the mean under P of a function of the loss, by which two laws compose.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise, product
from typing import Any, Protocol

import mpmath
import numpy as np
from mpmath import mpf

DIGITS = 40
NODES = 20
"""Points of one Gauss-Legendre rule; pieces are short enough for it to be good to fifteen digits."""

Real = Any
"""An int, a float or an mpf."""

mpmath.mp.dps = DIGITS


class Law(Protocol):
    """The privacy loss of one ordered pair of neighbours."""

    def delta(self, epsilon: Real) -> mpf:
        """Return the hockey-stick divergence at an epsilon of either sign."""

    def mean(self, function: Callable[[mpf], mpf], cuts: Sequence[Real] = ()) -> mpf:
        """Return the mean under P of a function of the loss, which is smooth but at and around `cuts`."""

    def knots(self) -> Iterable[mpf]:
        """Return losses between which delta is smooth."""


class Base(Protocol):
    """The loss of a mechanism before sampling, by its masses under P; Q's follow from e^-L."""

    def above(self, loss: Real) -> tuple[mpf, mpf]:
        """Return the masses that P and Q put above a loss."""

    def below(self, loss: Real) -> tuple[mpf, mpf]:
        """Return the masses that P and Q put below a loss."""

    def pieces(self, cuts: Sequence[Real]) -> Iterable[tuple[mpf, mpf, mpf]]:
        """Return losses with the masses that P and Q put on each, for a sum that stands for an integral."""

    def knots(self) -> Iterable[mpf]:
        """Return losses between which the masses above and below are smooth."""


@dataclass(frozen=True)
class Gaussian:
    """N(mu, 1) against N(0, 1)."""

    mu: float

    def above(self, loss: Real) -> tuple[mpf, mpf]:
        mu = mpf(self.mu)
        return upper_normal(loss / mu - mu / 2), upper_normal(loss / mu + mu / 2)

    def below(self, loss: Real) -> tuple[mpf, mpf]:
        mu = mpf(self.mu)
        return upper_normal(mu / 2 - loss / mu), upper_normal(-loss / mu - mu / 2)

    def pieces(self, cuts: Sequence[Real]) -> Iterable[tuple[mpf, mpf, mpf]]:
        mu = mpf(self.mu)
        reach = 16 + mu
        ends = [mpf(n) * reach / 24 for n in range(-24, 25)]
        ends += [end for cut in cuts if abs(end := cut / mu) < reach]
        for point, weight in gauss_legendre(ends):  # the point is loss / mu, so that P is N(mu / 2, 1)
            yield mu * point, weight * normal(point - mu / 2), weight * normal(point + mu / 2)

    def knots(self) -> Iterable[mpf]:
        return [mpf(self.mu) * n for n in range(-12, 13)]


@dataclass(frozen=True)
class Laplace:
    """Lap(1) at 0 against at epsilon."""

    epsilon: float

    def above(self, loss: Real) -> tuple[mpf, mpf]:
        epsilon = mpf(self.epsilon)
        if loss >= epsilon:
            return mpf(0), mpf(0)
        if loss < -epsilon:
            return mpf(1), mpf(1)
        return 1 - mpmath.exp((loss - epsilon) / 2) / 2, mpmath.exp(-(loss + epsilon) / 2) / 2

    def below(self, loss: Real) -> tuple[mpf, mpf]:
        q, p = self.above(-loss)  # the law of -L under Q is that of L under P
        return p, q

    def pieces(self, cuts: Sequence[Real]) -> Iterable[tuple[mpf, mpf, mpf]]:
        epsilon = mpf(self.epsilon)
        half = mpf(1) / 2
        yield epsilon, half, half * mpmath.exp(-epsilon)
        yield -epsilon, half * mpmath.exp(-epsilon), half
        inside = [cut for cut in cuts if abs(cut) < epsilon]
        for loss, weight in gauss_legendre([-epsilon, -epsilon / 2, mpf(0), epsilon / 2, epsilon, *inside]):
            density = mpmath.exp((loss - epsilon) / 2) / 4
            yield loss, weight * density, weight * density * mpmath.exp(-loss)

    def knots(self) -> Iterable[mpf]:
        return [mpf(self.epsilon) * n / 4 for n in range(-4, 5)]


@dataclass(frozen=True)
class Whole:
    """A base as it is: everybody takes part."""

    base: Base

    def delta(self, epsilon: Real) -> mpf:
        p, q = self.base.above(epsilon)
        return p - mpmath.exp(epsilon) * q

    def mean(self, function: Callable[[mpf], mpf], cuts: Sequence[Real] = ()) -> mpf:
        return mpmath.fsum(p * function(loss) for loss, p, _ in self.base.pieces(cuts))

    def knots(self) -> Iterable[mpf]:
        return self.base.knots()


@dataclass(frozen=True)
class Sampled:
    """A base on a Poisson sample, when a unit is removed, (1 - rate) Q + rate P against Q, or added."""

    base: Base
    rate: float
    addition: bool

    def delta(self, epsilon: Real) -> mpf:
        rate = mpf(self.rate)
        edge = self._unmixed(-mpf(epsilon) if self.addition else mpf(epsilon))
        if self.addition:
            p, q = self.base.below(edge) if edge is not None else (mpf(0), mpf(0))
            return q - mpmath.exp(epsilon) * ((1 - rate) * q + rate * p)
        p, q = self.base.above(edge) if edge is not None else (mpf(1), mpf(1))
        return (1 - rate) * q + rate * p - mpmath.exp(epsilon) * q

    def mean(self, function: Callable[[mpf], mpf], cuts: Sequence[Real] = ()) -> mpf:
        rate, sign = mpf(self.rate), -1 if self.addition else 1
        inner = [edge for cut in cuts if (edge := self._unmixed(sign * mpf(cut))) is not None]
        total = mpf(0)
        for loss, p, q in self.base.pieces(inner):
            total += (q if self.addition else (1 - rate) * q + rate * p) * function(sign * self._mixed(loss))
        return total

    def knots(self) -> Iterable[mpf]:
        sign = -1 if self.addition else 1
        return [sign * mpmath.log(1 - mpf(self.rate)), *(sign * self._mixed(knot) for knot in self.base.knots())]

    def _mixed(self, loss: mpf) -> mpf:
        return mpmath.log(1 - mpf(self.rate) + mpf(self.rate) * mpmath.exp(loss))

    def _unmixed(self, loss: mpf) -> mpf | None:
        """Return the base's loss that becomes this one, or None where every loss becomes more."""
        ratio = (mpmath.exp(loss) - 1) / mpf(self.rate) + 1
        return mpmath.log(ratio) if ratio > 0 else None


@dataclass(frozen=True)
class Finite:
    """Two laws on finitely many outcomes, as pairs of chances."""

    outcomes: tuple[tuple[Real, Real], ...]

    def delta(self, epsilon: Real) -> mpf:
        growth = mpmath.exp(epsilon)
        return mpmath.fsum(max(p - growth * q, mpf(0)) for p, q in self.outcomes)

    def mean(self, function: Callable[[mpf], mpf], cuts: Sequence[Real] = ()) -> mpf:
        return mpmath.fsum(p * function(mpmath.log(p / q)) for p, q in self.outcomes if p)

    def knots(self) -> Iterable[mpf]:
        return [mpmath.log(p / q) for p, q in self.outcomes if p]

    def turned(self) -> Finite:
        """Return the same with P and Q exchanged."""
        return Finite(tuple((q, p) for p, q in self.outcomes))


def twice(first: Law, second: Law, epsilon: Real) -> mpf:
    """Return the delta of two laws composed."""
    return first.mean(lambda loss: second.delta(epsilon - loss), [epsilon - knot for knot in second.knots()])


def response(epsilon: Real) -> Finite:
    """Return binary randomized response, the worst of all that is epsilon-private."""
    likely = 1 / (1 + mpmath.exp(-mpf(epsilon)))
    return Finite(((likely, 1 - likely), (1 - likely, likely)))


def all_together(laws: Sequence[Finite]) -> Finite:
    """Return the composition of finite laws, outcome by outcome."""
    together = product(*(law.outcomes for law in laws))
    return Finite(
        tuple((mpmath.fprod(p for p, _ in outcomes), mpmath.fprod(q for _, q in outcomes)) for outcomes in together)
    )


def two_point_fold(p: Real, q: Real, times: int) -> Finite:
    """Return P = Bernoulli(p) against Q = Bernoulli(q), composed `times` over: one outcome a number of ones."""
    p, q = mpf(p), mpf(q)
    outcomes = []
    for ones in range(times + 1):
        ways = mpmath.binomial(times, ones)
        zeros = times - ones
        outcomes.append((ways * p**ones * (1 - p) ** zeros, ways * q**ones * (1 - q) ** zeros))
    return Finite(tuple(outcomes))


def pure_fold(epsilon: float, times: int, at: Real) -> mpf:
    """Return the best delta of `times` epsilon-private releases (Kairouz, Oh, Viswanath 2015, theorem 3.3)."""
    epsilon_, at_ = mpf(epsilon), mpf(at)
    total = mpf(0)
    for minus in range(times + 1):
        loss = (times - 2 * minus) * epsilon_
        if loss <= at_:
            break
        total += mpmath.binomial(times, minus) * (
            mpmath.exp((times - minus) * epsilon_) - mpmath.exp(at_ + minus * epsilon_)
        )
    return total / (1 + mpmath.exp(epsilon_)) ** times


def laplace_fold(epsilon: float, times: int, at: Real) -> mpf:
    """Return delta of Laplace noise `times` over, exactly.

    Each loss is epsilon, -epsilon or between them with the density e^((l - epsilon) / 2) / 4, so m of those between
    have together that of e^((l - m epsilon) / 2) / 4^m times an m-fold convolution of an interval: a spline.
    """
    step, at_ = mpf(epsilon), mpf(at)
    total = mpf(0)
    for between in range(times + 1):
        for ups in range(times - between + 1):
            downs = times - between - ups
            ways = mpmath.factorial(times) / (
                mpmath.factorial(between) * mpmath.factorial(ups) * mpmath.factorial(downs)
            )
            chance = ways * mpmath.exp(-downs * step) / mpf(2) ** (ups + downs)
            total += chance * _laplace_between(step, between, at_ - (ups - downs) * step)
    return total


def _laplace_between(step: mpf, count: int, at: mpf) -> mpf:
    """Return the mean of (1 - e^(at - l))+ over the sum l of `count` losses of Laplace noise strictly between."""
    if count == 0:
        return max(mpf(0), 1 - mpmath.exp(at))
    knots = [(2 * k - count) * step for k in range(count + 1)]
    ends = [at, *(knot for knot in knots if knot > at)] if at > knots[0] else knots
    if at >= knots[-1]:
        return mpf(0)
    total = mpf(0)
    for loss, weight in gauss_legendre(ends):
        spline = mpmath.fsum(
            (-1) ** k * mpmath.binomial(count, k) * (loss - knots[k]) ** (count - 1)
            for k in range(count + 1)
            if loss > knots[k]
        ) / mpmath.factorial(count - 1)
        density = mpmath.exp((loss - count * step) / 2) / mpf(4) ** count * spline
        total += weight * density * (1 - mpmath.exp(at - loss))
    return total


def discrete_gaussian(deviation: Real, move: int) -> Finite:
    """Return discrete Gaussian noise on the integers, at 0 against at `move`."""
    deviation = mpf(deviation)
    reach = int(25 * deviation) + abs(move) + 2
    weights = {n: mpmath.exp(-(mpf(n) ** 2) / (2 * deviation**2)) for n in range(-reach - abs(move), reach + 1)}
    whole = mpmath.fsum(weights.values())
    return Finite(
        tuple((weights[n] / whole, weights[n - move] / whole) for n in range(-reach + max(move, 0), reach + 1))
    )


def discrete_gaussian_fold(deviation: float, move: int, times: int) -> Callable[[Real], mpf]:
    """Return delta of discrete Gaussian noise on one integer, `times` over: the sum of all noises decides the loss.

    By plain convolution of positive doubles, which loses less than a digit in 10^12.
    """
    once = np.array([float(p) for p, _ in discrete_gaussian(deviation, 0).outcomes])
    law = np.ones(1)
    for _ in range(times):
        law = np.convolve(law, once)
    sums = np.arange(len(law)) - len(law) // 2
    losses = [(times * mpf(move) ** 2 - 2 * move * int(total)) / (2 * mpf(deviation) ** 2) for total in sums]

    def delta(epsilon: Real) -> mpf:
        above = [(mpf(p), loss) for p, loss in zip(law.tolist(), losses, strict=True) if loss > epsilon]
        return mpmath.fsum(p * -mpmath.expm1(epsilon - loss) for p, loss in above)

    return delta


def geometric(epsilon: Real, steps: int) -> Finite:
    """Return two-sided geometric noise on the integers, at 0 against at `steps`, all losses beyond both as one."""
    ratio = mpmath.exp(-mpf(epsilon) / steps)
    mass = {n: (1 - ratio) / (1 + ratio) * ratio ** abs(n) for n in range(-steps - 1, steps + 2)}
    ends = [(1 / (1 + ratio), ratio**steps / (1 + ratio)), (ratio**steps / (1 + ratio), 1 / (1 + ratio))]
    return Finite((ends[0], *((mass[n], mass[n - steps]) for n in range(1, steps)), ends[1]))


def gaussian_delta(mu: Real, epsilon: Real) -> mpf:
    """Return delta of Gaussian noise (Balle and Wang 2018, theorem 8)."""
    mu, epsilon = mpf(mu), mpf(epsilon)
    with mpmath.workdps(DIGITS + 20):
        return upper_normal(epsilon / mu - mu / 2) - mpmath.exp(epsilon) * upper_normal(epsilon / mu + mu / 2)


def renyi(law: Law, order: Real) -> mpf:
    """Return the Rényi divergence of a law at an order above 1."""
    power = mpf(order) - 1
    return mpmath.log(law.mean(lambda loss: mpmath.exp(power * loss))) / power


def normal(point: mpf) -> mpf:
    """Return the standard normal density."""
    return mpmath.exp(-point * point / 2) / mpmath.sqrt(2 * mpmath.pi)


def upper_normal(point: mpf) -> mpf:
    """Return the standard normal mass above a point, precise in both tails."""
    return mpmath.erfc(point / mpmath.sqrt(2)) / 2


def gauss_legendre(ends: Iterable[Real]) -> Iterable[tuple[mpf, mpf]]:
    """Return the points and weights of an integral over the pieces between the ends."""
    ordered = sorted({mpf(end) for end in ends})
    for low, high in pairwise(ordered):
        middle, half = (low + high) / 2, (high - low) / 2
        for point, weight in _rule():
            yield middle + half * point, half * weight


@cache
def _rule() -> tuple[tuple[mpf, mpf], ...]:
    points, weights = np.polynomial.legendre.leggauss(NODES)
    exact = []
    for guess in points.tolist():
        root = mpmath.findroot(lambda x: mpmath.legendre(NODES, x), mpf(guess))
        slope = mpmath.diff(lambda x: mpmath.legendre(NODES, x), root)
        exact.append((root, 2 / ((1 - root**2) * slope**2)))
    assert math.isclose(float(sum(weight for _, weight in exact)), float(weights.sum()))
    return tuple(exact)


def shuffled(report: Sequence[Real], other_report: Sequence[Real], others: Sequence[Sequence[Real]]) -> Finite:
    """Return how often each report is seen, when one unit reports by the first law or by the second, and the others."""
    return Finite(tuple(zip(*(_counted([law, *others]) for law in (report, other_report)), strict=True)))


def _counted(laws: Sequence[Sequence[Real]]) -> list[mpf]:
    """Return the chances of all histograms of independent draws, in a fixed order."""
    chances = {(0,) * len(laws[0]): mpf(1)}
    for law in laws:
        grown: dict[tuple[int, ...], mpf] = {}
        for seen, chance in chances.items():
            for index, weight in enumerate(law):
                more = (*seen[:index], seen[index] + 1, *seen[index + 1 :])
                grown[more] = grown.get(more, mpf(0)) + chance * mpf(weight)
        chances = grown
    return [chances[seen] for seen in sorted(chances)]


def clones(epsilon: Real, count: int) -> Finite:
    """Return one report by randomized response among clones: any other unit is a fair coin, or does not take part."""
    truth, lie = (1 / (1 + mpmath.exp(sign * mpf(epsilon))) for sign in (-1, 1))
    return shuffled((truth, lie, 0), (lie, truth, 0), [(lie, lie, 1 - 2 * lie)] * (count - 1))


def splits(size: float, count: int) -> list[Finite]:
    """Return pairs of laws on two points whose log-ratios are `size` apart: the extreme ones of bounded range."""
    laws = []
    for number in range(1, count):
        high = mpf(size) * number / count
        p = (mpmath.exp(size) - mpmath.exp(high)) / (mpmath.exp(size) - 1)
        laws.append(Finite(((p, p * mpmath.exp(-high)), (1 - p, (1 - p) * mpmath.exp(size - high)))))
    return laws
