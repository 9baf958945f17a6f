"""Poisson samples and chunks."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
import torch
from torch.utils.data import Dataset, TensorDataset

from tacit.learn.dpsgd.sampling import UnitRows, poisson_sample, rows_of
from tacit.mechanisms.randomness import SYSTEM
from tacit.mechanisms.simulation import SeededSource
from tacit.privacy.errors import InvalidInput, WrongType


class Prefixes:
    """A source whose first read is two bytes for each unit, counting up, and whose further reads are a stated word."""

    simulated = True

    def __init__(self, prefix: int, word: int) -> None:
        self._prefix, self._word, self._is_first = prefix, word, True

    def read(self, size: int) -> bytes:
        number, width = (self._prefix, 2) if self._is_first else (self._word, 8)
        self._is_first = False
        return number.to_bytes(width, "little") * (size // width)


@pytest.mark.parametrize("rate", [Fraction(1, 3), Fraction(1, 2**17), Fraction(3, 7), Fraction(65535, 65536)])
def test_the_rate_is_exact(rate: Fraction) -> None:
    scaled = rate * 2**16
    first = int(scaled)
    if first:
        assert len(poisson_sample(4, rate, Prefixes(first - 1, 0))) == 4
    if first + 1 < 2**16:
        assert len(poisson_sample(4, rate, Prefixes(first + 1, 0))) == 0
    rest = int((scaled - first) * 2**64)
    assert len(poisson_sample(4, rate, Prefixes(first, rest + 1))) == 0
    if rest:
        assert len(poisson_sample(4, rate, Prefixes(first, rest - 1))) == 4


def test_a_rate_of_one_takes_everybody() -> None:
    assert poisson_sample(5, Fraction(1), SYSTEM).tolist() == [0, 1, 2, 3, 4]


def test_chunks_hold_whole_units_and_end_once() -> None:
    units = UnitRows(10, ["a", "b", "a", "c", "c", "c", "c", "b", "d", "a"])
    assert (units.count, units.most) == (4, 4)
    chunks = list(units.chunks(np.array([0, 1, 2, 3]), 5))
    assert [sorted(chunk.rows.tolist()) for chunk in chunks] == [[0, 1, 2, 7, 9], [3, 4, 5, 6, 8]]
    assert [chunk.is_last for chunk in chunks] == [False, True]
    assert [len(chunk.rows) for chunk in units.chunks(np.array([2]), 2)] == [4]
    assert list(units.chunks(np.array([], dtype=np.int64), 5)) == []


def test_units_must_be_named_for_each_row() -> None:
    for wrong in ([1, 2], [[1], [2], [3]], [1.0, 2.0, 3.0], [None, 1, 2]):
        with pytest.raises(WrongType):
            UnitRows(3, wrong)


def test_every_form_of_data_gives_the_same_rows() -> None:
    features, labels = torch.arange(12.0).reshape(6, 2), torch.arange(6)

    class Own(Dataset[tuple[torch.Tensor, torch.Tensor]]):
        def __len__(self) -> int:
            return 6

        def __getitem__(self, row: int) -> tuple[torch.Tensor, torch.Tensor]:
            return features[row], labels[row]

    wanted = np.array([1, 4])
    for data in ((features, labels), TensorDataset(features, labels), Own(), (features.numpy(), labels.numpy())):
        found = rows_of(data)
        assert len(found) == 6
        batch = found.fetch(wanted)
        assert torch.equal(batch[0], features[[1, 4]])
        assert torch.equal(batch[1], labels[[1, 4]])
    assert torch.equal(rows_of(features).fetch(wanted), features[[1, 4]])


def test_iterable_data_is_refused() -> None:
    class Stream(torch.utils.data.IterableDataset[int]):
        def __iter__(self) -> Iterator[int]:
            return iter(())

    with pytest.raises((InvalidInput, WrongType)):
        rows_of(Stream())


def test_samples_of_a_seeded_source_can_be_replayed() -> None:
    one, other = (poisson_sample(100, Fraction(1, 4), SeededSource(1)) for _ in range(2))
    assert one.tolist() == other.tolist()
