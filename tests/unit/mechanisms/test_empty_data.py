"""That there is no data shows in no type and no error: numpy's sum over nothing is a float, over integers an int."""

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tacit.mechanisms import DiscreteGaussian, Gaussian, Geometric, KeySelection, Laplace
from tacit.privacy.errors import WrongType

DATA: list[list[int]] = [[], [1], [1, 1]]
WHOLE = [Laplace(1, 0.5), Gaussian(1, sigma=1), Geometric(1, 0.5), DiscreteGaussian(1, sigma=1)]
REAL = [Laplace(1.0, 0.5), Gaussian(1.0, sigma=1), Laplace(1, 0.5, grid=1)]


@pytest.mark.parametrize("mechanism", [*WHOLE, *REAL], ids=repr)
@pytest.mark.parametrize("total", [np.sum, lambda data: np.asarray(np.array(data).sum())], ids=["scalar", "0-d"])
def test_the_type_of_a_noisy_sum_is_the_one_that_the_mechanism_declares(mechanism: Any, total: Any) -> None:
    types = {type(mechanism.release(total(data))) for data in DATA}
    assert types == {np.int64 if mechanism in WHOLE else np.float64}
    ends = {type(mechanism.interval(0.9, total(data)).low) for data in DATA}
    assert ends == types


@pytest.mark.parametrize("mechanism", WHOLE, ids=repr)
def test_real_scalars_are_rounded_so_that_a_whole_sensitivity_stays_what_it_is(mechanism: Any) -> None:
    halves = np.arange(-20, 21) / 4
    read = [int(mechanism._read(one)) for one in halves]
    assert [int(mechanism._read(np.float64(number))) for number in range(-5, 6)] == list(range(-5, 6))
    for apart in (1, 2, 5):  # numbers at most `apart` apart are read as whole numbers at most `apart` apart
        pairs = [
            (one, two)
            for one, x in zip(read, halves, strict=True)
            for two, y in zip(read, halves, strict=True)
            if abs(x - y) <= apart
        ]
        assert max(abs(one - two) for one, two in pairs) == apart
    assert int(mechanism._read(np.float64(2.0**53 - 1))) == 2**53 - 1
    assert int(mechanism._read(np.nextafter(0.5, 0))) == 0


def test_real_scalars_are_refused_where_rounding_could_pass_the_sensitivity() -> None:
    for total in (np.float64(0), np.float64(0.5), np.float32(1), np.array(2.0)):
        for sensitivity in (1.5, Fraction(1, 3)):
            with pytest.raises(WrongType, match="integers"):
                DiscreteGaussian(sensitivity, sigma=1).release(total)


@pytest.mark.parametrize("counts", [{}, {"a": 30, "b": 1}], ids=repr)
def test_groups_are_selected_from_any_container_whether_or_not_there_are_groups(counts: dict[str, int]) -> None:
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    shown = [True, False][: len(counts)]
    mechanism = KeySelection(1.0, 1e-6)
    for given in (
        pandas.Series(counts),
        pandas.Series(Counter(counts)),
        pandas.Series(list(counts), dtype=object).value_counts(),
        polars.Series(list(counts.values())),
        np.array(list(counts.values()), dtype=object),
        list(counts.values()),
    ):
        assert mechanism.release(given).dtype == np.bool_
        assert len(mechanism.release(given)) == len(counts)
    assert mechanism.release(pandas.Series(counts) * 1000).tolist() == [True] * len(shown)


@pytest.mark.parametrize("mechanism", [*WHOLE, *REAL], ids=repr)
def test_an_array_of_objects_declares_nothing_whether_or_not_it_is_empty(mechanism: Any) -> None:
    kind = "i" if mechanism in WHOLE else "f"
    for data in DATA:
        released = mechanism.release(np.array(data, dtype=object))
        assert (released.dtype.kind, released.shape) == (kind, (len(data),))
    with pytest.raises(WrongType):
        mechanism.release(np.array(["a"], dtype=object))


@pytest.mark.parametrize("mechanism", WHOLE, ids=repr)
def test_an_empty_array_of_floats_is_an_empty_array_of_what_is_declared(mechanism: Any) -> None:
    for data in DATA:
        released = mechanism.release(np.array(data))
        assert (released.dtype, released.shape) == (np.int64, (len(data),))
