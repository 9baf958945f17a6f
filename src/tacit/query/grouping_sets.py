"""Two ways to measure grouping sets under one charge, and which of them has the lower error.

apart      Each set is measured like a question of its own. The cost is divided evenly over the sets, and the event is
           that of all of them (basic composition, or zero-concentrated where noise is Gaussian). Ten keys have more
           finest groups than can be measured well, while their tables by two keys are small.
together   The finest groups are measured once and added up, which is better where there are few of them.

The choice is by the mean variance over all numbers shown, which follows from public facts: sizes of domains and noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tacit.mechanisms import Gaussian, Laplace
from tacit.query.allocation import QueryPrice
from tacit.query.keys import Domain

Sets = Sequence[tuple[int, ...]]


def sizes(domains: Sequence[Domain], sets: Sets) -> list[int]:
    """Return how many groups each set has."""
    return [math.prod(len(domains[index].values) for index in kept) for kept in sets]


def is_better(apart: QueryPrice, together: QueryPrice, domains: Sequence[Domain], sets: Sets) -> bool:
    """Whether measuring each set by itself has the lower mean variance, on (geometric) average over measures."""
    cells = sizes(domains, sets)
    finest = math.prod(len(one.values) for one in domains)
    summed = len(sets) * finest / sum(cells)  # how many finest groups are added up for a number, on average
    pairs = zip(apart.noises, together.noises, strict=True)
    return math.fsum(math.log(_variance(one) / (_variance(other) * summed)) for one, other in pairs) < 0


def _variance(noise: Laplace | Gaussian) -> float:
    return float(noise.scale) ** 2 * (2 if isinstance(noise, Laplace) else 1)
