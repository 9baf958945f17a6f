"""The most frequent value, and the k most frequent ones.

Among public values (`keys`):
mode         Permute-and-flip over the counts (McKenna, Sheldon 2020); under rho the exponential mechanism, of which a
             choice costs epsilon^2 / 8. One unit moves each count by its rows R at most. Added or removed, it moves all
             of them in one direction, so that half the noise is enough; replaced, it moves one up and another down.
top_k        Counts of all values with noise, as in a histogram, and the greatest k of them. One release for all counts
             costs what k choices would share, and leaves less noise; the choice itself costs nothing more.

Where the values are not public, both need a delta:
mode         Released exactly if it leads by enough (`mechanisms.StableMode`: Dwork, Lei 2009). Units are counted: one
             more or fewer moves each count by 1 at most, and so the lead; a replaced one moves the lead by 2.
top_k        Values that enough units have (`mechanisms.KeySelection`: Desfontaines et al. 2022), then their counts with
             noise. A unit is counted for R values at most, so R counts of units change, 2 R where a unit is
             replaced, and epsilon and delta are divided over them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from fractions import Fraction
from heapq import nlargest
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from tacit.ledger.answer_storage import INTEGER_BYTES, count_fitting, json_bytes
from tacit.measuring.allocation import Noise
from tacit.mechanisms import Exponential, KeySelection, PermuteAndFlip, StableMode
from tacit.mechanisms.mechanism import Interval
from tacit.mechanisms.randomness import SYSTEM, RandomSource
from tacit.mechanisms.simulation import SeededSource, mark_simulated, remove_mark
from tacit.privacy.errors import OutOfRange
from tacit.privacy.events import Composed, Event, Repeated
from tacit.privacy.numbers import LEVEL_MAX, rounded_down, whole
from tacit.privacy.tables import Kind
from tacit.privacy.units import Relation
from tacit.stats.answer import Answer
from tacit.stats.preparation import CommonOptions, StatisticInputs
from tacit.stats.rows import Cut, Rows, Term
from tacit.stats.stated_kinds import kind_of_keys
from tacit.stats.statistic import Noisy, NoisySums, StatisticPlan, noise_in_words, release_sums


@dataclass(frozen=True)
class ListedMode(StatisticPlan):
    """The most frequent one of public values."""

    cut: Cut
    mechanism: PermuteAndFlip | Exponential
    picture = "word"

    @property
    def event(self) -> Event:
        return self.mechanism.event

    @property
    def lines(self) -> tuple[str, ...]:
        law = "permute-and-flip" if isinstance(self.mechanism, PermuteAndFlip) else "the exponential mechanism"
        return (f"one of {self.cut.cells:,} public values, chosen by {law}",)

    def measure(self, rows: Rows, source: RandomSource = SYSTEM) -> Noisy:
        (counts,) = rows.sums([Term()], (self.cut,), () if None in self.cut.values else (self.cut.column,))
        chosen = np.array([int(self.mechanism.release(counts, source=source))])
        return (mark_simulated(chosen) if source.simulated else chosen,)

    def value(self, noisy: Noisy) -> Any:
        return self.cut.values[int(noisy[0][0])]

    def interval(self, noisy: Noisy, level: float) -> Interval | None:
        return None


@dataclass(frozen=True)
class LeadingMode(StatisticPlan):
    """The most frequent value, if it leads by enough; otherwise None."""

    column: str
    kind: Kind
    mechanism: StableMode
    picture = "word"

    @property
    def event(self) -> Event:
        return self.mechanism.event

    @property
    def lines(self) -> tuple[str, ...]:
        return ("the value that most units have, if it leads by enough; otherwise None",)

    def rehearse(self, per_unit: int) -> Noisy:
        self.mechanism.release(["a"], source=SeededSource(0))
        return ()

    def measure(self, rows: Rows, source: RandomSource = SYSTEM) -> Noisy:
        units = rows.units(self.column)
        # Without values there is no mode; a single value would be shown with probability delta at most.
        found = self.mechanism.release_leader(*_leader(units), source=source) if units else None
        released = np.array([] if found is None else [encode(remove_mark(found))], dtype=object)
        return (mark_simulated(released) if source.simulated else released,)

    def value(self, noisy: Noisy) -> Any:
        return decode(noisy[0].tolist()[0], self.kind) if len(noisy[0]) else None

    def interval(self, noisy: Noisy, level: float) -> Interval | None:
        return None


@dataclass(frozen=True)
class ListedTop(StatisticPlan):
    """The k public values with the greatest noisy counts."""

    k: int
    part: NoisySums
    chosen: tuple[int, ...] = ()
    picture = "bars"

    @property
    def event(self) -> Event:
        return self.part.noise.event

    @property
    def lines(self) -> tuple[str, ...]:
        (cut,) = self.part.by
        return (f"rows with each of {cut.cells:,} public values: {noise_in_words(self.part.noise)}",)

    @property
    def numbers(self) -> int:
        return min(self.k, self.part.by[0].cells)

    @property
    def keys(self) -> list[tuple[Any, ...]] | None:
        return [(self.part.by[0].values[place],) for place in self.chosen]

    @property
    def key_names(self) -> tuple[str, ...]:
        return (self.part.by[0].column,)

    def known(self, noisy: Noisy) -> StatisticPlan:
        return replace(self, chosen=_greatest(noisy[0], self.k))

    def measure(self, rows: Rows, source: RandomSource = SYSTEM) -> Noisy:
        (cut,) = self.part.by
        return release_sums([self.part], rows, () if None in cut.values else (cut.column,), source)

    def value(self, noisy: Noisy) -> Any:
        return np.maximum(np.asarray(noisy[0]), 0)[list(self.chosen)]

    def interval(self, noisy: Noisy, level: float) -> Interval | None:
        return selected_interval(self.part.noise, noisy[0], self.chosen, level)


@dataclass(frozen=True)
class SelectedTop(StatisticPlan):
    """The k values with the greatest noisy counts among those that enough units have."""

    k: int
    column: str
    kind: Kind
    selection: KeySelection
    per_unit: int
    noise: Noise
    chosen: tuple[int, ...] = ()
    values: tuple[Any, ...] = ()
    picture = "bars"

    @property
    def event(self) -> Event:
        event = self.selection.event
        return Composed((event if self.per_unit == 1 else Repeated(event, self.per_unit), self.noise.event))

    @property
    def lines(self) -> tuple[str, ...]:
        return (
            f"values that {self.selection.threshold:,} units or so have, and no others",
            f"rows with each of them: {noise_in_words(self.noise)}",
        )

    @property
    def coverage(self) -> tuple[str, ...]:
        least = f"fewer than about {self.selection.threshold:,} units"
        return (f"values that {least} have are left out, so that fewer than {self.k:,} may be shown",)

    @property
    def numbers(self) -> int:
        return self.k

    @property
    def keys(self) -> list[tuple[Any, ...]] | None:
        return [(self.values[place],) for place in self.chosen]

    @property
    def key_names(self) -> tuple[str, ...]:
        return (self.column,)

    def known(self, noisy: Noisy) -> StatisticPlan:
        values = tuple(decode(one, self.kind) for one in np.asarray(noisy[0]).tolist())
        return replace(self, chosen=_greatest(noisy[1], min(self.k, len(values))), values=values)

    def rehearse(self, per_unit: int) -> Noisy:
        source = SeededSource(0)
        self.selection.release(np.ones(1, dtype=np.int64), source=source)
        self.noise.release(np.zeros(1, dtype=np.int64), source=source)
        return ()

    def measure(self, rows: Rows, source: RandomSource = SYSTEM) -> Noisy:
        units = rows.units(self.column)
        values = sorted(units, key=lambda value: str(encode(value)))  # what is shown does not tell the order of rows
        counted = np.array([units[one] for one in values], dtype=np.int64)
        shown = self.selection.release(counted, source=source)
        kept = [decode(encode(one), self.kind) for one, is_shown in zip(values, shown, strict=True) if is_shown]
        counts = np.zeros((1, 0), dtype=np.int64)
        if kept:
            counts = rows.sums([Term()], (Cut(self.column, tuple(kept)),), (self.column,))
        return self._limit_size(kept, self.noise.release(counts[0], source=source))

    def _limit_size(self, kept: Sequence[Any], noisy: NDArray[Any]) -> Noisy:
        """Return the values with the greatest noisy counts, and all counts, limited to what can be stored."""
        order = list(_greatest(noisy, len(kept)))
        values = [encode(kept[place]) for place in order[: self.k]]
        count = count_fitting(INTEGER_BYTES + json_bytes(values[place : place + 1]) for place in range(len(order)))
        return np.array(values[:count], dtype=object), noisy[order[:count]]

    def value(self, noisy: Noisy) -> Any:
        return np.maximum(np.asarray(noisy[1], dtype=np.int64), 0)[list(self.chosen)]

    def interval(self, noisy: Noisy, level: float) -> Interval | None:
        return selected_interval(self.noise, noisy[1], self.chosen, level)


def mode(values: Any, *, keys: Any = None, **options: Unpack[CommonOptions]) -> Answer:
    """Return the most frequent value: one of `keys`; without keys any value, or None if none leads by enough."""
    inputs = StatisticInputs({"value": values}, options, {"value": kind_of_keys(keys)})
    label, allocation, name = f"mode of {inputs.name('value')}", inputs.allocation, inputs.name("value")
    if _is_public(inputs, keys):
        kind = PermuteAndFlip if allocation.rho is None else Exponential
        is_one_way = allocation.relation is Relation.ADD_REMOVE
        mechanism = kind(inputs.per_unit, allocation.choice_epsilon, is_one_way, relation=allocation.relation)
        return inputs.release(ListedMode(label, inputs.cut("value", keys), mechanism))
    delta = allocation.require_delta("values that are not public need a delta")
    stable = StableMode(allocation.pure_epsilon, delta, relation=allocation.relation)
    return inputs.release(LeadingMode(label, name, inputs.kind("value"), stable))


def top_k(values: Any, k: int, *, keys: Any = None, **options: Unpack[CommonOptions]) -> Answer:
    """Return the `k` most frequent values with their counts, in falling order: of `keys`, or of values of enough units.

    The intervals are valid after the selection: they hold for all counted values at once.
    """
    inputs = StatisticInputs({"value": values}, options, {"value": kind_of_keys(keys)})
    size, per_unit, name = whole("k", k), inputs.per_unit, inputs.name("value")
    label = f"top {size} of {inputs.name('value')}"
    if _is_public(inputs, keys):
        cut = inputs.cut("value", keys)
        if size > cut.cells:
            raise OutOfRange(f"k must not exceed the number of keys, which is {cut.cells}", name="k", value=k)
        (noise,) = inputs.allocation.noises([1])
        return inputs.release(ListedTop(label, size, NoisySums(Term(), noise, (cut,))))
    delta = inputs.allocation.require_delta("values that are not public need a delta")
    choosing, counting = inputs.allocation.divided(1, 1)
    counts = choosing.row_sensitivity
    selection = KeySelection(
        choosing.repeated(counts).pure_epsilon, rounded_down(Fraction(delta) / counts), relation=choosing.relation
    )
    (noise,) = counting.without_delta().noises([1])
    return inputs.release(SelectedTop(label, size, name, inputs.kind("value"), selection, per_unit, noise))


def selected_interval(noise: Noise, counts: NDArray[Any], chosen: tuple[int, ...], level: float) -> Interval:
    """Return the intervals of the selected counts, which hold for all counts at once."""
    every = min(1 - (1 - level) / max(1, len(counts)), LEVEL_MAX)
    low, high = noise.interval(every, np.asarray(counts, dtype=np.int64))
    return Interval(*(np.maximum(np.asarray(end), 0)[list(chosen)] for end in (low, high)))


def encode(value: Any) -> Any:
    """Return a value as a text, number or boolean, to be stored as a released answer."""
    return value.isoformat() if isinstance(value, date) else value


def decode(value: Any, kind: Kind) -> Any:
    """Return an encoded value in the kind of its column."""
    match kind:
        case Kind.DATE:
            return date.fromisoformat(str(value)[:10])
        case Kind.TIME:
            return datetime.fromisoformat(str(value))
        case Kind.BOOLEAN:
            return bool(value)
        case Kind.INTEGER:
            return int(value)
        case Kind.REAL:
            return float(value)
    return str(value)


def _is_public(inputs: StatisticInputs, keys: Any) -> bool:
    return keys is not None or inputs.has_categories("value") or inputs.kind("value") is Kind.BOOLEAN


def _greatest(counts: NDArray[Any], k: int) -> tuple[int, ...]:
    order = np.argsort(-np.asarray(counts, dtype=np.int64), kind="stable")
    return tuple(order[:k].tolist())


def _leader(units: Mapping[Any, int]) -> tuple[Any, int]:
    """Return the value that most units have, and how many more have it than the next one."""
    ranked = nlargest(2, units.items(), key=lambda item: item[1])
    return ranked[0][0], ranked[0][1] - (ranked[1][1] if len(ranked) > 1 else 0)
