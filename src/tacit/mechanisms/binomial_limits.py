"""Exact confidence limits for how many people hold an answer, from how many reports name it.

Promise: of n people m hold the answer; a holder's report names it with probability `truth`, anybody else's with
probability `lie` < `truth`, independently. The limits enclose m with probability at least `level`, for every n and m.

Each limit inverts a test of the exact law of the count X, Binomial(m, truth) + Binomial(n - m, lie) (Clopper, Pearson
1934, for this sum in the place of one binomial law): m is left out above if P_m(X <= x), and below if P_m(X >= x), is
less than (1 - level) / 2. Both tails are monotone in m, so that bisection finds the limits.

Tails are bounded from above, which can only widen the limits: by the slack that doubles need, and by cells of
neighbouring counts, of which there are at most `CELLS_MAX`, where the law is wider than that.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tacit.accounting.special import betainc

CELLS_MAX: Final = 4096
"""With more counts than these within the window, the limits are wider by less than 1/200 of the count's deviation."""

DEVIATIONS: Final = 9
COUNTS_BESIDE: Final = 40
"""How far the window of counts reaches, in deviations and counts; the probability beyond it is added to the tail."""

RELATIVE_SLACK: Final = 1e-9
ABSOLUTE_SLACK: Final = 1e-13
"""Far more than doubles lose in a tail; the least that is compared with it is 2^-41, above 4e-13."""


@dataclass(frozen=True, slots=True)
class Reporting:
    """How likely reports name an answer, with the complements, which doubles could not always subtract."""

    truth: float
    not_truth: float
    lie: float
    not_lie: float

    def reversed(self) -> Reporting:
        """Return the law of the reports that do not name the answer, by the people who do not hold it."""
        return Reporting(self.not_lie, self.lie, self.not_truth, self.truth)


def holder_limits(count: int, people: int, law: Reporting, level: float) -> tuple[int, int]:
    """Return the least and the greatest number of holders that `count` reports among `people` leave possible."""
    missed = (1 - level) / 2
    most = _most_holders(count, people, law, missed)
    least = people - _most_holders(people - count, people, law.reversed(), missed)
    return least, most


def _most_holders(count: int, people: int, law: Reporting, missed: float) -> int:
    """Return the greatest m with P_m(X <= count) >= missed, or 0 if there is none."""

    def refuted(holders: int) -> bool:
        return _lower_tail(count, holders, people, law) * (1 + RELATIVE_SLACK) + ABSOLUTE_SLACK < missed

    return max(0, bisect_left(range(people + 1), True, key=refuted) - 1)


def _lower_tail(count: int, holders: int, people: int, law: Reporting) -> float:
    """Return an upper bound of P(X <= count): the sum over cells of true reports of P(cell) P(lies <= the rest)."""
    deviation = math.sqrt(holders * law.truth * law.not_truth)
    reach = math.ceil(DEVIATIONS * deviation) + COUNTS_BESIDE
    centre = round(holders * law.truth)
    first, last = max(0, centre - reach), min(holders, centre + reach)
    width = -(-(last - first + 1) // CELLS_MAX)
    starts = np.arange(first, last + 1, width)
    edges = np.append(starts, last + 1)
    upto = _at_most(edges - 1, holders, law.truth, law.not_truth)
    lies = _at_most(count - starts, people - holders, law.lie, law.not_lie)
    return float(np.diff(upto) @ lies + upto[0] + (1 - upto[-1]))


def _at_most(counts: NDArray[np.int64], trials: int, chance: float, complement: float) -> NDArray[np.float64]:
    """Return the binomial distribution function, P(Binomial(trials, chance) <= count)."""
    inside = np.clip(counts, 0, max(0, trials - 1)).astype(np.float64)
    # The smaller of two complementary probabilities is the argument: a double holds it without loss.
    if complement <= chance:
        shares = betainc(np.maximum(trials - inside, 1.0), inside + 1, complement)
    else:
        shares = 1 - betainc(inside + 1, np.maximum(trials - inside, 1.0), chance)
    return np.where(counts < 0, 0.0, np.where(counts >= trials, 1.0, shares))
