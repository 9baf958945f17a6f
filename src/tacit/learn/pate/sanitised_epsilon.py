"""The sanitised report: the data-dependent epsilon of the answers, released with noise scaled to smooth sensitivity.

    PATE(..., report=SanitisedReport(order=12, sigma=12, beta=0.029))

The data-dependent bound f of the answers, at one Rényi order, is a function of the votes and as private as they are.
Released are, both on public grids:

1. ln(S), S the beta-smooth bound on the local sensitivity of f, with Gaussian noise of `scale_sigma` sensitivities:
   ln S moves by at most beta between neighbours;
2. f + S sigma N(0, 1) (GNSS: Gaussian noise with smooth sensitivity).

Promise (neighbours: one unit, so one teacher; see the package): both together cost `renyi(order)`, data-independently.
For GNSS that is the divergence between Gaussians of different scales (Gil, Alajaji, Linder 2013), N(0, s^2) and
N(t, (r s)^2) with e^-beta <= r <= e^beta and |t| s <= min(1, r) S, greatest at one end of the range of r:
    a / (2 sigma^2 (a - (a - 1) e^(2 beta))) - (a beta + ln(1 - a (1 - e^(-2 beta))) / 2) / (a - 1)        r = e^-beta
    a / (2 sigma^2) + (a beta - ln(1 + a (e^(2 beta) - 1)) / 2) / (a - 1), at most                          r >= 1
Theorem 23 of Papernot et al. 2018 states a e^(2 beta) / sigma^2 + (a beta - ln(1 - 2 a beta)
/ 2) / (a - 1). For little noise (sigma = 10, a = 14, a beta = 0.4) that is less than the first line, which is attained
by a pair that smooth sensitivity allows: there it is not a bound, and it is not used here.

Precision: f is rounded to a public grid and S widened by two steps of it, one for that rounding and one for the doubles
in which f and S are computed; noise of variance (S sigma)^2 + 16 steps^2 on the grid is a function of f + S sigma N(0,
1) (`mechanisms.gaussian`; the scale may depend on the data, the grid does not).

What the figure means: with probability `level` over the report's noise, P(S) <= e^epsilon P'(S) + delta for every set S
of answers and reports, where P is their law on this data set with its parts, and P' that on any neighbour. The budget
is charged the data-independent cost; the report never lowers it. Where noise takes the figure above that cost, the cost
is shown, which holds with certainty.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import special

from tacit.accounting.conversions import epsilon_of_renyi
from tacit.accounting.renyi import renyi_curve
from tacit.learn.pate.aggregators import Aggregator, ConfidentGNMax, GNMax, InteractiveGNMax, vote_counts
from tacit.learn.pate.bounds import SLACK, Floats, confident_moments, confident_renyi, gnmax_log_q
from tacit.learn.pate.smooth_sensitivity import LOG_Q_MIN, confident_local, gnmax_bound_at, smooth_bound
from tacit.mechanisms import Gaussian
from tacit.mechanisms.gaussian import SMOOTHING_VARIANCE
from tacit.mechanisms.integer_sampler import IntegerSampler
from tacit.mechanisms.laws import GaussianLaw
from tacit.mechanisms.randomness import SYSTEM, RandomSource
from tacit.privacy.errors import OutOfRange, WrongType
from tacit.privacy.events import Approximate, Event
from tacit.privacy.figures import at_most
from tacit.privacy.numbers import DEFAULT_LEVEL, exact, failure_probability, level_of, parameter

GRID: Final = Fraction(1, 2**20)
"""The grid of the released bound, in units of Rényi divergence."""
ORDER_MAX: Final = 64
CLASSES_MAX: Final = 256
BETA_SLACK: Final = 1 + 2.0**-30
"""The factor by which beta is widened for doubles."""


@dataclass(frozen=True)
class SanitisedEpsilon:
    """The released data-dependent cost of answers and report together; each number is safe to publish.

    Neither epsilon is above the data-independent cost at the same delta, which holds for every data set: the noise of
    the report can exceed what it could save.
    """

    epsilon: float
    """The upper end: it holds with probability `level` over the noise of the report."""
    delta: float
    order: float
    level: float
    estimate: float
    """The epsilon without the margin for the noise of the report."""
    simulated: bool = False

    def at_most(self, charged: float) -> SanitisedEpsilon:
        """Return the smaller of each epsilon and the data-independent one: post-processing of public numbers."""
        return replace(self, epsilon=min(self.epsilon, charged), estimate=min(self.estimate, charged))

    def __str__(self) -> str:
        return (
            f"epsilon {at_most(self.epsilon)} at delta {at_most(self.delta)} for this data set (data-dependent, "
            f"sanitised, at confidence {self.level:g}); the budget was charged the data-independent cost"
        )


@dataclass(frozen=True, slots=True)
class SanitisedReport:
    """Public parameters of the report: choose them before the votes are seen.

    `order` is the Rényi order of the bound, `sigma` and `beta` are those of the GNSS noise, `scale_sigma` that of the
    release of its scale. Start with order 8 to 12, beta = 0.35 / order and sigma 8 to 12, and try them on public votes:
    with 250 teachers, the sanitised epsilon of 100 queries with two classes was 1.7 of 2.6 that were charged, that of
    360 with ten 1.9 of 2.8; order 14, sigma 32.35 and beta 0.0329 gave 2.3 of 2.5 and 2.6 of 2.6.

    Orders at which the analysis is not valid are refused before the charge. C5 says that the bound grows with the
    probability q that GNMax errs, C6 that one moved vote changes it more where q is greater; both fail at orders that
    are high for the noise of the aggregator.
    """

    order: float
    sigma: float
    beta: float
    scale_sigma: float = 8.0
    level: float = DEFAULT_LEVEL

    def __post_init__(self) -> None:
        for name in ("order", "sigma", "beta", "scale_sigma"):
            object.__setattr__(self, name, float(parameter(name, getattr(self, name))))
        object.__setattr__(self, "level", level_of(self.level))
        if not 1 < self.order <= ORDER_MAX:
            raise OutOfRange(f"order must lie above 1 and be at most {ORDER_MAX}", name="order", value=self.order)
        if math.isinf(gnss_renyi(self.beta * BETA_SLACK, self.sigma, self.order)):
            raise OutOfRange(
                f"beta must be below {-math.log1p(-1 / self.order) / 2:.4g} at order {self.order:g}",
                name="beta",
                value=self.beta,
            )

    def renyi(self, order: float) -> float:
        """Return the data-independent Rényi cost of the report itself."""
        return gnss_renyi(self.beta * BETA_SLACK, self.sigma, order) + order / (2 * self.scale_sigma**2)

    def check(self, aggregator: Aggregator, classes: int) -> None:
        """Raise unless the report is defined for the aggregator, and its analysis is valid."""
        if not isinstance(aggregator, GNMax) or isinstance(aggregator, InteractiveGNMax):
            raise WrongType(
                "a report is defined for GNMax and ConfidentGNMax: no smooth sensitivity is known for the others",
                name="report",
            )
        if classes > CLASSES_MAX:
            raise OutOfRange(f"a report takes at most {CLASSES_MAX} classes", name="classes", value=classes)
        gnmax_bound_at(float(aggregator.sigma), classes, self.order).require_conditions()

    def event(self, answers: Event, delta: float) -> Approximate:
        """Return the event of answers and report together, by their Rényi curves at the best order."""
        failure_probability("delta", delta)
        top = 1 / -math.expm1(-2 * self.beta * BETA_SLACK)
        orders = np.unique(np.append(1 + np.geomspace(0.05, max(top - 1, 0.06), 200)[:-1], self.order))
        curve = renyi_curve(answers, orders)
        pairs = zip(orders.tolist(), curve.tolist(), strict=True)
        least = min(epsilon_of_renyi(order, spent + self.renyi(order), delta) for order, spent in pairs)
        return Approximate(least, delta, under=answers.relation)

    def release(
        self, aggregator: GNMax, votes: Any, delta: float, *, charged: float, source: RandomSource = SYSTEM
    ) -> SanitisedEpsilon:
        """Return the sanitised epsilon of having asked all `votes`, queries x classes.

        `charged` is the epsilon of `event` at `delta`, which no figure exceeds.
        """
        counts = np.atleast_2d(vote_counts(votes))
        self.check(aggregator, counts.shape[1])
        value, local = data_dependent(aggregator, counts, self.order)
        return self._release(value, smooth_bound(local, self.beta), delta, source).at_most(charged)

    def _release(self, value: float, smooth: float, delta: float, source: RandomSource) -> SanitisedEpsilon:
        """Release a bound, and the scale of its noise, whose smooth sensitivity is given."""
        step = float(GRID)
        scale = smooth + 2 * step
        log_noise = Gaussian(self.beta * BETA_SLACK, sigma=self.scale_sigma)
        noisy_log = float(log_noise.release(math.log(scale), source=source))
        variance = (exact("scale", scale * self.sigma) / GRID) ** 2 + SMOOTHING_VARIANCE
        steps = round(value / step) + int(IntegerSampler(GaussianLaw(variance)).draw(1, source)[0])
        return self._epsilon(steps * step, noisy_log, delta, source.simulated)

    def _epsilon(self, bound: float, noisy_log: float, delta: float, simulated: bool) -> SanitisedEpsilon:
        """Return the epsilon of what was released: post-processing.

        The margin covers both noises, each with half of 1 - level, and never makes the bound negative.
        """
        quantile = -float(special.ndtri((1 - self.level) / 2))
        scale = math.exp(noisy_log + quantile * self.beta * self.scale_sigma * (1 + 2.0**-9))
        margin = quantile * math.hypot(scale * self.sigma, 4 * float(GRID)) + float(GRID)
        own = self.renyi(self.order)
        upper = epsilon_of_renyi(self.order, max(bound + margin, 0.0) + own, delta)
        estimate = epsilon_of_renyi(self.order, max(bound, 0.0) + own, delta)
        return SanitisedEpsilon(upper, delta, self.order, self.level, estimate, simulated)


def data_dependent(aggregator: GNMax, votes: NDArray[np.int64], order: float) -> tuple[float, Floats]:
    """Return the data-dependent bound on the divergence of all answers, and its local sensitivities.

    Both are private. All queries count, also those that are not asked because enough were answered: not asking them
    is a function of the answers.
    """
    teachers = int(votes.sum(axis=1).max())
    label = gnmax_bound_at(float(aggregator.sigma), votes.shape[1], order)
    bounds = label.renyi(np.maximum(gnmax_log_q(votes, label.sigma), LOG_Q_MIN))
    local = label.local(votes, teachers + 1)
    if isinstance(aggregator, ConfidentGNMax):
        top = votes.max(axis=1)
        moments = confident_moments(teachers, float(aggregator.threshold), float(aggregator.test_sigma), order)
        bounds = confident_renyi(moments, top, bounds, order)
        local = confident_local(local, top, label.independent, moments, order)
    return float((bounds + SLACK).sum()), local


def gnss_renyi(beta: float, sigma: float, order: float) -> float:
    """Return the Rényi divergence of GNSS between neighbours, at most; infinity where there is no bound."""
    left = order - (order - 1) * math.exp(2 * beta)
    if left <= 0 or order <= 1:
        return math.inf
    narrow = order / (2 * sigma**2 * left)
    narrow -= (order * beta + math.log1p(order * math.expm1(-2 * beta)) / 2) / (order - 1)
    wide = order / (2 * sigma**2)
    wide += (order * beta - math.log1p(order * math.expm1(2 * beta)) / 2) / (order - 1)
    return max(narrow, wide)
