"""What is declared decides which noise is drawn, never the value that happens to come.

Numpy arrays declare by their dtype. Scalars and lists declare nothing: an empty sum is an int in Python and a float in
numpy, and whoever could tell the two laws apart would learn that it was empty. There the mechanism declares, by the
type of its sensitivity.
"""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tacit.mechanisms import DiscreteGaussian, Gaussian, Geometric, Laplace, ReportNoisyMax, SparseVector
from tacit.mechanisms.randomness import SYSTEM
from tacit.mechanisms.simulation import SeededSource
from tacit.mechanisms.sparse_vector import SparseVectorSession
from tacit.privacy.errors import TooLarge, WrongType

REAL = [1.0, np.float64(1), np.float32(1), Fraction(1), Fraction(1, 3)]
WHOLE = [1, np.int64(1), np.uint8(1)]
KINDS: list[Any] = [
    lambda sensitivity, **more: Laplace(sensitivity, 0.5, **more),
    lambda sensitivity, **more: Gaussian(sensitivity, sigma=2, **more),
]
kinds = pytest.mark.parametrize("kind", KINDS, ids=["Laplace", "Gaussian"])


def shape_of(released: Any) -> tuple[str, tuple[int, ...]]:
    array = np.asarray(released)
    return array.dtype.kind, array.shape


@kinds
@pytest.mark.parametrize("sensitivity", REAL, ids=repr)
def test_real_numbers_come_out_whatever_python_number_goes_in(kind: Any, sensitivity: Any) -> None:
    mechanism = kind(sensitivity)
    for value in (sum([]), sum([0.5]), 0, 0.5, 10**9):
        assert type(mechanism.release(value)) is float
        assert shape_of(mechanism.interval(0.9, value).low) == ("f", ())
    for values in ([], [0], [0.5], [1, 2], [1, 2.5], [[0], [1]], (3, 4), range(3)):
        assert shape_of(mechanism.release(values)) == ("f", np.shape(values))
        assert shape_of(mechanism.interval(0.9, values).low) == ("f", np.shape(values))
    assert type(mechanism.interval(0.9).low) is float


@kinds
@pytest.mark.parametrize("sensitivity", WHOLE, ids=repr)
def test_integers_come_out_whatever_integer_goes_in_and_floats_are_refused(kind: Any, sensitivity: Any) -> None:
    mechanism = kind(sensitivity)
    for value in (sum([]), 0, 10**30):
        assert type(mechanism.release(value)) is int
        assert type(mechanism.interval(0.9, value).low) is int
    for values in ([], [0], [1, 2], [[0], [1]], (3, 4), range(3)):
        assert shape_of(mechanism.release(values)) == ("i", np.shape(values))
        assert shape_of(mechanism.interval(0.9, values).low) == ("i", np.shape(values))
    assert type(mechanism.interval(0.9).low) is int
    for value in (0.0, 0.5, sum([0.5]), [0.0], [1, 2.5], [[0.5]]):
        for call in (mechanism.release, lambda value: mechanism.interval(0.9, value)):
            with pytest.raises(WrongType, match=r"sensitivity is the whole number 1; write sensitivity=1\.0"):
                call(value)


@kinds
@pytest.mark.parametrize("sensitivity", [*REAL, *WHOLE], ids=repr)
def test_a_dtype_declares_for_itself(kind: Any, sensitivity: Any) -> None:
    mechanism = kind(sensitivity)
    for whole in (np.zeros(3, dtype=np.int64), np.zeros(0, dtype=np.uint8), np.zeros((1, 1), dtype=np.int32)):
        released = mechanism.release(whole)
        assert shape_of(released) == ("i", np.shape(whole))
        assert shape_of(mechanism.interval(0.9, released).low) == ("i", np.shape(whole))
    for real in (np.zeros(3), np.zeros((1, 2), dtype=np.float32), np.zeros(1, dtype=np.float16)):
        released = mechanism.release(real)
        assert shape_of(released) == ("f", np.shape(real))
        assert shape_of(mechanism.interval(0.9, released).low) == ("f", np.shape(real))


@kinds
def test_a_grid_declares_real_numbers(kind: Any) -> None:
    mechanism = kind(1, grid=1)
    assert type(mechanism.release(3)) is float
    assert mechanism.release([1, 2]).dtype == np.float64
    assert mechanism.release(np.arange(2)).dtype == np.int64


@pytest.mark.parametrize("mechanism", [Geometric(1.0, 0.5), DiscreteGaussian(1.5, sigma=2)], ids=repr)
def test_mechanisms_for_integers_take_no_floats_whatever_their_sensitivity(mechanism: Any) -> None:
    assert type(mechanism.release(3)) is int
    assert mechanism.release([]).dtype == np.int64
    assert type(mechanism.interval(0.9).low) is int
    for value in (0.0, [0.5], np.zeros(2), [np.float64(0.5)]):
        with pytest.raises(WrongType, match="integers"):
            mechanism.release(value)


@kinds
def test_equality_and_copies_respect_the_declaration(kind: Any) -> None:
    whole, real = kind(1), kind(1.0)
    assert whole != real
    assert len({whole, real, kind(1), kind(1.0), kind(np.float64(1)), kind(Fraction(1))}) == 2
    for mechanism in (whole, real):
        changed = replace(mechanism, relation=mechanism.relation)
        assert type(changed.release(0)) is type(mechanism.release(0))
    assert kind(1, grid=1) != kind(1)


@kinds
def test_the_noise_of_one_declaration_is_not_that_of_the_other(kind: Any) -> None:
    """What an observer sees: with the declaration fixed, the number of bits of an answer does not tell the input."""
    seen = {type(kind(1.0).release(value, source=SeededSource(1))).__name__ for value in (sum([]), sum([0.5]))}
    assert seen == {"SimulatedFloat"}


@kinds
def test_whole_numbers_that_a_double_might_round_are_not_taken_for_real_numbers(kind: Any) -> None:
    mechanism = kind(1.0, grid=2**20)
    for exact in (2**53, -(2**53), [2**53, 0.5], [2.0**60, 0.5]):
        assert np.isfinite(mechanism.release(exact)).all()
    for rounded in (2**53 + 1, -(2**53) - 1, 10**400, [2**53 + 1], [2**60 + 1, 0.5]):
        with pytest.raises(TooLarge, match=r"2\^53"):
            mechanism.release(rounded)


def test_wider_floats_than_doubles_are_refused() -> None:
    if np.dtype(np.longdouble).itemsize <= 8:
        pytest.skip("long doubles are doubles here")
    with pytest.raises(WrongType, match="float64"):
        Laplace(1.0, 1).release(np.zeros(2, dtype=np.longdouble))


def test_the_noisy_maximum_draws_the_noise_that_is_declared(monkeypatch: Any) -> None:
    scales = []

    def prepared(law: Any) -> Any:
        scales.append(law.scale)
        return _Zeros()

    monkeypatch.setattr("tacit.mechanisms.selection.sampler_for", prepared)
    real, whole = ReportNoisyMax(1.0, 1), ReportNoisyMax(1, 1)
    for scores in ([0, 0], [0.5, 0], [0.5, 0.5], np.zeros(2)):
        real.release(scores)
    assert len(set(scales)) == 1
    scales.clear()
    for scores in ([0, 0], [7, 1], np.arange(2)):
        whole.release(scores)
    real.release(np.arange(2))
    assert set(scales) == {Fraction(2)}
    with pytest.raises(WrongType, match="whole number 1"):
        whole.release([0.5, 0])
    assert real != whole


class _Zeros:
    def draw(self, count: int, source: Any) -> Any:
        return np.zeros(count, dtype=np.int64)


@pytest.mark.parametrize("number", [0, 3, -7, 2**40])
def test_a_sparse_vector_puts_equal_numbers_on_the_same_mark_of_its_grid(number: int) -> None:
    session = SparseVectorSession(SparseVector(1, 0.5, 3), SYSTEM)
    assert len({session._steps(one) for one in (number, float(number), np.int64(number), np.float64(number))}) == 1
