"""Counts in public cells: histograms, two-way tables, and the distribution function.

Promise: each row is counted in one cell, so a unit with at most R rows moves all counts together by R in L1, and by no
more in L2; a replaced unit by twice that (R rows leave, R rows come). Noise on counts of disjoint cells is paid once
for all of them.

Counts are integers. `nonnegative` raises those below 0 to 0, which brings each count nearer to the truth, but biases
sums of many cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any, Final, Unpack

import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms.mechanism import Interval
from tacit.mechanisms.randomness import SYSTEM, RandomSource
from tacit.privacy.errors import InvalidInput, TooWide
from tacit.privacy.events import Event
from tacit.privacy.numbers import truth_value, whole
from tacit.privacy.tables import Kind
from tacit.stats.answer import Answer
from tacit.stats.cells import CELLS_MAX, DATES_MAX, Partition, edges_of
from tacit.stats.count_tree import NoisyTree
from tacit.stats.cumulative_counts import isotonic
from tacit.stats.preparation import CommonOptions, StatisticInputs
from tacit.stats.rows import Cut, Rows, Term, cell_count, require_few_cells
from tacit.stats.stated_kinds import kind_of_bounds, kind_of_edges, kind_of_keys
from tacit.stats.statistic import Noisy, NoisySums, StatisticPlan, release_sums

BINS: Final = 10
CDF_BINS: Final = 64
SHARES_TRIED: Final = np.linspace(0.0, 1.0, 17)
"""The shares at which the noise of below - share * total is simulated; between them its quantiles are interpolated."""


@dataclass(frozen=True)
class Counts(StatisticPlan):
    """Counts in the cells of one or several columns; the first axes are those of groups."""

    part: NoisySums
    needs: tuple[str, ...]
    nonnegative: bool
    drawn_as: str

    @property
    def event(self) -> Event:
        return self.part.noise.event

    @property
    def lines(self) -> tuple[str, ...]:
        below = ("counts below 0 are shown as 0",) if self.nonnegative else ()
        return (self.part.line, *below)

    @property
    def picture(self) -> str:
        return self.drawn_as

    @property
    def numbers(self) -> int:
        return cell_count(self.part.by)

    @property
    def keys(self) -> list[tuple[Any, ...]] | None:
        parts = [_cells(cut) for cut in self.part.by]
        return [sum(key, ()) for key in product(*parts)]

    @property
    def key_names(self) -> tuple[str, ...]:
        names = [(cut.column,) if cut.values else (f"{cut.column} from", f"{cut.column} to") for cut in self.part.by]
        return sum(names, ())

    def measure(self, rows: Rows, source: RandomSource = SYSTEM) -> Noisy:
        return release_sums([self.part], rows, self.needs, source)

    def value(self, noisy: Noisy) -> Any:
        return self._shown(np.asarray(noisy[0]))

    def interval(self, noisy: Noisy, level: float) -> Interval | None:
        low, high = self.part.noise.interval(level, np.asarray(noisy[0]))
        return Interval(self._shown(low), self._shown(high))

    def _shown(self, counts: NDArray[Any]) -> NDArray[Any]:
        return np.maximum(counts, 0) if self.nonnegative else counts


@dataclass(frozen=True)
class Distribution(StatisticPlan):
    """The share of values up to each edge of a partition, in each of the groups."""

    tree: NoisyTree
    picture = "steps"

    @property
    def event(self) -> Event:
        return self.tree.event

    @property
    def lines(self) -> tuple[str, ...]:
        return (self.tree.line, "shares rise to 1")

    @property
    def numbers(self) -> int:
        return cell_count(self.tree.by) * self.tree.cells.count

    @property
    def keys(self) -> list[tuple[Any, ...]] | None:
        cells = self.tree.cells
        ends = cells.edges[:-1] if cells.is_whole else cells.edges[1:]
        return list(product(*(cut.values for cut in self.tree.by), ends))

    @property
    def key_names(self) -> tuple[str, ...]:
        return (*(cut.column for cut in self.tree.by), self.tree.cells.column)

    def measure(self, rows: Rows, source: RandomSource = SYSTEM) -> Noisy:
        return self.tree.measure(rows, source)

    def value(self, noisy: Noisy) -> Any:
        return self._reshape(self._values(noisy))

    def interval(self, noisy: Noisy, level: float) -> Interval | None:
        """Return for each share the range of all F in [0, 1] that the noisy counts do not reject (as in Fieller 1954).

        Rejected is an F with |below - F total| above the quantile of the noise of below - F total: without division by
        the noisy total the level is kept also where that is within its noise of 0. Intervals contain the value, and are
        widened so that both ends rise.
        """
        lows, highs = [], []
        widths = np.array([self.tree.widths(share, level) for share in SHARES_TRIED.tolist()])[:, 1:]
        for below, value in zip(self.tree.below(noisy), self._values(noisy), strict=True):
            low, high = _accepted_shares(below[1:], widths)
            lows.append(_end_at_one(np.minimum.accumulate(np.minimum(low, value)[::-1])[::-1]))
            highs.append(_end_at_one(np.maximum.accumulate(np.maximum(high, value))))
        return Interval(self._reshape(lows), self._reshape(highs))

    def warnings(self, noisy: Noisy) -> tuple[str, ...]:
        return self.tree.warnings(noisy)

    def _values(self, noisy: Noisy) -> list[NDArray[np.float64]]:
        """Return for each group the shares at the upper edges of cells, rising to 1."""
        return [_end_at_one(isotonic(below[1:] / max(float(below[-1]), 1.0))) for below in self.tree.below(noisy)]

    def _reshape(self, found: list[NDArray[np.float64]]) -> NDArray[np.float64]:
        return np.array(found).reshape([*(cut.cells for cut in self.tree.by), -1])


def histogram(
    values: Any,
    *,
    bins: int | None = None,
    edges: Any = None,
    bounds: Any = None,
    keys: Any = None,
    by: Any = None,
    by_keys: Any = None,
    nonnegative: bool = True,
    **options: Unpack[CommonOptions],
) -> Answer:
    """Return the number of rows in each bin, or with each of the listed values (`keys`).

    Bins lie between stated `edges` (numbers, dates or times), or are `bins` equal parts of the `bounds`. A bin includes
    its left edge, the last one its right edge too; values beyond the outer edges are counted in the outer bins. Rows
    without a value are not counted, unless None is among the keys.
    """
    if sum(one is not None for one in (bins, edges, keys)) > 1:
        raise InvalidInput("give one of bins, edges and keys", name="bins")

    def plan(inputs: StatisticInputs) -> StatisticPlan:
        cut = _cut(inputs, bins, edges, bounds, keys)
        cuts = (*inputs.groups(), cut)
        return _counts(f"histogram of {inputs.name('value')}", inputs, cuts, nonnegative, "bars")

    stated = kind_of_edges(edges) or kind_of_keys(keys) or kind_of_bounds(bounds)
    return StatisticInputs({"value": values}, options, {"value": stated}, by=by, keys=by_keys).answer(plan)


def contingency(
    values: Any,
    others: Any,
    *,
    keys: Any = None,
    other_keys: Any = None,
    nonnegative: bool = True,
    **options: Unpack[CommonOptions],
) -> Answer:
    """Return the number of rows with each pair of values: an array with a row for each key of the first column."""
    kinds = {"value": kind_of_keys(keys), "other": kind_of_keys(other_keys)}
    inputs = StatisticInputs({"value": values, "other": others}, options, kinds)
    cuts = (inputs.cut("value", keys), inputs.cut("other", other_keys, what="other_keys"))
    label = f"table of {inputs.name('value')} and {inputs.name('other')}"
    return inputs.release(_counts(label, inputs, cuts, nonnegative, "heat"))


def cdf(
    values: Any,
    *,
    bounds: Any = None,
    bins: int = CDF_BINS,
    by: Any = None,
    keys: Any = None,
    **options: Unpack[CommonOptions],
) -> Answer:
    """Return the distribution function: the share of values up to each of `bins` equally spaced numbers, the last 1.

    Up to 64 bins are counted directly, more of them in a tree (`count_tree`). Integers of a short range have a bin
    each. The intervals are those of single shares, not of the whole curve.
    """
    count = whole("bins", bins, at_most=CELLS_MAX)

    def plan(inputs: StatisticInputs) -> StatisticPlan:
        limits, name = inputs.bounds("value", bounds), inputs.name("value")
        cells = Partition.of(name, inputs.kind("value"), limits, count, even=inputs.learns("value"))
        groups = inputs.groups()
        _require_few_cells((*groups, cells.cut))
        tree = NoisyTree.of(cells, inputs.allocation, groups)
        return Distribution(f"distribution of {inputs.name('value')}", tree)

    kinds = {"value": kind_of_bounds(bounds)}
    return StatisticInputs({"value": values}, options, kinds, by=by, keys=keys).answer(plan)


def _cut(inputs: StatisticInputs, bins: int | None, edges: Any, bounds: Any, keys: Any) -> Cut:
    """Return the cells of a histogram's values."""
    name, kind = inputs.name("value"), inputs.kind("value")
    if edges is not None:
        return Cut(name, edges=edges_of(name, kind, edges))
    is_listed = keys is not None or kind in (Kind.TEXT, Kind.BOOLEAN) or inputs.has_categories("value")
    if is_listed and bins is None and bounds is None:
        return inputs.cut("value", keys)
    return Partition.of(
        name,
        kind,
        inputs.bounds("value", bounds),
        whole("bins", BINS if bins is None else bins, at_most=CELLS_MAX),
        even=True,
    ).cut


def _counts(
    label: str, inputs: StatisticInputs, cuts: tuple[Cut, ...], nonnegative: bool, picture: str
) -> StatisticPlan:
    _require_few_cells(cuts)
    (noise,) = inputs.allocation.noises([1])
    needs = tuple(cut.column for cut in cuts if None not in cut.values)
    part = NoisySums(Term(), noise, cuts)
    return Counts(label, part, needs, truth_value("nonnegative", nonnegative), picture)


def _require_few_cells(cuts: tuple[Cut, ...]) -> None:
    require_few_cells(cuts)
    for cut in cuts:
        if cut.cells > DATES_MAX and any(not isinstance(edge, int | float) for edge in cut.edges):
            raise TooWide(f"dates and times have at most {DATES_MAX:,} bins", accepted="fewer bins")


def _cells(cut: Cut) -> list[tuple[Any, ...]]:
    """Return the keys of a cut: its values, or the two edges of each bin."""
    if cut.values:
        return [(value,) for value in cut.values]
    return list(pairwise(cut.edges))


def _accepted_shares(
    below: NDArray[np.float64], widths: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the least and the greatest share F with |below - F total| <= width(F) at each edge; inf, -inf for none.

    `widths` are those at `SHARES_TRIED`, an array (shares, edges), and linear in between, where both sides of the
    condition, +-(below - F total) - width(F) <= 0, hold in an interval.
    """
    low, high = np.full(len(below), np.inf), np.full(len(below), -np.inf)
    gaps = below - SHARES_TRIED[:, None] * below[-1]
    for place, (start, end) in enumerate(pairwise(SHARES_TRIED.tolist())):
        first, last = np.zeros(len(below)), np.ones(len(below))
        for sign in (1.0, -1.0):
            at_start, at_end = (sign * gaps[at] - widths[at] for at in (place, place + 1))
            with np.errstate(divide="ignore", invalid="ignore"):
                root = at_start / (at_start - at_end)
            first = np.where(at_start > 0, np.where(at_end > 0, np.inf, np.maximum(first, root)), first)
            last = np.where((at_start <= 0) & (at_end > 0), np.minimum(last, root), last)
        held = first <= last
        low = np.where(held, np.minimum(low, start + first * (end - start)), low)
        high = np.where(held, np.maximum(high, start + last * (end - start)), high)
    return low, high


def _end_at_one(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return shares between 0 and 1, the last of which is 1."""
    found = np.clip(shares, 0.0, 1.0)
    found[-1] = 1.0
    return np.asarray(found)
