"""The plan of a statistic: its noise, its event, and how its answer is computed; made before any data are read.

Promise: `event` records all that `measure` releases. Values and intervals are computed from what was released and from
public facts alone, so they cost nothing.
"""

from __future__ import annotations

import hashlib
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import date
from typing import Any, Final, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.ledger.answer_storage import INTEGER_BYTES, REAL_BYTES, json_bytes
from tacit.measuring.allocation import Noise
from tacit.mechanisms.mechanism import Interval
from tacit.mechanisms.randomness import SYSTEM, RandomSource
from tacit.mechanisms.simulation import SeededSource
from tacit.privacy.bounds import Bounds, clamping_in_words
from tacit.privacy.events import Event
from tacit.privacy.figures import grouped
from tacit.stats.cells import Partition
from tacit.stats.rows import ColumnSteps, Cut, NoRows, Rows, Term

GROUPS_NAMED: Final = 5

Part = TypeVar("Part", Cut, ColumnSteps, Partition)
Noisy: TypeAlias = tuple[NDArray[Any], ...]
"""The released arrays: of integers, real numbers or texts."""


@dataclass(frozen=True)
class StatisticPlan(ABC):
    """A statistic with its noise."""

    label: str
    """The statistic in words: "mean of age"."""

    @property
    @abstractmethod
    def event(self) -> Event:
        """The event of all that is released."""

    @property
    @abstractmethod
    def lines(self) -> tuple[str, ...]:
        """The released numbers and their noise in words, for the card."""

    @property
    def keys(self) -> list[tuple[Any, ...]] | None:
        """The key of each number of the value: group, bin, share; None for a single number."""
        return None

    @property
    def key_names(self) -> tuple[str, ...]:
        """The names of the parts of a key."""
        return ()

    @property
    def numbers(self) -> int:
        """The greatest number of numbers in the value."""
        keys = self.keys
        return 1 if keys is None else len(keys)

    @property
    def keys_bytes(self) -> int:
        """The greatest number of bytes of the keys as JSON."""
        return json_bytes([list(map(str, key)) for key in self.keys or ()])

    @property
    def picture(self) -> str:
        """The form of the plot, a name in `plots.PICTURES`."""
        return "points"

    def known(self, noisy: Noisy) -> StatisticPlan:
        """Return the plan with what the released arrays determine, where keys or noise depend on them."""
        return self

    def released(self) -> Self:
        """Return the plan without the inputs that it was made from, which hold private rows: that of an answer."""
        changed: dict[str, Any] = {}
        for field in fields(self):
            match getattr(self, field.name):
                case StatisticPlan() as plan:
                    changed[field.name] = plan.released()
                case (StatisticPlan(), *_) as plans:
                    changed[field.name] = tuple(plan.released() for plan in plans)
        return replace(self, **changed) if changed else self

    @abstractmethod
    def measure(self, rows: Rows, source: RandomSource = SYSTEM) -> Noisy:
        """Return noisy sums of the rows; `event` must have been charged."""

    @property
    def row_steps(self) -> int:
        """The steps that this process takes for each row that it reads itself (`Rows.matrix`), as in `Work`."""
        return 0

    def rehearse(self, per_unit: int) -> Noisy:
        """Raise what `measure` would raise for any rows, such as TooLarge for noise that cannot be sampled.

        Return arrays at least as large as those that `measure` returns; none for a plan whose values are selected,
        which `measure` keeps small itself.
        """
        return self.measure(NoRows(per_unit), SeededSource(0))

    def answer_bytes(self, per_unit: int) -> int | None:
        """Return the greatest size of the stored answer, from a rehearsal; None if its values are selected."""
        rehearsed = self.rehearse(per_unit)
        return bytes_max(rehearsed) if rehearsed else None

    @abstractmethod
    def value(self, noisy: Noisy) -> Any:
        """Return the value of the statistic: a number, or an array in the order of `keys`."""

    @abstractmethod
    def interval(self, noisy: Noisy, level: float) -> Interval | None:
        """Return the interval that holds the value without noise with probability `level`, number by number."""

    def warnings(self, noisy: Noisy) -> tuple[str, ...]:
        """Return sentences about what makes the value unreliable, from released numbers alone."""
        return ()

    @property
    def coverage(self) -> tuple[str, ...]:
        """Which rows are in no cell of the plan's public partitions, and which columns are clamped to their bounds."""
        cells = dict.fromkeys(cut.coverage for cut in _parts_in(self, Cut) if cut.coverage)
        return (*cells, *filter(None, [clamping_in_words(self.clamped.items())]))

    @property
    def clamped(self) -> dict[str, Bounds]:
        """The declared bounds to which values are clamped, by column."""
        parts: list[ColumnSteps | Partition] = [*_parts_in(self, ColumnSteps), *_parts_in(self, Partition)]
        return {one.column: one.bounds for one in parts if one.bounds is not None}

    @property
    def hypothesis(self) -> str | None:
        """The null hypothesis of a test, in words; None for other statistics."""
        return None

    @property
    def learned_bounds(self) -> dict[str, list[float]]:
        """The bounds that were learnt along with the answer, by column."""
        return {}

    @property
    def canonical(self) -> str:
        """A digest, equal for plans that release the same. It is stored: renaming a plan or a field changes it."""
        return hashlib.sha256(f"{type(self).__qualname__} {self!r}".encode()).hexdigest()


def clamped_before(plan: StatisticPlan, registered: Mapping[str, Bounds]) -> str:
    """Return which columns an engine shows clamped to registered bounds that lie within those of a plan, in words."""
    cells = {cut.column: Bounds(cut.edges[0], cut.edges[-1]) for cut in _parts_in(plan, Cut) if cut.edges}
    reach = {**cells, **plan.clamped}
    found = [(name, one) for name, one in registered.items() if name in reach and _reaches_beyond(reach[name], one)]
    words = clamping_in_words(found).partition(";")[0]
    return f"as registered, {words} before anything else" if words else ""


def _reaches_beyond(bounds: Bounds, other: Bounds) -> bool:
    ends = (bounds.lower, bounds.upper, other.lower, other.upper)
    if any(isinstance(end, date) for end in ends):
        return False  # dates and times are not compared: their zones may differ
    return bounds.lower < other.lower or bounds.upper > other.upper  # type: ignore[operator]


def _parts_in(part: object, wanted: type[Part]) -> Iterator[Part]:
    """Yield the partitions or scales of a plan, wherever it holds them."""
    if isinstance(part, wanted):
        yield part
    elif isinstance(part, tuple | list):
        for one in part:
            yield from _parts_in(one, wanted)
    elif is_dataclass(part) and not isinstance(part, type):
        for field in fields(part):
            yield from _parts_in(getattr(part, field.name), wanted)


@dataclass(frozen=True)
class NoisySums:
    """Sums of one term over the cells of cuts, with their noise."""

    term: Term
    noise: Noise
    by: tuple[Cut, ...] = ()
    label: str = "rows"

    @property
    def line(self) -> str:
        """The sum and its noise in words."""
        return f"{self.label}: {noise_in_words(self.noise, self.worth)}"

    @property
    def worth(self) -> float:
        """The value of one step of the sum."""
        worth = 1.0
        for factor in self.term.factors:
            worth *= float(factor.step)
        return worth


def noise_in_words(noise: Noise, worth: float = 1.0) -> str:
    """Return a noise in words; `worth` is the value of one step of the sum."""
    law = "Gaussian noise of standard deviation" if hasattr(noise, "sigma") else "Laplace noise of scale"
    return f"{law} {grouped(float(noise.scale) * worth, 4)}"


def release_sums(parts: Sequence[NoisySums], rows: Rows, needs: Sequence[str], source: RandomSource) -> Noisy:
    """Return noisy sums over the same rows and cells, of rows with a value in the columns `needs`."""
    exact = rows.sums([part.term for part in parts], parts[0].by, needs)
    return tuple(part.noise.release(sums, source=source) for part, sums in zip(parts, exact, strict=True))


def few_rows_warning(rows: NDArray[Any], width: float, keys: Sequence[Any] | None = None) -> tuple[str, ...]:
    """Return a warning if noisy numbers of rows are at most `width`, the half-width of their noise."""
    few = np.ravel(rows) <= width
    if not few.any():
        return ()
    return (
        f"there may be no rows at all{groups_in_words(few, keys)}: their noisy number is within its noise of 0 "
        f"(±{grouped(width, 4)}), and the value may be noise alone",
    )


def groups_in_words(chosen: NDArray[np.bool_], keys: Sequence[Any] | None) -> str:
    """Return " for " and the keys of chosen groups, the first few of them; nothing where there are no keys."""
    if keys is None:
        return ""
    places = np.flatnonzero(chosen).tolist()
    named = "; ".join(", ".join(map(str, keys[place])) for place in places[:GROUPS_NAMED])
    return f" for {named}" + f" and {len(places) - GROUPS_NAMED:,} more" * (len(places) > GROUPS_NAMED)


def to_bytes(noisy: Noisy) -> bytes:
    """Return released arrays as JSON, to be stored as a released answer."""
    return json.dumps([np.asarray(one).tolist() for one in noisy], separators=(",", ":"), ensure_ascii=False).encode()


def bytes_max(noisy: Noisy) -> int:
    """Return the greatest number of bytes of arrays of these shapes and types as JSON."""
    arrays = [np.asarray(one) for one in noisy]
    numbers = sum(one.size * (REAL_BYTES if one.dtype.kind == "f" else INTEGER_BYTES) for one in arrays)
    lists = sum(math.prod(one.shape[:axis]) for one in arrays for axis in range(one.ndim))
    return numbers + lists * len("[],")


def from_bytes(written: bytes) -> Noisy:
    """Return the arrays that `to_bytes` wrote."""
    return tuple(np.array(one) for one in json.loads(written))
