"""Noisy second moments of encoded columns: the matrix of all products z z' summed over rows, z = (1, x, y).

Promise (neighbours: one unit more or less, or one replaced, as the budget says): a unit has at most `rows_per_unit`
rows. Numbers are in whole steps within their bounds, so a row moves a sum of products by at most the product of the
reaches; categories are cells, and a row is in one cell of a table of counts or sums, so a row moves the whole table by
no more than one of its cells in L1 and L2. Each sum or table is one part of the allocation (basic composition for
Laplace noise, composition of rho for Gaussian noise: Bun, Steinke 2016), and no part depends on bounds.

Equal parts are the joint release of the whole matrix: k sums that a row moves by at most 1 each move by k in L1 and by
the root of k in L2, which is what k parts of epsilon, or of rho, pay for. A regression divides the budget by weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final, TypeAlias

import numpy as np

from tacit.learn.estimators.model_plan import Floats, deviation
from tacit.learn.estimators.noises import least_noises
from tacit.measuring.allocation import Allocation
from tacit.privacy.errors import TooWide
from tacit.stats.moments import label_of, square
from tacit.stats.rows import ColumnSteps, Cut, Term, require_few_cells
from tacit.stats.statistic import Noisy, NoisySums

WIDTH_MAX: Final = 1024
"""The greatest size of the matrix, which is decomposed after the charge."""
Pair: TypeAlias = tuple[int | None, int | None]
"""The places of two columns whose products are summed; None is the constant 1."""

TARGET_WEIGHT: Final = 2.0
CROSS_WEIGHT: Final = 0.6
"""The weights of products with the target, and of products of two features, beside 1 for all other sums: a regression
without these still predicts from each feature by itself."""


@dataclass(frozen=True)
class SecondMoments:
    """The parts of the matrix, and the two columns of each."""

    columns: tuple[ColumnSteps | Cut, ...]
    pairs: tuple[Pair, ...]
    parts: tuple[NoisySums, ...]

    @classmethod
    def of(cls, columns: Sequence[ColumnSteps | Cut], allocation: Allocation, *, target: bool = False) -> SecondMoments:
        """Return the moments of columns with their noise; a `target` comes last, and its square is not summed."""
        width = sum(one.cells if isinstance(one, Cut) else 1 for one in columns)
        if width > WIDTH_MAX:
            raise TooWide(
                f"second moments are of at most {WIDTH_MAX:,} encoded columns, and these are {width:,}",
                accepted="fewer columns or categories",
            )
        numbers = [place for place, one in enumerate(columns) if isinstance(one, ColumnSteps)]
        cells = [place for place, one in enumerate(columns) if isinstance(one, Cut)]
        pairs: list[Pair] = [(None, None), *((None, place) for place in numbers), *combinations(numbers, 2)]
        pairs += [(place, place) for place in (numbers[:-1] if target else numbers)]
        for cut in cells:
            pairs += [(None, cut), *((place, cut) for place in numbers)]
        pairs += combinations(cells, 2)
        made = [_sum_of(columns, pair) for pair in pairs]
        for _, by in made:
            require_few_cells(by)
        weights = [1.0] * len(pairs)
        if target:
            weights = [_weight(pair, len(columns) - 1) for pair in pairs]
        noises = least_noises(allocation, [term.reach for term, _ in made], weights)
        parts = tuple(
            NoisySums(term, noise, by, _label(term, by)) for (term, by), noise in zip(made, noises, strict=True)
        )
        return cls(tuple(columns), tuple(pairs), parts)

    def matrix(self, noisy: Noisy) -> Floats:
        """Return the sums of products of encoded columns: row and column 0 are those of the constant 1."""
        return self._assemble([np.asarray(one, dtype=np.float64) for one in noisy], exact=False)

    @property
    def deviations(self) -> Floats:
        """The standard deviation of the noise of each entry of the matrix; 0 where an entry is known without a sum."""
        spread = [np.full([cut.cells for cut in part.by], deviation(part.noise)) for part in self.parts]
        return self._assemble(spread, exact=True)

    def _assemble(self, sums: Sequence[Floats], *, exact: bool) -> Floats:
        places = list(self._places())
        size = 1 + sum(one.cells if isinstance(one, Cut) else 1 for one in self.columns)
        matrix = np.zeros((size, size))
        rows = float(sums[0])
        for (first, second), part, found in zip(self.pairs, self.parts, sums, strict=True):
            offset = part.term.offset
            whole = np.hypot(found, offset * rows) if exact else found + offset * rows
            entries = whole / max(1, _product_of_reaches(part.term))
            at, to = ([0] if one is None else places[one] for one in (first, second))
            if first is None and second is not None and isinstance(self.columns[second], Cut):
                matrix[to, to] = entries  # the square of a one-hot column is the column
            block = entries.reshape(len(at), len(to))
            matrix[np.ix_(at, to)] = block
            matrix[np.ix_(to, at)] = block.T
        return matrix

    def _places(self) -> Iterator[list[int]]:
        start = 1
        for one in self.columns:
            width = one.cells if isinstance(one, Cut) else 1
            yield list(range(start, start + width))
            start += width


def _weight(pair: Pair, target: int) -> float:
    """Return the weight of a sum in the budget of a regression."""
    first, second = pair
    if first is None or first == second:
        return 1.0
    return TARGET_WEIGHT if target in pair else CROSS_WEIGHT


def _sum_of(columns: Sequence[ColumnSteps | Cut], pair: Pair) -> tuple[Term, tuple[Cut, ...]]:
    chosen = [columns[place] for place in pair if place is not None]
    scales = tuple(one for one in chosen if isinstance(one, ColumnSteps))
    by = tuple(one for one in chosen if isinstance(one, Cut))
    return (square(scales[0]) if len(scales) == 2 and pair[0] == pair[1] else Term(scales)), by


def _product_of_reaches(term: Term) -> int:
    product = 1
    for factor in term.factors:
        product *= max(1, factor.reach)
    return product


def _label(term: Term, by: Sequence[Cut]) -> str:
    return label_of(term) + "".join(f" by {cut.column}" for cut in by)
