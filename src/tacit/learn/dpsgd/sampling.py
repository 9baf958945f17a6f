"""Poisson samples of units, and the rows of a training's data.

Promise: in every step each unit is in the batch independently with probability exactly `rate`, a rational number, and
with all of its rows. Coins are exact (`exact_sampling`), with bits of the RandomSource alone. A sample is a function of
fresh bits and of nothing else, so that a resumed training draws new samples.

What is public. The rate is batch size / number of units, and the number of units is taken as public: it is read once,
when the training is planned. The guarantee is for two data sets of which one has one unit more, both trained with that
same rate, number of steps and expected batch size (add/remove, as `Sampled` states it). Were the rate computed from
each of the two data sets, it would differ between them, and amplification by sampling would not cover that.

With several bands (`matrix_noise`) each unit is in one of as many groups, drawn once, uniformly and independently, and
a sample is of the units of one group. Groups are a function of the training's secret (SHAKE-256, whose output is taken
as random), so that a resumed training has the same.

A batch is handed out in chunks of at most `physical_batch_size` rows; the rows of one unit, and the views of one row,
are never divided, so that a chunk is larger where a single unit is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import Dataset, TensorDataset, default_collate

from tacit.mechanisms.exact_sampling import biased_coins, integers_below
from tacit.mechanisms.randomness import RandomSource, words
from tacit.privacy.errors import EmptyInput, InvalidInput, WrongType

Indices: TypeAlias = NDArray[np.int64]
_PREFIX_BITS: Final = 16


def poisson_sample(units: int, rate: Fraction, source: RandomSource) -> Indices:
    """Return the numbers of the units in a sample, ascending: each is in it independently with probability `rate`.

    Two bytes decide all but one unit in 65,536. Where they equal the first bits of the rate, the unit is in with the
    probability that the other bits leave, so that the rate is exact.
    """
    if rate >= 1:
        return np.arange(units)
    scaled = rate * 2**_PREFIX_BITS
    threshold = scaled.numerator // scaled.denominator
    prefixes = words(source, units, _PREFIX_BITS // 8)
    chosen = prefixes < threshold
    undecided = np.flatnonzero(prefixes == threshold)
    chosen[undecided] = biased_coins(scaled - threshold, undecided.size, source)
    return np.flatnonzero(chosen)


class _SecretBytes:
    """Bytes that follow from a secret, for one reader."""

    simulated: Final = False

    def __init__(self, secret: str) -> None:
        self._secret, self._reads = secret, 0

    def read(self, size: int) -> bytes:
        self._reads += 1
        return hashlib.shake_256(f"tacit groups {self._secret} {self._reads}".encode()).digest(size)


class Groups:
    """The groups of units, of which step t samples from number t mod `bands`; the same for the same secret."""

    def __init__(self, units: int, bands: int, secret: str) -> None:
        self.numbers = np.zeros(units, np.int64)
        if bands > 1:
            self.numbers = integers_below(bands, units, _SecretBytes(secret))
        self._members = [np.flatnonzero(self.numbers == one) for one in range(bands)]

    def at(self, step: int) -> Indices:
        """Return the units of the group of a step, ascending."""
        return self._members[step % len(self._members)]


@dataclass(frozen=True, eq=False)
class Chunk:
    """Rows that are handed out together, and for each of them the number of its unit in the chunk (None: its own)."""

    rows: Indices
    units: Indices | None
    is_last: bool
    """Whether the batch ends with it."""


class UnitRows:
    """Which rows each unit has."""

    def __init__(self, rows: int, units: Any = None) -> None:
        self._order: Indices | None = None
        self.count, self.most, self.are_named = rows, 1, units is not None
        if units is None:
            return
        ids = units.numpy() if isinstance(units, torch.Tensor) else np.asarray(units)
        if ids.ndim != 1 or len(ids) != rows:
            raise WrongType(f"units must name the unit of each of the {rows:,} rows", name="units")
        if ids.dtype.kind not in "iuUS":
            raise WrongType("units must be whole numbers or texts, without missing ones", name="units")
        _, numbers, counts = np.unique(ids, return_inverse=True, return_counts=True)
        self._order = np.argsort(numbers, kind="stable")
        self._starts = np.concatenate([[0], np.cumsum(counts)])
        self.count, self.most = len(counts), int(counts.max())

    def chunks(self, sampled: Indices, rows_max: int | None, views: int = 1) -> Iterator[Chunk]:
        """Yield the rows of sampled units in chunks; with several views, each row as often as there are views."""
        sizes = np.full(len(sampled), views)
        if self._order is not None:
            sizes = views * (self._starts[sampled + 1] - self._starts[sampled])
        ends = np.cumsum(sizes)
        first = 0
        while first < len(sampled):
            end = len(sampled)
            if rows_max is not None:
                before = ends[first - 1] if first else 0
                end = max(first + 1, int(np.searchsorted(ends, before + rows_max, side="right")))
            yield self._chunk(sampled[first:end], views, is_last=end == len(sampled))
            first = end

    def _chunk(self, sampled: Indices, views: int, *, is_last: bool) -> Chunk:
        if self._order is None:
            numbers = None if views == 1 else np.repeat(np.arange(len(sampled)), views)
            return Chunk(np.repeat(sampled, views), numbers, is_last)
        spans = [self._order[self._starts[one] : self._starts[one + 1]] for one in sampled]
        numbers = np.repeat(np.arange(len(sampled)), [len(span) for span in spans])
        return Chunk(np.repeat(np.concatenate(spans), views), np.repeat(numbers, views), is_last)


class RowReader(Protocol):
    """The rows of the data, which are read by their numbers."""

    def __len__(self) -> int: ...

    @property
    def columns(self) -> str:
        """Dtype and shape of a row's columns in words; empty where rows would have to be read."""
        ...

    def fetch(self, rows: Indices) -> Any:
        """Return some rows as a batch, as the loop of a DataLoader gives it."""
        ...


class _TensorRows:
    def __init__(self, tensors: Sequence[torch.Tensor], *, is_single: bool) -> None:
        self._tensors, self._is_single = tensors, is_single

    def __len__(self) -> int:
        return len(self._tensors[0])

    @property
    def columns(self) -> str:
        return ", ".join(f"{str(one.dtype).removeprefix('torch.')} {list(one.shape[1:])}" for one in self._tensors)

    def fetch(self, rows: Indices) -> Any:
        chosen = torch.from_numpy(rows)
        batch = tuple(one.index_select(0, chosen) for one in self._tensors)
        return batch[0] if self._is_single else batch


class _DatasetRows:
    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    def __len__(self) -> int:
        return len(self._dataset)

    @property
    def columns(self) -> str:
        return ""

    def fetch(self, rows: Indices) -> Any:
        return default_collate([self._dataset[row] for row in rows.tolist()])


def rows_of(data: Any) -> RowReader:
    """Return the rows of a torch Dataset, of a tuple of tensors or arrays with one entry per row, or of one of them."""
    if isinstance(data, TensorDataset):
        data = data.tensors
    found: RowReader
    if isinstance(data, Dataset):
        if not hasattr(data, "__len__") or not hasattr(data, "__getitem__"):
            raise WrongType(
                "Poisson sampling reads rows by their numbers; a dataset needs __len__ and __getitem__", name="data"
            )
        found = _DatasetRows(data)
    else:
        is_single = not isinstance(data, tuple | list)
        tensors = [_tensor(one) for one in ([data] if is_single else data)]
        if not tensors:
            raise EmptyInput("data has no tensors", name="data")
        if len(lengths := {len(one) for one in tensors}) > 1:
            raise InvalidInput(f"the tensors of data have different numbers of rows: {sorted(lengths)}", name="data")
        found = _TensorRows(tensors, is_single=is_single)
    if not len(found):
        raise EmptyInput("data has no rows", name="data")
    return found


def _tensor(value: Any) -> torch.Tensor:
    if not isinstance(value, torch.Tensor):
        array = np.asarray(value)
        if array.dtype.kind not in "biuf":
            raise WrongType(
                "data must be a torch Dataset, or tensors or arrays of numbers with one entry per row", name="data"
            )
        value = torch.from_numpy(np.ascontiguousarray(array))
    found: torch.Tensor = value
    if found.ndim == 0:
        raise WrongType("a tensor of data needs a dimension of rows", name="data")
    return found
