"""That there is no data shows in no type and no error: numpy's sum over nothing is a float, over integers an int."""

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tacit.mechanisms import (
    ApproximateBounds,
    DiscreteGaussian,
    Gaussian,
    Geometric,
    KeySelection,
    Laplace,
    ReportNoisyMax,
)
from tacit.privacy.errors import TooLarge, WrongType

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
    for sensitivity in (1.5, Fraction(1, 3)):
        mechanism = DiscreteGaussian(sensitivity, sigma=1)
        for total in (np.float64(0.5), np.float32(1.25), np.array(2.5)):
            with pytest.raises(WrongType, match="integers"):
                mechanism.release(total)
        for data in DATA:
            assert type(mechanism.release(np.sum(data))) is np.int64


GROUPS: list[list[list[int]]] = [[[], []], [[], [1, 1]], [[3], []], [[3], [1, 1]]]
LISTED = {
    "list": lambda sums: sums,
    "tuple": tuple,
    "rows": lambda sums: [[one] for one in sums],
    "objects": lambda sums: np.array([*sums, None], dtype=object)[:-1],
    "0-d arrays": lambda sums: [np.asarray(one) for one in sums],
    "arrays": lambda sums: [np.array([one, one]) for one in sums],
}


@pytest.mark.parametrize("held", LISTED)
@pytest.mark.parametrize("mechanism", [*WHOLE, *REAL, DiscreteGaussian(1.5, sigma=1), ReportNoisyMax(1, 0.5)], ids=repr)
def test_that_one_of_several_groups_is_empty_shows_in_no_type_and_no_error(mechanism: Any, held: str) -> None:
    if isinstance(mechanism, ReportNoisyMax) and held in ("rows", "arrays"):
        pytest.skip("scores are one list")
    seen = set()
    for groups in GROUPS:
        given = LISTED[held]([np.sum(group) for group in groups])
        released = np.asarray(mechanism.release(given))
        seen.add((released.dtype, released.shape))
        if not isinstance(mechanism, ReportNoisyMax):
            seen.add((np.asarray(mechanism.interval(0.9, given).low).dtype, released.shape))
    assert len(seen) == 1


@pytest.mark.parametrize("mechanism", [KeySelection(1.0, 1e-6), ApproximateBounds(1, 1.0, bins=1)], ids=repr)
def test_counts_of_empty_groups_are_taken_as_the_zeros_that_they_are(mechanism: Any) -> None:
    for groups in GROUPS:
        sums = [np.sum(group) for group in groups]
        for given in (sums, np.array([*sums, None], dtype=object)[:-1]):
            mechanism.release(given)
    for bad in ([np.int64(3), np.float64(0.5)], [3, 0.0], np.array([3.0, 0.0]), [3, True], ["3", 1]):
        with pytest.raises(WrongType):
            mechanism.release(bad)


@pytest.mark.parametrize("mechanism", WHOLE, ids=repr)
def test_lists_are_read_without_rounding(mechanism: Any) -> None:
    """Rounding several numbers could move neighbours further apart than the sensitivity: only whole ones are taken."""
    large = 2**60 + 1
    assert mechanism._read([np.int64(large), np.float64(0.0)]).tolist() == [large, 0]
    assert mechanism._read([[np.int64(large)], [np.float32(-2.0)]]).tolist() == [[large], [-2]]
    for refused in ([np.float64(0.5)], [np.int64(3), np.float32(0.25)], [np.float64(3), 0.0], [3, [np.float64(1)]]):
        with pytest.raises(WrongType):
            mechanism.release(refused)
    with pytest.raises(TooLarge):
        mechanism.release([np.int64(1), np.float64(2.0**63)])


def test_an_integer_of_numpy_beside_a_float_is_not_rounded_to_a_double() -> None:
    mechanism = Laplace(1.0, 1.0, grid=2**20)
    for value in (2**53 + 1, np.int64(2**53 + 1), np.uint64(2**53 + 1)):
        with pytest.raises(TooLarge, match=r"2\^53"):
            mechanism.release([value, 0.5])
    assert mechanism.release([np.int64(2**53), np.float64(0.5)]).shape == (2,)


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
