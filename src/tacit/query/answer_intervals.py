"""How far the numbers of an answer may lie from those without noise; post-processing of what was released.

A number of an answer is a function of noisy measures. Its interval holds its value without noise with the stated
probability, and is found in one of these ways:

noise        A count or a sum as it is: the interval of its noise, exactly.
range        A function of one measure: the least and the greatest value over the measure's interval. Whatever the
             function, it holds the truth whenever the measure's interval does.
draws        A function of several measures without folds (sums, ratios, roundings, running sums, means, variances):
             the middle part of what it gives when the noise is drawn again and taken off. Of n draws the ends are order
             statistics, one standard error further out than the wanted share. Draws of a mean, variance or
             correlation over fewer rows than one are counted at both of its limits, and those of variances are made
             around fixed places (`measuring.moments` says why): for each combination of these, the least and the
             greatest.
joint range  Any other function of several measures (ABS, CASE, products), and levels too high for draws: the least and
             the greatest value over the intervals of all m measures, each of probability 1 - (1 - level) / m
             (Bonferroni), computed at their corners and at draws between them.

Private choices (MIN, MAX, quantiles, modes) have no interval, as nothing of their spread is released; so has nothing
that is computed from them, nor ranks and other windows that depend on the order of noisy numbers (`without_interval`).
Neither has what is computed from values whose learnt bounds are a guess: most of them may have been clamped.

Selection: where noisy numbers decide which groups are shown, those shown are more often extreme ones. Of G groups R are
shown, and each interval is then made for probability 1 - (1 - level) R / G, so that the expected share of shown
intervals that miss is at most 1 - level, an answer without rows counting as 0 (Benjamini, Yekutieli 2005, theorem 1).
That is no promise about the few answers in which a HAVING that no group meets lets one pass: there the noise was large.
The proof needs that the noise of groups is independent, and that R does not depend on the noise of a group as long as
that group is shown; LIMIT and a HAVING about the numbers of one group are such. Where the noise is shared (running
sums, totals of grouping sets) it is 1 - (1 - level) / G, which holds for all groups at once (Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from tacit.measuring.moments import PLACES, SATURATION, SPREADS
from tacit.measuring.moments import draws as draws_of
from tacit.mechanisms.mechanism import Interval
from tacit.mechanisms.simulation import SeededSource
from tacit.privacy.numbers import LEVEL_MAX
from tacit.query.estimates import AnswerGroups, answer_groups, estimate_values, is_ratio, ratio_sums
from tacit.query.measures import Estimate
from tacit.query.plan import Plan
from tacit.query.postprocess import ROW, noisy_columns
from tacit.query.question import Output, reads_noise
from tacit.query.run import Noisy
from tacit.query.scratch_database import array_of, evaluate
from tacit.query.whole_numbers import axis_sums, scale_exact

DRAWS: Final = 4_000
TAIL_DRAWS: Final = 50
"""How many draws lie beyond each end of an interval, if there is room for as many."""

POINTS: Final = 1_001
"""At how many values of a measure a function of it is computed."""

SIMULATED_MAX: Final = 2_000_000
"""How many rows are computed at most to find the intervals of one column."""

CORNERS_MAX: Final = 2**10
NOISE_MAX: Final = 2**24
"""How many numbers of noise are drawn at most for one measure of one column."""

OPEN_MAX: Final = 4
"""Of how many columns both limits are combined, where draws have no rows."""

DRAW: Final = "draw_"
OPEN: Final = "open_"

_SMOOTH: Final = (
    exp.Column, exp.Literal, exp.Null, exp.DataType, exp.Identifier, exp.Paren, exp.Neg, exp.Add, exp.Sub, exp.Div,
    exp.Cast, exp.Round, exp.Floor, exp.Ceil, exp.Sqrt, exp.Exp, exp.Ln,
)  # fmt: skip
_SMOOTH_IN_ONE: Final = (exp.Mul, exp.Greatest, exp.Least, exp.Coalesce)
"""What has no fold as long as one of its arguments alone is noisy."""

_LINEAR: Final = (exp.Sum, exp.Avg, exp.Count, exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue)


def intervals(plan: Plan, noisy: Noisy, places: Sequence[int], level: float) -> list[dict[str, Interval | None]]:
    """Return, for each row that is shown and each noisy number in it, the interval of the number without noise."""
    groups, at = answer_groups(plan, noisy), np.array(places, dtype=np.int64)
    unknown, guessed = without_interval(plan), _of_guessed_bounds(plan, noisy)
    found: dict[str, list[Interval | None]] = {}
    for output in plan.question.outputs:
        if output.name in unknown or guessed.intersection(_aggregates(output.value.tree)):
            found[output.name] = [None] * len(places)
        elif reads_noise(output.value.tree):
            found[output.name] = _Column(plan, groups, at, output, level).intervals()
    return [{name: column[row] for name, column in found.items()} for row in range(len(places))]


def without_interval(plan: Plan) -> dict[str, str]:
    """Return the noisy columns of which no interval is known, and why."""
    found = {}
    for output in plan.question.outputs:
        reason = _unknown(plan, output)
        if reason is not None:
            found[output.name] = reason
    return found


def _unknown(plan: Plan, output: Output) -> str | None:
    tree = output.value.tree
    if not reads_noise(tree):
        return None
    choices = [one for index in _aggregates(tree) if (one := plan.answers[index].choice) is not None]
    if choices:
        near = (
            "among the most frequent values" if plan.choices[choices[0]].function == "mode" else "near the right rank"
        )
        return f"{'' if output.column else 'computed from a value '}chosen at random {near}"
    if not output.value.kind.is_number:
        return "it is not a number"
    windows = list(tree.find_all(exp.Window))
    if windows and (plan.question.having is not None or not all(map(_is_linear, windows))):
        return "it depends on the order of noisy numbers"
    if (windows or (plan.question.sets and not plan.sets_apart)) and not _is_smooth(tree):
        return "it compares sums over several groups"
    return None


def _of_guessed_bounds(plan: Plan, noisy: Noisy) -> set[int]:
    """Return the places of the aggregates over values whose learnt bounds are a guess."""
    values = {one.key for one, is_guess in zip(plan.missing, noisy.guessed, strict=False) if is_guess}
    return {
        place
        for place, aggregate in enumerate(plan.asked.aggregates)
        if any(argument.text in values for argument in aggregate.arguments)
    }


def _aggregates(tree: exp.Expr) -> list[int]:
    """Return the places of the aggregates that a value is computed from."""
    return sorted({int(one.name[1:]) for one in tree.find_all(exp.Column) if one.name.startswith("a")})


def _is_linear(window: exp.Window) -> bool:
    """Whether a window adds up, averages or shifts noisy numbers in an order that has no noise."""
    order = [*(window.args.get("partition_by") or ()), *([one] if (one := window.args.get("order")) else [])]
    return isinstance(window.this, _LINEAR) and not any(map(reads_noise, order))


def _is_smooth(tree: exp.Expr) -> bool:
    """Whether a value has no fold, such as |x| has at 0, so that draws around a number tell how far it may be off."""
    if isinstance(tree, exp.Case):  # a guard: one value, or NULL
        values = [one.args["true"] for one in tree.args["ifs"]]
        values += [default] if (default := tree.args.get("default")) is not None else []
        different = {value for value in values if not isinstance(value, exp.Null)}
        return len(different) == 1 and all(map(_is_smooth, different))
    if isinstance(tree, exp.Window):
        return all(map(_is_smooth, tree.this.iter_expressions()))
    if isinstance(tree, _SMOOTH_IN_ONE) and sum(map(reads_noise, tree.iter_expressions())) > 1:
        return False
    return isinstance(tree, (*_SMOOTH, *_SMOOTH_IN_ONE)) and all(map(_is_smooth, tree.iter_expressions()))


def without_noise(values: NDArray[np.int64], noise: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return measures less noise, which saturates as they do, so that the difference has 64 bits."""
    return np.clip(values, 1 - SATURATION, SATURATION - 1) - noise


@dataclass(frozen=True, slots=True)
class _Column:
    """One noisy column of an answer, and the groups of the rows that are shown."""

    plan: Plan
    groups: AnswerGroups
    at: NDArray[np.int64]
    output: Output
    level: float

    def intervals(self) -> list[Interval | None]:
        """Return the interval of each row, None where it cannot be found."""
        if not len(self.at):
            return []
        if self.is_single and self.output.column is not None:
            return self._of_noise()
        if self.is_single:
            offsets = self._points()
            return self._computed({self.measures[0]: offsets[:, None]}, 0)
        count, is_apart = self._draws(), not self._is_window and int(self.groups.added.max(initial=1)) == 1
        if _is_smooth(self.output.value.tree) and self.tail * (count + 1) >= 1:
            outside = math.floor(self.tail * count - math.sqrt(self.tail * count))
            return self._computed(self._drawn(count), max(0, outside))
        return self._computed(self._box(), 0) if is_apart else [None] * len(self.at)

    @property
    def measures(self) -> list[int]:
        """The measures that the column is computed from."""
        estimates = [self.plan.answers[index].estimate for index in _aggregates(self.output.value.tree)]
        return sorted({place for one in estimates if one is not None for place in one.measures})

    @property
    def is_single(self) -> bool:
        """Whether each number is a function of one measure of its group alone."""
        return len(self.measures) == 1 and not self._is_window and int(self.groups.added.max(initial=1)) == 1

    @property
    def _is_window(self) -> bool:
        return self.output.value.tree.find(exp.Window) is not None

    @property
    def row_level(self) -> float:
        """The probability for which the interval of a row is made."""
        if not self.plan.question.selects_by_noise:
            return self.level
        is_shared = self._is_window or int(self.groups.added.max(initial=1)) > 1
        shown = 1 if is_shared else len(self.at)
        return min(1 - (1 - self.level) * shown / len(self.groups.added), LEVEL_MAX)

    @property
    def tail(self) -> float:
        """The probability beyond each end."""
        return (1 - self.row_level) / 2

    def _of_noise(self) -> list[Interval | None]:
        """Return the intervals of a measure that is shown as it is."""
        (index,) = self.measures
        estimate = self.plan.answers[_aggregates(self.output.value.tree)[0]].estimate
        values = np.clip(self.groups.measures[index][self.at], -SATURATION, SATURATION)
        found = self.plan.price.noises[index].interval(self.row_level, values)
        step = estimate.grids[0].step if estimate is not None and estimate.grids else 1
        is_whole = step == int(step)
        low, high = (scale_exact(end, int(step)) if is_whole else end * float(step) for end in (found.low, found.high))
        return [Interval(*pair) for pair in zip(low.tolist(), high.tolist(), strict=True)]

    def _half_width(self, index: int, together: int = 1) -> int:
        """Return how far the noise of a measure reaches, with so many measures at once."""
        level = min(1 - (1 - self.row_level) / together, LEVEL_MAX)
        return int(self.plan.price.noises[index].interval(level, np.zeros(1, dtype=np.int64)).high[0])

    def _points(self) -> NDArray[np.int64]:
        """Return values of the noise of the one measure, from end to end of its interval."""
        reach, room = self._half_width(self.measures[0]), self._room // len(self.at)
        count = max(3, min(POINTS, room, 2 * reach + 1))
        return np.unique(np.rint(np.linspace(-reach, reach, count)).astype(np.int64))

    def _box(self) -> dict[int, NDArray[np.int64]]:
        """Return noise within the intervals of all measures at once: draws, and the corners."""
        room = self._room // len(self.at)
        reaches = {index: self._half_width(index, len(self.measures)) for index in self.measures}
        drawn = self._drawn(min(DRAWS, room))
        inside = np.all([np.abs(drawn[index][:, 0]) <= reach for index, reach in reaches.items()], axis=0)
        corners = np.array(list(islice(product((-1, 1), repeat=len(reaches)), min(room, CORNERS_MAX))), dtype=np.int64)
        return {
            index: np.concatenate([drawn[index][inside], corners[:, place, None] * reach])
            for place, (index, reach) in enumerate(reaches.items())
        }

    def _draws(self) -> int:
        """Return how many draws there is room for; a window is computed over all groups, also those not shown."""
        rows = len(self.groups.added) if self._is_window else len(self.at)
        room = min(self._room // rows, NOISE_MAX // int(self.groups.added[self.at].sum()))
        return min(max(DRAWS, math.ceil(TAIL_DRAWS / self.tail)), room)

    @property
    def _room(self) -> int:
        """How many rows are computed under each of the assumptions, of which there are so many at most."""
        estimates = [self.plan.answers[index].estimate for index in _aggregates(self.output.value.tree)]
        ratios = [one for one in estimates if one is not None and is_ratio(one)]
        places = len(PLACES) if any(one.function in SPREADS for one in ratios) else 1
        return SIMULATED_MAX // (places << min(len(ratios), OPEN_MAX))

    def _drawn(self, count: int) -> dict[int, NDArray[np.int64]]:
        """Return draws of the noise of each measure: (draws, rows); (draws, 1) where all rows can have the same."""
        found = {}
        for index in self.measures:
            noise, seed = self.plan.price.noises[index], SeededSource(index)  # the same answer, the same interval
            if self._is_window:
                parts = [(1, len(self.groups.added))]
            else:
                parts = [(int(times), 1) for times in np.unique(self.groups.added[self.at])]
            drawn = {
                times: axis_sums(
                    np.asarray(noise.release(np.zeros((count, width, times), np.int64), source=seed)), (2,)
                )
                for times, width in parts
            }
            if len(drawn) == 1:
                (found[index],) = drawn.values()
            else:
                found[index] = np.concatenate([drawn[int(times)] for times in self.groups.added[self.at]], axis=1)
        return found

    def _computed(self, offsets: dict[int, NDArray[np.int64]], outside: int) -> list[Interval | None]:
        """Return, over the draws, the least and the greatest value of each row but for `outside` on either side."""
        at = np.arange(len(self.groups.added)) if self._is_window else self.at
        draws = len(next(iter(offsets.values())))
        measures: list[Any] = [None] * len(self.groups.measures)
        for index, noise in offsets.items():
            measures[index] = np.broadcast_to(without_noise(self.groups.measures[index][at], noise), (draws, len(at)))
        tree = self._tree
        found = [self._under(one, tree, at, measures, outside) for one in self._assumptions(tree, measures)]
        return [_hull(spans) for spans in zip(*found, strict=True)]

    @property
    def _tree(self) -> exp.Expr:
        """The value over draws: windows stay within a draw, and their ratios are columns of their own, named w0, w1."""
        tree = self.output.value.tree.copy()
        for window in tree.find_all(exp.Window):
            for column in window.this.find_all(exp.Column):
                if (one := self._estimate(column.name)) is not None and is_ratio(one):
                    column.set("this", exp.to_identifier(f"w{column.name[1:]}"))
            window.set("partition_by", [*(window.args.get("partition_by") or ()), exp.column(DRAW)])
        return tree

    def _estimate(self, name: str) -> Estimate | None:
        """Return how the aggregate of a column is computed from measures, None if the column is none."""
        return self.plan.answers[int(name[1:])].estimate if name.startswith(("a", "w")) else None

    def _assumptions(self, tree: exp.Expr, measures: Sequence[Any]) -> Iterator[dict[str, NDArray[Any]]]:
        """Yield draws of ratios, by column: for each place of means, all combinations of limits of draws without rows.

        Columns of which all draws have rows, and those beyond `OPEN_MAX`, stand at their greatest value.
        """
        names = sorted({column.name for column in tree.find_all(exp.Column)})
        columns = {name: one for name in names if (one := self._estimate(name)) is not None and is_ratio(one)}
        is_open = [name for name, one in columns.items() if (measures[one.measures[0]] < 1).any()][:OPEN_MAX]
        drawn = {
            name: draws_of(one.function, one.grids, ratio_sums(one, measures), self.tail)
            for name, one in columns.items()
        }
        found: dict[str, tuple[NDArray[Any], NDArray[Any]]] = {}
        for _ in PLACES if any(one.function in SPREADS for one in columns.values()) else PLACES[:1]:
            found |= {name: ends for name, one in drawn.items() if (ends := next(one, None)) is not None}
            for corner in product((0, 1), repeat=len(is_open)):
                end = dict(zip(is_open, corner, strict=True))
                yield {name: ends[end.get(name, 1)] for name, ends in found.items()}

    def _under(
        self,
        assumed: dict[str, NDArray[Any]],
        tree: exp.Expr,
        at: NDArray[np.int64],
        measures: Sequence[Any],
        outside: int,
    ) -> list[tuple[float, float] | None]:
        """Return the ends of each row over the draws, under what is assumed of them."""
        draws = len(next(one for one in measures if one is not None))
        table = self._table(tree, at, draws, measures, assumed)
        if self.output.column is not None:  # no expression that a database would have to compute
            values = table[self.output.column].astype(np.float64).reshape(draws, -1)
            ends = np.partition(values, [outside, draws - 1 - outside], axis=0)[[outside, draws - 1 - outside]]
            return [(low, high) for low, high in ends.T.tolist()]
        inner = noisy_columns(self.plan.question, list(table)).select(
            ROW, OPEN, exp.alias_(exp.cast(tree, "DOUBLE"), "o")
        )
        share = (outside + 0.5) / draws
        shown = ", ".join(
            f"quantile_disc(CASE WHEN o IS NULL AND {OPEN} THEN DOUBLE '{sign}inf' ELSE o END, {at_share!r})"
            for sign, at_share in (("-", share), ("", 1 - share))
        )
        sql = f"SELECT {ROW}, {shown} FROM ({inner.sql(dialect='duckdb')}) AS s GROUP BY {ROW}"
        found = {row: (low, high) for row, low, high in evaluate(sql, table)}
        rows = self.at.tolist() if self._is_window else range(len(self.at))
        return [pair if (pair := found[row])[0] is not None else None for row in rows]

    def _table(
        self,
        tree: exp.Expr,
        at: NDArray[np.int64],
        draws: int,
        measures: Sequence[Any],
        assumed: dict[str, NDArray[Any]],
    ) -> dict[str, NDArray[Any]]:
        """Return the columns that a value is computed from, for each draw and each of some groups."""
        table: dict[str, NDArray[Any]] = {}
        is_open = np.zeros((draws, len(at)), dtype=bool)
        for name in sorted({column.name for column in tree.find_all(exp.Column)} - {DRAW}):
            place, estimate = int(name[1:]), self._estimate(name)
            if name in assumed:
                assert estimate is not None
                table[name] = assumed[name].ravel()
                is_open |= measures[estimate.measures[0]] < 1
            elif name.startswith("a"):
                assert estimate is not None  # private choices have no interval
                kind = self.plan.question.aggregates[place].kind
                flat: list[Any] = [one.ravel() if one is not None else None for one in measures]
                table[name] = array_of(estimate_values(estimate, flat, kind))
            else:
                column = self.groups.keys[place] if name.startswith("k") else self.groups.totals[place]
                table[name] = np.tile(array_of(column)[at], draws)
        table[ROW] = np.tile(np.arange(len(at)), draws)
        table[DRAW] = np.repeat(np.arange(draws), len(at))
        if self._is_window:  # a window reads other groups of its draw
            is_open[:] = is_open.any(axis=1, keepdims=True)
        # NULL is then what was divided by 0, otherwise what a guard leaves out
        table[OPEN] = is_open.ravel() & (tree.find(exp.Div) is not None)
        return table


def _hull(spans: Sequence[tuple[float, float] | None]) -> Interval | None:
    """Return the interval of all spans, None where there is none or it has no end."""
    known = [span for span in spans if span is not None]
    if not known:
        return None
    low, high = min(low for low, _ in known), max(high for _, high in known)
    return Interval(low, high) if math.isfinite(low) and math.isfinite(high) else None
