"""Grouping sets that are measured each by itself, under one charge.

A table of ten keys has more finest groups than anybody can measure well, while its tables by two keys are small. So the
cost is shared evenly by the sets, and each is measured like a question of its own; the event is that of all of them
(basic composition, or zero-concentrated where noise is Gaussian). The other way is to measure the finest groups once
and to add them up, which is better where there are few of them. Which one has the lower mean variance over all numbers
shown follows from public facts: sizes of domains and noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from tacit.mechanisms import Gaussian, Laplace
from tacit.query.allocation import QueryPrice
from tacit.query.expressions import Expression
from tacit.query.keys import Domain
from tacit.query.rewrite import Grouping
from tacit.query.scalars import scalar

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


def part(grouping: Grouping, kept: Sequence[int]) -> Grouping:
    """Return the same rows by some of the keys; rows that the other keys leave out stay out."""
    scope = grouping.scope
    for index in grouping.listed:
        if index not in kept:
            scope = scope.where(_present(grouping.keys[index]))
    listed = tuple(place for place, index in enumerate(kept) if index in grouping.listed)
    return replace(grouping, scope=scope, keys=tuple(grouping.keys[index] for index in kept), listed=listed)


def _present(key: Expression) -> Expression:
    node = exp.Not(this=exp.Is(this=exp.column("x"), expression=exp.null()))
    return scalar(
        node, lambda one: key if isinstance(one, exp.Column) else scalar(one, lambda _: key, _nowhere), _nowhere
    )


def _nowhere(_: exp.Expression) -> None:
    return None


def _variance(noise: Laplace | Gaussian) -> float:
    return float(noise.scale) ** 2 * (2 if isinstance(noise, Laplace) else 1)
