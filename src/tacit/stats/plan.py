"""What a statistic will do, before any data are touched: its noise, its event, and how its answer is computed.

Promise: `event` records all that `measure` releases. Values and intervals are computed from what was released and from
public facts alone, so they cost nothing.

Intervals of computed values (a mean is a ratio of two noisy sums) come from taking fresh noise off the released numbers
many times and computing anew: where the released numbers are far from 0 compared with their noise, the share of
intervals that hold the value without noise is the stated one.
"""

from __future__ import annotations

import hashlib
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.ledger.answer_size import INTEGER_BYTES, REAL_BYTES, written_bytes
from tacit.mechanisms.mechanism import Interval
from tacit.mechanisms.randomness import SYSTEM, Source
from tacit.mechanisms.simulation import SeededSource
from tacit.privacy.events import Composed, Event
from tacit.stats.funds import Noise
from tacit.stats.rows import Cut, NoRows, Rows, Term
from tacit.stats.truncation import off_above, uniform

DRAWS: Final = 4000
GROUPS_NAMED: Final = 5
DRAWN_MAX: Final = 4_000_000
"""How many numbers are drawn at most to find the intervals of one answer."""

Noisy: TypeAlias = tuple[NDArray[Any], ...]
"""What was released: arrays of whole or real numbers, or of texts."""


@dataclass(frozen=True)
class Plan(ABC):
    """A statistic with its noise."""

    label: str
    """What is answered, for people: "mean of age"."""

    @property
    @abstractmethod
    def event(self) -> Event:
        """All that is released, for the accountant."""

    @property
    @abstractmethod
    def lines(self) -> tuple[str, ...]:
        """What is released with which noise, a sentence each, for the card."""

    @property
    def keys(self) -> list[tuple[Any, ...]] | None:
        """For what the numbers of the value stand, in order: groups, bins, shares; None for a single number."""
        return None

    @property
    def key_names(self) -> tuple[str, ...]:
        """What the parts of a key are called."""
        return ()

    @property
    def numbers(self) -> int:
        """How many numbers the value has at most."""
        keys = self.keys
        return 1 if keys is None else len(keys)

    @property
    def keys_bytes(self) -> int:
        """How many bytes the keys take at most, in the written form of an answer."""
        return written_bytes([list(map(str, key)) for key in self.keys or ()])

    @property
    def picture(self) -> str:
        """As what the answer is drawn, a name in `plots.PICTURES`."""
        return "points"

    def known(self, noisy: Noisy) -> Plan:
        """Return the plan as it is once something was released, where its keys or its noise depend on that."""
        return self

    @abstractmethod
    def measure(self, rows: Rows, source: Source = SYSTEM) -> Noisy:
        """Return exact sums with noise; to be called when `event` has been charged."""

    def rehearse(self, per_unit: int) -> Noisy:
        """Raise what `measure` would raise whatever the rows are, such as TooLarge for noise that is not sampled.

        Return arrays at least as large as those that `measure` returns. Missing may be single texts, and lists of
        selected values, which `measure` keeps small itself.
        """
        return self.measure(NoRows(per_unit), SeededSource(0))

    @abstractmethod
    def value(self, noisy: Noisy) -> Any:
        """Return the value that was asked for: a number, or an array in the order of `keys`."""

    @abstractmethod
    def interval(self, noisy: Noisy, level: float) -> Interval | None:
        """Return where the value without noise lies with probability `level`, each number by itself."""

    def warnings(self, noisy: Noisy) -> tuple[str, ...]:
        """Return what makes the value unreliable, a sentence each, as far as what was released tells."""
        return ()

    @property
    def canonical(self) -> str:
        """A digest that is equal for plans that release the same."""
        return hashlib.sha256(f"{type(self).__qualname__} {self!r}".encode()).hexdigest()


@dataclass(frozen=True)
class Measured:
    """Sums of one term over the cells of cuts, with their noise."""

    term: Term
    noise: Noise
    by: tuple[Cut, ...] = ()
    label: str = "rows"

    def redrawn(
        self, released: NDArray[Any], draws: int, source: Source, *, at_least: float | None = None
    ) -> NDArray[np.float64]:
        """Return copies of what was released, fresh noise taken off each, given that something is certain of them."""
        if at_least is not None:
            levels = uniform(source, draws, *released.shape)
            return off_above(at_least, np.asarray(released, dtype=np.float64), self.noise, levels)
        noise = self.noise.release(np.zeros((draws, *released.shape), dtype=np.int64), source=source)
        return np.asarray(released, dtype=np.float64)[None] - np.asarray(noise, dtype=np.float64)

    @property
    def line(self) -> str:
        """The noise in words."""
        return f"{self.label}: {noise_line(self.noise, self.worth)}"

    @property
    def worth(self) -> float:
        """What one step of the sum is worth."""
        worth = 1.0
        for factor in self.term.factors:
            worth *= float(factor.step)
        return worth


def noise_line(noise: Noise, worth: float = 1.0) -> str:
    """Return a noise in words; `worth` is what one step of the sum is worth."""
    law = "Gaussian noise of standard deviation" if hasattr(noise, "sigma") else "Laplace noise of scale"
    return f"{law} {float(noise.scale) * worth:.4g}"


def measured(parts: Sequence[Measured], rows: Rows, needs: Sequence[str], source: Source) -> Noisy:
    """Release sums that share their rows and their cells."""
    exact = rows.sums([part.term for part in parts], parts[0].by, needs)
    return tuple(part.noise.release(sums, source=source) for part, sums in zip(parts, exact, strict=True))


def composed(parts: Sequence[Measured]) -> Event:
    """Return the event of several measurements."""
    events = tuple(part.noise.event for part in parts)
    return events[0] if len(events) == 1 else Composed(events)


def simulated_interval(
    parts: Sequence[Measured],
    noisy: Noisy,
    level: float,
    compute: Any,
    *,
    seed: int = 1,
    rows_min: float | None = None,
) -> Interval | None:
    """Return the interval of what `compute` makes of arrays with a first axis of draws.

    With `rows_min` the first part is the number of rows, which is certain to be that at least.

    The noise that is taken off is drawn from a fixed seed: it hides nothing, and the same answer has the same interval.
    """
    size = sum(int(one.size) for one in noisy)
    draws = min(DRAWS, DRAWN_MAX // max(1, size))
    if draws < 200:
        return None
    source = SeededSource(seed)
    again = [
        part.redrawn(np.asarray(one), draws, source, at_least=None if index else rows_min)
        for index, (part, one) in enumerate(zip(parts, noisy, strict=True))
    ]
    found = np.asarray(compute(*again), dtype=np.float64)
    tail = (1 - level) / 2
    # one standard deviation of what the draws leave open: their seed is fixed, so an error would be that of all answers
    tail = max(tail - math.sqrt(tail * (1 - tail) / draws), tail / 2)
    low, high = np.quantile(found, [tail, 1 - tail], axis=0)
    return Interval(_plain(low), _plain(high))


def few_rows(rows: NDArray[Any], width: float, keys: Sequence[Any] | None = None) -> tuple[str, ...]:
    """Return a warning where noisy numbers of rows are within the `width` of their noise of 0."""
    few = np.flatnonzero(np.ravel(rows) <= width)
    if not few.size:
        return ()
    where = ""
    if keys is not None:
        named = [", ".join(map(str, keys[place])) for place in few[:GROUPS_NAMED].tolist()]
        where = f" for {'; '.join(named)}" + (f" and {few.size - GROUPS_NAMED:,} more" * (few.size > GROUPS_NAMED))
    return (
        f"there may be no rows at all{where}: their noisy number is within its noise of 0 (±{width:.4g}), "
        "and the value may be noise alone",
    )


def to_bytes(noisy: Noisy) -> bytes:
    """Return a written form, to be kept as a released answer."""
    return json.dumps([np.asarray(one).tolist() for one in noisy], separators=(",", ":"), ensure_ascii=False).encode()


def bytes_max(noisy: Noisy) -> int:
    """Return how many bytes numbers in arrays like these take at most in their written form."""
    numbers = sum(one.size * (REAL_BYTES if one.dtype.kind == "f" else INTEGER_BYTES) for one in noisy)
    lists = sum(math.prod(one.shape[:axis]) for one in noisy for axis in range(one.ndim))
    return numbers + lists * len("[],")


def from_bytes(written: bytes) -> Noisy:
    """Read the written form back."""
    return tuple(np.array(one) for one in json.loads(written))


def _plain(value: NDArray[Any]) -> Any:
    return value.item() if value.ndim == 0 else value
