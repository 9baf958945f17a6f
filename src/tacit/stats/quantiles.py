"""Quantiles, medians and box plots.

Values are counted in the cells of a public partition of their bounds (`cells`), at most 4,096 of them. From these
counts a quantile is found in one of three ways:

exponential  One cell is chosen by the exponential mechanism (McSherry, Talwar 2007; quantiles: Smith 2011) with three
             quarters of the budget. The score of a cell is minus the number of rows by which it misses the share q:
             max(0, q n - upto, below - q n), upto and below being the rows up to the cell's end and below its start.
             A quarter of the budget pays for the interval: noisy counts of the rows in bins around the chosen cell.
             Where that cell holds many rows, they determine the position of the quantile within it.
tree         Noisy counts of cells and of runs of cells (`count_tree`), from which every quantile is computed.
smooth       Student noise fitted to the data (`mechanisms.SmoothMedian`), for medians of arrays in which each row is a
             unit and whose number of rows is public (replace-one).

Sensitivity of a score (R rows a unit): a unit with r rows adds between -q r and (1 - q) r to below - q n, and between
-(1 - q) r and q r to q n - upto, so adding or removing it moves the score by max(q, 1 - q) R. Replacing it moves the
score by R, the width of these ranges. Groups are chosen for side by side: a unit with r_g rows in group g moves the
log-probabilities there by epsilon r_g / R, by epsilon over all groups, as the r_g sum to R; where a unit is replaced,
both sets of rows count, so the sensitivity is 2 max(q, 1 - q) R.

The budget of the choice, measured on 1,000 values of four shapes at epsilon 0.1, beside a choice among 1,001 candidates
by permute-and-flip with all of epsilon: the error of a 0.9 quantile is 3.7 times as large with half of the budget, 1.4
to 1.6 times with three quarters, and the same with all of them; that of a median 3.3, 2.1 and 2.0 times, the last being
the luck of where 1,001 candidates lie (1.05 times on normal values, 0.4 times on 10,000 of each shape). Intervals are
1.5 to 2.5 times as wide as with a half; beyond three quarters they widen faster than the error falls. Neither the
mechanism (permute-and-flip instead, which would also cost more rho) nor 1,024 cells change these errors by a tenth.

The rule of "auto": one share is chosen by the exponential mechanism, as are two shares of reals and times; more are
read from a tree. Measured on 10^2 to 10^5 normal, skewed, heavy-tailed and whole numbers at epsilon 0.1 and 1: chosen
medians have a quarter to a half of the error of a tree's (whole numbers: about the same), at wider intervals;
smooth ones have several times that of chosen ones, but for large data, where all errors are tiny, and no interval. Each
further share divides the budget of the choice, while a tree answers any number of them: at two shares the choice has
two thirds of the error, at three they are equal, and for five numbers of a box plot a tree has a fifth of it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Final, Unpack

import numpy as np
from numpy.typing import NDArray

from tacit.measuring.allocation import Allocation, Noise
from tacit.measuring.intervals import LAPLACE_KURTOSIS, half_widths
from tacit.mechanisms import Exponential, Laplace, SmoothMedian
from tacit.mechanisms.mechanism import Interval
from tacit.mechanisms.randomness import SYSTEM, RandomSource, words
from tacit.mechanisms.simulation import SeededSource, mark_simulated
from tacit.privacy.bounds import Bounds
from tacit.privacy.errors import EmptyInput, InvalidInput, NotAllowed, OutOfRange, TooWide, WrongKind, WrongType
from tacit.privacy.events import Composed, Event
from tacit.privacy.numbers import DEFAULT_LEVEL, inside_unit_interval
from tacit.privacy.tables import Kind
from tacit.privacy.units import Relation
from tacit.stats.answer import Answer
from tacit.stats.array_sums import ArrayRows
from tacit.stats.cells import Partition, ends_of
from tacit.stats.count_tree import NoisyTree
from tacit.stats.cumulative_counts import cumulative_counts, noise_widths, quantile_cells, quantile_position
from tacit.stats.preparation import CommonOptions, StatisticInputs
from tacit.stats.rows import Cut, Rows, Term, cell_count, group_keys
from tacit.stats.stated_kinds import kind_of_bounds
from tacit.stats.statistic import Noisy, StatisticPlan, few_rows_warning, noise_in_words

CELLS: Final = 4096
SHARE_STEPS: Final = 10_000
"""Shares are whole multiples of 1/10,000, so that scores are whole numbers."""

COUNT_MAX: Final = 2**36
"""The greatest count of a cell, so that 4,096 of them times 10,000 fit into 64 bits; clamping adds no sensitivity."""

COUNTED_MAX: Final = 2**23
"""The greatest number of cells of all groups together."""

CHOSEN_MAX: Final = 2
CHOSEN_WHOLE_MAX: Final = 1
"""The greatest number of quantiles chosen rather than computed from a tree; the second for integers, days, booleans."""

CHOOSING: Final = 0.75
"""The share of the budget that chooses cells; the rest counts the rows around them."""

STRIDE: Final = 3
"""The factor by which the bins around a chosen cell grow."""

CLEAR: Final = 16.0
"""The least count of a chosen cell, over the scale of the noise, for which the position within it is estimated."""

INSIDE: Final = 1 - 2.0**-20
DRAWS: Final = 4000
WHISKERS: Final = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class Quantiles(StatisticPlan):
    """Quantiles at shares, in each of the groups `by`."""

    cells: Partition
    shares: tuple[float, ...]
    by: tuple[Cut, ...]
    is_single: bool
    """Whether the keys are groups alone, without shares."""
    picture_name: str = field(default="points", repr=False)

    @property
    def picture(self) -> str:
        return self.picture_name

    @property
    def numbers(self) -> int:
        return cell_count(self.by) * len(self.shares)

    @property
    def keys(self) -> list[tuple[Any, ...]] | None:
        if self.is_single:
            return group_keys(self.by)
        return list(product(*(cut.values for cut in self.by), self.shares))

    @property
    def key_names(self) -> tuple[str, ...]:
        return (*(cut.column for cut in self.by), *(() if self.is_single else ("share",)))

    def value(self, noisy: Noisy) -> Any:
        return self._reshape([self.cells.at(position) for position in self.positions(noisy).ravel()])

    def interval(self, noisy: Noisy, level: float) -> Interval | None:
        spans = [self.cells.span(first, last) for first, last in self.spans(noisy, level)]
        return Interval(*(self._reshape([span[end] for span in spans]) for end in (0, 1)))

    def _reshape(self, values: list[Any]) -> Any:
        """Return one value as it is, several as an array in the order of the keys."""
        return values[0] if self.keys is None else np.array(values)

    @abstractmethod
    def positions(self, noisy: Noisy) -> NDArray[np.float64]:
        """Return the positions of the quantiles in cells: (groups, shares)."""

    @abstractmethod
    def spans(self, noisy: Noisy, level: float) -> Iterator[tuple[int, int]]:
        """Yield the first and the last cell in which each quantile can lie."""


@dataclass(frozen=True)
class TreeQuantiles(Quantiles):
    """Quantiles from a tree of noisy counts."""

    tree: NoisyTree = field(kw_only=True)

    @property
    def event(self) -> Event:
        return self.tree.event

    @property
    def lines(self) -> tuple[str, ...]:
        return (self.tree.line,)

    def measure(self, rows: Rows, source: RandomSource = SYSTEM) -> Noisy:
        return self.tree.measure(rows, source)

    def positions(self, noisy: Noisy) -> NDArray[np.float64]:
        return np.array([[quantile_position(one, share) for share in self.shares] for one in self.tree.below(noisy)])

    def spans(self, noisy: Noisy, level: float) -> Iterator[tuple[int, int]]:
        for below in self.tree.below(noisy):
            for share in self.shares:
                yield quantile_cells(below, self.tree.widths(share, level), share)

    def warnings(self, noisy: Noisy) -> tuple[str, ...]:
        return self.tree.warnings(noisy)


@dataclass(frozen=True)
class ChosenQuantiles(Quantiles):
    """Quantiles that are chosen by the exponential mechanism, with noisy counts around them for their intervals."""

    choices: tuple[Exponential, ...] = field(kw_only=True)
    noise: Noise = field(kw_only=True)

    @property
    def event(self) -> Event:
        return Composed((*(choice.event for choice in self.choices), self.noise.event))

    @property
    def lines(self) -> tuple[str, ...]:
        each = float(self.choices[0].epsilon)
        return (
            f"quantiles: each one of {self.cells.count:,} cells, by the exponential mechanism with epsilon {each:.4g}",
            f"rows around them, for the intervals: {noise_in_words(self.noise)}",
        )

    def measure(self, rows: Rows, source: RandomSource = SYSTEM) -> Noisy:
        (exact,) = rows.sums([Term()], (*self.by, self.cells.cut), [self.cells.column])
        groups = np.minimum(exact.reshape(-1, self.cells.count), COUNT_MAX)
        chosen = np.array(
            [
                [int(choice.release(scores(counts, share), source=source)) for choice, share in self._choices]
                for counts in groups
            ],
            dtype=np.int64,
        )
        around = [
            np.add.reduceat(counts, self._edges(places)[:-1]) for counts, places in zip(groups, chosen, strict=True)
        ]
        return mark_simulated(chosen) if source.simulated else chosen, self.noise.release(
            np.concatenate(around), source=source
        )

    def rehearse(self, per_unit: int) -> Noisy:
        chosen, _ = super().rehearse(per_unit)
        bins = len(self.shares) * 2 * len(_steps(CELLS)) + 1  # also with more cells, where bounds are learnt
        return chosen, np.zeros(len(chosen) * bins, dtype=np.int64)

    @property
    def _choices(self) -> list[tuple[Exponential, float]]:
        return list(zip(self.choices, self.shares, strict=True))

    def _edges(self, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the edges of bins around chosen cells, wider with distance; public, because the choice is released."""
        edges, steps = {0, self.cells.count}, _steps(self.cells.count)
        for place in chosen.tolist():
            edges |= {place - step for step in steps} | {place + 1 + step for step in steps}
        return np.array(sorted(edge for edge in edges if 0 <= edge <= self.cells.count), dtype=np.int64)

    def positions(self, noisy: Noisy) -> NDArray[np.float64]:
        """Return a position in each chosen cell: from the counts around it if it holds many rows, else its middle."""
        chosen = self._ordered(noisy)
        within = np.full(chosen.shape, 0.5)
        for group, (edges, below) in enumerate(self._bins(noisy)):
            for index, share in enumerate(self.shares):
                at = int(np.searchsorted(edges, chosen[group, index]))
                rows = below[at + 1] - below[at]
                if not self.cells.is_whole and rows > CLEAR * float(self.noise.scale):
                    within[group, index] = np.clip((share * below[-1] - below[at]) / rows, 0.0, INSIDE)
        return np.asarray(chosen + within)

    def _ordered(self, noisy: Noisy) -> NDArray[np.int64]:
        """Return the chosen cells, sorted so that larger shares have larger quantiles."""
        order = np.argsort(np.argsort(self.shares, kind="stable"), kind="stable")
        return np.sort(np.asarray(noisy[0], dtype=np.int64), axis=1)[:, order]

    def _bins(self, noisy: Noisy) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64]]]:
        """Yield for each group the edges of its bins, and the noisy counts of rows below them."""
        start, counts = 0, np.asarray(noisy[1])
        for places in np.asarray(noisy[0]):
            edges = self._edges(places)
            yield edges, cumulative_counts(counts[start : start + len(edges) - 1])
            start += len(edges) - 1

    def spans(self, noisy: Noisy, level: float) -> Iterator[tuple[int, int]]:
        binned = list(self._bins(noisy))
        most = max(len(edges) for edges, _ in binned) - 1
        fresh = self.noise.release(np.zeros((DRAWS, most), dtype=np.int64), source=SeededSource(1))
        drawn = cumulative_counts(np.asarray(fresh))
        for (edges, below), places in zip(binned, self._ordered(noisy), strict=True):
            for share, place in zip(self.shares, places.tolist(), strict=True):
                first, last = quantile_cells(below, noise_widths(drawn[:, : len(edges)], share, level), share)
                yield min(int(edges[first]), place), max(int(edges[last + 1]) - 1, place)

    def warnings(self, noisy: Noisy) -> tuple[str, ...]:
        rows = np.array([below[-1] for _, below in self._bins(noisy)])
        bins = max(len(edges) for edges, _ in self._bins(noisy)) - 1
        is_laplace = isinstance(self.noise, Laplace)
        variance = bins * float(self.noise.scale) ** 2 * (2 if is_laplace else 1)
        width = float(half_widths(variance, LAPLACE_KURTOSIS / bins * is_laplace, DEFAULT_LEVEL))
        return few_rows_warning(rows, width, group_keys(self.by))


@dataclass(frozen=True)
class SmoothQuantile(StatisticPlan):
    """A median with noise fitted to the data; its scale is secret, so there is no interval."""

    column: str
    is_whole: bool
    mechanism: SmoothMedian

    @property
    def clamped(self) -> dict[str, Bounds]:
        return {self.column: Bounds(self.mechanism.lower, self.mechanism.upper)}

    @property
    def event(self) -> Event:
        return self.mechanism.event

    @property
    def lines(self) -> tuple[str, ...]:
        return ("Student noise fitted to the data; how much is secret, so no interval is known",)

    def rehearse(self, per_unit: int) -> Noisy:
        self.mechanism.release(np.zeros(1), source=SeededSource(0))
        return ()

    def measure(self, rows: Rows, source: RandomSource = SYSTEM) -> Noisy:
        if not isinstance(rows, ArrayRows):
            raise NotAllowed("smooth sensitivity needs sorted values, and those of a table stay in its engine")
        array = rows.column(self.column)
        lower, upper = float(self.mechanism.lower), float(self.mechanism.upper)
        coins = words(source, len(array), 1) % 2 == 0
        filled = np.where(array.missing, np.where(coins, lower, upper), np.clip(array.values, lower, upper))
        found = np.array([float(self.mechanism.release(filled, source=source))])
        return (mark_simulated(found) if source.simulated else found,)

    def value(self, noisy: Noisy) -> Any:
        found = float(noisy[0][0])
        return round(found) if self.is_whole else found

    def interval(self, noisy: Noisy, level: float) -> Interval | None:
        return None


def quantile(
    values: Any, q: float, *, bounds: Any = None, by: Any = None, keys: Any = None, **options: Unpack[CommonOptions]
) -> Answer:
    """Return the value below which a share `q` of the values lies, by the exponential mechanism."""
    given: object = q
    if isinstance(given, list | tuple | np.ndarray):
        raise WrongType("q is one share; for several use quantiles", name="q", value=given)
    return _answer(values, [q], bounds, by, keys, "auto", options, is_single=True)


def quantiles(
    values: Any,
    qs: Sequence[float],
    *,
    bounds: Any = None,
    by: Any = None,
    keys: Any = None,
    **options: Unpack[CommonOptions],
) -> Answer:
    """Return the quantiles at several shares, not falling with the share."""
    return _answer(values, qs, bounds, by, keys, "auto", options)


def median(
    values: Any,
    *,
    bounds: Any = None,
    method: str = "auto",
    by: Any = None,
    keys: Any = None,
    **options: Unpack[CommonOptions],
) -> Answer:
    """Return the median, by the method "exponential" (the default of "auto"), "tree" or "smooth".

    With "smooth" a missing value counts as one of the two bounds at random, so that half of them lie on either side of
    the median: the number of missing values is not public.
    """
    stated: Any = method
    if not isinstance(stated, str) or method not in ("auto", "exponential", "tree", "smooth"):
        raise InvalidInput('method is "auto", "exponential", "tree" or "smooth"', name="method", value=method)
    if method == "smooth":
        return _smooth(values, bounds, by, options)
    return _answer(values, [0.5], bounds, by, keys, method, options, is_single=True)


def box_plot(
    values: Any, *, bounds: Any = None, by: Any = None, keys: Any = None, **options: Unpack[CommonOptions]
) -> Answer:
    """Return quartiles, median, and as whiskers the 5 % and 95 % quantiles: extremes are those of single units."""
    return _answer(values, WHISKERS, bounds, by, keys, "auto", options, picture="boxes")


def scores(counts: NDArray[np.int64], share: float) -> NDArray[np.int64]:
    """Return the score of each cell: minus the rows by which it misses a share, in units of 1/10,000."""
    wanted = round(share * SHARE_STEPS)
    upto = np.cumsum(counts)
    below, rows = upto - counts, upto[-1]
    missed = np.maximum(wanted * rows - SHARE_STEPS * upto, SHARE_STEPS * below - wanted * rows)
    return np.asarray(-np.maximum(missed, 0))


def sensitivity(share: float, per_unit: int, relation: Relation, *, is_grouped: bool) -> int:
    """Return the sensitivity of a score to one unit, in units of 1/10,000 rows."""
    wanted = round(share * SHARE_STEPS)
    largest = max(wanted, SHARE_STEPS - wanted)
    if relation is Relation.ADD_REMOVE:
        return per_unit * largest
    return per_unit * (2 * largest if is_grouped else SHARE_STEPS)


def _answer(
    values: Any,
    qs: Sequence[float],
    bounds: Any,
    by: Any,
    keys: Any,
    method: str,
    options: CommonOptions,
    *,
    is_single: bool = False,
    picture: str = "points",
) -> Answer:
    inputs = StatisticInputs({"value": values}, options, {"value": kind_of_bounds(bounds)}, by=by, keys=keys)
    shares = _shares(qs)

    def plan(inputs: StatisticInputs) -> StatisticPlan:
        limits = inputs.bounds("value", bounds)
        most = CHOSEN_MAX if inputs.kind("value") in (Kind.REAL, Kind.TIME) else CHOSEN_WHOLE_MAX
        is_tree = method == "tree" or (method == "auto" and len(shares) > most)
        even = is_tree and inputs.learns("value")  # so that the levels of the tree do not depend on what is learnt
        cells = Partition.of(inputs.name("value"), inputs.kind("value"), limits, CELLS, even=even)
        cuts = inputs.groups()
        if cells.count * int(np.prod([cut.cells for cut in cuts], dtype=object)) > COUNTED_MAX:
            raise TooWide(f"there are too many groups: at most {COUNTED_MAX // cells.count:,} fit")
        names = {(0.5,): "median", WHISKERS: "box plot"}
        kind = names.get(shares, "quantiles" if len(shares) > 1 else f"{shares[0]:g} quantile")
        label = f"{kind} of {inputs.name('value')}"
        if is_tree:
            tree = NoisyTree.of(cells, inputs.allocation, cuts)
            return TreeQuantiles(label, cells, shares, cuts, is_single, picture, tree=tree)
        return _choose(label, cells, shares, cuts, inputs.allocation, is_single, picture)

    return inputs.answer(plan)


def _choose(
    label: str,
    cells: Partition,
    shares: tuple[float, ...],
    cuts: tuple[Cut, ...],
    allocation: Allocation,
    is_single: bool,
    picture: str,
) -> StatisticPlan:
    choosing, counting = allocation.divided(CHOOSING, 1 - CHOOSING)
    relation = allocation.relation
    choices = tuple(
        Exponential(
            sensitivity(share, part.rows_per_unit, relation, is_grouped=bool(cuts)),
            part.choice_epsilon,
            relation=relation,
        )
        for share, part in zip(shares, choosing.divided(*[1] * len(shares)), strict=True)
    )
    (noise,) = counting.noises([1])
    return ChosenQuantiles(label, cells, shares, cuts, is_single, picture, choices=choices, noise=noise)


def _smooth(values: Any, bounds: Any, by: Any, options: CommonOptions) -> Answer:
    if by is not None:
        raise NotAllowed("smooth sensitivity has no groups", accepted='leave out by=, or method="smooth"')
    inputs = StatisticInputs({"value": values}, options, {"value": kind_of_bounds(bounds)})
    if not inputs.has_units_of_one_row:
        raise NotAllowed(
            "smooth sensitivity needs arrays in which each row is a unit",
            accepted='an array without unit=, or method="exponential"',
        )
    if inputs.allocation.relation is not Relation.REPLACE_ONE:
        raise NotAllowed(
            "smooth sensitivity needs a public number of rows",
            accepted='a budget under the relation replace-one, or method="exponential"',
        )
    if inputs.is_empty:
        raise EmptyInput("a median needs at least one value", name="values")
    limits, kind = inputs.bounds("value", bounds), inputs.kind("value")
    lower, upper = ends_of(inputs.name("value"), kind, limits)
    if kind not in (Kind.INTEGER, Kind.REAL):
        raise WrongKind(f"{inputs.name('value')} must be numeric, and holds {kind} values")
    mechanism = SmoothMedian(inputs.allocation.pure_epsilon, lower, upper, relation=inputs.allocation.relation)  # type: ignore[arg-type]
    label = f"median of {inputs.name('value')}"
    return inputs.release(SmoothQuantile(label, inputs.name("value"), kind is Kind.INTEGER, mechanism))


def _steps(cells: int) -> list[int]:
    """Return the distances of the edges of bins from a chosen cell."""
    steps, reach = [0], 1
    while reach < cells:
        steps.append(reach)
        reach *= STRIDE
    return steps


def _shares(qs: object) -> tuple[float, ...]:
    """Return shares rounded to multiples of 1/10,000."""
    if isinstance(qs, str) or not isinstance(qs, Sequence | np.ndarray) or getattr(qs, "ndim", 1) != 1:
        raise WrongType("qs must be a list of shares between 0 and 1", name="qs", value=qs)
    found = tuple(float(inside_unit_interval("q", one)) for one in qs)
    if not found:
        raise EmptyInput("qs must have at least one share between 0 and 1", name="qs")
    steps = [round(one * SHARE_STEPS) for one in found]
    if min(steps) < 1 or max(steps) >= SHARE_STEPS:
        raise OutOfRange(
            "shares must lie between 0.0001 and 0.9999: the extremes of the data are single units", name="q", value=qs
        )
    return tuple(step / SHARE_STEPS for step in steps)
