"""What a statistic will do, before any data are touched: its noise, its event, and how its answer is computed.

Promise: `event` records all that `measure` releases. Values and intervals are computed from what was released and from
public facts alone, so they cost nothing.
"""

from __future__ import annotations

import hashlib
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.ledger.permits import INTEGER_BYTES, REAL_BYTES, written_bytes
from tacit.measuring.allocation import Noise
from tacit.mechanisms.mechanism import Interval
from tacit.mechanisms.randomness import SYSTEM, Source
from tacit.mechanisms.simulation import SeededSource
from tacit.privacy.events import Composed, Event
from tacit.stats.rows import Cut, NoRows, Rows, Term

GROUPS_NAMED: Final = 5

Noisy: TypeAlias = tuple[NDArray[Any], ...]
"""What was released: arrays of whole or real numbers, or of texts."""


@dataclass(frozen=True)
class StatisticPlan(ABC):
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

    def known(self, noisy: Noisy) -> StatisticPlan:
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

    def answer_bytes(self, per_unit: int) -> int | None:
        """Return how many bytes the answer takes at most, from a rehearsal; None where its values are selected."""
        rehearsed = self.rehearse(per_unit)
        return bytes_max(rehearsed) if rehearsed else None

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
    def coverage(self) -> tuple[str, ...]:
        """Which rows are in no cell of the plan's public partitions, a sentence a column; no row is looked at."""
        return tuple(dict.fromkeys(cut.coverage for cut in _cuts_in(self) if cut.coverage))

    @property
    def hypothesis(self) -> str | None:
        """The null hypothesis of a test, in words; None for other statistics."""
        return None

    @property
    def learnt_bounds(self) -> dict[str, list[float]]:
        """The bounds that were learnt along with the answer, by column."""
        return {}

    @property
    def canonical(self) -> str:
        """A digest that is equal for plans that release the same."""
        return hashlib.sha256(f"{type(self).__qualname__} {self!r}".encode()).hexdigest()


def _cuts_in(part: object) -> Iterator[Cut]:
    """Yield the partitions that a plan counts by, wherever it holds them."""
    if isinstance(part, Cut):
        yield part
    elif isinstance(part, tuple | list):
        for one in part:
            yield from _cuts_in(one)
    elif is_dataclass(part) and not isinstance(part, type):
        for field in fields(part):
            yield from _cuts_in(getattr(part, field.name))


@dataclass(frozen=True)
class NoisySums:
    """Sums of one term over the cells of cuts, with their noise."""

    term: Term
    noise: Noise
    by: tuple[Cut, ...] = ()
    label: str = "rows"

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


def measured(parts: Sequence[NoisySums], rows: Rows, needs: Sequence[str], source: Source) -> Noisy:
    """Release sums that share their rows and their cells."""
    exact = rows.sums([part.term for part in parts], parts[0].by, needs)
    return tuple(part.noise.release(sums, source=source) for part, sums in zip(parts, exact, strict=True))


def composed(parts: Sequence[NoisySums]) -> Event:
    """Return the event of several measurements."""
    events = tuple(part.noise.event for part in parts)
    return events[0] if len(events) == 1 else Composed(events)


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
    arrays = [np.asarray(one) for one in noisy]
    numbers = sum(one.size * (REAL_BYTES if one.dtype.kind == "f" else INTEGER_BYTES) for one in arrays)
    lists = sum(math.prod(one.shape[:axis]) for one in arrays for axis in range(one.ndim))
    return numbers + lists * len("[],")


def from_bytes(written: bytes) -> Noisy:
    """Read the written form back."""
    return tuple(np.array(one) for one in json.loads(written))
